"""What both writers of a journal do with its files: the lock that makes a writer the only one, and the disk sync.

Used by `labd.journal_rx` and `labd.journal_events` alone. Each stream has a lock of its own, since the two may be
written by two processes: `lock` for what the target said, `events.lock` for what was done to it.
"""

from __future__ import annotations

import os

from labd.errors import Busy, LabdError
from labd.journal_format import EVENTS, RX
from labd.journal_stream import _fdatasync
from labd.lab.model import quoted

LOCKS = {RX: "lock", EVENTS: "events.lock"}

fdatasync = _fdatasync


def take_lock(directory: str, stream: str) -> int:
    """The descriptor of a stream's lock, locked and with our pid in it. Raises Busy naming who holds it."""
    import fcntl

    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(directory, LOCKS[stream]), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise cannot_open(directory, problem) from problem
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        os.close(lock)
        raise Busy(
            f"the journal {directory} is written by another process" + (f" (pid {holder})" if holder else ""),
            hint="labd daemons",
        ) from None
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)
    except OSError:
        pass  # a full disk: the lock holds all the same, only its holder's number is missing
    return lock


def cannot_open(directory: str, problem: OSError) -> LabdError:
    """The error for a journal whose files can't be opened."""
    return LabdError(
        f"the journal {directory} can't be opened: {problem.strerror}",
        hint=f"df -h {quoted(directory)}; ls -ld {quoted(directory)}",
    )


def sync_all(files: list[int], directories: list[str]) -> str | None:
    """Sync and close the descriptors, sync the directories; the first error, in words."""
    trouble: str | None = None
    for fd in files:
        try:
            fdatasync(fd)
        except OSError as problem:
            trouble = trouble or f"{problem.strerror}: what was received may not survive a power cut"
        os.close(fd)
    for directory in directories:
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            os.fsync(fd)
        except OSError:
            pass
        os.close(fd)
    return trouble
