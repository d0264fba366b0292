"""A fresh bench for one trial: a home, a lab, a runtime directory, a PATH, and nothing of the user's.

Owns the trial's directory under /tmp, its environment, and the end of everything that was started in it. The path is
short because a UNIX socket lives in it (104 bytes on macOS). The names in it are those of an ordinary bench: an agent
under test must not see that it is examined. Never touches the user's lab, daemon or state.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import execute, files, recorder
from harness import subject as subjects
from harness.outside import Desk, OutsideError
from harness.scenario import Scenario, fill
from labd import paths

#: What login shells read in a home, after the system's own files have set PATH anew.
PROFILES = (".profile", ".bash_profile", ".zprofile")

PREFIX = "bench-"
_OURS = b"This directory belongs to the process that holds this lock.\n"
SOCKET_LIMIT = 100


class SandboxError(Exception):
    """The sandbox could not be made or read; says nothing about the agent."""


class TooSlow(SandboxError):
    """What the sandbox begins with could not be brought about in time: the subject hangs, perhaps."""


@dataclass
class Sandbox:
    """The directory and what is in it. `seed` is the text of what it started with (None: nothing).

    `examined` is what sits the exam, `subject` where its program is installed. `desk` is what stands outside the
    bench, `line` (TARGET.INTERFACE) the line that leads to it.
    """

    root: Path
    lane: str
    values: dict[str, str]
    env: dict[str, str]
    seed: bytes | None
    subject: str
    examined: subjects.Subject
    sessions: set[int] = field(default_factory=set)
    mark: int = field(default_factory=execute.new_mark)
    link: tuple[int, int] = (0, 0)
    made: float = field(default_factory=execute.now)
    lock: int = -1
    stopper: int = 0
    desk: Desk | None = None
    line: str | None = None

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def work(self) -> Path:
        """Where commands run."""
        return self.root / "work"

    @property
    def bin(self) -> Path:
        """First on PATH: the subject and the recorders."""
        return self.root / "bin"

    @property
    def lab(self) -> Path:
        return Path(self.values["lab"])

    @property
    def argv_log(self) -> Path:
        return self.root / "rec" / "argv.jsonl"

    @property
    def program(self) -> str:
        """The subject as the agent has it: whoever runs it by another path has gone around the bench's door."""
        return str(self.bin / self.examined.program)

    def program_kept(self) -> bool:
        """Whether what stands at `program` is the very file that was made, never moved and never made again."""
        try:
            return self.link == _link(self.program) and self.examined.kind.kept(self.root, self.subject)
        except OSError:
            return False

    def lab_bytes(self) -> bytes | None:
        """The lab file as it is now; None if there is none, or something else (a FIFO would hang us) in its place."""
        return files.plain_bytes(self.lab)

    def processes(self) -> list[execute.Process]:
        """What runs in the sandbox now."""
        return execute.processes_of(marks(self.root), self.sessions, self.made, self.mark)

    def stop(self) -> tuple[list[execute.Process], list[execute.Process]]:
        """End all that runs in it; the subject is asked first. Returns (what was left behind, what still lives)."""
        self.stopper = self.examined.kind.ask_to_stop(self)
        return execute.end_processes(self.processes)

    def close(self) -> None:
        """Remove the directory. Call `stop` first."""
        if self.desk is not None:
            self.desk.stop()
        remove(self.root)
        if self.lock >= 0:
            os.close(self.lock)
            self.lock = -1


def new_nonce() -> str:
    """A fact nobody can know before the trial: ten hex digits."""
    return secrets.token_hex(5)


def create(scenario: Scenario, subject: str, *, programs: Mapping[str, str] | None = None) -> Sandbox:
    """A sandbox for one trial of `scenario`: seeded, with the program `subject` and `programs` recorded on its PATH.

    Raises SandboxError if it can't be made (TooSlow: not in time); nothing is left then.
    """
    try:
        root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_short_directory()))
    except OSError as error:
        raise SandboxError(f"no sandbox directory: {error}") from error
    lock = -1
    try:
        lock = _claim(root)
        return _furnish(root, scenario, subject, programs or {}, lock)
    except (OSError, UnicodeError, ValueError, OutsideError) as error:
        remove(root)
        if lock >= 0:
            os.close(lock)
        kind = TooSlow if isinstance(error, TimeoutError) else SandboxError
        raise kind(f"{scenario.id}: {error}") from error


@contextlib.contextmanager
def bare() -> Iterator[Path]:
    """The directory of a sandbox, with nothing laid out in it; in the end nothing of it is left, nor runs.

    `environment` says what a process in it knows. Raises SandboxError if it can't be made.
    """
    since, lock = execute.now(), -1
    try:
        root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_short_directory()))
    except OSError as error:
        raise SandboxError(f"no sandbox directory: {error}") from error
    try:
        lock = _claim(root)
        _rooms(root)
        yield root
    finally:
        execute.end_processes(lambda: execute.processes_of(marks(root), since=since))
        remove(root)
        if lock >= 0:
            os.close(lock)


def _rooms(root: Path) -> None:
    for name in ("home", "work", "bin", "run", "tmp"):
        (root / name).mkdir(mode=0o700)
    (root / "rec" / "argv.jsonl").touch(mode=0o600)  # empty says "nothing ran", missing says "somebody removed it"


