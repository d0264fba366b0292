"""Reading one stream of the journal: which segments there are, and finding an offset, a line or a time in them.

Used by `labd.journal_read` alone. Lock-free: works beside a live writer and without one, while segments are evicted
(an open one stays readable), and over holes (a segment that was deleted or cut), which it names. Never writes. Light.
"""

from __future__ import annotations

from labd.journal_format import CONTINUED, Record, bases
from labd.journal_segment import BLOCK, Segment, raw_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BLOCK", "Hole", "StreamReader"]

#: Segments kept open at a time.
OPEN_MAX = 8


class Hole:
    """Bytes `start` to `stop` that are gone: with them whole lines `first_seq` to `last_seq` (none if that is less).

    `last_seq` is None where nobody can tell any more. `clean`: no line is left with a part of it.
    """

    __slots__ = ("clean", "first_seq", "last_seq", "start", "stop")

    def __init__(self, start: int, stop: int, first_seq: int, last_seq: int | None, clean: bool) -> None:
        self.start = start
        self.stop = stop
        self.first_seq = first_seq
        self.last_seq = last_seq
        self.clean = clean

    @property
    def lines(self) -> int:
        """How many whole lines are known to be missing."""
        return 0 if self.last_seq is None else max(0, self.last_seq - self.first_seq + 1)


