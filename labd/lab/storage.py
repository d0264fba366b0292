"""The lab file on disk: one writer at a time, and a file that is whole at every moment.

A writer locks a side file (the lab itself is replaced, so a lock on it would be a lock on the past), writes a
temporary file beside the lab, syncs it, renames it over, and syncs the directory. A symlink stays a symlink, the
mode, owner and extended attributes stay. Knows nothing about TOML.
"""

import errno
import fcntl
import os
import shlex
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from labd.errors import Busy, LabdError

#: How long to wait for another writer, seconds. An edit takes milliseconds.
PATIENCE_S = 15.0


class Moved(Exception):
    """Somebody who does not take the lock (an editor) changed the file meanwhile: read again."""


@contextmanager
def locked(path: str, patience_s: float = PATIENCE_S) -> Iterator[str]:
    """Hold the lock of the lab at `path`; gives the real path to write. Raises Busy (who holds it) or LabdError."""
    real = os.path.realpath(path)
    directory = os.path.dirname(real)
    name = os.path.join(directory, f".{os.path.basename(real)}.lock")
    try:
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _cannot(path, error) from error
    try:
        _share(fd, real)
        _lock(fd, path, patience_s)
        _sign(fd)
        _sweep(real)
        yield real
    finally:
        os.close(fd)


def replace(path: str, real: str, raw: bytes, was: os.stat_result | None) -> None:
    """Put `raw` in the place of the file at `real`, whose stat was `was` (None: there was none). Needs the lock.

    Raises Moved if the file is not as it was, and LabdError, with the old file untouched, if it cannot be written.
    """
    temporary = f"{_temporaries(real)}{os.getpid()}.{time.monotonic_ns()}.tmp"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if was is not None:
                _keep_attributes(fd, real, was)
            _write_all(fd, raw)
            sync(fd)
        finally:
            os.close(fd)
        if not _still(real, was):
            raise Moved
        os.rename(temporary, real)
    except OSError as error:
        raise _cannot(path, error) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    _sync_directory(os.path.dirname(real))


def make_directory(directory: str) -> None:
    """Make a directory for a lab, private. Raises LabdError."""
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError as error:
        raise _cannot(directory, error) from error


def sync(fd: int) -> None:
    """Put a file's bytes on the disk itself; fsync alone does not on macOS."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        with suppress(OSError):
            fcntl.fcntl(fd, full)
            return
    os.fsync(fd)


def _write_all(fd: int, raw: bytes) -> None:
    view = memoryview(raw)
    while view:
        view = view[os.write(fd, view) :]


def _lock(fd: int, path: str, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    pause = 0.001
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                raise _cannot(path, error) from error
        if time.monotonic() > deadline:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            who = f"process {holder}" if holder.isdigit() else "another process"
            raise Busy(f"{who} has been editing the lab {path} for {patience_s:g} s",
                       hint=f"ps -p {holder}" if holder.isdigit() else None)  # fmt: skip
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def _sign(fd: int) -> None:
    """Leave our pid in the lock file, for whoever waits. A full disk does not matter here."""
    with suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)


def _share(fd: int, real: str) -> None:
    """Whoever may write the lab may take its lock."""
    with suppress(OSError):
        wanted = stat.S_IMODE(os.stat(real).st_mode) & 0o666 | 0o600
        if stat.S_IMODE(os.fstat(fd).st_mode) != wanted:
            os.fchmod(fd, wanted)


def _sweep(real: str) -> None:
    """Temporary files of writers that were killed; we hold the lock, so nobody uses them."""
    directory = os.path.dirname(real)
    prefix = os.path.basename(_temporaries(real))
    with suppress(OSError):
        for name in os.listdir(directory):
            if name.startswith(prefix) and name.endswith(".tmp"):
                os.unlink(os.path.join(directory, name))


def _temporaries(real: str) -> str:
    return os.path.join(os.path.dirname(real), f".{os.path.basename(real)}.new.")


def _keep_attributes(fd: int, real: str, was: os.stat_result) -> None:
    if (was.st_uid, was.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(OSError):
            os.fchown(fd, was.st_uid, was.st_gid)
    os.fchmod(fd, stat.S_IMODE(was.st_mode))
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for name in os.listxattr(real):
                os.setxattr(fd, name, os.getxattr(real, name))


def _still(real: str, was: os.stat_result | None) -> bool:
    try:
        now = os.stat(real)
    except FileNotFoundError:
        return was is None
    if was is None:
        return False
    return all(getattr(now, key) == getattr(was, key) for key in ("st_dev", "st_ino", "st_mtime_ns", "st_size"))


def _sync_directory(directory: str) -> None:
    # The file is in place already: a directory that cannot be synced is no reason to say that the edit failed.
    with suppress(OSError):
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _cannot(path: str, error: OSError) -> LabdError:
    directory = os.path.dirname(os.path.realpath(path))
    quoted = shlex.quote(directory)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LabdError(f"no space left in {directory} to write {path}; the file is as it was", hint=f"df {quoted}")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return LabdError(
            f"may not write in {directory}: {error.strerror}; {path} is as it was", hint=f"ls -ld {quoted}"
        )
    if error.errno == errno.ENOENT:
        return LabdError(f"no directory {directory} to write {path} in", hint=f"mkdir -p {quoted}")
    return LabdError(f"cannot write {path}: {error.strerror}; the file is as it was", hint=f"ls -ld {quoted}")
