"""Exact bytes as the text that patterns are matched against, and back: which bytes a character came from.

Pure; for `labd.match` alone. The text is what `labd.view` shows (its rules are used, not repeated), or with `raw` one
character a byte. Most text is plain and costs a few passes at the speed of C; a line that a terminal would redraw is
played cell by cell, and then also what stood on it for a while is known, in the order in which it was to be seen.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right

from labd import view

#: A line is looked at in pieces of this many bytes.
LINE_CUT = 1 << 15
#: What all passing states of one line may hold together, in characters; later ones are passed over.
STATES_MAX = 1 << 19

# Control sequences that change nothing in a row which is only ever appended to: colours, modes, erasing to its end.
_HARMLESS = re.compile(rb"\x1b\[[ -?]*[ABEFIL-OQ-WYZ\[-_a-eg-z{-~]|\x1b\[0?K")

_SHOWN = bytes(range(0x20, 0x7F)) + b"\r\n"

Spans = list[tuple[int, int]]


class Cell(str):
    """One character of a row, with the offsets of the bytes it came from, within its line."""

    __slots__ = ("start", "stop")
    start: int
    stop: int


class _Row(view._Row):
    """A row that remembers where its cells came from and what stood on it before it was changed."""

    __slots__ = ("_budget", "_fresh", "source", "states")

    def __init__(self) -> None:
        super().__init__()
        self.source = (0, 0)
        self.states: list[list[str]] = []
        self._fresh = False
        self._budget = STATES_MAX

    def put(self, char: str) -> None:
        cell = Cell(char)
        cell.start, cell.stop = self.source
        size = len(self.cells)
        over = self.at < size and not self.returned
        super().put(cell)
        self._fresh = True
        if over:
            self._remember()  # each character of text that is written over an older one
        elif self.at - 1 > size:
            self._own(size, cell.start)

    def _own(self, first: int = 0, stop: int = -1) -> None:
        """Blanks that were not sent come from what made them: a sequence, or a character set beyond the text."""
        for at in range(first, len(self.cells)):
            if type(self.cells[at]) is str:
                cell = Cell(" ")
                cell.start, cell.stop = self.source[0], self.source[1] if stop < 0 else stop
                self.cells[at] = cell

    def _remember(self) -> None:
        if self._fresh and self._budget > 0:
            self._budget -= len(self.cells) + 1
            self.states.append(list(self.cells))
        self._fresh = False

    def carriage_return(self) -> None:
        self._remember()
        super().carriage_return()

    def left(self, count: int) -> None:
        self._remember()
        super().left(count)

    def to(self, column: int) -> None:
        self._remember()
        super().to(column)

    def erase(self, how: int) -> None:
        self._remember()
        super().erase(how)
        self._own()

    def delete(self, count: int) -> None:
        self._remember()
        super().delete(count)

    def insert(self, count: int) -> None:
        self._remember()
        super().insert(count)
        self._own()

    def blank(self, count: int) -> None:
        self._remember()
        super().blank(count)
        self._own()

    def elsewhere(self) -> None:
        self._remember()
        super().elsewhere()
        self._own()


def play(raw: bytes, encoding: str, partial: bool) -> list[list[str]]:
    """What one line (without its newline) showed, state after state, the last one last; each a list of cells."""
    if raw[-1:] == b"\r":
        raw = raw.rstrip(b"\r")
    text, sources = _decoded(raw, encoding, partial)
    row = _Row()
    at, size = 0, len(text)
    while at < size:
        char = text[at]
        row.source = sources[at]
        if char == "\x1b":
            at = view._escape(text, at, row, partial)
            continue
        at += 1
        if char == "\r":
            row.carriage_return()
        elif char == "\b":
            row.left(1)
        elif char == "\t" or char.isprintable() or (char.isspace() and char > "\x9f" and char not in "\u2028\u2029"):
            row.put(char)
        elif char != "\a":
            for shown in view._shown(char):
                row.put(shown)
    return [*row.states, row.cells]


def _decoded(raw: bytes, encoding: str, partial: bool) -> tuple[str, Spans]:
    """The text of `view.decode`, and for each character the begin and the end of its bytes."""
    text = view.decode(raw, encoding, partial=partial)
    if raw.isascii() and len(text) == len(raw):
        return text, [(at, at + 1) for at in range(len(raw))]
    sources: Spans = []
    if encoding.lower() in ("utf-8", "utf8"):
        at = 0
        for char in codecs.utf_8_decode(raw, "surrogateescape", not partial)[0]:
            bad = "\udc80" <= char <= "\udcff"
            end = at + (1 if bad else len(char.encode()))
            sources += [(at, end)] * (4 if bad else 1)
            at = end
    else:
        try:
            decoder = codecs.getincrementaldecoder(encoding)("backslashreplace")
        except (LookupError, TypeError):  # `view.decode` reads what Python does not know as UTF-8
            return _decoded(raw, "utf-8", partial)
        begin = 0
        for at in range(len(raw)):
            more = decoder.decode(raw[at : at + 1])
            sources += [(begin, at + 1)] * len(more)
            begin = at + 1 if more else begin
        sources += [(begin, len(raw))] * (len(text) - len(sources))
    return text, sources[: len(text)]


class Piece:
    """A run of whole lines, or the open one, as text. `states` is what a single line showed before, if it was redrawn.

    The text has as many newlines as the bytes. `masked` are the offsets of bytes that are left out of it.
    """

    __slots__ = ("_cells", "_kind", "masked", "offset", "partial", "raw", "states", "text")

    def __init__(
        self, kind: Kind, text: str, raw: bytes, offset: int, *, partial: bool = False, masked: Spans | None = None
    ) -> None:
        self._kind = kind
        self.text = text
        self.raw = raw
        self.offset = offset
        self.partial = partial
        self.masked = masked or []
        self.states: list[list[str]] = []
        self._cells: dict[int, list[str]] = {}

    @property
    def end(self) -> int:
        """The offset behind its bytes."""
        return self.offset + len(self.raw)

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """The offsets of the bytes that the characters `text[start:stop]` came from, all that is between included."""
        if self._kind.raw and not self.masked:
            return self.offset + start, self.offset + stop
        newline = self.text.find("\n", start, stop)
        if newline < 0 or newline == stop - 1:
            return self._on_line(start, stop)
        first = self._on_line(start, newline + 1)
        last = self._on_line(self.text.rfind("\n", start, stop - 1) + 1, stop)
        return min(first[0], last[0]), max(first[1], last[1])

    def _on_line(self, start: int, stop: int) -> tuple[int, int]:
        """The same for characters of one line."""
        text, raw = self.text, self.raw
        begin = text.rfind("\n", 0, start) + 1
        at = 0
        for _ in range(text.count("\n", 0, start)):
            at = raw.index(b"\n", at) + 1
        end = raw.find(b"\n", at)
        end = len(raw) if end < 0 else end
        if at not in self._cells:
            self._cells = {at: self._kind.cells(raw[at:end], self.offset + at, self.partial, self.masked)[-1]}
        sources = [(c.start, c.stop) for c in self._cells[at][start - begin : stop - begin] if isinstance(c, Cell)]
        if text[stop - 1] == "\n":
            sources.append((end - at, end - at + 1))
        sources = sources or [(0, end - at)]
        low, high = min(sources)[0], max(high for _, high in sources)
        return self.offset + at + low, self.offset + at + high


class Kind:
    """How bytes become text: `raw` is one character a byte, else as `labd.view` shows them in an encoding."""

    def __init__(self, *, raw: bool = False, encoding: str = "utf-8") -> None:
        self.raw = raw
        self.encoding = encoding
        self.ascii_like = encoding.lower() in ("utf-8", "utf8", "ascii", "us-ascii", "latin-1", "iso-8859-1")

    def cells(self, line: bytes, offset: int, partial: bool, masked: Spans) -> list[list[str]]:
        """The states of one line without its newline, masked bytes left out."""
        if self.raw:
            states: list[list[str]] = [_raw_cells(line)]
        else:
            states = play(line, self.encoding, partial)
        if not masked:
            return states
        return [[cell for cell in state if not _inside(cell, offset, masked)] for state in states]

    def pieces(self, raw: bytes, offset: int, masked: Spans) -> list[Piece]:
        """Whole lines, each with its newline (the last may lack it, where a line was cut) as pieces of text."""
        hit = [span for span in masked if span[0] < offset + len(raw) and span[1] > offset]
        text = None if hit else self._plain(raw)
        if text is not None:
            return [Piece(self, text, raw, offset)]
        found: list[Piece] = []
        run: list[bytes] = []
        run_text: list[str] = []
        for line in _lines(raw):
            touched = [span for span in hit if span[0] < offset + len(line) and span[1] > offset]
            text = None if touched else self._plain(line)
            if text is not None:
                run.append(line)
                run_text.append(text)
            else:
                if run:
                    whole = b"".join(run)
                    found.append(Piece(self, "".join(run_text), whole, offset - len(whole)))
                    run, run_text = [], []
                found.append(self.redrawn(line, offset, False, touched))
            offset += len(line)
        if run:
            whole = b"".join(run)
            found.append(Piece(self, "".join(run_text), whole, offset - len(whole)))
        return found

    def open(self, raw: bytes, offset: int, masked: Spans) -> Piece:
        """The line that has not ended yet."""
        hit = [span for span in masked if span[0] < offset + len(raw) and span[1] > offset]
        if not hit and (self.raw or (raw.isascii() and self.ascii_like)):
            text = self._plain(raw)
            if text is not None:
                return Piece(self, text, raw, offset, partial=True)
        return self.redrawn(raw, offset, True, hit)

    def redrawn(self, line: bytes, offset: int, partial: bool, masked: Spans) -> Piece:
        """One line that is not plain, with all that it showed."""
        end = "\n" if line[-1:] == b"\n" else ""
        body = line[:-1] if end else line
        returns = None if masked or self.raw else self._returns(body, partial)
        if returns is not None:
            final = next((state for state in reversed(returns) if state), "")
            piece = Piece(self, final + end, line, offset, partial=partial)
            piece.states = [[state] for state in returns if state]
        else:
            states = self.cells(body, offset, partial, masked)
            piece = Piece(self, "".join(states[-1]) + end, line, offset, partial=partial, masked=masked)
            piece.states = states[:-1]
        return piece

    def _returns(self, body: bytes, partial: bool) -> list[str] | None:
        """The states of a line that is redrawn by carriage returns alone, as progress bars are; None for others."""
        text = view.decode(body.rstrip(b"\r"), self.encoding, partial=partial)
        return text.split("\r") if text.replace("\r", "").isprintable() else None

    def _plain(self, raw: bytes) -> str | None:
        """The text of whole lines that nothing redraws; None if something does or if it is not quick to see."""
        if self.raw:
            return raw.decode("latin-1")
        bare = self.bare(raw)
        if bare is not None:
            if b"\r" not in bare:
                return bare.decode("ascii")
            text = bare.decode("ascii").replace("\r\n", "\n")
            return None if "\r" in text or b"\x1b" in raw else text
        if raw.isascii() and self.ascii_like:
            return None
        text = view.decode(raw, self.encoding).replace("\r\n", "\n")
        return text if text.replace("\n", "").isprintable() else None

    def bare(self, raw: bytes) -> bytes | None:
        """Plain ASCII with its line ends and carriage returns, but without colours; None if it is more than that.

        Whatever these bytes show at any time, on one line, is a part of the answer.
        """
        if not self.ascii_like:
            return None
        if b"\x1b" in raw:
            raw = _HARMLESS.sub(b"", raw.replace(b"\r\n", b"\n"))
        return None if raw.translate(None, _SHOWN) else raw


def _lines(raw: bytes) -> list[bytes]:
    parts = raw.split(b"\n")
    last = parts.pop()
    return [part + b"\n" for part in parts] + ([last] if last else [])


def _raw_cells(line: bytes) -> list[str]:
    cells: list[str] = []
    for at, byte in enumerate(line):
        cell = Cell(chr(byte))
        cell.start, cell.stop = at, at + 1
        cells.append(cell)
    return cells


def _inside(cell: str, offset: int, spans: Spans) -> bool:
    """Whether a cell came from bytes that are left out."""
    return isinstance(cell, Cell) and any(start <= offset + cell.start < stop for start, stop in spans)


class Window:
    """Pieces one after the other as one text."""

    __slots__ = ("_starts", "pieces", "text")

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        self._starts: list[int] = []
        size = 0
        for piece in pieces:
            self._starts.append(size)
            size += len(piece.text)
        self.text = pieces[0].text if len(pieces) == 1 else "".join([piece.text for piece in pieces])

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """The offsets of the bytes of `text[start:stop]`, which is not empty."""
        first, last = self._at(start), self._at(stop - 1)
        begin, end = self._starts[first], self._starts[last]
        if first == last:
            return self.pieces[first].span(start - begin, stop - begin)
        low, high = (
            self.pieces[first].span(start - begin, len(self.pieces[first].text)),
            self.pieces[last].span(0, stop - end),
        )
        return low[0], high[1]

    def _at(self, index: int) -> int:
        return bisect_right(self._starts, index) - 1
