"""Text surgery that takes away: one key's lines, or a whole table wherever its parts stand.

Pure; proposals only, see `rewrite`. With a table go the comment block that touches its header from above (unless it
opens the file) and comments inside it or touching its last line; every other comment stays.
"""

from collections.abc import Iterator
from itertools import pairwise

from labd.lab import inline
from labd.lab.change import Change, Unset
from labd.lab.scan import BLANK, COMMENT, PAIR, Document, Path, Section, Statement
from labd.lab.text import dotted, line_end


def removals(document: Document, change: Change) -> Iterator[str]:
    """New texts without what is at the change's path."""
    path = change.path
    found = document.find(path)
    if found and not found[1]:
        yield _without(document, {found[0]}, {})
        yield from _keeping_parent(document, found[0])
    elif found:
        if not isinstance(change, Unset) and isinstance(path[-1], int) and path[-1] == 0:
            # Perhaps the list's only entry, and then the list goes too: the oracle tells which was right.
            yield from _whole_list(document, path[:-1])
        yield from inline.without(document, path)
    elif not isinstance(change, Unset):
        yield from _table(document, path)
        if isinstance(path[-1], int):
            yield from _table(document, path[:-1])


def _whole_list(document: Document, path: Path) -> Iterator[str]:
    found = document.find(path)
    if found and not found[1]:
        yield _without(document, {found[0]}, {})
        yield from _keeping_parent(document, found[0])
    elif found:
        yield from inline.without(document, path)


def _keeping_parent(document: Document, index: int) -> Iterator[str]:
    """A dotted key's line turned into its table, empty: `a.b = 1` becomes `a = {}`."""
    statement = document.statements[index]
    if len(statement.keys) > 1:
        yield _without(document, set(), {index: _empty(document, statement, statement.keys[:-1])})


def _table(document: Document, path: Path) -> Iterator[str]:
    """Every part of the table at `path`: its sections, those of its sub-tables, its dotted keys."""
    gone: set[int] = set()
    heads: list[int] = []
    loose: list[int] = []
    length = len(path)
    for section in document.sections:
        if section.header and section.path[:length] == path:
            heads.append(section.first - 1)
            gone |= _extent(document, section)
        else:
            loose += [
                index
                for index in range(section.first, section.last)
                if document.statements[index].kind == PAIR and document.statements[index].path[:length] == path
            ]
    if not heads and not loose:
        return
    gone |= set(loose)
    yield _without(document, gone, {})
    parent = [key for key in path[:-1] if isinstance(key, str)]
    if heads and parent:
        first = document.statements[heads[0]]
        header = document.text[first.start : first.key_start].rstrip("[ \t") + f"[{dotted(tuple(parent))}]"
        yield _without(document, gone - {heads[0]}, {heads[0]: header + line_end(document.text, first.end)})
    for index in loose[:1]:
        statement = document.statements[index]
        kept = statement.keys[: len(path) - 1 - (len(statement.path) - len(statement.keys))]
        if kept:
            yield _without(document, gone - {index}, {index: _empty(document, statement, kept)})


def _extent(document: Document, section: Section) -> set[int]:
    """The statements that are this section's own."""
    statements = document.statements
    last = section.first - 1
    for index in range(section.first, section.last):
        if statements[index].kind == PAIR:
            last = index
    after = last + 1
    while after < section.last and statements[after].kind == COMMENT:
        after += 1
    touches_next = after == section.last < len(statements)
    end = last + 1 if touches_next else after
    start = section.first - 1
    while start > 0 and statements[start - 1].kind == COMMENT:
        start -= 1
    if start == 0 and section.first > 1:
        start = section.first - 1  # the comment that opens the file is the file's
    return set(range(start, end))


def _empty(document: Document, statement: Statement, keys: tuple[str, ...]) -> str:
    """The statement's line with an empty table at `keys` in its place, its indent and comment kept."""
    text = document.text
    assert statement.value is not None
    indent = text[statement.start : statement.key_start]
    return f"{indent}{dotted(keys)} = {{}}" + text[statement.value.end : statement.end]


def _without(document: Document, gone: set[int], instead: dict[int, str]) -> str:
    """The text without these statements, without the blank lines that would be one too many, with replacements."""
    gone = gone | _spare_blanks(document, gone, instead)
    text = document.text
    pieces = []
    for index, statement in enumerate(document.statements):
        if index in instead:
            pieces.append(instead[index])
        elif index not in gone:
            pieces.append(text[statement.start : statement.end])
    return "".join(pieces)


def _spare_blanks(document: Document, gone: set[int], instead: dict[int, str]) -> set[int]:
    """Blank lines between two sections that go, and one of the two runs around what goes."""
    statements = document.statements
    stays = [i for i, s in enumerate(statements) if i in instead or (i not in gone and s.kind != BLANK)]
    spare: set[int] = set()
    for before, after in pairwise([-1, *stays, len(statements)]):
        here = [index for index in range(before + 1, after) if index in gone]
        if not any(statements[index].header for index in here):
            continue
        above = set(range(before + 1, here[0]))
        below = set(range(here[-1] + 1, after))
        spare |= set(range(here[0], here[-1])) - gone
        if before == -1:
            spare |= below
        elif below or after == len(statements):
            spare |= above
    return spare
