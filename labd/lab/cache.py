"""A parsed lab kept as marshal data, so that reading an unchanged lab needs no TOML parser.

Owns `<state>/labcache/`. Only data that validated is kept. A kept lab counts only if the file is the same in every
way stat can tell, and the cache file is ours and whole; anything else is a miss, never an error. Light.

A file that changed a moment ago is not kept: on a file system with coarse times a second change could go unseen.
"""

import marshal
import os
import sys
import time
import zlib

from labd import __version__, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Key = tuple[Any, ...]

FORMAT = 2
MOST_FILES = 64

#: Path → (key, digest, data as marshal bytes) of what this process read: a daemon reads the same lab for every call.
#: Each reader gets data of its own.
_memory: "dict[str, tuple[Key, str, bytes]]" = {}


def key_of(path: str) -> "Key | None":
    """All that decides whether a kept lab is still this file; None when there is no such regular file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    if found.st_mode & 0o170000 != 0o100000:
        return None
    return key_from(path, found)


def key_from(path: str, found: os.stat_result) -> "Key":
    """The key of a file whose stat is known."""
    times = (found.st_mtime_ns, found.st_ctime_ns, found.st_size)
    return (FORMAT, __version__, sys.hexversion, path, found.st_dev, found.st_ino, *times)


def settled(found: os.stat_result, now_ns: int) -> bool:
    """Whether the file is old enough that a later change must show in its times (2 s where times are coarse)."""
    newest = max(found.st_mtime_ns, found.st_ctime_ns)
    coarse = newest % 1_000_000_000 == 0
    return newest + (2_000_000_000 if coarse else 25_000_000) < now_ns


def recall(path: str, key: "Key", env: "Mapping[str, str]") -> "tuple[str, dict[str, Any]] | None":
    """(digest, data) kept under this key, else None."""
    known = _memory.get(path)
    if known is not None and known[0] == key:
        return known[1], marshal.loads(known[2])
    found = _recall(path, key, env)
    if found is not None:
        if len(_memory) >= MOST_FILES:
            _memory.clear()
        _memory[path] = (key, found[0], marshal.dumps(found[1]))
    return found


def _recall(path: str, key: "Key", env: "Mapping[str, str]") -> "tuple[str, dict[str, Any]] | None":
    try:
        fd = os.open(_file(path, env), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            return None
        raw = os.read(fd, found.st_size + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    if len(raw) != found.st_size or len(raw) < 5 or zlib.crc32(raw[4:]).to_bytes(4, "big") != raw[:4]:
        return None
    try:
        kept_key, digest, data = marshal.loads(raw[4:])
    except (ValueError, EOFError, TypeError):
        return None
    return (digest, data) if kept_key == key else None


def keep(path: str, found: os.stat_result, digest: str, data: "dict[str, Any]", env: "Mapping[str, str]") -> bool:
    """Keep valid `data` for the file whose stat is `found`. Whether it was kept; a full or odd disk is no error."""
    if not settled(found, time.time_ns()):
        return False
    name = _file(path, env)
    temporary = f"{name}.{os.getpid()}.tmp"
    try:
        payload = marshal.dumps((key_from(path, found), digest, data))
        os.makedirs(os.path.dirname(name), mode=0o700, exist_ok=True)
        _sweep(os.path.dirname(name))
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            whole = zlib.crc32(payload).to_bytes(4, "big") + payload
            complete = os.write(fd, whole) == len(whole)
        finally:
            os.close(fd)
        if complete:
            os.replace(temporary, name)
        return complete
    except (OSError, ValueError):
        return False
    finally:
        try:
            os.unlink(temporary)
        except OSError:
            pass


def _file(path: str, env: "Mapping[str, str]") -> str:
    return os.path.join(paths.state_dir(env), "labcache", paths.lab_id(path) + ".bin")


def _sweep(directory: str) -> None:
    """Throwaway labs leave files behind: keep the directory small, oldest first out."""
    entries = [os.path.join(directory, name) for name in os.listdir(directory)]
    if len(entries) > MOST_FILES:
        entries.sort(key=lambda name: os.lstat(name).st_mtime_ns)
        for name in entries[: len(entries) - MOST_FILES]:
            os.unlink(name)
