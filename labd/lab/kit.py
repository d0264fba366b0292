"""The first way of an edit: tomlkit, on the one statement that changes, so that it can touch nothing else.

tomlkit keeps a statement's spacing, comment and form (dotted keys, inline tables, lists over several lines) well;
what it damages lies between statements (comments above tables, arrays of tables, blank lines, CRLF), so it never
gets to see more than one. Its result is a proposal: `rewrite` holds it against the oracle.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import tomlkit

from labd.lab.change import Add, Append, Change, Remove, Set, Unset
from labd.lab.scan import Document, Path

_LONE_LF = re.compile(r"(?<!\r)\n")


def proposals(document: Document, change: Change) -> Iterator[str]:
    """New texts for this change, where it falls inside one statement."""
    path = change.path
    if isinstance(change, Set):
        if document.find(path) or document.find(path[:-1]):
            yield _edited(document, path, lambda holder, key: holder.__setitem__(key, change.value))
    elif isinstance(change, Add):
        if document.find(path[:-1]):
            yield _edited(document, path, lambda holder, key: holder.__setitem__(key, _inline(change.table)))
    elif isinstance(change, Append):
        if document.find(path):
            yield _edited(document, path, lambda holder, key: holder[key].append(_inline(change.table)))
    elif isinstance(change, (Unset, Remove)):
        found = document.find(path)
        if found and found[1]:
            yield _edited(document, path, lambda holder, key: holder.__delitem__(key))


def _edited(document: Document, path: Path, act: Callable[[Any, Any], Any]) -> str:
    """The text with `act(holder, last key)` done to the statement that holds `path`."""
    text = document.text
    found = document.find(path) or document.find(path[:-1])
    assert found is not None
    statement = document.statements[found[0]]
    whole = text[statement.start : statement.end]
    piece = whole.rstrip("\r\n")
    parsed = tomlkit.parse(piece)
    keys = (*statement.keys, *path[len(statement.path) :])
    holder: Any = parsed
    for key in keys[:-1]:
        holder = holder[key]
    act(holder, keys[-1])
    dumped = tomlkit.dumps(parsed).rstrip("\r\n")
    if "\r\n" in text and not _LONE_LF.search(text):
        dumped = _LONE_LF.sub("\r\n", dumped)
    return text[: statement.start] + dumped + whole[len(piece) :] + text[statement.end :]


def _inline(table: dict[str, Any]) -> Any:
    made = tomlkit.inline_table()
    made.update(table)
    return made
