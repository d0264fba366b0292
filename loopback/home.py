"""A HOME of its own for a program that is a board; gone with the board, and if that was killed, with the next one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "loopback-home-"


class Home:
    """A directory `path`. A lock beside it is held while it is in use, so that nobody takes it for a leftover."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self._root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = str(self._root.resolve() / "home")
        os.mkdir(self.path, 0o700)
        _remove_leftovers(self._root)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        _remove(self._root)
        os.close(self._lock)


def _remove(root: Path) -> None:
    shutil.rmtree(root / "home", ignore_errors=True)
    with contextlib.suppress(OSError):
        os.unlink(root / "lock")
        os.rmdir(root)


def _remove_leftovers(mine: Path) -> None:
    for root in mine.parent.glob(f"{PREFIX}*"):
        if root == mine or root.is_symlink() or not (root / "home").is_dir():
            continue  # without a home it is being made, and not locked yet
        with contextlib.suppress(OSError):
            if root.stat().st_uid != os.geteuid():
                continue
            lock = os.open(root / "lock", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(root)
            finally:
                os.close(lock)
