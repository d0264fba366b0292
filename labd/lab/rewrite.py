"""A change made to a TOML text, or refused: the oracle that every edit passes.

Pure. tomlkit proposes first, text surgery second. A proposal counts only if it reads back as exactly what the same
change does to plain data, if no other line differs from before, and if line ends stay what they were. When no
proposal passes there is no edit.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from labd.errors import LabdError
from labd.lab.change import Add, Append, Change, Set, applied, same
from labd.lab.scan import Document
from labd.lab.text import line_end

Proposer = Callable[[Document, Change], Iterator[str]]


def rewrite(text: str, changes: Iterable[Change], proposers: "tuple[Proposer, ...] | None" = None) -> str:
    """`text` with the changes made, one line for each value. Raises LabdError if that cannot be done faithfully.

    `text` must be valid TOML. `proposers` are for tests: the ways to try, instead of tomlkit and then surgery.
    """
    return rewritten(text, tomllib.loads(text), changes, proposers)[0]


def rewritten(
    text: str, data: dict[str, Any], changes: Iterable[Change], proposers: "tuple[Proposer, ...] | None" = None
) -> tuple[str, dict[str, Any]]:
    """`rewrite` for a text that is parsed already; also what the new text holds."""
    for change in changes:
        wanted = applied(data, [change])
        if not same(data, wanted):
            text = _changed(text, change, wanted, proposers or _both())
        data = wanted
    return text, data


def _both() -> tuple[Proposer, ...]:
    return (_kit, _surgery)


def _kit(document: Document, change: Change) -> Iterator[str]:
    """tomlkit's proposals; it is imported only where a change falls inside a statement that exists."""
    inside = change.path if not isinstance(change, (Set, Add)) else change.path[:-1]
    if document.find(change.path) or document.find(inside):
        from labd.lab import kit

        yield from kit.proposals(document, change)


def _surgery(document: Document, change: Change) -> Iterator[str]:
    from labd.lab import surgery

    yield from surgery.proposals(document, change)


def _changed(text: str, change: Change, wanted: dict[str, Any], proposers: tuple[Proposer, ...]) -> str:
    document = Document(text)
    for proposer in proposers:
        for proposal in _whole(proposer(document, change)):
            if _reads_as(proposal, wanted) and faithful(document, proposal, change):
                return proposal
    where = ".".join(str(key) for key in change.path)
    raise LabdError(
        f"cannot change {where} without touching other lines of the lab; the file is as it was",
        hint="labd config edit",
    )


def _whole(proposals: Iterator[str]) -> Iterator[str]:
    """The proposals of one way until it breaks: a way that raises (tomlkit may, on anything) has nothing to say."""
    while True:
        try:
            yield next(proposals)
        except StopIteration:
            return
        except Exception:  # whatever it is: the oracle needs a text, and there is another way
            return


def _reads_as(proposal: str, wanted: dict[str, Any]) -> bool:
    try:
        return same(tomllib.loads(proposal), wanted)
    except (ValueError, RecursionError):
        return False


def faithful(document: Document, after: str, change: Change) -> bool:
    """Whether `after` differs from the document in no line but those that the change is about."""
    before = document.text
    if not _line_ends_kept(before, after):
        return False
    old, new = _lines(before), _lines(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    touched, written = old[head : len(old) - tail], new[head : len(new) - tail]
    if isinstance(change, (Set, Add, Append)):
        found = document.find(change.path)
        if isinstance(change, Set) and found:
            first = before.count("\n", 0, found[2].start)
            last = before.count("\n", 0, found[2].end)
            return first <= head and len(old) - tail <= last + 1 and len(written) <= last - first + 1
        return not touched or (len(touched) == 1 and _inside_value(document, change) and len(written) <= 2)
    return _only_taken_away(touched, written)


def _inside_value(document: Document, change: Change) -> bool:
    """Whether the change falls into an inline table or list, whose line then has to change."""
    return any(document.find(change.path[:length]) for length in range(1, len(change.path) + 1))


def _only_taken_away(old: list[str], new: list[str]) -> bool:
    """Whether `new` is `old` with lines taken away, and at most one line changed."""
    remaining = iter(old)
    if all(line in remaining for line in new):
        return True
    from difflib import SequenceMatcher

    changed = 0
    for kind, _, _, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        changed += end - start if kind in ("replace", "insert") else 0
    return changed <= 1


def _line_ends_kept(before: str, after: str) -> bool:
    """Whether a text that has only CRLF, or only LF, still has only that."""
    for pure, other in (("\r\n", "\n"), ("\n", "\r\n")):
        if _has_only(before, pure) and _count(after, other):
            return False
    return True


def _has_only(text: str, end: str) -> bool:
    return _count(text, end) > 0 and _count(text, "\n" if end == "\r\n" else "\r\n") == 0


def _count(text: str, end: str) -> int:
    crlf = text.count("\r\n")
    return crlf if end == "\r\n" else text.count("\n") - crlf


def _lines(text: str) -> list[str]:
    """The lines, each with its line end: whether a file ends in a newline is no line's difference."""
    if text and not text.endswith("\n"):
        text += line_end(text, len(text))
    return text.split("\n")[:-1]


def _common(left: list[str], right: list[str]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
