"""Where everything stands in a TOML text: its lines as statements, its keys and values as spans.

Pure. Reads only text that tomllib accepts (whoever calls parses first) and so checks nothing; it exists because
no library gives the places of things, and an edit that touches one line has to know which one. Offsets count
characters of the text given, line ends as they are (LF or CRLF).
"""

import re
import tomllib
from typing import Final

Path = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BLANKS = re.compile(r"[ \t]*")
_FILLING = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_VALUE = re.compile(r"[^,\]}#\r\n]*")
_STRINGS = {
    '"""': re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL),
    "'''": re.compile(r"'''(?:[^']|'(?!''))*'{3,5}", re.DOTALL),
    '"': re.compile(r'"(?:[^"\\]|\\.)*"'),
    "'": re.compile(r"'[^']*'"),
}

BLANK: Final = "blank"
COMMENT: Final = "comment"
PAIR: Final = "pair"
TABLE: Final = "table"  # [a.b]
ELEMENT: Final = "element"  # [[a.b]]


class Value:
    """A value's span. `kind`: `scalar`, `array` or `table` (inline); `entries` are what the latter two hold."""

    __slots__ = ("end", "entries", "kind", "start")

    def __init__(self, start: int, end: int, kind: str, entries: "list[Entry]") -> None:
        self.start = start
        self.end = end
        self.kind = kind
        self.entries = entries


class Entry:
    """One entry of an inline container: its keys (of an array: its index), from `start` to the end of its value."""

    __slots__ = ("keys", "start", "value")

    def __init__(self, start: int, keys: Path, value: Value) -> None:
        self.start = start
        self.keys = keys
        self.value = value


class Statement:
    """One statement: a blank line, a comment line, a header, or a key with its value over one line or several.

    `start` is the beginning of its first line, `end` is behind the line end of its last. `path` is absolute: of a
    header the table (with the index of an array's element), of a pair the key. `keys` are those written here;
    `key_start`/`key_end` are their span.
    """

    __slots__ = ("end", "key_end", "key_start", "keys", "kind", "path", "start", "value")

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.path: Path = ()
        self.keys: tuple[str, ...] = ()
        self.key_start = start
        self.key_end = start
        self.value: Value | None = None

    @property
    def header(self) -> bool:
        """Whether it opens a section."""
        return self.kind in (TABLE, ELEMENT)


class Section:
    """A header (None for what is above the first) and the statements under it, as indices [first, last)."""

    __slots__ = ("first", "header", "last", "path")

    def __init__(self, header: Statement | None, first: int, last: int) -> None:
        self.header = header
        self.first = first
        self.last = last
        self.path: Path = header.path if header else ()


