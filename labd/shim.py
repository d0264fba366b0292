"""The only door to the bench, and the only module that starts a process.

`perform` takes an operation from a face to its handler: permitted? recorded; then executed, with the live bench lent
for as long as it runs. Refused means refused: nothing runs. The processes that the bench needs (its daemon, simulated
boards, helpers, the editor) are started here, each with an argv, in a group of its own where it outlives the call.
Light: `subprocess` and trio are imported by the functions that need them.
"""

from __future__ import annotations

import os
import sys

from labd import permission, policy
from labd.errors import LabdError, NotFound, Unreachable
from labd.record import Passage

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from subprocess import Popen
    from typing import Any, NoReturn

    import trio

    from labd.call import Call
    from labd.operations.model import Args, Operation
    from labd.remote_route import Place

#: Seconds that a freshly started daemon gets to answer.
DAEMON_START_SECONDS = 20.0


class NeedsDaemon(Exception):
    """The operation is permitted and runs inside the daemon, and this process is not it."""


class NeedsClient(Exception):
    """The operation is permitted and needs the caller's own process, and this process is the daemon."""


def perform(passage: Passage, op: Operation, args: Args, call: Call, bench: Any, run: Callable[[], int]) -> int:
    """Decide, record the start, lend the bench, run; returns the exit code that `run` returns.

    `bench` is the daemon's live side, None outside it. Raises Refused and everything that `run` raises, after the
    start was recorded; raises NeedsDaemon or NeedsClient, unrecorded, when another process must do it.
    """
    target = permission.named_target(args)
    decided = {"operation": op.name, "effect": op.effect_of(args), "lab": call.lab_path, "target": target}
    try:
        level, who, need = permission.decide(op, args, call, bench)
        decided |= {"policy": level}
        call.level = level
        policy.check(op, level, who, need)
        permission.not_claimed(op, args, call)
        elsewhere = _elsewhere(op, args, call)
    except LabdError as error:
        decided["decision"] = "refused" if error.name in ("refused", "busy") else "invalid"
        passage.start(**decided)
        raise
    if op.missing:
        passage.start(**decided, decision="permitted")
        raise Unreachable(f"labd {op.name}: {op.missing}", hint=f"labd {op.path[0]} --help")
    if op.where == "daemon" and bench is None:
        raise NeedsDaemon
    if op.where == "client" and bench is not None:
        raise NeedsClient
    call.bench = bench
    if elsewhere is not None:
        from labd import remote_call

        passage.start(**decided, decision="permitted", host=elsewhere.host)
        return remote_call.run(op, args, call, elsewhere)
    passage.start(**decided, decision="permitted")
    return run()


def _elsewhere(op: Operation, args: Args, call: Call) -> Place | None:
    """The machine of the lab that the call runs on, where that is not this one.

    Raises NotFound for a host that is none, or consoles of several machines. A lab without hosts pays nothing.
    """
    if op.stays or op.effect not in ("observe", "actuate", "admin"):
        return None
    if vars(args).get("host") is None:
        if not op.channel:
            return None
        try:
            if not call.lab().hosts:
                return None
        except LabdError:
            return None  # the handler says what is wrong with the lab
    from labd import remote_route

    return remote_route.place_of(op, args, call)


def admit(passage: Passage, name: str, call: Call, bench: Any, real: bool) -> None:
    """Decide and record a request that is no operation (stopping the daemon or a board), before it runs.

    `real` says that it touches more than simulations. Raises Refused, after the start was recorded.
    """
    need = "bench" if real else policy.NEEDS["admin"]
    sources = [("LABD_POLICY", call.env["LABD_POLICY"])] if call.env.get("LABD_POLICY") else []
    level, who = policy.in_force([*sources, ("the running daemon", bench.level)])
    permitted = policy.permits(level, need)
    passage.start(operation=name, effect="admin", policy=level, decision="permitted" if permitted else "refused")
    if not permitted:
        raise policy.refusal(name, level, who, need)


# --- processes ------------------------------------------------------------------------------------------------------


def start_daemon(env: dict[str, str], runtime: str, log_path: str) -> Popen[bytes]:
    """Start `labd daemon` in a session of its own, its output appended to `log_path`.

    It gets the caller's environment less what belongs to the one call (LABD_LAB, LABD_ARGV_LOG).
    """
    import subprocess

    kept = {k: v for k, v in env.items() if k not in ("LABD_LAB", "LABD_ARGV_LOG", "LABD_DEBUG")}
    log = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "labd.daemon", "--detached", runtime],  # named there for whoever looks with ps
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=kept,
            start_new_session=True,
        )
    except OSError as error:
        raise Unreachable(f"the daemon can't be started: {sys.executable}: {error.strerror}") from None
    finally:
        os.close(log)


