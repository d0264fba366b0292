"""Stands on PATH in place of a program, runs the real one, and writes down that it did: who, what, how it ended.

The program must not notice, and neither must its caller: the same argv, environment, stdin, terminal, streams,
signals, exit code or death by signal, and not one byte of our own. Two JSON lines a run (the form labd writes about
itself): `start` before anything happens, `end` after it. A program that was killed together with its recorder
leaves a start without an end, which readers take as "unknown".

How, and what was not chosen:

* Exec in place would be the most faithful, but nobody but a parent learns how a process ended. So the real program
  is a child in the same process group and session; signals that reach only us are passed on. Those that a terminal
  sends reach the whole group, hence the child too, and are not sent twice (Linux says so in siginfo; elsewhere the
  foreground group tells). All signals are blocked and taken one by one with sigwait: no handler, no race.
* Heads of the output need a tee. A stream that is a terminal is handed over as it is (no head then). Any other
  stream goes through a pipe and a process of its own that copies it: when the program ends but a daemon it left
  behind keeps the stream open, or the reader is slow, we end as the program did and the copier goes on alone, as the
  stream itself would have. stdout and stderr that are one file share one pipe, so their order stays.
* A record that can't be written means that the program is not run (exit 126): an unrecorded run is a hole in the
  evidence, a refused one is plain to see.

`install` puts the wrapper in place; `main` is what the wrapper calls. Imports only what the interpreter has loaded
anyway: every command of a subject pays for this file. Never imported by graders.
"""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Mark = Callable[[], "str | None"]

if __package__ or TYPE_CHECKING:
    from harness.streams import CHUNK, STAMP_BYTES, can_go_on, close_all_but, copy, is_open, pipe, same_file, write_all
else:  # run by a wrapper, which knows where this file is and nothing more
    from streams import CHUNK, STAMP_BYTES, can_go_on, close_all_but, copy, is_open, pipe, same_file, write_all

#: How long a copier may take to pass on what was written (seconds); longer only while it is the machine that keeps it
#: waiting, and not a slow reader: then what was printed is still to be recorded.
SLOW_READER_S = 0.25
STARVED_LOOK_S, STARVED_MOST_S = 0.05, 20.0
FAILED_TO_RECORD = 126

_OURS = ("SIGKILL", "SIGSTOP", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS", "SIGPIPE",
         "SIGXFSZ", "SIGTTIN", "SIGTTOU")  # fmt: skip
_TERMINAL_SENDS = ("SIGINT", "SIGQUIT", "SIGTSTP", "SIGWINCH", "SIGHUP")
_SI_KERNEL = 0x80


# -- putting it in place ----------------------------------------------------------------------------------------


def install(bin_dir: str, name: str, real: str, log: str, state: "list[str] | None" = None) -> str:
    """Make `bin_dir/name` a recorder of the program `real` that logs to `log`; returns its path.

    `state`: directories whose digest (statemark.py) goes with each record, from before and from after.

    Raises FileNotFoundError or PermissionError if `real` is no program, ValueError if `name` has a slash.
    """
    if "/" in name or name in ("", ".", ".."):
        raise ValueError(f"not a program's name: {name!r}")
    if not os.path.exists(real):
        raise FileNotFoundError(real)
    if not os.access(real, os.X_OK) or os.path.isdir(real):
        raise PermissionError(real)
    here = os.path.dirname(os.path.abspath(__file__))
    looks, marked = ("from statemark import digest\n", f", lambda: digest({state!r})") if state else ("", "")
    body = (
        f"import sys\nsys.path.insert(0, {here!r})\nfrom recorder import main\n{looks}del sys.path[0]\n"
        f"main({os.path.abspath(real)!r}, {os.path.abspath(log)!r}{marked})\n"
    )
    python = getattr(sys, "_base_executable", None) or sys.executable
    path = os.path.join(bin_dir, name)
    if len(python) < 110 and not any(c.isspace() for c in python):
        _write_program(path, f"#!{python} -IS\n{body}")
    else:  # a shebang holds neither blanks nor long paths
        inner = os.path.join(bin_dir, f".{name}.py")
        _write_program(inner, body.replace("main(", "del sys.argv[0]\nmain(", 1))
        quoted = ["'" + word.replace("'", "'\\''") + "'" for word in (python, inner)]
        _write_program(path, f'#!/bin/sh\nexec {quoted[0]} -IS {quoted[1]} "$0" "$@"\n')
    return path


def _write_program(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o755)
    try:
        write_all(fd, text.encode("utf-8", "surrogateescape"))
    finally:
        os.close(fd)