class Document:
    """A scanned text: its statements in order and its sections."""

    __slots__ = ("sections", "statements", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.statements = _statements(text)
        self.sections = _sections(self.statements)

    def section_of(self, index: int) -> Section:
        """The section that the statement with this index belongs to (a header: the one it opens)."""
        return next(s for s in self.sections if s.first <= index < s.last or (s.header and s.first - 1 == index))

    def find(self, path: Path) -> "tuple[int, list[Entry], Value] | None":
        """The value at `path`: its statement's index, the inline entries that lead to it, and its span."""
        for index, statement in enumerate(self.statements):
            if statement.value is not None and path[: len(statement.path)] == statement.path:
                chain = _descend(statement.value, path[len(statement.path) :])
                if chain is not None:
                    return index, chain, chain[-1].value if chain else statement.value
        return None


def locate(text: str, path: Path) -> tuple[int, int]:
    """Line and column (from 1) of the thing at `path`, or of the nearest thing around it that has a place."""
    document = Document(text)
    for length in range(len(path), 0, -1):
        part = path[:length]
        found = document.find(part)
        if found:
            index, chain, _ = found
            return _position(text, chain[-1].start if chain else document.statements[index].key_start)
        for statement in document.statements:
            if statement.path[:length] == part:
                return _position(text, statement.key_start)
    return 1, 1


def _position(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _descend(value: Value, rest: Path) -> list[Entry] | None:
    if not rest:
        return []
    for entry in value.entries:
        if rest[: len(entry.keys)] == entry.keys:
            deeper = _descend(entry.value, rest[len(entry.keys) :])
            if deeper is not None:
                return [entry, *deeper]
    return None


def _statements(text: str) -> list[Statement]:
    found: list[Statement] = []
    counts: dict[Path, int] = {}
    section: Path = ()
    position = 0
    while position < len(text):
        start = position
        position = _blanks(text, position)
        if position == len(text) or text[position] in "\r\n":
            found.append(Statement(BLANK, start, _line_end(text, position)))
        elif text[position] == "#":
            found.append(Statement(COMMENT, start, _line_end(text, position)))
        elif text[position] == "[":
            statement = _header(text, start, position)
            section = statement.path = _resolve(statement.keys, statement.kind == ELEMENT, counts)
            found.append(statement)
        else:
            statement = _pair(text, start, position)
            statement.path = (*section, *statement.keys)
            found.append(statement)
        position = found[-1].end
    return found


def _resolve(keys: tuple[str, ...], element: bool, counts: dict[Path, int]) -> Path:
    """The absolute path of a header: names of arrays of tables are followed by the index of the element meant."""
    path: Path = ()
    for position, key in enumerate(keys):
        path = (*path, key)
        if element and position == len(keys) - 1:
            counts[path] = counts.get(path, 0) + 1
        if path in counts:
            path = (*path, counts[path] - 1)
    return path


def _header(text: str, start: int, position: int) -> Statement:
    element = text.startswith("[[", position)
    position += 2 if element else 1
    position = _blanks(text, position)
    keys, key_end = _keys(text, position)
    statement = Statement(ELEMENT if element else TABLE, start, _line_end(text, key_end))
    statement.keys, statement.key_start, statement.key_end = keys, position, key_end
    return statement


def _pair(text: str, start: int, position: int) -> Statement:
    keys, key_end = _keys(text, position)
    after = _blanks(text, text.index("=", key_end) + 1)
    value = _value(text, after)
    statement = Statement(PAIR, start, _line_end(text, value.end))
    statement.keys, statement.key_start, statement.key_end, statement.value = keys, position, key_end, value
    return statement


def _keys(text: str, position: int) -> tuple[tuple[str, ...], int]:
    """The parts of a dotted key that starts here, and where its last part ends."""
    keys: list[str] = []
    while True:
        position = _blanks(text, position)
        if text[position] in "\"'":
            end = _string_end(text, position)
            keys.append(tomllib.loads(f"k = {text[position:end]}")["k"])
        else:
            end = _match_end(_BARE_KEY, text, position)
            keys.append(text[position:end])
        position = _blanks(text, end)
        if position >= len(text) or text[position] != ".":
            return tuple(keys), end
        position += 1


def _value(text: str, position: int) -> Value:
    first = text[position]
    if first in "\"'":
        return Value(position, _string_end(text, position), "scalar", [])
    if first in "[{":
        return _container(text, position)
    end = _match_end(_BARE_VALUE, text, position)
    return Value(position, position + len(text[position:end].rstrip(" \t")), "scalar", [])


def _container(text: str, start: int) -> Value:
    array = text[start] == "["
    closing = "]" if array else "}"
    entries: list[Entry] = []
    position = _match_end(_FILLING, text, start + 1)
    while text[position] != closing:
        begin = position
        keys: Path = (len(entries),)
        if not array:
            keys, position = _keys(text, position)
            position = _match_end(_FILLING, text, text.index("=", position) + 1)
        value = _value(text, position)
        entries.append(Entry(begin, keys, value))
        position = _match_end(_FILLING, text, value.end)
        if text[position] == ",":
            position = _match_end(_FILLING, text, position + 1)
    return Value(start, position + 1, "array" if array else "table", entries)


def _string_end(text: str, position: int) -> int:
    quote = text[position]
    opening = quote * 3 if text.startswith(quote * 3, position) else quote
    return _match_end(_STRINGS[opening], text, position)


def _match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    if found is None:
        raise ValueError(f"not TOML at character {position}")
    return found.end()


def _blanks(text: str, position: int) -> int:
    return _match_end(_BLANKS, text, position)


def _line_end(text: str, position: int) -> int:
    newline = text.find("\n", position)
    return len(text) if newline < 0 else newline + 1


def _sections(statements: list[Statement]) -> list[Section]:
    heads = [index for index, statement in enumerate(statements) if statement.header]
    bounds = [*heads, len(statements)]
    sections = [Section(None, 0, bounds[0])]
    for head, after in zip(heads, bounds[1:], strict=True):
        sections.append(Section(statements[head], head + 1, after))
    return sections