def start_capture(runtime: str) -> Popen[bytes]:
    """Start the capture process of a runtime directory, in a session of its own: it outlives the daemon."""
    import subprocess

    log = os.open(os.path.join(runtime, "capture.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "labd.capture_process", runtime],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(log)


def become_daemon(env: dict[str, str], runtime: str) -> NoReturn:
    """Replace this process by the daemon, in the foreground."""
    os.execve(sys.executable, [sys.executable, "-m", "labd.daemon", runtime], env)


def start_kept(argv: list[str], *, cwd: str, env: dict[str, str]) -> Popen[bytes]:
    """Start a command that stays, with pipes, in a group of its own; the end of stdin ends it.

    Raises Unreachable when it can't be started.
    """
    import subprocess

    try:
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd,
                                env=env, start_new_session=True)  # fmt: skip
    except (OSError, ValueError) as error:
        raise _cannot_run(argv[0], cwd, env, error) from None


async def start_board(argv: list[str], cwd: str) -> trio.Process:
    """Start a simulated board's player (an argv) with pipes on stdin and stdout; the end of stdin ends it."""
    import subprocess

    import trio

    return await trio.lowlevel.open_process(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, start_new_session=True
    )


async def start_own(words: list[str], given: bytes, *, env: dict[str, str]) -> tuple[trio.Process, int]:
    """Start `labd WORDS` in a session of its own, with `given` as its input and pipes for its output.

    Also returned: a descriptor whose closing, by whatever end of ours, interrupts it (`labd.lifeline`).
    """
    import subprocess
    import tempfile

    import trio

    from labd import lifeline

    own = [sys.argv[0]] if os.access(sys.argv[0], os.X_OK) else [sys.executable, "-P", "-m", "labd.thin"]
    theirs, ours = os.pipe()
    with tempfile.TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        try:
            process = await trio.lowlevel.open_process(
                [*own, *words], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(theirs,),
                env={**env, lifeline.VARIABLE: str(theirs)}, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            os.close(ours)
            raise Unreachable(f"cannot run {own[0]}: {error.strerror}") from None
        finally:
            os.close(theirs)
    return process, ours


async def start_camera(runtime: str, name: str) -> trio.Process:
    """Start the capture process of a target's screen, with pipes on stdin and stdout; the end of stdin ends it."""
    import subprocess

    import trio

    argv = [sys.executable, "-m", "labd.video.worker", runtime, name]  # named there for whoever looks with ps
    return await trio.lowlevel.open_process(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", start_new_session=True
    )


def board_argv(dut: str, link: str, record: str) -> list[str]:
    """The argv of a simulated board's player: a program of its own, which labd does not import."""
    return [sys.executable, "-m", "loopback", dut, "--link", link, "--record", record]


def machine_argv(board: str, directory: str, wait_s: float, tap: str | None) -> list[str]:
    """The argv of a virtual board's player, as `board_argv`."""
    argv = [sys.executable, "-m", "loopback.machine", board, "--dir", directory, "--wait", str(wait_s)]
    return [*argv, "--tap", tap] if tap else argv


def start_piped(argv: list[str], cwd: str, env: dict[str, str]) -> Popen[bytes]:
    """Start a program (a file transfer, adb) with three pipes, unbuffered, in the caller's directory and environment.

    Raises Unreachable when it can't be run.
    """
    import subprocess

    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, cwd=cwd, env=env,
                                start_new_session=True)  # fmt: skip
    except OSError as error:
        raise Unreachable(f"cannot run {argv[0]}: {error.strerror}") from None


def start_dnsmasq(argv: list[str]) -> Popen[bytes]:
    """Start dnsmasq, what it says in one pipe. On Linux the kernel ends it with us, as long as it stays root.

    Raises Unreachable when it can't be run.
    """
    import shutil
    import subprocess

    tied = shutil.which("setpriv") if sys.platform == "linux" else None
    try:
        return subprocess.Popen([*([tied, "--pdeathsig", "TERM", "--"] if tied else []), *argv], cwd="/",
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    except OSError as error:
        raise Unreachable(f"cannot run {argv[0]}: {error.strerror}") from None


def run_attached(argv: list[str], call: Call, *, stdin: str | bytes | None = None, stdout: int | None = None) -> int:
    """Run `argv` on the caller's terminal and wait; returns its exit code (128 + N when signal N killed it).

    `stdin` is what it gets in place of the terminal, `stdout` the descriptor that its output goes to. Raises NotFound
    when there is no such program.
    """
    import subprocess

    try:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        code = subprocess.run(argv, cwd=call.cwd, env=call.env, input=given, stdout=stdout).returncode
    except FileNotFoundError:
        raise NotFound(f"no program {argv[0]!r}") from None
    except OSError as error:
        raise LabdError(f"cannot run {argv[0]}: {error.strerror}") from None
    return code if code >= 0 else 128 - code


class Ended:
    """How a hook ended: `code` (128 + N after signal N; None when its time was up), what it wrote to stdout and stderr
    (each at most `OUTPUT_BYTES`), and how long it ran, in ms."""

    __slots__ = ("argv", "code", "err", "ms", "out")

    def __init__(self, argv: list[str], code: int | None, out: bytes, err: bytes, ms: float) -> None:
        self.argv = argv
        self.code = code
        self.out = out
        self.err = err
        self.ms = ms


#: Bytes of each output stream of a hook that are kept.
OUTPUT_BYTES = 1 << 20

#: Seconds that a hook may take before whoever waits for it is told.
WAIT_SECONDS = 2.0

#: Seconds between asking the processes of a hook to end and ending them.
GRACE_SECONDS = 5.0


def run_hook(argv: list[str], *, cwd: str, env: dict[str, str], timeout_s: float, stdin: bytes = b"",
             on_wait: Callable[[], None] | None = None) -> Ended:  # fmt: skip
    """Run a command of the lab in a process group of its own, to its end or `timeout_s`; then the group is killed.

    Its output goes to files, so that a child which it leaves behind can't hold us up. `on_wait` is called once, when
    it has run for `WAIT_SECONDS`; what it raises is dropped, as the command goes on. Blocks: call it in a thread.
    Raises Unreachable when it can't be started.
    """
    import subprocess
    import tempfile
    import threading
    import time

    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        started = time.monotonic()
        try:
            process = subprocess.Popen(
                argv, stdin=given, stdout=out, stderr=err, cwd=cwd, env=env, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise _cannot_run(argv[0], cwd, env, error) from None
        ended = threading.Event()
        threading.Thread(target=_reap, args=(process, ended), daemon=True).start()
        late = not _awaited(ended, timeout_s, on_wait)
        if late:
            end_group(process.pid)
            ended.wait()
        ms = (time.monotonic() - started) * 1000
        heads = [(file.seek(0), file.read(OUTPUT_BYTES))[1] for file in (out, err)]
    code = process.returncode
    return Ended(argv, None if late else code if code >= 0 else 128 - code, heads[0], heads[1], ms)


def _cannot_run(program: str, cwd: str, env: dict[str, str], error: Exception) -> Unreachable:
    """Why a hook's program can't be started: as the doctor says it, where it knows better than the system."""
    from labd.hookwords import find

    path, why = find(program, env, cwd)
    said = why if path is None else f"{program}: {getattr(error, 'strerror', None) or error}"
    return Unreachable(f"cannot run {said}", hint="labd doctor")


def _reap(process: Popen[bytes], ended: threading.Event) -> None:
    process.wait()
    ended.set()


def _awaited(ended: threading.Event, seconds: float, on_wait: Callable[[], None] | None) -> bool:
    """Whether it ended within the time; `on_wait` is called when that takes long."""
    if on_wait is None or seconds <= WAIT_SECONDS:
        return ended.wait(seconds)
    if ended.wait(WAIT_SECONDS):
        return True
    try:
        on_wait()
    except BaseException:  # the asker has gone, which is no reason to leave half a power cycle
        pass
    return ended.wait(seconds - WAIT_SECONDS)


def end_group(group: int) -> None:
    """End every process of a hook's group: asked first, killed `GRACE_SECONDS` later."""
    import signal
    import time

    for number, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, 0.0)):
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):  # macOS says EPERM of a group of zombies
            return
        until = time.monotonic() + seconds
        while time.monotonic() < until and _group_lives(group):
            time.sleep(0.02)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def is_program(name: str, env: dict[str, str]) -> bool:
    """Whether a program of this name would be found."""
    import shutil

    return shutil.which(name, path=env.get("PATH")) is not None


def run_captured(argv: list[str], timeout_s: float, env: dict[str, str] | None = None) -> tuple[int | None, bytes]:
    """Run a short, harmless query (`ps`, `lsof`, `adb devices`) and return (exit code, stdout), at most 1 MiB of it.

    The exit code is None when the program is missing or did not end within `timeout_s` seconds.
    """
    import subprocess

    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout_s,
            env=env,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, b""
    return done.returncode, done.stdout[: 1 << 20]
