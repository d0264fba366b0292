"""Cases about bytes and text: what is kept must be exact, what is shown must be what was meant."""

from __future__ import annotations

import contextlib
import re
import termios
import threading
import time

from tests.torture.far import holders
from tests.torture.stage import END, Case, Stage, speaking
from tests.torture.subject import NotThere, Wrong, memory_mb, wait

FEW_MS = 1000  # a loaded machine; what was measured is told


def utf8_cut(stage: Stage) -> str | None:
    far = stage.device()
    stage.stored_exactly(stage.play(far, b"\xe2\x82", 0.05, b"\xac\n"))
    shown = stage.lines()
    if "�" in "".join(shown):
        raise Wrong(f"shows U+FFFD: {shown}")
    if "€" not in shown:
        raise Wrong(f"shows no line €: {shown}")
    return None


def invalid_utf8(stage: Stage) -> str | None:
    far = stage.device()
    stage.stored_exactly(stage.play(far, b"\xb7\xff\n"))
    line = stage.lines()[0]
    if not re.fullmatch(r"(�|\\xb7\\xff|<b7><ff>){1,2}", line):
        raise Wrong(f"shows {line!r}, where two bytes were no text")
    return f"shown as {line}"


def invalid_from_run(stage: Stage) -> str | None:
    board = stage.board("dash-shell")
    stage.subject.open(board.path, prompt=r"# ")
    ran = stage.subject.run(r"printf '\267\377ok\n'", 15)
    if ran.code != 0 or "ok" not in ran.out:
        raise Wrong(f"code {ran.code}, output {ran.out!r}")
    return f"output {ran.out.strip()!r}"


def all_values(stage: Stage) -> str | None:
    far = stage.device()
    mark = b"MARK rc=7\r\n# "
    matched = ""
    with speaking(lambda: far.say(bytes(range(256)) + mark)), contextlib.suppress(NotThere):
        found = stage.subject.expect(r"MARK rc=(\d)\r?\n", 5)
        if found is None or found.groups != ("7",):
            raise Wrong(f"a pattern behind a NUL: found {found and found.text}")
        matched = "a pattern behind the NUL matches"
    stage.play(far)
    stage.stored_exactly(bytes(range(256)) + mark)
    return matched


def flow_control_bytes(stage: Stage) -> str | None:
    given = b"\x11\x13\x0dA\x03\x04"
    far = stage.device()
    stage.stored_exactly(stage.play(far, given))
    far.unplug()
    time.sleep(0.1)
    far.plug(cooked=True, elsewhere=True)
    try:
        wait(lambda: list(holders(far.node)), 10, "")
    except Wrong:
        return "raw at its open; it never opens again (10 s)"
    time.sleep(0.2)  # what is said before the node is raw is the terminal driver's, whoever reads it later
    far.say(given + END)
    wait(lambda: stage.subject.stored().count(END.strip()) > 1, 10, "read nothing after its re-open")
    again = stage.subject.stored().partition(END)[2]
    if given not in again:
        raise Wrong(f"after the re-open stored {again!r}")
    iflag, _, _, lflag = far.modes
    if iflag & (termios.IXON | termios.ICRNL) or lflag & (termios.ICANON | termios.ECHO | termios.ISIG):
        raise Wrong("the node is not raw after the re-open")
    return "at the open and at the re-open"


def progress(stage: Stage) -> str | None:
    far = stage.device()
    states = b"".join(b"%5.1f%% downloading\r" % (n / 30) for n in range(3000))
    stage.stored_exactly(stage.play(far, states, b"done\r\n"))
    shown = stage.lines()
    longest = max(map(len, shown))
    if longest > 1000:
        raise Wrong(f"a line of {longest} characters in its text")
    if not any("done" in line for line in shown):
        raise Wrong("its text has lost the last state, `done`")
    return f"shown as {[line for line in shown if 'done' in line][-1]!r}"


def prompt_without_end(stage: Stage) -> str | None:
    far = stage.device()
    stage.play(far)
    far.say(b"\r\nlogin: ")
    began = time.monotonic()
    wait(lambda: _looked(stage)[-1:] == ["login: "], 3, "a prompt without a line end can't be seen in 3 s")
    took = (time.monotonic() - began) * 1000
    if took > FEW_MS:
        raise Wrong(f"the prompt could be seen after {took:.0f} ms")
    far.say(b"root\r\nok\r\n")
    wait(lambda: "ok" in _looked(stage), 5, "never showed what came behind the prompt")
    with_login = [line for line in stage.subject.shown() if "login:" in line]
    if with_login != ["login: root"]:
        raise Wrong(f"the line that ended is {with_login} in its text")
    return f"seen after {took:.0f} ms"


def _looked(stage: Stage) -> list[str]:
    """The shown lines that are not empty."""
    stage.subject.look()
    return [line for line in stage.subject.shown() if line]


