"""Reading a lab file the long way: bytes, text, TOML, schema; each failure named with file, line and column.

Used when the cache misses and before every edit. Never writes anything but the cache.
"""

import os
import shlex
import stat
import tomllib
from collections.abc import Mapping
from typing import Any

from labd import paths
from labd.errors import LabdError, NotFound
from labd.lab import cache
from labd.lab.model import Lab
from labd.lab.validate import Problem, problems

#: What tomllib says, by its first words → what a person should have written there.
EXPECTED = {
    "Invalid statement": "expected `key = value`, a [table] or a # comment",
    "Invalid value": 'expected a value: a "string" in quotes, a number, true, false, [a list] or {a table}',
    "Expected '=' after a key": "expected `=` after the key",
    "Expected newline or end of document": "expected nothing more on this line",
    "Invalid initial character for a key part": "expected a key: letters, digits, _ and -, or a quoted string",
    "Unterminated string": "expected the closing quote of the string",
    'Expected "\'"': "expected the closing ' of the string on the same line",
    "Expected '\"'": 'expected the closing " of the string on the same line',
    "Unclosed array": "expected `,` or `]`",
    "Unclosed inline table": "expected `,` or `}` (a {table} ends on its own line)",
    "Unescaped '\\'": r"expected \\ for a backslash, or a 'string' in single quotes",
    "Cannot overwrite a value": "expected a key that has no value yet; this one has",
    "Cannot declare": "expected a table that is not declared yet; this one is",
    "Cannot mutate immutable": "expected a table that is still open; this one was closed with its braces",
    "Cannot redefine": "expected a table that is not declared yet; this one is",
    "Duplicate inline table key": "expected each key once in a {table}",
    "Expected ']'": "expected `]` at the end of the table's name",
    "Illegal character": 'expected a printable character; write others as \\uXXXX in a "string"',
    "Found invalid character": 'expected a printable character; write others as \\uXXXX in a "string"',
}


class Source:
    """The bytes of a lab file, read once: `raw`, their `digest`, the `text` behind the `bom`, the stat `found`."""

    __slots__ = ("bom", "digest", "found", "raw", "text")

    def __init__(self, raw: bytes, found: os.stat_result | None, path: str) -> None:
        self.raw = raw
        self.found = found
        self.digest = digest(raw)
        text = _decode(raw, path)
        self.bom = text.startswith("\ufeff")
        self.text = text[1:] if self.bom else text


def digest(raw: bytes) -> str:
    """The digest by which records name a state of a lab: the sha256 of its bytes, in hex."""
    found: str = _sha256()(raw).hexdigest()
    return found


def _sha256() -> Any:
    """Python's own sha256 where it has one: hashlib loads OpenSSL first, which costs a third of a bare start."""
    for name in ("_sha2", "_sha256", "hashlib"):
        try:
            return __import__(name).sha256
        except (ImportError, AttributeError):
            continue
    raise LabdError("this Python has no sha256")


def read_lab(path: str, env: Mapping[str, str]) -> Lab:
    """Read, parse and check `path`, and keep the result in the cache. Raises as `labd.lab.load` says."""
    source = read_source(path, env)
    data = parse(source.text, path)
    check(data, source.text, path)
    if source.found is not None:
        cache.keep(path, source.found, source.digest, data, env)
    return Lab(path, data, source.digest)


def read_source(path: str, env: Mapping[str, str]) -> Source:
    """The bytes of `path`, taken while the file stood still. Raises NotFound or LabdError."""
    for _ in range(5):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise _unreadable(path, error, env) from error
        try:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise LabdError(f"the lab {path} is not a regular file", hint=f"ls -lL {shlex.quote(path)}")
            with os.fdopen(os.dup(fd), "rb") as file:
                raw = file.read()
            after = os.fstat(fd)
        finally:
            os.close(fd)
        if raw and not after.st_size:
            raise LabdError(f"the lab {path} is not a file on a disk: its size is unknown until it is read",
                            hint=f"ls -lL {shlex.quote(path)}")  # fmt: skip
        if _times(before) == _times(after) and len(raw) == after.st_size:
            return Source(raw, after, path)
    raise LabdError(f"the lab {path} keeps changing while it is read", hint=f"fuser -v {shlex.quote(path)}")


def parse(text: str, path: str) -> dict[str, Any]:
    """The data of a TOML text. Raises LabdError naming file, line, column and what was expected."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said, line, column = _where(error, text)
        expected = next((words for start, words in EXPECTED.items() if said.startswith(start)), "")
        message = f"{expected} ({said})" if expected else said
        raise LabdError(f"{path}:{line}:{column}: {message}", hint="labd config edit") from None
    except RecursionError:
        raise LabdError(f"{path}:1:1: lists or tables are nested too deeply", hint="labd config edit") from None
    except ValueError as error:  # a number or a date that Python cannot hold
        raise LabdError(f"{path}:1:1: {error}", hint="labd config edit") from None


def check(data: dict[str, Any], text: str, path: str) -> None:
    """Raise LabdError at the first thing in `data` that the schema does not allow, with its place in `text`."""
    found = problems(data)
    if found:
        raise located(found, text, path)


def located(found: list[Problem], text: str, path: str) -> LabdError:
    """The error for these problems: the first one, where it is, and how many more there are."""
    from labd.lab.scan import locate

    first = found[0]
    line, column = locate(text, first.path)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return LabdError(
        f"{path}:{line}:{column}: {first.message}{more}", near=first.near, hint=first.hint or "labd config edit"
    )


def missing(path: str, env: Mapping[str, str]) -> NotFound:
    """The error for a lab that is not there."""
    default = os.path.join(paths.config_dir(env), "lab.toml")
    hint = "labd init" if path == default else f"labd init --path {shlex.quote(path)}"
    link = f" (a link to {os.readlink(path)}, which does not exist)" if os.path.islink(path) else ""
    return NotFound(f"no lab file at {path}{link}; --lab and LABD_LAB name another", hint=hint)


def _unreadable(path: str, error: OSError, env: Mapping[str, str]) -> LabdError:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return missing(path, env)
    return LabdError(f"cannot read the lab {path}: {error.strerror}", hint=f"ls -lL {shlex.quote(path)}")


def _decode(raw: bytes, path: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        byte = raw[error.start]
        raise LabdError(
            f"{path}:{line}:{column}: expected UTF-8 text, found byte 0x{byte:02x}", hint=f"file {shlex.quote(path)}"
        ) from None


def _where(error: tomllib.TOMLDecodeError, text: str) -> tuple[str, int, int]:
    """What tomllib said and where; before Python 3.14 the place is only in the words of its message."""
    said = str(error)
    message, _, place = said.rpartition(" (at ")
    words = place.rstrip(")").replace(",", "").split()
    if len(words) == 4 and words[0] == "line" and words[1].isdigit() and words[3].isdigit():
        return message, int(words[1]), int(words[3])
    return (message if place else said), text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1


def _times(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size
