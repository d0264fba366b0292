"""Starts the processes of a trial, watches them against a limit, and ends all that the trial left behind.

The harness's only way to run anything (the recorder aside, which is a program of its own). Knows argv, environment,
clocks and process ids; knows nothing of scenarios. Never signals a process that wasn't started in the sandbox: a
command is ended through the process group that it leads, and everything else is found by variables of the sandbox
in its environment or by its session, checked again at the moment of the signal through a pidfd where there is one.
"""

import contextlib
import os
import re
import secrets
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

KEPT_BYTES = 8 << 20
GRACE_S = 2.0

#: What may be waiting in a pipe when its writer ends (bytes): the most that Linux lets anybody ask for.
PIPE_BYTES = 1 << 20

Halt = Literal["turn_limit", "token_limit", "money_limit", "output_limit"]
EndedBy = Literal["exit", "time_limit", "cancelled", "not_started"] | Halt


@dataclass(frozen=True)
class Ended:
    """How one command went. `code` is None when a signal ended it or it never started; `signal` is then its name.

    `stdout` and `stderr` are the first KEPT_BYTES of each (or as many as were asked for); `cut` counts the bytes
    beyond. `ended_by` says who ended it; `session` is the session that it led (0: never started).
    """

    argv: tuple[str, ...]
    code: int | None
    signal: str | None
    stdout: bytes
    stderr: bytes
    cut: int
    started: float
    duration_s: float
    ended_by: EndedBy
    error: str | None = None
    session: int = 0

    @property
    def ok(self) -> bool:
        """Whether it came to its own end with exit code 0."""
        return self.ended_by == "exit" and self.code == 0


class _Output:
    """The first bytes of one stream, and how many there were in all."""

    def __init__(self, most: int) -> None:
        self.kept = bytearray()
        self.total = 0
        self._most = most

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self.kept += data[: max(0, self._most - len(self.kept))]


def run(
    argv: Iterable[str],
    *,
    env: Mapping[str, str],
    cwd: str | os.PathLike[str],
    limit_s: float,
    stdin: bytes = b"",
    cancelled: Callable[[], bool] = lambda: False,
    mark: int = 0,
    kept: int | None = None,
    halt: Callable[[bytearray], Halt | None] | None = None,
) -> Ended:
    """Run `argv` in a session of its own until it ends, `limit_s` passes, or `cancelled` says so.

    `mark` (of `new_mark`) is given to it and all that it starts. A program is looked up on the PATH of `env`. Output
    that a process it left behind writes later is not waited for. `kept` is how much of each stream is kept (bytes;
    None: KEPT_BYTES). `halt` is shown the stdout so far, a few times a second, and may say that it must end now; it
    is ended too, then, when a stream grows beyond `kept`.
    Never raises for what the command does; a command that can't start has `ended_by` not_started.
    """
    words = tuple(argv)
    started, begun = time.time(), time.monotonic()
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        try:
            found = _found(words[0], env)
            child = subprocess.Popen(
                [*_marking(mark), *words], stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=dict(env), cwd=cwd, start_new_session=True, executable=None if _marking(mark) else found,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            why = f"{words[0]}: {getattr(error, 'strerror', None) or error}"
            return Ended(words, None, None, b"", b"", 0, started, 0.0, "not_started", why)
    with child:
        out, err = (_Output(KEPT_BYTES if kept is None else kept) for _ in range(2))

        def stop() -> EndedBy | None:
            if cancelled():
                return "cancelled"
            if time.monotonic() >= begun + limit_s:
                return "time_limit"
            if halt is None:
                return None
            return "output_limit" if max(out.total, err.total) > (kept or KEPT_BYTES) else halt(out.kept)

        try:
            ended_by = _watch(child, {child.stdout: out, child.stderr: err}, begun + limit_s, stop)
        except BaseException:
            _end_group(child)
            raise
        code = child.wait()
    return Ended(
        words, code if code >= 0 else None, _signal_name(-code) if code < 0 else None, bytes(out.kept),
        bytes(err.kept), out.total - len(out.kept) + err.total - len(err.kept), started,
        round(time.monotonic() - begun, 6), ended_by, session=child.pid,
    )  # fmt: skip


def begin(argv: list[str], *, env: Mapping[str, str], cwd: str | os.PathLike[str]) -> "subprocess.Popen[bytes]":
    """Start a process of the harness's own, in a session of its own, with pipes to it and from it; stderr is dropped.

    Whoever begins it ends it. Raises OSError if it can't start.
    """
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            env=dict(env), cwd=cwd, start_new_session=True)  # fmt: skip


