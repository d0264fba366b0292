"""Files that are either the old or the new ones, never half: the harness's way of writing. No idea of a trial."""

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import tomllib
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from graders import parsed
from labd.errors import LabdError


def write_bytes(path: Path, data: bytes) -> None:
    """Put `data` at `path`: a temporary file beside it, synced, renamed. A crash leaves the old content."""
    fd, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def sync_directory(path: Path) -> None:
    """Put the names in a directory on the disk, where the system can."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def canonical(value: Any) -> bytes:
    """JSON with sorted keys, indented, newline at the end: the same value is always the same bytes."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=True) + "\n").encode()


def write_json(path: Path, value: Any) -> None:
    """`value` in its canonical form at `path`, atomically."""
    write_bytes(path, canonical(value))


def read_json(path: Path) -> Any:
    """What is at `path`. Raises OSError, or ValueError if it is no JSON."""
    return parsed.from_json(path.read_bytes())


def plain_bytes(path: Path) -> bytes | None:
    """What a plain file holds; None if there is none, or a link or (a FIFO would hang us) something else there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    with os.fdopen(fd, "rb") as file:
        return file.read()


def read_toml(path: Path) -> dict[str, Any]:
    """The data of a TOML file that somebody named. Raises LabdError if it can't be read or is none."""
    try:
        return parsed.from_toml(path.read_text("utf-8"))
    except OSError as error:
        raise LabdError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LabdError(f"{path}: no text: byte {error.start} is no UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise LabdError(f"{path}: {error}") from error


def digest(data: bytes) -> str:
    """The sha256 of `data` in hex."""
    return sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    """The sha256 of a file in hex. Raises OSError."""
    found = path.stat()
    return _file_digest(str(path), found.st_mtime_ns, found.st_size, found.st_ino)


@lru_cache(maxsize=64)
def _file_digest(path: str, *_: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_digest(root: Path, pattern: str = "*", without: str = "") -> str:
    """One digest for all files under `root` that match: names and contents, in order of name. `without`: a folder in
    `root` that is left out."""
    total = sha256()
    for path in sorted(root.rglob(pattern)):
        left_out = "__pycache__" in path.parts or (without and path.relative_to(root).parts[0] == without)
        if path.is_file() and not left_out:
            total.update(str(path.relative_to(root)).encode("utf-8", "surrogateescape") + b"\0")
            total.update(digest(path.read_bytes()).encode())
    return total.hexdigest()
