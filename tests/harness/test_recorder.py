"""The recorder must not be noticed, by the program or by its caller, and must not miss anything."""

import json
import os
import pty
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import recorder
from tests.harness.conftest import DEADLINE_S, alive, wait_until

PYTHON = sys.executable
EVERY_BYTE = bytes(range(256))


class Recorded:
    """A program behind a recorder, and the log."""

    def __init__(self, directory: Path, program: Callable[..., Path]) -> None:
        self.bin = directory / "bin"
        self.bin.mkdir()
        self.log = directory / "argv.jsonl"
        self._program = program
        self.started: list[subprocess.Popen[bytes]] = []

    def put(self, text: str, name: str = "tool") -> str:
        """Wrap a program with this text; returns the wrapper's path."""
        return self.wrap(str(self._program(name, text)), name)

    def python(self, text: str) -> str:
        return self.put(f"#!{PYTHON} -IS\nimport os, signal, sys, time\n{text}")

    def wrap(self, real: str, name: str = "tool") -> str:
        return recorder.install(str(self.bin), name, real, str(self.log))

    def start(self, argv: list[Any], **how: Any) -> "subprocess.Popen[bytes]":
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
        child = subprocess.Popen(argv, start_new_session=how.pop("start_new_session", True), **how)
        self.started.append(child)
        return child

    def run(self, argv: list[Any], given: bytes = b"", **how: Any) -> tuple[int, bytes, bytes]:
        child = self.start(argv, stdin=subprocess.PIPE, **how)
        out, err = child.communicate(given, timeout=DEADLINE_S)
        return child.returncode, out, err

    def records(self, kind: str | None = None) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.log.read_bytes().split(b"\n") if line]
        return [record for record in found if kind in (None, record["rec"])]


@pytest.fixture
def recorded(tmp_path: Path, program: Callable[..., Path]) -> Iterator[Recorded]:
    made = Recorded(tmp_path, program)
    yield made
    for child in made.started:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        child.wait(DEADLINE_S)
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream:
                stream.close()


def first_line(child: "subprocess.Popen[bytes]") -> bytes:
    assert child.stdout is not None
    ready, _, _ = select.select([child.stdout], [], [], DEADLINE_S)
    assert ready, "the program's first line never came"
    return child.stdout.readline()


# -- words and records --------------------------------------------------------------------------------------------


def test_every_argument_reaches_the_program_and_the_record_as_it_was_given(recorded: Recorded) -> None:
    tool = recorded.python("sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])) + b'\\0')")
    words = [
        b"",
        b"a b",
        b"line\nbreak",
        b"tab\t",
        b"'\"\\$`",
        b"-h",
        b"--",
        b"\xff\xfe\x80",
        "ü€".encode(),
        b"x" * 60000,
    ]

    code, out, err = recorded.run([tool, *words])

    assert (code, err) == (0, b"")
    assert out.split(b"\0")[:-1] == words
    argv = recorded.records("start")[0]["argv"]
    assert [word.encode("utf-8", "surrogateescape") for word in argv] == [b"tool", *words]


def test_a_newline_in_an_argument_forges_no_second_record(recorded: Recorded) -> None:
    tool = recorded.put("#!/bin/sh\nexit 0\n")
    recorded.run([tool, '\n{"rec": "end", "code": 0}\n'])
    assert [record["rec"] for record in recorded.records()] == ["start", "end"]


def test_the_record_says_who_where_and_how_it_ended(recorded: Recorded, tmp_path: Path) -> None:
    tool = recorded.put("#!/bin/sh\necho out; echo err >&2; exit 3\n")
    code, out, err = recorded.run([tool, "x"], cwd=tmp_path)
    start, end = recorded.records()
    assert (code, out, err) == (3, b"out\n", b"err\n")
    assert start["program"] == tool
    assert start["cwd"] == str(tmp_path)
    assert start["id"] == end["id"]
    assert (end["code"], end["signal"]) == (3, None)
    assert (end["stdout_head"], end["stderr_head"]) == ("out\n", "err\n")
    assert end["duration_ms"] > 0


def test_the_record_says_when_the_first_byte_came_on_whichever_stream(recorded: Recorded) -> None:
    tool = recorded.put("#!/bin/sh\nsleep 0.3; test $# = 0 || exit 0; echo err >&2; sleep 0.2; echo out\n")
    recorded.run([tool])
    recorded.run([tool, "quiet"])
    spoke, silent = recorded.records("end")
    assert 300 <= spoke["first_byte_ms"] <= spoke["duration_ms"] - 150
    assert silent["first_byte_ms"] is None