def finish(process: "subprocess.Popen[bytes]", limit_s: float) -> int:
    """Close its input, wait, and kill it if it does not end; returns how it ended (a signal: negative)."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    process.stdout.close()
    return code


#: The limit that carries a mark: what most systems set it to, and what hardly anybody uses.
_MARKED, _FIRST_MARK, _MARKS = "msgqueue", 300_000, 500_000
_MARK_LINE = re.compile(rb"Max msgqueue size +(\d+) ")
_PRLIMIT = "/usr/bin/prlimit"


def new_mark() -> int:
    """A number for one sandbox. A process that has it as a limit (on message queues) hands it to all that it starts,
    through any session and with any environment, and without privileges nobody can raise it again."""
    return _FIRST_MARK + secrets.randbelow(_MARKS)


def _marking(mark: int) -> list[str]:
    """The words before a command that give it its mark; none where that can't be done (macOS)."""
    if not mark or not os.access(_PRLIMIT, os.X_OK) or not os.path.exists("/proc/self/limits"):
        return []
    return [_PRLIMIT, f"--{_MARKED}={mark}:{mark}", "--"]


def _found(program: str, env: Mapping[str, str]) -> str:
    """Where `program` is on the PATH of `env` (Popen itself would look on ours). Raises FileNotFoundError."""
    import shutil

    found = program if "/" in program else shutil.which(program, path=env.get("PATH", ""))
    if found is None:
        raise FileNotFoundError(2, "not found on the sandbox's PATH")
    return found


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _watch(
    child: "subprocess.Popen[bytes]",
    outputs: "dict[IO[bytes] | None, _Output]",
    deadline: float,
    stop: Callable[[], EndedBy | None],
) -> EndedBy:
    """Read both streams until the child has ended and nothing more is waiting; end it when `stop` says why."""
    ended_by: EndedBy = "exit"
    with selectors.DefaultSelector() as selector, _ended_event(child) as event:
        for stream in outputs:
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, outputs[stream])
        if event >= 0:
            selector.register(event, selectors.EVENT_READ)
        pause = 0.1 if event >= 0 else 0.01
        while not _has_ended(child):
            if why := stop():
                ended_by = why
                _end_group(child)
                break
            for key, _ in selector.select(min(pause, max(0.0, deadline - time.monotonic()))):
                if key.data is not None and not _read(key.fileobj, key.data):  # type: ignore[arg-type]
                    selector.unregister(key.fileobj)
        for stream, output in outputs.items():
            until = output.total + PIPE_BYTES  # what it left behind may go on writing: its own words end here
            while output.total < until and _read(stream, output):  # type: ignore[arg-type]
                pass
    return ended_by


def _read(stream: IO[bytes], output: _Output) -> bool:
    """Take what is waiting; False at the end or when there is nothing."""
    try:
        data = os.read(stream.fileno(), 1 << 18)
    except BlockingIOError:
        return False
    output.add(data)
    return bool(data)


def _has_ended(child: "subprocess.Popen[bytes]") -> bool:
    """Whether it has ended, without reaping it: its id, hence its group's, must stay its own until we are done.

    Where the system can't (macOS before Python 3.13), it is reaped, and its group is left to `end_processes`.
    """
    if not hasattr(os, "waitid"):
        return child.poll() is not None
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


@contextlib.contextmanager
def _ended_event(child: "subprocess.Popen[bytes]"):  # type: ignore[no-untyped-def]
    """A descriptor that becomes readable when the child ends, or -1 where the system has none."""
    try:
        fd = os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        fd = -1
    try:
        yield fd
    finally:
        if fd >= 0:
            os.close(fd)


