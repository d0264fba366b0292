"""A file that the user asked for, written whole or not at all. Light."""

from __future__ import annotations

import os

from labd import paths
from labd.errors import LabdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from labd.call import Call


def write(call: Call, path: str, pieces: Iterable[bytes]) -> str:
    """Write `pieces` to the caller's `path` (`~` and relative ones are the caller's); the absolute path.

    A regular file is replaced only once all of it is on the disk; anything else (a pipe, /dev/null) is written to.
    Raises LabdError, leaving what was there, when it can't be written.
    """
    where = paths.expand(path, call.env, call.cwd)
    try:
        if os.path.exists(where) and not os.path.isfile(where):
            if os.path.isdir(where):
                raise IsADirectoryError(21, "is a directory", where)
            with open(where, "wb") as special:
                special.writelines(pieces)
            return where
        _replace(os.path.realpath(where), pieces)
    except OSError as error:
        raise LabdError(f"{where} can't be written: {error.strerror}") from None
    return where


def _replace(where: str, pieces: Iterable[bytes]) -> None:
    """Write beside it, sync, rename; nothing is left behind when that fails."""
    fresh = os.path.join(os.path.dirname(where), f".{os.path.basename(where)[:200]}.{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(fd, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(where):
            os.chmod(fresh, os.stat(where).st_mode & 0o777)
        os.rename(fresh, where)
    except BaseException:
        os.unlink(fresh)
        raise