def test_the_head_is_cut_and_may_hold_any_byte(recorded: Recorded) -> None:
    tool = recorded.python("sys.stdout.buffer.write(bytes(range(256)) * 40)")
    _, out, _ = recorded.run([tool])
    head = recorded.records("end")[0]["stdout_head"].encode("utf-8", "surrogateescape")
    assert out == EVERY_BYTE * 40
    assert head == out[: len(head)]
    assert len(head) == 512


def test_the_start_is_on_record_before_the_program_does_anything(recorded: Recorded) -> None:
    tool = recorded.put(f"#!/bin/sh\ncat '{recorded.log}'\n")
    _, out, _ = recorded.run([tool])
    assert json.loads(out)["rec"] == "start"


def test_forty_at_once_never_mix_their_lines(recorded: Recorded) -> None:
    tool = recorded.put("#!/bin/sh\nexit 0\n")
    words = ["w" * 5000 + str(number) for number in range(40)]
    for child in [recorded.start([tool, word]) for word in words]:
        assert child.wait(DEADLINE_S) == 0
    assert sorted(record["argv"][1] for record in recorded.records("start")) == sorted(words)
    assert len({record["id"] for record in recorded.records("end")}) == 40


def test_what_cannot_be_recorded_is_not_run_and_nothing_is_printed(recorded: Recorded, tmp_path: Path) -> None:
    tool = recorded.put(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    recorded.log.mkdir()
    assert recorded.run([tool]) == (126, b"", b"")
    assert not (tmp_path / "ran").exists()


def test_a_program_that_vanished_is_127_and_one_that_may_not_be_run_is_126(recorded: Recorded, tmp_path: Path) -> None:
    tool = recorded.put("#!/bin/sh\nexit 0\n")
    (tmp_path / "real" / "tool").unlink()
    assert recorded.run([tool]) == (127, b"", b"")
    (tmp_path / "real" / "tool").mkdir()
    assert recorded.run([tool]) == (126, b"", b"")
    ends = recorded.records("end")
    assert [end["code"] for end in ends] == [127, 126]
    assert all("real/tool" in end["error"] for end in ends)


def test_installing_over_nothing_or_under_a_strange_name_is_refused(recorded: Recorded) -> None:
    with pytest.raises(FileNotFoundError):
        recorded.wrap("/nowhere/tool")
    with pytest.raises(PermissionError):
        recorded.wrap("/etc/passwd")
    with pytest.raises(ValueError, match="name"):
        recorded.wrap("/bin/sh", "../sh")
    recorded.wrap("/bin/sh")
    with pytest.raises(FileExistsError):
        recorded.wrap("/bin/cat")


def test_a_script_without_a_shebang_runs_as_a_shell_would_run_it(recorded: Recorded) -> None:
    tool = recorded.put('echo "$#:$2"\n')
    assert recorded.run([tool, "a", "b c"]) == (0, b"2:b c\n", b"")


def test_it_works_with_an_interpreter_whose_path_fits_no_shebang(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "it's a long way"
    odd.mkdir()
    (odd / "python").symlink_to(sys._base_executable)  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "_base_executable", str(odd / "python"))
    tool = recorded.put('#!/bin/sh\nprintf "[%s]" "$@"; exit 4\n')
    assert recorded.run([tool, "a b", "", "c\n"]) == (4, b"[a b][][c\n]", b"")
    assert recorded.records("start")[0]["argv"] == ["tool", "a b", "", "c\n"]
    assert recorded.records("start")[0]["program"] == tool


# -- surroundings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("locale", [{}, {"LC_ALL": "C"}, {"LANG": "de_DE.ISO-8859-1"}])
def test_the_environment_is_passed_on_byte_for_byte(recorded: Recorded, locale: dict[str, str]) -> None:
    tool = recorded.put("#!/bin/cat\n")
    recorded.log.touch()
    env = {
        b"EMPTY": b"",
        b"BYTES": b"\xff=\n",
        b"odd name": b"1",
        **{k.encode(): v.encode() for k, v in locale.items()},
    }
    tool = recorded.wrap("/usr/bin/env", "environment")
    code, out, _ = recorded.run([tool, "-0"], env=env)
    assert code == 0
    assert dict(entry.split(b"=", 1) for entry in out.split(b"\0") if entry) == env


def test_directory_mask_limits_and_further_descriptors_are_the_callers(recorded: Recorded, tmp_path: Path) -> None:
    tool = recorded.python(
        "import resource; os.write(3, b'three')\n"
        "m = os.umask(0); print(os.getcwd(), oct(m), resource.getrlimit(resource.RLIMIT_NOFILE)[0], os.getsid(0))"
    )
    script = f"cd '{tmp_path}' && umask 027 && ulimit -n 77 && exec '{tool}' 3>three"
    child = recorded.start(["/bin/sh", "-c", script])
    out, err = child.communicate(timeout=DEADLINE_S)
    assert out.split() == [str(tmp_path).encode(), b"0o27", b"77", str(child.pid).encode()], err
    assert (tmp_path / "three").read_bytes() == b"three"


def test_closed_standard_streams_stay_closed(recorded: Recorded, tmp_path: Path) -> None:
    tool = recorded.python(
        f"open('{tmp_path}/seen', 'w').write(repr([os.path.exists(f'/dev/fd/{{n}}') for n in (0, 1, 2)]))"
    )
    child = recorded.start(["/bin/sh", "-c", f"exec '{tool}' <&- >&- 2>&-"])
    assert child.wait(DEADLINE_S) == 0
    # Python itself opens the script as the lowest free descriptor and closes it again before it looks.
    assert (tmp_path / "seen").read_text().count("True") <= 1
    end = recorded.records("end")[0]
    assert (end["code"], end["stdout_head"], end["stderr_head"]) == (0, None, None)


# -- streams ------------------------------------------------------------------------------------------------------


def test_every_byte_value_goes_in_and_out_unchanged(recorded: Recorded) -> None:
    tool = recorded.wrap("/bin/cat")
    assert recorded.run([tool], EVERY_BYTE * 3) == (0, EVERY_BYTE * 3, b"")


def test_ten_megabytes_pass_whole_both_ways(recorded: Recorded) -> None:
    tool = recorded.wrap("/bin/cat")
    data = os.urandom(1 << 20) * 10
    started = time.monotonic()
    code, out, _ = recorded.run([tool], data)
    assert (code, len(out), out == data) == (0, len(data), True)
    assert time.monotonic() - started < DEADLINE_S


def test_output_arrives_while_the_program_still_runs(recorded: Recorded) -> None:
    tool = recorded.put('#!/bin/sh\necho first; read line; echo "then $line"\n')
    child = recorded.start([tool], stdin=subprocess.PIPE)
    assert first_line(child) == b"first\n"
    out, _ = child.communicate(b"go\n", timeout=DEADLINE_S)
    assert out == b"then go\n"


def test_stdout_and_stderr_that_are_one_pipe_keep_their_order(recorded: Recorded) -> None:
    tool = recorded.python(
        "for n in range(500): os.write(1 + n % 2, b'%d\\n' % n)"
    )  # fmt: skip
    code, out, _ = recorded.run([tool], stderr=subprocess.STDOUT)
    assert code == 0
    assert out.split() == [b"%d" % n for n in range(500)]
    end = recorded.records("end")[0]
    assert (end["merged"], end["stderr_head"]) == (True, None)
    recorded.run([tool])
    assert "merged" not in recorded.records("end")[1]


def test_a_reader_that_goes_away_gives_the_program_its_sigpipe(recorded: Recorded) -> None:
    tool = recorded.wrap("/usr/bin/yes", "yes")
    child = recorded.start([tool])
    assert child.stdout is not None
    child.stdout.read(100)
    child.stdout.close()
    assert child.wait(DEADLINE_S) == -signal.SIGPIPE
    assert recorded.records("end")[0]["signal"] == "SIGPIPE"


def test_a_program_that_closes_its_input_lets_the_writer_know(recorded: Recorded) -> None:
    tool = recorded.put("#!/bin/sh\nexec <&-; echo closed; sleep 600\n")
    read, write = os.pipe()
    child = recorded.start([tool], stdin=read)
    os.close(read)
    assert first_line(child) == b"closed\n"
    deadline = time.monotonic() + DEADLINE_S
    with pytest.raises(BrokenPipeError):  # once the recorder has seen it, too
        while time.monotonic() < deadline:
            os.write(write, b"x")
            time.sleep(0.02)
    os.close(write)


def test_a_stream_that_the_program_closes_ends_for_its_reader(recorded: Recorded) -> None:
    tool = recorded.put("#!/bin/sh\necho x; exec >&-; sleep 600\n")
    child = recorded.start([tool])
    assert child.stdout is not None
    assert child.stdout.read() == b"x\n"
    assert child.poll() is None


def test_a_daemon_left_behind_neither_delays_the_end_nor_loses_its_voice(recorded: Recorded, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    tool = recorded.put(f"#!/bin/sh\n(read x < '{go}'; echo later) &\necho started\n")
    child = recorded.start([tool])
    assert child.wait(DEADLINE_S) == 0
    assert recorded.records("end")[0]["code"] == 0
    go.write_text("go\n")
    assert child.stdout is not None
    assert child.stdout.read() == b"started\nlater\n"


def test_a_slow_reader_does_not_keep_an_ended_program_alive_and_still_gets_all(recorded: Recorded) -> None:
    tool = recorded.python("os.write(1, b'x' * 60000); os.write(1, b'y' * 60000)")
    child = recorded.start([tool])
    assert child.wait(DEADLINE_S) == 0
    assert child.stdout is not None
    assert child.stdout.read() == b"x" * 60000 + b"y" * 60000


def test_a_copier_that_gets_no_turn_is_waited_for_and_the_record_is_whole(recorded: Recorded) -> None:
    tool = Path(recorded.put("#!/bin/sh\necho out; echo err >&2\n"))
    slowed = (
        "import recorder, time\nhonest = recorder.copy\n"
        "def late(*descriptors):\n    until = time.monotonic() + 0.9\n    while time.monotonic() < until: pass\n"
        "    honest(*descriptors)\nrecorder.copy = late\nfrom recorder import main\n"
    )  # a process that is busy with something else is to the system what one is that waits for its turn
    tool.write_text(tool.read_text().replace("from recorder import main\n", slowed))
    assert recorded.run([str(tool)]) == (0, b"out\n", b"err\n")
    end = recorded.records("end")[0]
    assert (end["stdout_head"], end["stderr_head"]) == ("out\n", "err\n")
    assert end["first_byte_ms"] >= 900


def test_a_full_pipe_holds_nobody_up_who_writes_into_it(recorded: Recorded) -> None:
    tool = recorded.python("os.write(1, b'x' * 60000); os.write(1, b'y' * 60000); sys.stderr.write('z')")
    child = recorded.start([tool])  # nobody reads
    assert child.wait(DEADLINE_S) == 0
    end = recorded.records("end")[0]
    assert (end["stdout_head"], end["stderr_head"]) == ("x" * 512, "z")
    assert end["first_byte_ms"] is not None


# -- exit codes and signals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 2, 77, 126, 127, 128, 130, 255])
def test_the_exit_code_is_the_programs(recorded: Recorded, code: int) -> None:
    tool = recorded.put(f"#!/bin/sh\nexit {code}\n")
    assert recorded.run([tool])[0] == code
    assert recorded.records("end")[0]["code"] == code


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGABRT", "SIGHUP", "SIGINT", "SIGUSR1", "SIGPIPE"])
def test_death_by_a_signal_stays_death_by_that_signal(recorded: Recorded, name: str) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    tool = recorded.put(f"#!/bin/sh\nkill -{name[3:]} $$\n")
    code, out, err = recorded.run([tool])
    assert (code, out, err) == (-getattr(signal, name), b"", b"")
    end = recorded.records("end")[0]
    assert (end["code"], end["signal"]) == (None, name)


@pytest.mark.parametrize(
    "name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGALRM"]
)
def test_a_signal_reaches_the_program_once_and_the_program_decides(recorded: Recorded, name: str) -> None:
    tool = recorded.python(
        f"got = []\nsignal.signal(signal.{name}, lambda *a: got.append(1))\nprint('ready', flush=True)\n"
        "while not got: time.sleep(0.01)\ntime.sleep(0.05); sys.exit(40 + len(got))"
    )
    child = recorded.start([tool])
    assert first_line(child) == b"ready\n"
    child.send_signal(getattr(signal, name))
    assert child.wait(DEADLINE_S) == 41


def test_realtime_signals_are_passed_on_too(recorded: Recorded) -> None:
    if not hasattr(signal, "SIGRTMIN"):
        pytest.skip("this system has no realtime signals")
    number = signal.SIGRTMIN + 3
    tool = recorded.python(
        f"signal.signal({number}, lambda *a: os._exit(9))\nprint('ready', flush=True)\nwhile True: signal.pause()"
    )
    child = recorded.start([tool])
    first_line(child)
    child.send_signal(number)
    assert child.wait(DEADLINE_S) == 9


def test_what_the_caller_ignores_stays_ignored(recorded: Recorded) -> None:
    tool = recorded.python("print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, flush=True); input()")
    child = recorded.start(["/bin/sh", "-c", f"trap '' HUP; exec '{tool}'"], stdin=subprocess.PIPE)
    assert first_line(child) == b"True\n"
    child.send_signal(signal.SIGHUP)
    child.communicate(b"\n", timeout=DEADLINE_S)
    assert child.returncode == 0


def test_a_caller_that_ignores_sigchld_still_gets_the_exit_code(recorded: Recorded) -> None:
    tool = recorded.put("#!/bin/sh\nexit 5\n")
    child = recorded.start(["/bin/sh", "-c", f"trap '' CHLD; exec '{tool}'"])
    assert child.wait(DEADLINE_S) == 5


def test_a_program_that_stops_stops_its_recorder_and_both_go_on(recorded: Recorded) -> None:
    tool = recorded.python("os.kill(os.getpid(), signal.SIGSTOP); sys.exit(6)")
    child = recorded.start([tool])
    _, status = os.waitpid(child.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    os.kill(child.pid, signal.SIGCONT)
    assert child.wait(DEADLINE_S) == 6


def test_a_killed_group_leaves_a_start_without_an_end(recorded: Recorded) -> None:
    tool = recorded.python("print(os.getpid(), flush=True); time.sleep(600)")
    child = recorded.start([tool])
    pid = int(first_line(child))
    os.killpg(child.pid, signal.SIGKILL)
    assert child.wait(DEADLINE_S) == -signal.SIGKILL
    wait_until("the program's end", lambda: not alive(pid))
    assert [record["rec"] for record in recorded.records()] == ["start"]


# -- terminals ----------------------------------------------------------------------------------------------------


class Terminal:
    """A program whose controlling terminal is a PTY of ours."""

    def __init__(self, argv: list[str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(argv[0], argv)
        self.seen = b""

    def read_until(self, wanted: bytes) -> None:
        until = time.monotonic() + DEADLINE_S
        while wanted not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"{wanted!r} never came; there is {self.seen!r}"
            try:
                self.seen += os.read(self.fd, 4096)
            except OSError:
                raise AssertionError(f"{wanted!r} never came; at the end there is {self.seen!r}") from None

    def end(self) -> int:
        while True:
            try:
                if not os.read(self.fd, 4096):
                    break
            except OSError:
                break
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def test_a_terminal_is_handed_over_as_it_is(recorded: Recorded) -> None:
    tool = recorded.python(
        "print([os.isatty(n) for n in (0, 1, 2)], os.ttyname(1) == os.ttyname(0), os.tcgetpgrp(0) == os.getpgrp())"
    )
    terminal = Terminal([tool])
    terminal.read_until(b"\n")
    assert terminal.end() == 0
    assert terminal.seen == b"[True, True, True] True True\r\n"
    end = recorded.records("end")[0]
    assert (end["stdout_head"], end["stderr_head"]) == (None, None)


def test_ctrl_c_at_a_terminal_reaches_the_program_once(recorded: Recorded) -> None:
    tool = recorded.python(
        "got = []\nsignal.signal(signal.SIGINT, lambda *a: got.append(1))\nprint('ready', flush=True)\n"
        "while not got: time.sleep(0.01)\ntime.sleep(0.1); sys.exit(40 + len(got))"
    )
    terminal = Terminal([tool])
    terminal.read_until(b"ready")
    os.write(terminal.fd, b"\x03")
    assert terminal.end() == 41


def test_ctrl_c_kills_a_program_that_does_not_care_as_it_would_without_us(recorded: Recorded) -> None:
    tool = recorded.put("#!/bin/sh\necho ready; exec sleep 600\n")
    terminal = Terminal([tool])
    terminal.read_until(b"ready")
    os.write(terminal.fd, b"\x03")
    assert terminal.end() == -signal.SIGINT
    assert recorded.records("end")[0]["signal"] == "SIGINT"


def test_a_pipe_beside_a_terminal_is_copied_and_the_terminal_is_not(recorded: Recorded, tmp_path: Path) -> None:
    tool = recorded.python("print([os.isatty(n) for n in (0, 1, 2)]); sys.stderr.write('word')")
    terminal = Terminal(["/bin/sh", "-c", f"exec '{tool}' 2>'{tmp_path}/err'"])
    terminal.read_until(b"\n")
    assert terminal.end() == 0
    assert terminal.seen == b"[True, True, False]\r\n"
    assert (tmp_path / "err").read_text() == "word"
    assert recorded.records("end")[0]["stderr_head"] == "word"
