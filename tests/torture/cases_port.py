"""Cases about the port: hang-ups, other programs, modem lines, closing; and the configuration file."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable

from tests.torture.far import Far, holders
from tests.torture.stage import Case, Stage
from tests.torture.subject import NotThere, Wrong, wait

RESUME_S = 1.0
GONE = r"(?i)hang|lost|EIO|disconnect|down|gone|input/output|no such|closed"
OTHER_S = 6.0


def hang_up(stage: Stage) -> str | None:
    far = stage.device()
    stage.play(far, b"before\r\n")
    far.unplug()
    wait(
        lambda: stage.subject.look() or re.search(GONE, stage.subject.told()), 4, "says nothing of a port that hung up"
    )
    far.plug()
    took = _again(stage, far, 10 * stage.subject.haste)
    return f"said so; read on {took:.2f} s after the replug"


def renamed(stage: Stage) -> str | None:
    far = stage.device()
    stage.play(far, b"before\r\n")
    far.unplug()
    time.sleep(0.4)
    far.plug(elsewhere=True)
    far.say(b"FIRST WORDS\r\n")
    took = _again(stage, far, 6 * stage.subject.haste)
    if took > RESUME_S:
        raise Wrong(f"read on only after {took:.1f} s")
    if b"FIRST WORDS" not in stage.subject.stored():
        raise Wrong(f"read on after {took:.2f} s, without what the device had said first")
    if not re.search(r"\d+ ?m?s\b", stage.subject.told()):
        raise Wrong("tells no gap with its duration")
    return f"read on after {took:.2f} s, nothing lost, the gap is told"


def _again(stage: Stage, far: Far, within_s: float) -> float:
    """Seconds until something that is said now has been stored."""
    began, count = time.monotonic(), 0
    while b"AFTER " not in stage.subject.stored():
        if time.monotonic() - began > within_s:
            raise Wrong(f"never read on ({within_s:g} s after the replug)")
        if time.monotonic() - began > 0.05 * count:
            far.say(b"AFTER %d\r\n" % count)
            count += 1
        try:
            stage.subject.settle(b"AFTER ", 0.05)
        except Wrong as error:
            if "never" not in str(error):
                raise
    return time.monotonic() - began


class Other:
    """Another program on the node: `code` has it as `fd`, unless the open was `refused` (its words)."""

    def __init__(self, node: str, code: str, prefix: tuple[str, ...] = ()) -> None:
        program = (
            "import os, sys, time, fcntl\n"
            "try:\n    fd = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)\n"
            "except OSError as error:\n    print('refused:', error.strerror, flush=True); sys.exit()\n"
            f"{code}\nprint('open', flush=True)\nsys.stdin.read()\n"
        )
        argv = [*prefix, sys.executable, "-S", "-c", program, node]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert self._process.stdout is not None
        said = self._process.stdout.readline().decode().strip()
        self.pid = self._process.pid
        self.refused = "" if said == "open" else said

    def __enter__(self) -> Other:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


THREAD = (
    "import threading\nthreading.Thread(target=lambda: [os.read(fd, 100) for _ in iter(int, 1)], daemon=True).start()"
)


def second_reader(stage: Stage) -> str | None:
    far = stage.device()
    stage.play(far)
    with Other(far.node, THREAD) as thief:
        if thief.refused:
            return f"the other program was {thief.refused}"
        said = b"".join(b"line %04d\r\n" % n for n in range(1000))
        far.say(said)
        wait(
            lambda: _names(stage, thief.pid),
            OTHER_S,
            "says nothing of another program that reads the port",
        )
    stolen = len(said) - stage.subject.stored().count(b"line ") * 11
    return f"named it by pid; about {max(0, stolen)} of {len(said)} bytes had gone to it"


def _names(stage: Stage, pid: int) -> bool:
    stage.subject.look()
    return str(pid) in stage.subject.told()


def at_from_nowhere(stage: Stage) -> str | None:
    far = stage.device()
    stage.play(far)
    with Other(far.node, "os.write(fd, b'AT\\r')") as intruder:
        if intruder.refused:
            return f"the other program was {intruder.refused}"
        if b"AT" not in far.hear(5, lambda got: b"AT\r" in got):
            raise Wrong("the case itself failed: AT never reached the device")
        wait(lambda: _names(stage, intruder.pid), OTHER_S, "says nothing of who types into the port")
    return "named it by pid"


def locked(stage: Stage) -> str | None:
    """Both ways: a port that another program has locked, and one of ours that another opens."""
    far = stage.bare()
    with Other(far.node, "fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)") as holder:
        assert not holder.refused, holder.refused
        try:
            stage.subject.open(far.path)
        except Wrong as error:
            refusal = str(error)
        else:
            raise Wrong("opens a port that another program has locked")
        named = str(holder.pid) in refusal
    mine = stage.device()
    stage.play(mine)
    plain = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--") if os.geteuid() == 0 else ()
    with Other(mine.node, "", plain) as other:
        if not other.refused:
            raise Wrong("refuses a locked port, but any program can open the one that it has itself")
    return f"refused ({'names the holder' if named else 'does not say whose'}); others are kept out"


DTR_BOARD = 'title = "DTR is wired to reset"\nbanner = "boot\\n"\nprompt = "> "\n[wires]\ndtr = "rise"\n'


def open_resets(stage: Stage) -> str | None:
    file = stage.folder / "dtr.toml"
    stage.folder.mkdir(parents=True, exist_ok=True)
    file.write_text(DTR_BOARD)
    board = stage.board(str(file), "--rfc2217", "0")
    host, _, port = board.ready["url"].removeprefix("rfc2217://").rpartition(":")
    for _ in range(2):
        stage.subject.open_net(host, int(port))
        board.ask("say hello")
        stage.subject.settle(b"hello")
        stage.subject.close()
    resets = [entry for entry in board.record("reset") if entry.get("by") == "dtr"]
    if resets:
        raise Wrong(f"reset the board {len(resets)} times in two opens")
    return "two opens and closes, DTR never rose"


def slow_close(stage: Stage) -> str | None:
    far = stage.device()
    stage.play(far)
    sending = threading.Thread(target=_quietly, args=(lambda: stage.subject.send(b"y" * 200_000, 15),), daemon=True)
    sending.start()
    far.hear(2)
    time.sleep(0.3)
    began = time.monotonic()
    stage.subject.close()
    wait(lambda: not list(holders(far.node)), 3, "has the port open for over 3 s after its close")
    took = time.monotonic() - began
    if took > 3:
        raise Wrong(f"closed after {took:.1f} s")
    return f"closed after {took:.2f} s"


def _quietly(work: Callable[[], object]) -> None:
    with contextlib.suppress(Exception):
        work()


def no_uart(stage: Stage) -> str | None:
    far = stage.device(baud=1_234_567)
    stage.play(far)
    try:
        said = stage.subject.lines()
    except NotThere:
        return "opens; it has nothing to show modem lines with"
    if not re.search(r"(?i)no modem|exit 7", said):
        raise Wrong(f"claims modem lines: {said}")
    return "opens, and says that there are no modem lines"


def no_break(stage: Stage) -> str | None:
    stage.device()
    said = stage.subject.send_break()
    if not re.search(r"(?i)exit 7|no break|not support|can't", said):
        raise Wrong(f"says `{said}`, and there was none")
    return "says that there is none"


def carrier(stage: Stage) -> str | None:
    far = stage.device()
    stage.play(far)
    _, _, cflag, _ = far.modes
    if not cflag & termios.CLOCAL:
        raise Wrong("CLOCAL is off: a carrier that drops would hang the port up")
    if cflag & termios.HUPCL:
        raise Wrong("HUPCL is on: each close drops DTR")
    return "CLOCAL on, HUPCL off"


LAB = (
    '\ufeff# the lab; do not touch\r\n[targets.b]\r\ndescription   =   "two"   # aligned\r\n\r\n'
    "[[targets.b.serial]]\r\n"
    'name = "console"\r\ndevice = "/dev/ttyUSB1"\r\n\r\n[targets.a] # between\r\ndescription = "one"\t# mine\r\n'
    '\r\n[[targets.b.serial]]\r\nname = "bmc"   # split on purpose\r\ndevice = "/dev/ttyUSB2"'
)


def edited(stage: Stage) -> str | None:
    stage.folder.mkdir(parents=True, exist_ok=True)
    file = stage.folder / "edited.toml"
    file.write_bytes(LAB.encode())
    stage.subject.edit(file, "a", "description", "new")
    wanted = LAB.replace('"one"', '"new"').encode()
    if file.read_bytes() != wanted:
        before, after = LAB.encode().split(b"\n"), file.read_bytes().split(b"\n")
        changed = sum(a != b for a, b in zip(before, after, strict=False)) + abs(len(before) - len(after))
        raise Wrong(f"{changed} of {len(before)} lines differ after a change of one value")
    stage.subject.edit(file, "a", "description", "new")
    if file.read_bytes() != wanted:
        raise Wrong("setting the same value again changed the file")
    return "one line changed; the same again changed nothing"


CASES = (
    Case(
        "18",
        "the port hangs up",
        "Linux tty semantics, asterinas PR 2550",
        "the far end goes; comes back under the same name",
        "said; the reader lives on and reads again",
        hang_up,
        {"naive": "never read on"},
        waits=True,
    ),
    Case(
        "19",
        "the device returns under another node",
        "libmodbus #217, optolink #236",
        "gone for 400 ms, back as another /dev/pts/N, speaks at once",
        f"reads on within {RESUME_S:g} s, without losing what it said first; the gap is told",
        renamed,
        {"naive": "never read on"},
    ),
    Case(
        "21",
        "a second reader steals bytes",
        "pyserial #86, #341",
        "another program opens the node and reads while 11 kB come",
        "kept out, or named",
        second_reader,
        {"naive": "says nothing"},
        waits=True,
    ),
    Case(
        "22",
        "locks that are only advice",
        "picocom PR 111, satpulse #117",
        "a port that another program has flocked; "
        "a plain open by an unprivileged program of the port that the subject has",
        "refused; kept out by the kernel",
        locked,
        {"naive": "another program has locked"},
        waits=True,
    ),
    Case(
        "24",
        "opening resets the board",
        "pyserial #124, #253",
        "an RFC 2217 port whose DTR is wired to reset; open and close twice with DTR to be left low",
        "no reset",
        open_resets,
        {"naive": "reset the board"},
    ),
    Case(
        "27",
        "closing blocks",
        "serialx PR 7, pyserial #226",
        "200 kB are being sent to a device that does not read; close",
        "the port is free within 3 s",
        slow_close,
        {"naive": "never came back|closed after"},
        waits=True,
    ),
    Case(
        "28",
        "a port that is no UART",
        "pyserial #133, serialport-rs #22",
        "a PTY at 1234567 baud; its modem lines",
        "opens; no modem lines are claimed, no exception",
        no_uart,
        {"naive": "OSError|ioctl|claims"},
    ),
    Case(
        "32",
        "a modem prober types into the port",
        "rusefi #4359",
        "another program opens the node and writes AT CR",
        "kept out, or named",
        at_from_nowhere,
        {"naive": "says nothing"},
        waits=True,
    ),
    Case(
        "36",
        "an edit damages the rest of the file",
        "tomlkit #98, #145, #381, #261",
        "BOM, CRLF, no final line end, comments, an array of tables split by another table; one value is changed",
        "one line differs; the same again: none",
        edited,
        {"naive": "lines differ"},
    ),
    Case(
        "M2",
        "hang-up without carrier",
        "ser2net #18, labgrid PR 285",
        "a node with a terminal's settings",
        "CLOCAL on, HUPCL off after the open",
        carrier,
        {"cat": "CLOCAL"},
    ),
    Case(
        "M3",
        "break where there is none",
        "labgrid #1759",
        "a break on a PTY",
        "said that there is none, no exception",
        no_break,
        {"naive": "says"},
    ),
)
