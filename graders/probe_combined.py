"""What the values of a repeated flag make together, against what each finds alone: which of them had no part in the
answer. Each function names what was dropped, "" if nothing was, None where an answer can't be read. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence

from graders import reading
from graders.reading import Read


def _joined(read: Read, whole: str, alone: Sequence[tuple[str, str]]) -> str | None:
    """Any of the values: what each finds alone has to be in the whole. Names what was dropped."""
    if reading.is_count(read, whole):
        found = [(value, reading.size(read, text)) for value, text in alone]
        size = reading.size(read, whole)
        if size is None or any(one is None for _, one in found):
            return None
        lost = [f"{value} alone {one}" for value, one in found if (one or 0) > size]
        return f"{size} vs more: all together {size}, {', '.join(lost)}" if lost else ""
    rows = [(value, reading.values(read, text)) for value, text in alone]
    all_rows = reading.values(read, whole)
    if all_rows is None or any(one is None for _, one in rows):
        return None
    for value, mine in rows:
        missing = Counter(mine or ()) - Counter(all_rows)
        if missing:
            return f"{value} was dropped: {missing.total()} of the {len(mine or ())} that it finds alone are missing"
    return ""


def _narrowed(read: Read, whole: str, alone: Sequence[tuple[str, str]]) -> str | None:
    """All of the values: what is in the whole has to be found by each alone."""
    rows = [(value, reading.values(read, text)) for value, text in alone]
    all_rows = reading.values(read, whole)
    if all_rows is None or any(one is None for _, one in rows):
        return None
    for value, mine in rows:
        more = Counter(all_rows) - Counter(mine or ())
        if more:
            return f"{value} was dropped: {more.total()} of {len(all_rows)} are not what it finds alone"
    return ""


def _summed(read: Read, whole: str, alone: Sequence[tuple[str, str]]) -> str | None:
    """Values that exclude each other: their counts have to add up."""
    sizes = [(value, reading.size(read, text)) for value, text in alone]
    size = reading.size(read, whole)
    if size is None or any(one is None for _, one in sizes):
        return None
    total = sum(one or 0 for _, one in sizes)
    told = ", ".join(f"{value} {one}" for value, one in sizes)
    return f"{size} vs {total}: all together {size}, alone {told}" if size < total else ""


COMBINED: dict[str, Callable[[Read, str, Sequence[tuple[str, str]]], str | None]] = {
    "any": _joined, "all": _narrowed, "sum": _summed,
}  # fmt: skip
