"""Reading a journal: lines with their numbers and times, exact bytes, and what was done to the target.

For every reader: `serial log`, expect, graders. Needs no lock and no daemon, holds little memory however long the
journal or a line is, and never writes. Light: the path of `serial log` without a daemon pays for it.
"""

from __future__ import annotations

import os

from labd.journal_format import EVENTS, GAP, RX, Record
from labd.journal_scan import BLOCK, Hole, StreamReader
from labd.journal_seams import Seam, rx_of, seams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: A line's `raw` is cut to this; its `length` tells the real size.
LINE_MAX = 1 << 16
_EVENT_MAX = 1 << 21


class Line:
    """One line. `seq` counts from 1; `raw` is without its newline, with all else; of a line that is longer than
    `LINE_MAX` it is the end, which is what is new in it, and `skipped` says how many bytes stand before it.

    `offset` is that of its first byte, `length` its size without the newline, `wall_ns` and `mono_ns` are those of
    its first byte. `partial`: no newline has come yet. `gap`: bytes inside or just before it could not be stored, or
    are not there any more, or what was received before and after an interruption stands in it; `seams` are those
    interruptions, as far as somebody looked for them.
    """

    __slots__ = ("gap", "length", "mono_ns", "offset", "partial", "raw", "seams", "seq", "skipped", "wall_ns")

    def __init__(
        self, seq: int, offset: int, raw: bytes, length: int, wall_ns: int, mono_ns: int, partial: bool, gap: bool
    ) -> None:
        self.seq = seq
        self.offset = offset
        self.raw = raw
        self.length = length
        self.wall_ns = wall_ns
        self.mono_ns = mono_ns
        self.partial = partial
        self.gap = gap
        self.skipped = length - len(raw) if length > LINE_MAX else 0
        self.seams: tuple[Seam, ...] = ()

    @property
    def end(self) -> int:
        """The offset behind the line, its newline included."""
        return self.offset + self.length + (not self.partial)

    def __repr__(self) -> str:
        return f"<line #{self.seq}{'*' * self.partial} at {self.offset}: {self.raw[:60]!r}>"


class Event:
    """Something that happened: `kind`, `rx` (the offset of the next received byte then), clocks, `fields`, `number`."""

    __slots__ = ("fields", "kind", "mono_ns", "number", "rx", "wall_ns")

    def __init__(self, number: int, kind: str, rx: int, wall_ns: int, mono_ns: int, fields: dict[str, Any]) -> None:
        self.number = number
        self.kind = kind
        self.rx = rx
        self.wall_ns = wall_ns
        self.mono_ns = mono_ns
        self.fields = fields

    def __repr__(self) -> str:
        return f"<event {self.number} {self.kind} at {self.rx}: {self.fields!r}>"