def endless_line(stage: Stage) -> str | None:
    far = stage.device()
    size, patience = (10_000_000, 120) if stage.full else (2_000_000, 25)
    data = (b"0123456789abcdef" * (size // 16)) + b"\r\n"
    pids = stage.subject.pids()
    before, grown, over = memory_mb(pids), [0.0], threading.Event()

    def measure() -> None:
        while not over.wait(0.02):
            grown.append(memory_mb(pids) - before)

    meter = threading.Thread(target=measure, daemon=True)
    meter.start()
    began = time.monotonic()
    try:
        with speaking(lambda: far.say(data + END, within_s=patience)):
            stage.subject.settle(END.strip(), patience)
        took = time.monotonic() - began
    except Wrong:
        raise Wrong(f"stored {len(stage.subject.stored())} of {len(data) + len(END)} bytes in {patience} s") from None
    finally:
        over.set()
        meter.join()
    stage.stored_exactly(data)
    if max(grown) > 1.5 * size / 1e6 + 8:
        raise Wrong(f"grew by {max(grown):.0f} MB over a line of {size // 1_000_000} MB")
    return f"{size / 1e6 / took:.1f} MB/s, grew by {max(grown):.0f} MB"


def crcrlf(stage: Stage) -> str | None:
    return _shown(stage, [b"one\r\r\ntwo\r\r\n"], ["one", "two"])


def backspace(stage: Stage) -> str | None:
    return _shown(stage, [b"wrong" + b"\b" * 5 + b" " * 5 + b"\b" * 5 + b"right\r\n"], ["right"])


def cut_crlf(stage: Stage) -> str | None:
    return _shown(stage, [b"one\r", 0.1, b"\ntwo\r\n"], ["one", "two"])


def cut_escape(stage: Stage) -> str | None:
    return _shown(stage, [b"plain \x1b[01;", 0.05, b"31mred\x1b[0m plain\r\n"], ["plain red plain"])


def _shown(stage: Stage, pieces: list[bytes | float], wanted: list[str]) -> None:
    far = stage.device()
    stage.stored_exactly(stage.play(far, *pieces))
    if stage.lines() != wanted:
        raise Wrong(f"shown as {stage.lines()}")


CASES = (
    Case(
        "1",
        "UTF-8 split across reads",
        "pexpect #9, pytest-embedded PR 426",
        "E2 82, 50 ms, AC 0A",
        "kept exactly; one line €, no U+FFFD",
        utf8_cut,
        {"naive": "U\\+FFFD|stored"},
    ),
    Case(
        "2",
        "bytes that are no UTF-8",
        "labgrid #203",
        "B7 FF 0A",
        "no exception; kept exactly; the text says that there was something",
        invalid_utf8,
        {"naive": "stored"},
    ),
    Case(
        "2b",
        "the same as a command's output",
        "labgrid #203",
        "run: printf '\\267\\377ok\\n' in dash",
        "an answer with its exit code, no exception",
        invalid_from_run,
        waits=True,
    ),
    Case(
        "3",
        "NUL and all 256 values",
        "tio NEWS 3.9",
        "00 … FF, MARK rc=7",
        "kept exactly; the number behind the NUL matches",
        all_values,
        {"naive": "stored"},
    ),
    Case(
        "4",
        "XON, XOFF, CR, ^C, ^D eaten by the terminal driver",
        "conserver's default ixon; CSerialPort #26",
        "11 13 0D 41 03 04 on a node with a terminal's settings; the same after a replug",
        "raw at the open and at each re-open",
        flow_control_bytes,
        {"cat": "stored"},
        waits=True,
    ),
    Case(
        "5",
        "progress by carriage returns",
        "borgbackup #6953, tio PR 121",
        "3000 states, CR between, then done CR LF",
        "kept exactly; no line of the text grows for ever, the last state is in it",
        progress,
        {"naive": "stored|characters", "cat": "stored|characters"},
    ),
    Case(
        "6",
        "a prompt without a line end",
        "tio NEWS",
        "CR LF login: SPACE, silence; later root CR LF",
        "to be seen at once; one line `login: root` when it ends",
        prompt_without_end,
        {"naive": "the line that ended", "cat": "can't be seen"},
        waits=True,
    ),
    Case(
        "7",
        "a line that never ends",
        "unbounded pending lines",
        "10 MB (tests: 2 MB) without a line end",
        "kept exactly, memory bounded",
        endless_line,
        {"cat": "stored \\d+"},
        measures=True,
    ),
    Case(
        "40",
        "lines that end CR CR LF",
        "met with U-Boot and telnet servers",
        "one CR CR LF two CR CR LF",
        "kept exactly; two lines, no empty one",
        crcrlf,
        {"cat": "stored"},
    ),
    Case(
        "41",
        "text that is rubbed out",
        "boot loaders' line editing",
        "wrong BS×5 SP×5 BS×5 right",
        "kept exactly; shown: right",
        backspace,
        {"naive": "stored|shown"},
    ),
    Case(
        "42",
        "CR, a pause, LF",
        "chunked reads",
        "one CR, 100 ms, LF two CR LF",
        "kept exactly; two lines, no empty one",
        cut_crlf,
        {"naive": "stored|shown"},
    ),
    Case(
        "43",
        "an escape sequence cut in two",
        "chunked reads",
        "plain ESC[01; 50 ms 31mred ESC[0m plain",
        "kept exactly; shown without any of it",
        cut_escape,
        {"naive": "stored|shown"},
    ),
)