# -- the record -------------------------------------------------------------------------------------------------


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _json(value: object) -> str:
    """Flat JSON without the json package (its import would double our start)."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        try:
            from _json import encode_basestring_ascii
        except ImportError:
            from json.encoder import py_encode_basestring_ascii as encode_basestring_ascii
        return encode_basestring_ascii(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_json(key)}: {_json(item)}" for key, item in value.items()) + "}"
    return repr(value)


def _append(log: str, record: dict[str, object]) -> None:
    """One line in one write to a file opened for appending: recorders that run at once never mix their lines."""
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, (_json(record) + "\n").encode())
    finally:
        os.close(fd)


def _cwd() -> str | None:
    try:
        return _text(os.getcwdb())
    except OSError:
        return None


def _environment() -> dict[bytes, bytes]:
    """The environment as our caller gave it: the interpreter adds LC_CTYPE to its own copy under a C locale."""
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = [item.partition(b"=") for item in file.read().split(b"\0") if b"=" in item]
        return {name: value for name, _, value in pairs if name}
    except OSError:
        env = dict(os.environb)
        plain = env.get(b"LANG", b"C") in (b"", b"C", b"POSIX") and b"LC_ALL" not in env
        if plain and env.get(b"LC_CTYPE") in (b"C.UTF-8", b"C.utf8", b"UTF-8"):
            del env[b"LC_CTYPE"]
        return env


# -- running ----------------------------------------------------------------------------------------------------


def main(real: str, log: str, mark: "Mark" = lambda: None) -> None:
    """Run `real` with this process's own arguments, record it in `log`, end as it ended. Never returns.

    `mark` gives the digest of the state that the program works on; it is asked before and after.
    """
    try:
        _main(real, log, [os.fsencode(word) for word in sys.argv], mark)
    finally:  # reached only by a mistake of ours; it must not print either
        os._exit(FAILED_TO_RECORD)


def _main(real: str, log: str, words: list[bytes], mark: "Mark") -> None:
    identity = f"{os.getpid():x}-{time.monotonic_ns():x}"
    name = os.path.basename(words[0])
    started = time.monotonic_ns()
    record: dict[str, object] = {
        "rec": "start", "id": identity, "t": time.time(), "mono_ns": started,
        "argv": [_text(name), *map(_text, words[1:])], "program": _text(os.path.abspath(words[0])), "cwd": _cwd(),
        "pid": os.getpid(), "ppid": os.getppid(), "uid": os.getuid(), "face": "recorder", "lab": None,
        "target": None, "operation": None, "effect": None, "policy": None, "decision": "permitted",
    }  # fmt: skip
    try:
        _append(log, record)
    except OSError:
        os._exit(FAILED_TO_RECORD)
    before = mark()
    child = _Child(real, words[1:])
    child.wait()
    heads = child.heads()
    end: dict[str, object] = {
        "rec": "end", "id": identity, "t": time.time(), "code": child.code, "signal": child.signal_name(),
        "duration_ms": round((time.monotonic_ns() - started) / 1e6, 3),
        "first_byte_ms": None if child.first is None else round((child.first - started) / 1e6, 3),
        "stdout_head": heads[0], "stderr_head": heads[1], "lab_before": before, "lab_after": mark(),
    }  # fmt: skip
    if child.merged:
        end["merged"] = True  # stdout_head is of both streams, which are one file
    if child.error:
        end["error"] = child.error
    try:
        _append(log, end)
    except OSError:
        pass  # the missing end says "unknown", which is what it is
    _end_as(child)


class _Child:
    """The real program while it runs: its streams' copiers, the signals that go to it, and how it ended."""

    def __init__(self, real: str, arguments: list[bytes]) -> None:
        import _signal  # type: ignore[import-not-found]  # what `signal` wraps, without its enums

        self.code: int | None = None
        self.signal: int | None = None
        self.error: str | None = None
        self.first: int | None = None  # when its first byte came, on whichever stream (monotonic, ns); `heads` tells
        self.pid = 0
        self.merged = False
        self._controls: dict[int, int] = {}  # stream → the pipe on which its copier tells the head
        self._copiers: dict[int, int] = {}  # that pipe → the copier
        self._os_signals = _signal
        ours = {getattr(_signal, name, 0) for name in _OURS}
        ignored = {number for number in _signal.valid_signals() if _signal.getsignal(number) == _signal.SIG_IGN}
        self._taken = set(_signal.valid_signals()) - ours - ignored | {_signal.SIGCHLD}  # ignored stays ignored
        old_mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, self._taken)
        for number in self._taken:  # a signal that is ignored by default would not stay pending on every system
            _signal.signal(number, _nothing)
        stop_read, self._stop = pipe()
        actions = self._start_copiers(stop_read)
        self._start(os.fsencode(real), arguments, actions, old_mask)
        close_all_but(self._stop, *self._controls.values())  # a stream that the program closes is then closed

    def _start_copiers(self, stop_read: int) -> list[tuple[int, int, int]]:
        """A copier for each stream that is open and no terminal; returns what the program's descriptors become."""
        streams = [fd for fd in (1, 2) if is_open(fd) and not os.isatty(fd)]
        self.merged = len(streams) == 2 and same_file(1, 2)
        sources: dict[int, int] = {}
        for fd in streams:
            if self.merged and fd == 2:
                sources[2] = os.dup(sources[1])
                continue
            read_end, write_end = pipe()
            control_read, control_write = pipe()
            copier = os.fork()
            if copier == 0:
                copy(read_end, fd, stop_read, control_write)
            self._copiers[control_read] = copier
            os.close(read_end)
            os.close(control_write)
            sources[fd] = write_end
            self._controls[fd] = control_read
        return [(os.POSIX_SPAWN_DUP2, source, fd) for fd, source in sources.items()]

    def _start(self, real: bytes, arguments: list[bytes], actions: list[tuple[int, int, int]], mask: set[int]) -> None:
        names = vars(self._os_signals)
        python_ignores = [names[name] for name in ("SIGPIPE", "SIGXFSZ") if name in names]
        env = _environment()

        def spawn(program: bytes, argv: list[bytes]) -> int:
            return os.posix_spawn(program, argv, env, file_actions=actions, setsigdef=python_ignores, setsigmask=mask)

        try:
            try:
                self.pid = spawn(real, [real, *arguments])
            except OSError as error:
                if error.errno != 8:  # ENOEXEC: a script without a shebang, which every shell runs with sh
                    raise
                self.pid = spawn(b"/bin/sh", [b"/bin/sh", real, *arguments])
        except OSError as error:
            self.error = f"{error.strerror}: {_text(real)}"
            self.code = 127 if error.errno == 2 else 126

    def wait(self) -> None:
        """Until the program has ended: pass signals on, stop when it stops, go on when we are told to."""
        signals = self._os_signals
        while self.code is None and self.signal is None:
            number, from_terminal = _next_signal(signals, self._taken)
            if number != signals.SIGCHLD:
                if not from_terminal:
                    os.kill(self.pid, number)
                continue
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                continue
            if os.WIFSTOPPED(status):
                os.kill(os.getpid(), signals.SIGSTOP)
            elif os.WIFSIGNALED(status):
                self.signal = os.WTERMSIG(status)
            else:
                self.code = os.WEXITSTATUS(status)

    def signal_name(self) -> str | None:
        """`SIGTERM`, say, when a signal ended the program."""
        if self.signal is None:
            return None
        names = [name for name, number in vars(self._os_signals).items()
                 if number == self.signal and name.startswith("SIG") and not name.startswith("SIG_")]  # fmt: skip
        return min(names) if names else f"SIG{self.signal}"

    def heads(self) -> tuple[str | None, str | None]:
        """The first bytes of stdout and stderr, once all that the program wrote is passed on (or its reader is slow).

        A stream that was not copied has none; one that shares the other's file is told with the other.
        """
        import select

        os.close(self._stop)
        heads = dict.fromkeys(self._controls, b"")
        waiting = {control: fd for fd, control in self._controls.items()}
        poller = select.poll()
        for control in waiting:
            poller.register(control, select.POLLIN)
        patience = SLOW_READER_S
        began = time.monotonic()
        while waiting:
            left = began + patience - time.monotonic()
            ready = poller.poll(max(0.0, left) * 1000)
            if not ready and left <= 0:
                if patience >= STARVED_MOST_S or not any(can_go_on(self._copiers[control]) for control in waiting):
                    break
                patience = time.monotonic() - began + STARVED_LOOK_S
            for control, _ in ready:
                part = os.read(control, CHUNK)
                heads[waiting[control]] += part
                if not part:
                    poller.unregister(control)
                    del waiting[control]
        stamps = [int.from_bytes(told[:STAMP_BYTES], "big") for told in heads.values() if told]
        self.first = min(stamps, default=None)
        return tuple(_text(heads[fd][STAMP_BYTES:]) if fd in heads else None for fd in (1, 2))  # type: ignore[return-value]