class Reader:
    """The journal in `directory`, as it was at the last `refresh`. It may not exist: then nothing is `captured`.

    Raises OSError where it exists but may not be read.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._rx = StreamReader(os.path.join(directory, RX))
        self._event_stream: StreamReader | None = None

    def refresh(self) -> bool:
        """Look again; True if the target has sent something since."""
        return self._rx.refresh()

    @property
    def exists(self) -> bool:
        """Whether this interface was ever opened; it may not have said anything."""
        return bool(self._rx.bases)

    @property
    def captured(self) -> bool:
        """Whether there is a single byte."""
        return self._rx.end > self._rx.first

    @property
    def first_offset(self) -> int:
        """The offset of the oldest byte that is kept."""
        return self._rx.first

    @property
    def end_offset(self) -> int:
        """The offset behind the newest byte."""
        return self._rx.end

    @property
    def first_seq(self) -> int:
        """The oldest line that is kept (its beginning may not be); 1 if there is none."""
        return self._rx.first_line + 1

    @property
    def last_seq(self) -> int:
        """The newest line, also if it is unfinished; `first_seq - 1` if there is none."""
        return self._rx.end_line + (0 if self._rx.ends_line else 1)

    @property
    def partial(self) -> bool:
        """Whether the newest line is unfinished."""
        return not self._rx.ends_line

    @property
    def last_wall_ns(self) -> int:
        """When the newest bytes came; 0 if there are none."""
        return self._rx.last_ns

    def lines(self, from_seq: int = 1, to_seq: int | None = None) -> Iterator[Line]:
        """The lines `from_seq` to `to_seq`, both included, oldest first. Evicted ones are passed over."""
        if self.captured and from_seq <= self.last_seq:
            line, offset = self._rx.locate(from_seq - 1)
            yield from self.walk(line + 1, offset, to_seq=to_seq)

    def tail(self, count: int) -> list[Line]:
        """The last `count` lines, the unfinished one included."""
        return list(self.lines(max(self.first_seq, self.last_seq - count + 1))) if count > 0 else []

    def walk(self, seq: int, offset: int, *, to_seq: int | None = None, stop: int | None = None) -> Iterator[Line]:
        """The lines from `seq`, which begins at `offset`, up to `to_seq` or the offset `stop`."""
        return _walk(self._rx, seq, offset, to_seq, stop, LINE_MAX)

    def locate(self, seq: int) -> tuple[int, int]:
        """(seq, offset) of where a line begins; of the first one kept if it was evicted, of the end if beyond."""
        line, offset = self._rx.locate(seq - 1)
        return (line + 1, offset)

    def seq_at(self, offset: int) -> int:
        """The line that the byte at `offset` belongs to, or will when it comes."""
        return self._rx.line_at(offset) + 1

    def chunks(self, start: int, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """(offset, bytes) of all that is kept between two offsets, in blocks of at most 256 KiB."""
        yield from _chunks(self._rx, start, self._rx.end if stop is None else min(stop, self._rx.end))

    def bytes(self, start: int, stop: int | None = None) -> bytes:
        """The exact bytes between two offsets, of those that are kept. In memory: bound it."""
        return b"".join([data for _, data in self.chunks(start, stop)])

    def holes(self, start: int, stop: int | None = None) -> list[Hole]:
        """What was stored between two offsets and is not there any more, though younger bytes were evicted."""
        return self._rx.holes(max(start, self._rx.first), self._rx.end if stop is None else stop)

    def record_at(self, offset: int) -> Record | None:
        """The chunk that holds the byte at `offset` (its clocks); None if there is none."""
        return next(iter(self._rx.records(offset)), None)

    def events(self, rx_from: int = 0, rx_to: int | None = None, *, after: int = 0) -> Iterator[Event]:
        """What happened while the rx offset was between `rx_from` and `rx_to`, both included, oldest first.

        `after` leaves out events up to that number. Looks at the disk again on each call.
        """
        stream = self._events()
        first = after + 1 if after or not rx_from else self._first_event(stream, rx_from)
        if first > stream.end_line:
            return
        line, offset = stream.locate(first - 1)
        for entry in _walk(stream, line + 1, offset, None, None, _EVENT_MAX):
            if entry.partial:
                return
            event = _event(entry)
            if rx_to is not None and event.rx > rx_to:
                return
            yield event

    @property
    def event_count(self) -> int:
        """The number of the newest event. Looks at the disk again."""
        return self._events().end_line

    def seams(self, start: int) -> list[Seam]:
        """Where what was received was interrupted, from the offset `start` on. Looks at the disk again on each call."""
        stream = self._events()
        begin, size = stream.end, 1 << 14
        while begin > stream.first:  # most questions are about the newest, so this looks from there
            begin = max(stream.first, stream.end - size)
            block = next(_chunks(stream, begin, min(begin + BLOCK, stream.end)), (0, b""))[1]
            cut = block.find(b"\n") + 1
            until = block.find(b"\n", cut)
            if begin > stream.first and cut < until and rx_of(block[cut:until]) < start:
                begin += cut
                break
            size *= 8
        return list(seams(data for _, data in _chunks(stream, begin, stream.end)))

    def events_backwards(self, kinds: tuple[str, ...]) -> Iterator[Event]:
        """The events of these kinds, newest first. Others are passed over without being parsed."""
        wanted = tuple(b'{"kind":"' + kind.encode() + b'"' for kind in kinds)
        stream = self._events()
        last = stream.end_line
        while last > stream.first_line:
            first = max(stream.first_line, last - 256)
            line, offset = stream.locate(first)
            entries = _walk(stream, line + 1, offset, last, None, _EVENT_MAX)
            yield from reversed([_event(entry) for entry in entries if entry.raw.startswith(wanted)])
            if line >= last:
                return
            last = first

    def _events(self) -> StreamReader:
        if self._event_stream is None:
            self._event_stream = StreamReader(os.path.join(self.directory, EVENTS))
        else:
            self._event_stream.refresh()
        return self._event_stream

    def _first_event(self, stream: StreamReader, rx: int) -> int:
        """The number of the first event at or behind the offset `rx`."""
        low, high = stream.first_line, stream.end_line
        while low < high:
            middle = (low + high) // 2
            line, offset = stream.locate(middle)
            entry = next(_walk(stream, line + 1, offset, line + 1, None, _EVENT_MAX), None)
            if entry is None or rx_of(entry.raw) >= rx:
                high = middle
            else:
                low = middle + 1
        return low + 1


def _event(entry: Line) -> Event:
    """The event in one line of the stream; an unreadable one is kept as what it is."""
    import json

    try:
        fields = json.loads(entry.raw)
        kind, rx = str(fields.pop("kind")), int(fields.pop("rx"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Event(entry.seq, "unreadable", 0, entry.wall_ns, entry.mono_ns, {"raw": entry.raw.decode("latin-1")})
    wall_ns, mono_ns = fields.pop("wall_ns", entry.wall_ns), fields.pop("mono_ns", entry.mono_ns)
    return Event(entry.seq, kind, rx, wall_ns, mono_ns, fields)


def _chunks(stream: StreamReader, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    while start < stop:
        segment = stream.holding(start)
        if segment is None:
            return
        start = max(start, segment.base)
        data = segment.read(start, min(BLOCK, stop - start))
        if not data:
            return
        yield start, data
        start += len(data)


class _Clock:
    """Walks the chunk records beside the lines: the times of a line's first byte, and whether a gap is in it."""

    __slots__ = ("_records", "now")

    def __init__(self, stream: StreamReader, offset: int) -> None:
        self._records = stream.records(offset)
        self.now = next(self._records, Record(offset, 1 << 62, 0, 0, 0, 0))

    def advance(self, offset: int) -> bool:
        """Go to the chunk that holds `offset`; True if a gap lies in the chunks that were begun on the way."""
        gap = False
        while self.now.end <= offset:
            following = next(self._records, None)
            if following is None:
                break
            self.now = following
            gap = gap or (bool(following.flags & GAP) and following.offset < offset)
        return gap


