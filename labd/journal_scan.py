"""Reading one stream of the journal: which segments there are, and finding an offset, a line or a time in them.

Used by `labd.journal_read` alone. Lock-free: works beside a live writer and without one, while segments are evicted
(an open one stays readable), and behind a torn index (bytes without a record are given one in memory). Reads with
pread, never with a mapping, because a file that shrinks under a mapping kills the process. Never writes. Light.
"""

from __future__ import annotations

import os
import time

from labd.journal_format import (
    CONTINUED,
    RECORD_SIZE,
    RECOVERED,
    Record,
    bases,
    idx_path,
    raw_path,
    unpack,
    unpack_many,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 1 << 18
#: Segments kept open at a time.
OPEN_MAX = 8
#: Bytes without a record are the writer's current chunk until they are this old; then they are a crash's.
TORN_AFTER_NS = 50_000_000
_RECORDS_AT_ONCE = 2048


class Segment:
    """One segment as it was when it was opened or last measured. Raises FileNotFoundError if it was evicted."""

    __slots__ = ("_idx", "_raw", "_whole", "base", "count", "end", "sealed", "tail")

    def __init__(self, directory: str, base: int) -> None:
        self.base = base
        self.sealed = False
        self._raw = self._idx = -1
        self._raw = os.open(raw_path(directory, base), os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._idx = os.open(idx_path(directory, base), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if not os.path.exists(raw_path(directory, base)):
                raise  # evicted just now; else the index was lost, and the bytes are read without it
        self.measure()

    def __del__(self) -> None:
        for fd in (self._raw, self._idx):
            if fd >= 0:
                os.close(fd)

    def measure(self) -> None:
        """See how far the segment reaches now. `count` includes the record made up for a torn tail."""
        found = os.fstat(self._raw)
        raw_end = self.base + found.st_size
        whole = os.fstat(self._idx).st_size // RECORD_SIZE if self._idx >= 0 else 0
        last = None
        while whole:
            last = unpack(self.base, os.pread(self._idx, RECORD_SIZE, (whole - 1) * RECORD_SIZE))
            if last.length and last.offset < raw_end:
                break
            whole -= 1
            last = None
        self.tail: Record | None = None
        self._whole = self.count = whole
        self.end = min(last.end, raw_end) if last else self.base
        if raw_end > self.end and time.time_ns() - found.st_mtime_ns > TORN_AFTER_NS:
            line = last.line + self.newlines(last.offset, self.end) if last else 0
            self.tail = Record(self.end, raw_end - self.end, RECOVERED, line, found.st_mtime_ns, 0)
            self.count += 1
            self.end = raw_end

    def record(self, number: int) -> Record:
        """The record `number`, from 0, of `count`."""
        if number >= self._whole:
            assert self.tail is not None
            return self.tail
        return unpack(self.base, os.pread(self._idx, RECORD_SIZE, number * RECORD_SIZE))

    def records(self, number: int) -> Iterator[Record]:
        """The records from `number` on."""
        while number < self._whole:
            wanted = min(_RECORDS_AT_ONCE, self._whole - number)
            data = os.pread(self._idx, wanted * RECORD_SIZE, number * RECORD_SIZE)
            yield from unpack_many(self.base, data)
            number += wanted
        if self.tail is not None:
            yield self.tail

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from the absolute `offset`, never beyond what was measured."""
        return os.pread(self._raw, max(0, min(size, self.end - offset)), offset - self.base)

    def newlines(self, start: int, stop: int) -> int:
        """How many newlines are between two absolute offsets."""
        total = 0
        while start < stop:
            block = os.pread(self._raw, min(BLOCK, stop - start), start - self.base)
            if not block:
                break
            total += block.count(b"\n")
            start += len(block)
        return total

    def at_offset(self, offset: int) -> int:
        """The number of the last record that begins at or before `offset`."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.record(middle).offset <= offset:
                low = middle + 1
            else:
                high = middle
        return max(0, low - 1)

    def before_line(self, line: int) -> int:
        """The number of the last record with fewer than `line` newlines before it: `line` begins in or behind it."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.record(middle).line < line:
                low = middle + 1
            else:
                high = middle
        return max(0, low - 1)


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
            if not segment.count:
                return (0, 0)
            record = segment.record(0)
            known = (record.line, record.flags)
            if not segment.tail:
                self._heads[base] = known
        return known

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
        record = segment.record(segment.before_line(line))
        missing = line - record.line
        offset = record.offset
        while True:
            block = segment.read(offset, min(BLOCK, record.length + BLOCK))
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