class StreamReader:
    """One stream, as it was at the last `refresh`. Offsets and lines are absolute; `line` counts newlines from 0.

    `first` and `end` are the offsets of what is kept, `first_line` the line that `first` belongs to, `end_line` the
    newlines before `end`. Raises OSError where the directory exists but may not be read.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._open: dict[int, Segment] = {}
        self._heads: dict[int, tuple[int, int]] = {}
        self.bases: list[int] = []
        self.first = self.end = self.first_line = self.end_line = 0
        self.first_continued = False
        self.last_ns = 0
        self.ends_line = True
        self.refresh()

    def refresh(self) -> bool:
        """Look again; True if there are new bytes."""
        before = self.end
        for _ in range(16):
            found = bases(self.directory)
            if not found:
                break  # not begun yet, or removed: what is open stays readable
            self.bases = found
            try:
                self._measure()
                break
            except FileNotFoundError:  # evicted between listing and opening: list again
                continue
        return self.end != before

    def _measure(self) -> None:
        for held in self._open.values():
            if not held.sealed and held.base < self.bases[-1]:  # it was the current one; now it is complete
                held.measure()
                held.sealed = True
        while self.bases:
            last = self.segment(self.bases[-1], fresh=True)
            if last.count or len(self.bases) == 1:
                break
            self.bases.pop()  # just begun: nothing in it yet
        if not self.bases or not last.count:
            return
        self.first = self.bases[0]
        self.first_line, flags = self.head(self.first)
        self.first_continued = bool(flags & CONTINUED)
        newest = last.record(last.count - 1)
        self.last_ns = newest.wall_ns
        if last.end != self.end:
            self.end_line = newest.line + last.newlines(newest.offset, last.end)
            self.end = last.end
            self.ends_line = last.read(self.end - 1, 1) == b"\n"

    def segment(self, base: int, *, fresh: bool = False) -> Segment:
        """The segment that begins at `base`, opened if need be. Raises FileNotFoundError if it was evicted."""
        held = self._open.pop(base, None)
        if held is None:
            held = Segment(self.directory, base)
            if len(self._open) >= OPEN_MAX:
                del self._open[next(iter(self._open))]
        elif fresh:
            held.measure()
        self._open[base] = held
        self._fix_tail(held)
        return held

    def _fix_tail(self, held: Segment) -> None:
        """A torn first chunk has no record before it to count from: count from the earlier segment."""
        if held.tail is not None and held.count == 1 and not held.tail.line:
            earlier = [base for base in self.bases if base < held.base]
            if earlier:
                previous = self.segment(earlier[-1])
                if not previous.count:
                    return
                newest = previous.record(previous.count - 1)
                held.tail.line = newest.line + previous.newlines(newest.offset, previous.end)
                if previous.read(previous.end - 1, 1) != b"\n":
                    held.tail.flags |= CONTINUED

    def head(self, base: int) -> tuple[int, int]:
        """Line and flags of a segment's first record."""
        known = self._heads.get(base)
        if known is None:
            segment = self.segment(base)
            if not segment.count:  # its bytes are gone: what comes behind it knows its line
                later = [other for other in self.bases if other > base]
                return self.head(later[0]) if later else (self.end_line, 0)
            record = segment.record(0)
            known = (record.line, record.flags)
            if not segment.tail:
                self._heads[base] = known
        return known

    def holes(self, start: int, stop: int) -> list[Hole]:
        """The bytes between two offsets that were stored and are not there any more, oldest first."""
        found: list[Hole] = []
        listed = bases(self.directory)
        for number, base in enumerate(listed):
            following = listed[number + 1] if number + 1 < len(listed) else None
            if following is not None and following <= start:
                continue
            if base > stop or (base == stop and following is not None):
                break
            try:
                if following is not None and raw_size(self.directory, base) + base >= following:
                    continue
                segment = self.segment(base)
                until = segment.promised() if following is None else following
                if segment.end < until:
                    found.append(self._hole(segment, until, following))
            except FileNotFoundError:  # evicted just now
                continue
        return found

    def _hole(self, segment: Segment, until: int, following: int | None) -> Hole:
        begins = segment.end
        line, whole = self._place(segment)
        if following is None:
            return Hole(begins, until, line + 1, None, whole)
        after, flags = self.head(following)
        return Hole(begins, until, line + (1 if whole else 2), after, whole and not flags & CONTINUED)

    def _place(self, segment: Segment) -> tuple[int, bool]:
        """Newlines before the segment's end, and whether a line begins there."""
        if segment.count:
            newest = segment.record(segment.count - 1)
            line = newest.line + segment.newlines(newest.offset, segment.end)
            return line, segment.read(segment.end - 1, 1) == b"\n"
        earlier = [base for base in self.bases if base < segment.base]
        return self._place(self.segment(earlier[-1])) if earlier else (self.first_line, True)

    def holding(self, offset: int) -> Segment | None:
        """The segment that holds `offset`, or the next one if its own was evicted; None beyond the end."""
        while offset < self.end:
            low, high = 0, len(self.bases)
            while low < high:
                middle = (low + high) // 2
                if self.bases[middle] <= offset:
                    low = middle + 1
                else:
                    high = middle
            for base in self.bases[max(0, low - 1) :]:
                try:
                    found = self.segment(base)
                except FileNotFoundError:
                    break
                if found.end > offset:
                    return found
            else:
                return None
            self.refresh()
        return None

    def locate(self, line: int) -> tuple[int, int]:
        """Where `line` begins: (line, offset). An evicted line gives the first that is kept, one beyond the end."""
        for _ in range(16):
            try:
                return self._locate(line)
            except FileNotFoundError:
                self.refresh()
        return (self.end_line, self.end)

    def _locate(self, line: int) -> tuple[int, int]:
        if not self.bases or line <= self.first_line:
            return (self.first_line, self.first)
        if line > self.end_line:
            return (self.end_line, self.end)
        low, high = 0, len(self.bases)
        while low < high:
            middle = (low + high) // 2
            begins, flags = self.head(self.bases[middle])
            if begins < line or (begins == line and not flags & CONTINUED):
                low = middle + 1
            else:
                high = middle
        segment = self.segment(self.bases[max(0, low - 1)])
        if self.head(segment.base)[0] == line:
            return (line, segment.base)
        number = segment.before_line(line)
        record = segment.record(number)
        if segment.linked(number):
            offset, missing = record.offset, line - record.line
        else:  # the index is damaged here: count the bytes
            offset, missing = segment.base, line - self.head(segment.base)[0]
        while True:
            block = segment.read(offset, BLOCK)
            if not block:
                return (line, segment.end)
            have = block.count(b"\n")
            if have >= missing:
                return (line, offset + _nth_newline(block, missing) + 1)
            missing -= have
            offset += len(block)

    def line_at(self, offset: int) -> int:
        """The line that the byte at `offset` belongs to."""
        if offset >= self.end:
            return self.end_line
        segment = self.holding(offset)
        if segment is None:
            return self.end_line
        if offset < segment.base:
            return self.head(segment.base)[0]
        record = segment.record(segment.at_offset(offset))
        return record.line + segment.newlines(record.offset, offset)

    def records(self, offset: int) -> Iterator[Record]:
        """The records from the one that holds `offset` on, over all segments."""
        while (segment := self.holding(offset)) is not None:
            yield from segment.records(segment.at_offset(offset))
            offset = segment.end


def _nth_newline(block: bytes, number: int) -> int:
    at = -1
    for _ in range(number):
        at = block.find(b"\n", at + 1)
    return at
