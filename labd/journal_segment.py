"""Reading one segment of the journal: its bytes, its records, and what of them can be believed.

Used by `labd.journal_scan` alone. A torn index is mended in memory (bytes without a record are given one), a damaged
record at its end is left out, and one in the middle is known by not agreeing with its neighbours. Reads with pread,
never with a mapping, because a file that shrinks under a mapping kills the process. Never writes. Light.
"""

from __future__ import annotations

import os
import time

from labd.journal_format import RECORD_SIZE, RECOVERED, Record, idx_path, raw_path, unpack, unpack_many

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BLOCK = 1 << 18
#: Bytes without a record are the writer's current chunk until they are this old; then they are a crash's.
TORN_AFTER_NS = 50_000_000
_RECORDS_AT_ONCE = 2048


def raw_size(directory: str, base: int) -> int:
    """How many bytes a segment holds. Raises FileNotFoundError if it was evicted."""
    return os.stat(raw_path(directory, base)).st_size


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
        whole = self._records_before(raw_end) if self._idx >= 0 else 0
        last = None
        while whole:
            last = self._sound(whole - 1, raw_end)
            if last is not None:
                break
            whole -= 1
        self.tail: Record | None = None
        self._whole = self.count = whole
        self.end = min(last.end, raw_end) if last else self.base
        if raw_end > self.end and time.time_ns() - found.st_mtime_ns > TORN_AFTER_NS:
            line = last.line + self.newlines(last.offset, self.end) if last else 0
            self.tail = Record(self.end, raw_end - self.end, RECOVERED, line, found.st_mtime_ns, 0)
            self.count += 1
            self.end = raw_end

    def _records_before(self, raw_end: int) -> int:
        """How many records there are that may have bytes. Those behind a cut file are passed over at once."""
        low, high = 0, os.fstat(self._idx).st_size // RECORD_SIZE
        if not high or self._at(high - 1).offset < raw_end:
            return high
        while low < high:
            middle = (low + high) // 2
            if self._at(middle).offset < raw_end:
                low = middle + 1
            else:
                high = middle
        return low

    def promised(self) -> int:
        """The offset up to which the index says that bytes were stored. Not before `end`."""
        count = os.fstat(self._idx).st_size // RECORD_SIZE if self._idx >= 0 else 0
        raw_end = self.base + os.fstat(self._raw).st_size  # after the index: the writer does the bytes first
        whole = self._records_before(raw_end) if count else 0
        sound = self._sound(whole - 1, raw_end) if whole else None
        claimed = sound.end if sound else self.base if not whole else self.end
        if whole < count and self._at(whole).offset == claimed:
            claimed = self._at(count - 1).end
        return claimed if claimed > raw_end else self.end

    def _sound(self, number: int, raw_end: int) -> Record | None:
        """The record, if it has bytes and goes on where the one before it ends; else it is damaged."""
        last = self._at(number)
        if not last.length or last.offset >= raw_end:
            return None
        return last if self._follows(last, number) else None

    def linked(self, number: int) -> bool:
        """Whether a record agrees with the ones before and behind it."""
        behind = number + 1
        return self._follows(self.record(number), number) and (
            behind >= self._whole or self._follows(self._at(behind), behind)
        )

    def _follows(self, here: Record, number: int) -> bool:
        """Whether a record goes on where the one before it ends."""
        if not number:
            return here.offset == self.base and (here.line == 0 or self.base > 0)
        before = self._at(number - 1)
        return before.end == here.offset and before.line + self.newlines(before.offset, before.end) == here.line

    def _at(self, number: int) -> Record:
        return unpack(self.base, os.pread(self._idx, RECORD_SIZE, number * RECORD_SIZE))

    def record(self, number: int) -> Record:
        """The record `number`, from 0, of `count`."""
        if number >= self._whole:
            assert self.tail is not None
            return self.tail
        return self._at(number)

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

    def _from_the_end(self, before: Callable[[Record], bool]) -> tuple[int, int]:
        """Bounds for a search: most are for what is newest, so look there first, in growing steps."""
        high, step = self.count, 1
        while high > 0:
            low = max(0, high - step)
            if before(self.record(low)):
                return low, high
            high, step = low, step * 4
        return 0, 0

    def at_offset(self, offset: int) -> int:
        """The number of the last record that begins at or before `offset`."""
        low, high = self._from_the_end(lambda record: record.offset <= offset)
        while low < high:
            middle = (low + high) // 2
            if self.record(middle).offset <= offset:
                low = middle + 1
            else:
                high = middle
        return max(0, low - 1)

    def before_line(self, line: int) -> int:
        """The number of the last record with fewer than `line` newlines before it: `line` begins in or behind it."""
        low, high = self._from_the_end(lambda record: record.line < line)
        while low < high:
            middle = (low + high) // 2
            if self.record(middle).line < line:
                low = middle + 1
            else:
                high = middle
        return max(0, low - 1)