def _walk(
    stream: StreamReader, seq: int, offset: int, to_seq: int | None, stop: int | None, limit: int
) -> Iterator[Line]:
    """The lines between two offsets. Of one that is longer than `limit`, the last bytes are given."""
    end = stream.end if stop is None else min(stop, stream.end)
    live = end == stream.end
    clock = _Clock(stream, offset)
    begin = offset
    held = b""
    length = 0
    torn = False
    for at, block in _chunks(stream, offset, end):
        if at != begin + length:  # what lay between was evicted while we read, or is gone
            line = stream.line_at(at) + 1
            if not held or line == seq:
                begin, length = (begin, at - begin) if held else (at, 0)
            else:
                yield Line(seq, begin, held, length, clock.now.wall_ns, clock.now.mono_ns, False, True)
                begin, held, length = at, b"", 0
            seq, torn = line, True
            if to_seq is not None and seq > to_seq:
                return
            clock.advance(at)
        start = 0
        while True:
            cut = block.find(b"\n", start)
            if cut < 0:
                if start < len(block):
                    held = (held + block[start:])[-limit:]
                    length += len(block) - start
                break
            raw = block[start:cut] if not length else held + block[start:cut]
            length += cut - start
            stamp = clock.now
            gap = bool(stamp.flags & GAP) and stamp.offset == begin
            start = cut + 1
            following = at + start
            gap = clock.advance(following) or gap or torn
            yield Line(seq, begin, raw[-limit:], length, stamp.wall_ns, stamp.mono_ns, False, gap)
            if seq == to_seq:
                return
            seq, begin, held, length, torn = seq + 1, following, b"", 0, False
    if length:
        stamp = clock.now
        gap = (bool(stamp.flags & GAP) and stamp.offset == begin) or clock.advance(begin + length) or torn
        yield Line(seq, begin, held, length, stamp.wall_ns, stamp.mono_ns, live, gap)
