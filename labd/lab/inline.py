"""Text surgery inside inline tables and lists: put an entry in, take one out.

Pure; proposals only, see `rewrite`.
"""

from collections.abc import Iterator

from labd.lab.change import Scalar
from labd.lab.scan import Document, Entry, Path, Value
from labd.lab.text import dotted, line_end, pair, value_text


def table_text(table: dict[str, Scalar]) -> str:
    """A table as an inline table."""
    if not table:
        return "{}"
    return "{ " + ", ".join(pair(key, value_text(value)) for key, value in table.items()) + " }"


def inserted(document: Document, path: Path, rendered: str) -> Iterator[str]:
    """The text with a new key in the innermost inline table around `path`, if there is one."""
    for length in range(len(path) - 1, 0, -1):
        found = document.find(path[:length])
        if found:
            holder, rest = found[2], path[length:]
            if holder.kind == "table" and all(isinstance(key, str) for key in rest):
                yield _with_entry(document.text, holder, f"{dotted(rest)} = {rendered}")
            return


def appended(document: Document, path: Path, rendered: str) -> Iterator[str]:
    """The text with a new last entry in the list at `path`, if it is written as a list."""
    found = document.find(path)
    if found and found[2].kind == "array":
        yield _with_entry(document.text, found[2], rendered)


def without(document: Document, path: Path) -> Iterator[str]:
    """The text without the inline entry at `path`, if it is one."""
    found = document.find(path)
    if not found or not found[1]:
        return
    chain = found[1]
    holder = chain[-2].value if len(chain) > 1 else document.statements[found[0]].value
    assert holder is not None
    yield _without_entry(document.text, holder, holder.entries.index(chain[-1]))
    if len(chain[-1].keys) > 1:
        # Dotted: the last part goes, and the table that it made stays, empty.
        entry = chain[-1]
        kept = f"{dotted(entry.keys[:-1])} = {{}}"
        yield document.text[: entry.start] + kept + document.text[entry.value.end :]


def _with_entry(text: str, holder: Value, entry: str) -> str:
    if not holder.entries:
        padded = f" {entry} " if holder.kind == "table" else entry
        return text[: holder.start + 1] + padded + text[holder.end - 1 :]
    last = holder.entries[-1]
    line = text.rfind("\n", 0, last.start) + 1
    alone = not text[line : last.start].strip() and "\n" in text[last.value.end : holder.end]
    after = last.value.end
    if not alone:
        return text[:after] + f", {entry}" + text[after:]
    comma = after if text[after:].lstrip(" \t").startswith(",") else -1
    head = text[:after] + ("" if comma >= 0 else ",")
    end = text.index("\n", after) + 1
    new = text[line : last.start] + entry + ("," if comma >= 0 else "")
    return head + text[after:end] + new + line_end(text, end) + text[end:]


def _without_entry(text: str, holder: Value, index: int) -> str:
    entries = holder.entries
    entry = entries[index]
    if len(entries) == 1 and holder.kind == "table":
        return text[: holder.start + 1] + text[holder.end - 1 :]
    line = text.rfind("\n", 0, entry.start) + 1
    if holder.kind == "array" and line > holder.start and not text[line : entry.start].strip():
        end = text.find("\n", entry.value.end) + 1
        rest = text[entry.value.end : end].lstrip(" \t").removeprefix(",").strip()
        if end and (not rest or rest.startswith("#")):
            return text[:line] + text[end:]
    start, stop = _cut(entries, index)
    return text[:start] + text[stop:]


def _cut(entries: list[Entry], index: int) -> tuple[int, int]:
    """The span of an entry with the comma that goes with it."""
    if index + 1 < len(entries):
        return entries[index].start, entries[index + 1].start
    if index:
        return entries[index - 1].value.end, entries[index].value.end
    return entries[index].start, entries[index].value.end
