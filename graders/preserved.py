"""What an edit of the lab must not have touched: other data, comments, and every line that was not its business.

Pure functions of two texts. Comments are found by reading TOML's strings properly, as a `#` in a string is none.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from graders import labpath, parsed
from graders.verdict import Check

_STRINGS = ('"""', "'''", '"', "'")
_MOST = 3


def parse(data: bytes | None) -> dict[str, Any]:
    """The lab's data; an absent lab holds nothing. Raises ValueError if it is broken."""
    return {} if data is None else parsed.from_toml(text(data).replace("\r\n", "\n"))


def text(data: bytes) -> str:
    """The lab's text without a byte order mark. Raises ValueError."""
    return data.decode("utf-8").removeprefix("\ufeff")


def other_data(before: dict[str, Any], after: dict[str, Any], covered: Sequence[str]) -> Check:
    """Whether all data outside the covered paths is as it was."""
    paths = [labpath.parse(path) for path in covered]
    found = list(labpath.differences(labpath.without(before, paths), labpath.without(after, paths)))
    return Check("unrelated data unchanged", not found, _some(found))


def comments_kept(before: str, after: str, may_change: Sequence[str]) -> Check:
    """Whether every comment of the seed is still there, as often as it was; lines that may change are not asked."""
    free = [re.compile(pattern) for pattern in may_change]
    lines = before.split("\n")
    wanted = [comment for line, comment in comments(before) if not _any(free, lines[line])]
    there = [comment for _, comment in comments(after)]
    lost = []
    for comment in wanted:
        if comment in there:
            there.remove(comment)
        else:
            lost.append(repr(comment))
    return Check("comments kept", not lost, f"gone: {_some(lost)}" if lost else f"{len(wanted)} comments")


def lines_kept(before: str, after: str, may_change: Sequence[str]) -> Check:
    """Whether every line of the seed is still there, byte for byte and in order, but those that may change.

    Blank lines are not asked: one may go with the block that it set apart.
    """
    free = [re.compile(pattern) for pattern in may_change]
    wanted = [line for line in _lines(before) if line.strip() and not _any(free, line.rstrip("\r\n"))]
    lost = _lost(wanted, _lines(after))
    return Check("lines kept", not lost, f"changed or gone: {_some(lost)}" if lost else "every other line as it was")


def _lost(wanted: list[str], there: list[str]) -> list[str]:
    """Lines of `wanted` that are not in `there`, in order; none if all are. Which of several is a best guess."""
    at = 0
    for line in wanted:
        place = next((n for n in range(at, len(there)) if _same_line(line, there[n])), None)
        if place is None:
            break
        at = place + 1
    else:
        return []
    ends = [line.rstrip("\r\n") if line == wanted[-1] and not line.endswith("\n") else line for line in there]
    changes = difflib.SequenceMatcher(None, wanted, ends, autojunk=False).get_opcodes()
    return [repr(line) for kind, low, high, *_ in changes if kind != "equal" for line in wanted[low:high]]


def _lines(whole: str) -> list[str]:
    """Lines with their ends; only a newline ends one (str.splitlines would also split at U+2028 inside a string)."""
    parts = whole.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _same_line(seed: str, now: str) -> bool:
    # A last line without a newline gets one when something is put behind it.
    return seed == now or (not seed.endswith("\n") and seed == now.rstrip("\r\n"))


def comments(whole: str) -> Iterable[tuple[int, str]]:
    """(line number from 0, comment from its `#` to the line's end) of each comment."""
    at = line = 0
    while at < len(whole):
        quote = next((mark for mark in _STRINGS if whole.startswith(mark, at)), None)
        if quote:
            end = _string_end(whole, at, quote)
            line += whole.count("\n", at, end)
            at = end
        elif whole[at] == "#":
            end = whole.find("\n", at)
            end = len(whole) if end < 0 else end
            yield line, whole[at:end].rstrip()
            at = end
        else:
            line += whole[at] == "\n"
            at += 1


def _string_end(whole: str, at: int, quote: str) -> int:
    """Where the string that begins at `at` has ended. A one-line string that is never closed ends with its line."""
    here = at + len(quote)
    while here < len(whole):
        if whole[here] == "\\" and quote[0] == '"':
            here += 2
        elif whole.startswith(quote, here):
            here += len(quote)
            while len(quote) == 3 and whole[here : here + 1] == quote[0]:
                here += 1  # up to two more quotes belong to the text
            return here
        elif whole[here] == "\n" and len(quote) == 1:
            return here
        else:
            here += 1
    return len(whole)


def _any(patterns: Iterable[re.Pattern[str]], line: str) -> bool:
    return any(pattern.search(line) for pattern in patterns)


def _some(found: Sequence[str]) -> str:
    more = f" … and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return "; ".join(found[:_MOST]) + more
