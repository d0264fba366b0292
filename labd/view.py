"""What a person sees of a line's exact bytes: text without escapes, with carriage returns and backspaces applied.

A pure function of bytes, which never raises, whatever a target sends. The exact bytes stay in the journal; `--raw`
shows them. Light: `serial log` pays for it.

The model is one row of a terminal. Text that follows a carriage return takes the place of the row, so that a
progress bar of thousands of states shows its last one. (A real terminal would leave the rest of a longer earlier
state standing behind a shorter later one: `done` over `99 % downloading` would read `done downloading`.) Colours,
titles and modes vanish; moves within the row, erasing and inserting are done; a jump to another place on the screen
becomes a space. Bytes that are no text are shown as `\\xNN`, as are control characters; a bell is dropped.
"""

import codecs

#: A jump to the right beyond the text goes no further than this column, as terminals stop at their edge.
COLUMNS = 256

_ESC = "\x1b"
_STRING_STARTS = "]PX^_"


def plain(raw: bytes, encoding: str = "utf-8", *, partial: bool = False) -> str:
    """The text of one line, given without its newline.

    `partial` says that more bytes may follow: a character or an escape sequence that has only begun is left out
    rather than shown broken. An encoding that Python does not know is read as UTF-8.
    """
    if raw[-1:] == b"\r":
        raw = raw.rstrip(b"\r")  # CR LF, and CR CR LF, are line ends, not a return to an empty row
    text = decode(raw, encoding, partial=partial)
    return text if text.isprintable() else _row(text, partial)


def decode(raw: bytes, encoding: str = "utf-8", *, partial: bool = False) -> str:
    """`raw` as text, with `\\xNN` for what is no text in that encoding; control characters are left in."""
    if encoding.lower() not in ("utf-8", "utf8"):
        try:
            return raw.decode(encoding, "backslashreplace")
        except (LookupError, ValueError, AssertionError):
            pass
    return codecs.utf_8_decode(raw, "backslashreplace", not partial)[0]


def _row(text: str, partial: bool) -> str:
    """Play `text` on one row of a terminal."""
    row = _Row()
    at, size = 0, len(text)
    while at < size:
        char = text[at]
        if char == _ESC:
            at = _escape(text, at, row, partial)
            continue
        at += 1
        if char == "\r":
            row.carriage_return()
        elif char == "\b":
            row.left(1)
        elif char == "\t" or char.isprintable() or (char.isspace() and char > "\x9f" and char not in "\u2028\u2029"):
            row.put(char)
        elif char != "\a":
            for shown in _shown(char):
                row.put(shown)
    return "".join(row.cells)


def _shown(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class _Row:
    """The cells of the row and the cursor's column."""

    __slots__ = ("at", "cells", "returned")

    def __init__(self) -> None:
        self.cells: list[str] = []
        self.at = 0
        self.returned = False

    def put(self, char: str) -> None:
        if self.returned:
            self.cells.clear()
            self.at = 0
            self.returned = False
        if self.at < len(self.cells):
            self.cells[self.at] = char
        else:
            if self.at > len(self.cells):
                self.cells.extend(" " * (self.at - len(self.cells)))
            self.cells.append(char)
        self.at += 1

    def carriage_return(self) -> None:
        self.at = 0
        self.returned = True

    def left(self, count: int) -> None:
        self.at = max(0, self.at - count)

    def to(self, column: int) -> None:
        """Go to a column, counted from 0. A chosen column means a row that is drawn over, not a fresh one."""
        self.at = max(0, min(column, max(len(self.cells), COLUMNS)))
        self.returned = False

    def erase(self, how: int) -> None:
        if how == 0:
            del self.cells[self.at :]
        elif how == 1:
            stop = min(self.at + 1, len(self.cells))
            self.cells[:stop] = " " * stop
        elif how == 2:
            self.cells.clear()

    def delete(self, count: int) -> None:
        del self.cells[self.at : self.at + count]

    def insert(self, count: int) -> None:
        if self.at < len(self.cells):
            self.cells[self.at : self.at] = " " * min(count, COLUMNS)

    def blank(self, count: int) -> None:
        stop = min(self.at + count, len(self.cells))
        if stop > self.at:
            self.cells[self.at : stop] = " " * (stop - self.at)

    def elsewhere(self) -> None:
        """The cursor jumped over the screen: what follows is another piece of text."""
        if self.cells and self.cells[-1] != " ":
            self.cells.append(" ")
        self.at = len(self.cells)
        self.returned = False


def _escape(text: str, at: int, row: _Row, partial: bool) -> int:
    """Obey or skip the sequence that begins at `at`; where to go on. An unfinished one is dropped or shown."""
    after = _sequence_end(text, at)
    if after > 0:
        if text[at + 1] == "[":
            _control(text[at + 2 : after - 1], text[after - 1], row)
        return after
    if partial and after < 0:
        return len(text)
    for shown in "\\x1b":
        row.put(shown)
    return at + 1


def _sequence_end(text: str, at: int) -> int:
    """Where the sequence ends; -1 if the text ends before it does, 0 if no sequence looks like that."""
    size = len(text)
    if at + 1 >= size:
        return -1
    kind = text[at + 1]
    if kind in _STRING_STARTS:
        return _string_end(text, at + 2) or -1
    end = at + 2 if kind == "[" else at + 1
    high = "\x3f" if kind == "[" else "\x2f"
    while end < size and "\x20" <= text[end] <= high:
        end += 1
    if end >= size:
        return -1
    return end + 1 if "\x30" <= text[end] <= "\x7e" else 0


def _string_end(text: str, at: int) -> int:
    """The end of a title or a device string: BEL or ESC backslash. A stray one is given up at the next escape."""
    for end in range(at, len(text)):
        if text[end] == "\a":
            return end + 1
        if text[end] == _ESC:
            return end + 2 if text[end + 1 : end + 2] == "\\" else end
    return 0


def _control(params: str, final: str, row: _Row) -> None:
    """A control sequence, as far as it matters within a row."""
    first = params.split(";", 1)[0]
    number = int(first[:6]) if first.isascii() and first.isdigit() else 0
    count = max(1, number)
    if final == "K":
        row.returned = row.returned and number != 0
        row.erase(number)
    elif final == "D":
        row.left(count)
    elif final == "C":
        row.to(row.at + count)
    elif final in "G`":
        row.to(count - 1)
    elif final == "P":
        row.delete(count)
    elif final == "@":
        row.insert(count)
    elif final == "X":
        row.blank(count)
    elif final in "Hf" or (final == "J" and number >= 2):
        row.elsewhere()
