"""The second way of an edit: cutting and pasting text at the places that `scan` gives.

Pure. Each function proposes new texts for one change, the likeliest first; none is trusted: `rewrite` holds every
one against the oracle. What belongs to whom: a comment block that touches the header below it is that table's; one
that touches the line above it belongs there; one that stands alone, or opens the file, is the reader's and stays.
"""

from collections.abc import Iterator

from labd.lab import inline
from labd.lab.change import Add, Append, Change, Remove, Scalar, Set, Unset
from labd.lab.removal import removals
from labd.lab.scan import BLANK, COMMENT, PAIR, Document, Path, Section
from labd.lab.text import block, dotted, line_end, pair, value_text


def proposals(document: Document, change: Change) -> Iterator[str]:
    """New texts for this change, the likeliest first."""
    if isinstance(change, Set):
        found = document.find(change.path)
        if found:
            span = found[2]
            yield document.text[: span.start] + value_text(change.value) + document.text[span.end :]
        else:
            yield from _new_key(document, change.path, value_text(change.value))
    elif isinstance(change, Add):
        yield from _new_table(document, change.path, change.table)
    elif isinstance(change, Append):
        yield from _new_element(document, change.path, change.table)
    elif isinstance(change, (Unset, Remove)):
        yield from removals(document, change)


def _new_key(document: Document, path: Path, rendered: str) -> Iterator[str]:
    """A key that is not there yet: where its table is, in the form that its table has."""
    parent = path[:-1]
    yield from inline.inserted(document, path, rendered)
    for section in document.sections:
        if section.path == parent and (section.header or not parent):
            line = f"{_indent(document, section)}{dotted(path[-1:])} = {rendered}"
            yield insert_lines(document.text, _body_end(document, section), [line])
    yield from _beside_dotted(document, path, rendered)
    if all(isinstance(key, str) for key in parent) and parent:
        # The table exists only through its sub-tables: give it a header of its own, before the first of them.
        lines = [f"[{dotted(parent)}]", pair(path[-1], rendered), ""]
        for section in document.sections:
            if section.header and section.path[: len(parent)] == parent:
                yield insert_lines(document.text, _lead_start(document, section), lines)
                break
        yield insert_lines(document.text, len(document.text), ["", *lines[:-1]])


def _beside_dotted(document: Document, path: Path, rendered: str) -> Iterator[str]:
    """A key of a table that is written as dotted keys: behind the last of them, in the same form."""
    parent = path[:-1]
    for index in range(len(document.statements) - 1, -1, -1):
        statement = document.statements[index]
        if statement.kind == PAIR and len(statement.path) > len(parent) and statement.path[: len(parent)] == parent:
            above = statement.path[: len(statement.path) - len(statement.keys)]
            if len(above) < len(parent) or (len(above) == len(parent) and above == parent):
                indent = document.text[statement.start : statement.key_start]
                line = f"{indent}{dotted(path[len(above) :])} = {rendered}"
                yield insert_lines(document.text, statement.end, [line])


def _new_table(document: Document, path: Path, table: dict[str, Scalar]) -> Iterator[str]:
    yield from inline.inserted(document, path, inline.table_text(table))
    yield from _new_block(document, path, block(path, table, element=False), path[:-1])
    yield from _beside_dotted(document, path, inline.table_text(table))


def _new_element(document: Document, path: Path, table: dict[str, Scalar]) -> Iterator[str]:
    yield from inline.appended(document, path, inline.table_text(table))
    yield from inline.inserted(document, path, f"[{inline.table_text(table)}]")
    present = any(section.path[: len(path)] == path for section in document.sections if section.header)
    yield from _new_block(document, path, block(path, table, element=True), path if present else path[:-1])
    yield from _beside_dotted(document, path, f"[{inline.table_text(table)}]")


def _new_block(document: Document, path: Path, lines: list[str], near: Path) -> Iterator[str]:
    """A new section: behind the last one that begins with `near`, else at the end of the file."""
    text = document.text
    related = [section for section in document.sections if section.header and section.path[: len(near)] == near]
    if related and near:
        place = _body_end(document, related[-1])
        followed = place < len(text) and not text[place:].lstrip(" \t").startswith(("\r", "\n"))
        yield insert_lines(text, place, ["", *lines, *([""] if followed else [])])
    if not text.strip("\r\n \t"):
        yield insert_lines(text, len(text), lines)
        return
    blank_already = document.statements[-1].kind == BLANK
    yield insert_lines(text, len(text), lines if blank_already else ["", *lines])


def insert_lines(text: str, place: int, lines: list[str]) -> str:
    """`text` with `lines` put in at `place`, the beginning of a line or the end of the text, in its own line ends.

    A text without a final newline stays one.
    """
    end = line_end(text, place)
    if place > 0 and text[place - 1] != "\n":
        return text[:place] + "".join(end + line for line in lines) + text[place:]
    return text[:place] + "".join(line + end for line in lines) + text[place:]


def _body_end(document: Document, section: Section) -> int:
    """Where a new line of this section goes: behind its last key, and behind the comment that touches it."""
    statements = document.statements
    last = section.first - 1
    for index in range(section.first, section.last):
        if statements[index].kind == PAIR:
            last = index
    if last < 0:
        return 0
    after = last + 1
    while after < section.last and statements[after].kind == COMMENT:
        after += 1
    touches_next = after == section.last < len(statements)
    return statements[last if touches_next else after - 1].end


def _lead_start(document: Document, section: Section) -> int:
    """Where a section begins with the comments that touch its header from above."""
    index = section.first - 1
    while index > 0 and document.statements[index - 1].kind == COMMENT:
        index -= 1
    return document.statements[index].start


def _indent(document: Document, section: Section) -> str:
    """How this section indents its keys."""
    for statement in reversed(document.statements[section.first : section.last]):
        if statement.kind == PAIR:
            return document.text[statement.start : statement.key_start]
    if section.header is None:
        return ""
    return document.text[section.header.start : section.header.key_start].split("[")[0]
