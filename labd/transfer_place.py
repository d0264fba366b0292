"""Where a received file goes: first into a directory of its own, then beside the others under a name that is free.

A sender names its files as it likes, and a receiver that finds the name taken makes both sides wait until they give
up. So the program receives in a fresh directory, and nothing that was there before is touched, whatever the names.
What a board sends must not configure this machine either: a hidden name (`.bashrc`) becomes a visible one.
"""

from __future__ import annotations

import fcntl
import os
import tempfile

from labd.errors import LabdError
from labd.lab.model import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PREFIX = ".labd-xfer-"


class Staging:
    """A fresh directory inside `directory` (the same file system). Raises LabdError where none can be made."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        try:
            self.path = tempfile.mkdtemp(prefix=PREFIX, dir=directory)
        except OSError as problem:
            raise LabdError(
                f"nothing can be received in {directory}: {problem.strerror}", hint=f"ls -ld {quoted(directory)}"
            ) from None
        self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._fd, fcntl.LOCK_EX)  # while we live, so that others know it from one that was left behind

    def abandoned(self) -> Iterator[str]:
        """What daemons that were killed left here; the empty ones are removed instead."""
        for name in sorted(os.listdir(self.directory)):
            path = os.path.join(self.directory, name)
            if name.startswith(PREFIX) and path != self.path and _is_nobodys(path):
                try:
                    os.rmdir(path)
                except OSError:
                    yield path

    def take_out(self, tell: Callable[[str], None]) -> list[str]:
        """Move all that came to where it belongs; the names it has there. `tell` hears of each that is another one."""
        placed = []
        for name in sorted(os.listdir(self.path)):
            visible = f"dot{name}" if name.startswith(".") else name
            there = _place(os.path.join(self.path, name), self.directory, visible)
            if visible != name:
                tell(f"{name} would be hidden, so what came is {there}")
            elif there != name:
                tell(f"{name} was there already, so what came is {there}")
            placed.append(there)
        os.rmdir(self.path)
        os.close(self._fd)
        return placed

    def give_up(self) -> str | None:
        """The transfer failed: the directory with what came of it, or None where nothing did and it is gone."""
        os.close(self._fd)
        try:
            os.rmdir(self.path)
        except OSError:
            return self.path
        return None


def _is_nobodys(path: str) -> bool:
    """Whether no transfer that runs receives in this directory."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _place(path: str, directory: str, name: str) -> str:
    """Give what is at `path` the name `name` in `directory`, or NAME.1, NAME.2 …: the first that nobody has."""
    number = 0
    while True:
        free = f"{name}.{number}" if number else name
        target = os.path.join(directory, free)
        number += 1
        if os.path.isdir(path):  # no links to directories: look, then move
            if os.path.lexists(target):
                continue
            os.rename(path, target)
            return free
        try:
            os.link(path, target)
        except FileExistsError:
            continue
        except OSError:  # a file system without hard links
            if os.path.lexists(target):
                continue
            os.rename(path, target)
            return free
        os.unlink(path)
        return free