def _end_group(child: "subprocess.Popen[bytes]") -> None:
    """End the child and its process group: asked first, killed after GRACE_S. The child is not reaped yet."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal_group(child, number)
        until = time.monotonic() + GRACE_S
        while time.monotonic() < until and not _has_ended(child):
            time.sleep(0.01)
    _signal_group(child, signal.SIGKILL)


def _signal_group(child: "subprocess.Popen[bytes]", number: int) -> None:
    if child.returncode is None:  # not reaped: the id can't be anybody else's
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)


# -- what a trial left behind -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Process:
    """A process that was started in a sandbox: its id and its command line (cut at 200 characters)."""

    pid: int
    command: str


def processes_of(
    marks: Iterable[str], sessions: Iterable[int] = (), since: float = 0.0, mark: int = 0
) -> list[Process]:
    """The living processes with one of `marks` (`NAME=value`) in their environment, in one of `sessions`, or with the
    limit `mark` (0: none).

    The marks are exact: a shell that somebody took into the sandbox's directory names it too (PWD). Those that were
    started before `since` (of `now`) are none of them, nor is the caller.
    """
    wanted, signs = set(sessions), {os.fsencode(mark) for mark in marks}
    if os.path.isdir("/proc/self"):
        pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
        found = [_examine(pid, signs, wanted, since, mark) for pid in pids if pid != os.getpid()]
        return [process for process in found if process]
    return _processes_by_ps(signs, wanted)


def _examine(pid: int, marks: set[bytes], sessions: set[int], since: float, mark: int) -> Process | None:
    """The process, if it belongs to the sandbox (Linux)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        fields = stat[stat.rindex(b")") + 2 :].split()
        if fields[0] in (b"Z", b"X") or int(fields[19]) / os.sysconf("SC_CLK_TCK") < since - 0.1:
            return None
        if os.stat(f"/proc/{pid}").st_uid != os.getuid():
            return None
        inside = not marks.isdisjoint(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
        if not inside and int(fields[3]) not in sessions and not _has_mark(pid, mark):
            return None
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").strip()
        return Process(pid, command.decode("utf-8", "replace")[:200])
    except (OSError, ValueError, IndexError):
        return None  # gone, or not ours to read


def _has_mark(pid: int, mark: int) -> bool:
    if not mark:
        return False
    found = _MARK_LINE.search(Path(f"/proc/{pid}/limits").read_bytes())
    return found is not None and int(found[1]) == mark


def now() -> float:
    """The clock that processes are dated by (seconds): since boot on Linux, where nobody can set it back."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.time()


def _processes_by_ps(marks: set[bytes], sessions: set[int]) -> list[Process]:
    """The same where there is no /proc (macOS): ps shows the environment of one's own processes."""
    listed = subprocess.run(
        ["/bin/ps", "-axEww", "-o", "pid=,pgid=,command="], capture_output=True, check=False, env={"LC_ALL": "C"}
    ).stdout
    found = []
    for line in listed.split(b"\n"):
        pid, _, rest = line.strip().partition(b" ")
        group, _, command = rest.strip().partition(b" ")
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        marked = any(b" " + mark + b" " in command + b" " for mark in marks)
        if marked or (group.isdigit() and int(group) in sessions):
            found.append(Process(int(pid), command.decode("utf-8", "replace")[:200]))
    return found


def end_processes(find: Callable[[], list[Process]]) -> tuple[list[Process], list[Process]]:
    """End all that `find` finds, each by its id: asked, then killed; again until nobody is left or it is hopeless.

    Returns (those that were found, those that are still there).
    """
    seen: dict[int, Process] = {}
    for number, seconds in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S), (signal.SIGKILL, GRACE_S)):
        present = find()
        if not present:
            break
        seen |= {process.pid: process for process in present}
        for process in present:
            _signal_one(process, number, find)
        until = time.monotonic() + seconds
        while (present := find()) and time.monotonic() < until:
            seen |= {process.pid: process for process in present}
            time.sleep(0.02)
    return list(seen.values()), find() if seen else []


def _signal_one(process: Process, number: int, find: Callable[[], list[Process]]) -> None:
    """Signal exactly this process. With a pidfd, the id can't have passed to somebody else in between."""
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # no such call here, or it is forbidden
        fd = -1
    try:
        if process.pid not in {present.pid for present in find()}:
            return
        if fd >= 0:
            signal.pidfd_send_signal(fd, number)
        else:
            os.kill(process.pid, number)
    except OSError:
        pass
    finally:
        if fd >= 0:
            os.close(fd)
