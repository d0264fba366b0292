"""Bytes into records: JSON values a line, or one JSON value. Knows no product; the first to distrust what it reads.

Lines end at newline bytes and nowhere else: text may hold any other separator. A bad last line is a file that was cut;
a bad line elsewhere is a note. Numbers that JSON has no finite form for become None. Memory stays a small multiple of
the longest line.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.transcripts.model import Problem

#: A line longer than this is not parsed (bytes).
MOST_LINE = 32 << 20
#: A text longer than this is cut, and says so (characters).
MOST_TEXT = 1 << 20
#: More problems than this are only counted.
MOST_PROBLEMS = 100


@dataclass
class Read:
    """What could be read: (line number, object), and what could not.

    `records` can be gone through once, and are parsed only then: of a long log one line at a time is in memory.
    `problems` and `truncated` are whole when that is done.
    """

    records: Iterator[tuple[int, dict[str, Any]]] = field(default_factory=lambda: iter(()))
    problems: list[Problem] = field(default_factory=list)
    truncated: bool = False


def split(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line) of all lines that are not blank."""
    start, number = 0, 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        line = data[start:end]
        if line.strip():
            yield number, line
        start = end + 1


def value(data: bytes) -> Any:
    """One JSON value. Raises ValueError for whatever is wrong, nesting without end included."""
    if len(data) > MOST_LINE:
        raise ValueError(f"longer than {MOST_LINE >> 20} MiB")
    try:
        return _DECODER.decode(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read(data: bytes) -> Read:
    """All objects, a line each. Never raises."""
    found = Read()
    found.records = _records(data, found)
    return found


def _records(data: bytes, found: Read) -> Iterator[tuple[int, dict[str, Any]]]:
    bad: tuple[int, str] | None = None
    extra = 0
    for number, line in split(data):
        if bad is not None:
            extra += _note(found, *bad)
            bad = None
        try:
            told = value(line)
        except ValueError as error:
            bad = number, f"no JSON: {str(error)[:100]}"
            continue
        if isinstance(told, dict):
            yield number, told
        else:
            extra += _note(found, number, f"no object but {type(told).__name__}")
    if bad is not None:
        found.truncated = True
        extra += _note(found, bad[0], "cut off: " + bad[1])
    if extra:
        found.problems.append(Problem(0, f"{extra} more bad lines"))


def _note(found: Read, line: int, what: str) -> int:
    if len(found.problems) >= MOST_PROBLEMS:
        return 1
    found.problems.append(Problem(line, what))
    return 0


def _nothing(constant: str) -> None:
    """NaN and Infinity are no JSON."""


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


_DECODER = json.JSONDecoder(parse_constant=_nothing, parse_float=_finite)

# -- values of which nothing is certain --------------------------------------------------------------------------


def obj(told: Any) -> dict[str, Any]:
    """`told` if it is an object, else an empty one."""
    return told if isinstance(told, dict) else {}


def objs(told: Any) -> list[dict[str, Any]]:
    """The objects of a list; empty if it is none."""
    return [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []


def text(told: Any) -> str:
    """`told` if it is text (cut where it is endless), else nothing."""
    if not isinstance(told, str):
        return ""
    return told if len(told) <= MOST_TEXT else f"{told[:MOST_TEXT]}\n[… {len(told) - MOST_TEXT} characters …]"


def maybe_text(told: Any) -> str | None:
    """`told` if it is text with something in it, else None."""
    return text(told) or None


def whole(told: Any) -> int | None:
    """`told` if it is a whole number of a size that counts something, else None."""
    if isinstance(told, bool) or not isinstance(told, (int, float)) or abs(told) > 1 << 53:
        return None
    return int(told) if told == int(told) else None


def number(told: Any) -> float | None:
    """`told` if it is a number, else None."""
    return float(told) if isinstance(told, (int, float)) and not isinstance(told, bool) and abs(told) < 1e300 else None


def names(told: Any, key: str = "name") -> list[str] | None:
    """A list of texts, or of objects with a name; None if it is no list."""
    if not isinstance(told, list):
        return None
    found = [text(one.get(key)) if isinstance(one, dict) else text(one) for one in told]
    return [one for one in found if one]


def seconds(told: Any) -> float | None:
    """A time as seconds since 1970: ISO 8601 text, or a number of seconds or milliseconds."""
    from datetime import UTC, datetime

    if isinstance(told, str):
        try:
            at = datetime.fromisoformat(told.replace("Z", "+00:00"))
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    count = number(told)
    return None if count is None else count / 1000 if count > 1e11 else count


def contents(told: Any) -> str:
    """The text of a message's content: text, or a list of parts of which some are text."""
    if isinstance(told, list):
        return "\n".join(filter(None, (text(one.get("text")) if isinstance(one, dict) else text(one) for one in told)))
    return text(told)