def _nothing(number: int, frame: object) -> None:
    """Never called: its signals are blocked."""


def _next_signal(signals: object, taken: set[int]) -> tuple[int, bool]:
    """Wait for one of `taken`; say which, and whether a terminal sent it (to the program as well)."""
    if hasattr(signals, "sigwaitinfo"):
        info = signals.sigwaitinfo(taken)
        return info.si_signo, info.si_code == _SI_KERNEL
    number = signals.sigwait(taken)  # type: ignore[attr-defined]
    sent = {getattr(signals, name, None) for name in _TERMINAL_SENDS}
    return number, number in sent and _in_foreground()


def _in_foreground() -> bool:
    try:
        fd = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(fd)


def _end_as(child: _Child) -> None:
    """End this process as the program ended: its exit code, or death by the same signal (without a second core)."""
    signals = child._os_signals
    if child.signal is None:
        os._exit(child.code if child.code is not None else FAILED_TO_RECORD)
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if child.signal not in (signals.SIGKILL, signals.SIGSTOP):
        signals.signal(child.signal, signals.SIG_DFL)
    signals.pthread_sigmask(signals.SIG_UNBLOCK, {child.signal})
    os.kill(os.getpid(), child.signal)
    os._exit(128 + child.signal)  # the signal is one that does not end us