def _claim(root: Path) -> int:
    """Hold the directory's lock, first of all, so that what a killed harness leaves can be known for what it is."""
    (root / "rec").mkdir(mode=0o700)
    lock = os.open(root / "rec" / "new-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, _OURS)
    os.rename(root / "rec" / "new-lock", root / "rec" / "lock")  # its name never stands on a lock that is not held
    return lock


def _furnish(root: Path, scenario: Scenario, subject: str, programs: Mapping[str, str], lock: int) -> Sandbox:
    _rooms(root)
    examined = subjects.load(scenario.subject)
    values = {"nonce": new_nonce(), "home": str(root / "home"), **examined.kind.values(root)}
    desk = _desk(root, scenario, values)
    try:
        place = _laid_out(root, scenario, examined, subject, programs, values, lock)
    except BaseException:
        if desk is not None:
            desk.stop()
        raise
    if desk is not None and scenario.loopback is not None:
        place.desk, place.line = desk, f"{scenario.loopback.target}.{scenario.loopback.interface}"
    return place


def _desk(root: Path, scenario: Scenario, values: dict[str, str]) -> Desk | None:
    """What stands outside the bench, running; its facts are among the values then."""
    if scenario.outside is None:
        return None
    desk = Desk(scenario.outside, root, desk_record(root), lambda text: fill(text, values))
    values |= desk.values
    return desk


def desk_record(root: Path) -> Path:
    """Where the board that is outside the bench writes down what it received and did."""
    return root / "rec" / "desk.jsonl"


def _laid_out(root: Path, scenario: Scenario, examined: subjects.Subject, subject: str, programs: Mapping[str, str],
              values: dict[str, str], lock: int) -> Sandbox:  # fmt: skip
    env = environment(root, scenario.lane, examined)
    if scenario.outside is not None or scenario.boards:
        env[examined.policy.variable] = examined.policy.outside
    socket = paths.socket_path(env)
    if len(os.fsencode(socket)) > SOCKET_LIMIT:
        raise ValueError(f"{socket} is too long for a socket")
    examined.kind.install(root, subject)
    for name in PROFILES:
        (root / "home" / name).write_text(f'PATH="{root / "bin"}:$PATH"\nexport PATH\n')
    for name, real in programs.items():
        recorder.install(str(root / "bin"), name, real, str(root / "rec" / "argv.jsonl"))
    seed = examined.kind.furnish(root, scenario, values, env, subject)
    link = _link(str(root / "bin" / examined.program))
    return Sandbox(root, scenario.lane, values, env, seed, subject, examined, lock=lock, link=link)


def _link(path: str) -> tuple[int, int]:
    """What a link is known by: its inode, and when that was last touched (also by a rename)."""
    found = os.lstat(path)
    return found.st_ino, found.st_ctime_ns


def environment(root: Path, lane: str, examined: subjects.Subject | None = None) -> dict[str, str]:
    """All that a process in the sandbox knows of the world. Written out in full, so that nothing of ours leaks in.

    `examined`: the subject whose variables are among it (None: the default one).
    """
    home = root / "home"
    return {
        "PATH": f"{root / 'bin'}:/usr/bin:/bin",
        "HOME": str(home),
        "USER": "operator",
        "LOGNAME": "operator",
        "SHELL": "/bin/sh",
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": str(root / "tmp"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_RUNTIME_DIR": str(root / "run"),
        **(examined or subjects.load()).variables(root, lane),
    }


def marks(root: Path) -> list[str]:
    """The variables by which a process of the sandbox is known: those that only it has."""
    env = environment(root, "config")
    names = ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME", "TMPDIR", *subjects.load().environment]
    return [f"{name}={env[name]}" for name in names if env[name].startswith(f"{root}/")]


def reap_abandoned() -> list[Path]:
    """End and remove the sandboxes of this user whose harness was killed (nobody holds their lock); return them."""
    reaped = []
    for root in Path(_short_directory()).glob(f"{PREFIX}*"):
        try:
            if root.stat().st_uid != os.getuid():
                continue
            lock = os.open(root / "rec" / "lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.read(lock, len(_OURS) + 1) != _OURS:
                continue  # somebody else's, by the same name
            execute.end_processes(lambda root=root: execute.processes_of(marks(root)))  # type: ignore[misc]
            remove(root)
            reaped.append(root)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
    return reaped


def _short_directory() -> str:
    """/tmp, or what stands for it: the user's own TMPDIR may be far too long for a socket (macOS)."""
    for directory in ("/tmp", tempfile.gettempdir()):
        if os.path.isdir(directory) and os.access(directory, os.W_OK | os.X_OK):
            return os.path.realpath(directory)
    raise OSError("neither /tmp nor TMPDIR can be written")


def remove(root: Path) -> None:
    """Remove the tree, or file, also where an agent has taken permissions away."""

    whole = os.fspath(root)

    def again(function: Any, path: str, error: Any) -> None:
        path = os.fspath(path)
        with contextlib.suppress(OSError):
            for place in (os.path.dirname(path), path):  # only the tree's own directories, never what it stands in
                if (place + "/").startswith(whole + "/") and os.path.isdir(place) and not os.path.islink(place):
                    os.chmod(place, stat.S_IRWXU)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    if sys.version_info >= (3, 12):
        shutil.rmtree(root, onexc=again)
    else:
        shutil.rmtree(root, onerror=again)
