"""The daemon's half of a journal whose `rx` stream the capture process writes: the events, and how far rx reaches.

How far is read from the files themselves (two fstat calls), so it is true also when no notice came, and whoever
records that something was sent knows an offset that no answer to it can lie before.
"""

from __future__ import annotations

import _thread
import os

from labd.journal_events import EventJournal
from labd.journal_format import RECORD_SIZE, RX, bases, idx_path, raw_path, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Bytes since the last look that are counted through; beyond that the index is asked.
_COUNT_MOST = 1 << 20


class RxTail:
    """Where a stream that another process writes ends now. Thread-safe; never raises for a missing stream."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._lock = _thread.allocate_lock()
        self._raw = self._idx = -1
        self._base = 0
        self._end = 0
        self._line = 0
        self._line_end = 0
        self._closed = False

    def end(self) -> int:
        """The offset of the next byte."""
        with self._lock:
            return self._look()

    def place(self) -> tuple[int, int]:
        """(end, newlines before it)."""
        with self._lock:
            end = self._look()
            if end != self._line_end:
                try:
                    self._line = self._count(end)
                    self._line_end = end
                except OSError:
                    pass
            return end, self._line

    def close(self) -> None:
        """Close the files; the last answer stays."""
        with self._lock:
            self._closed = True
            self._drop()

    def _look(self) -> int:
        """Follow the writer into its newest segment, which begins where the one before it ends."""
        if self._closed:
            return self._end
        try:
            if self._raw < 0:
                found = bases(self.directory)
                if not found:
                    return self._end
                self._enter(found[-1])
            while True:
                size = os.fstat(self._raw).st_size
                following = self._base + size
                if not size or not os.path.exists(raw_path(self.directory, following)):
                    break
                self._enter(following)
            self._end = following
        except OSError:
            self._drop()
        return self._end

    def _enter(self, base: int) -> None:
        raw = os.open(raw_path(self.directory, base), os.O_RDONLY | os.O_CLOEXEC)
        try:
            idx = os.open(idx_path(self.directory, base), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            os.close(raw)
            raise
        self._drop()
        self._raw, self._idx, self._base = raw, idx, base

    def _drop(self) -> None:
        for fd in (self._raw, self._idx):
            if fd >= 0:
                os.close(fd)
        self._raw = self._idx = -1

    def _count(self, end: int) -> int:
        if self._raw < 0:
            return self._line
        if self._base <= self._line_end <= end and end - self._line_end <= _COUNT_MOST and self._line_end:
            return self._line + self._newlines(self._line_end, end)
        count = os.fstat(self._idx).st_size // RECORD_SIZE
        if not count:
            before = bases(self.directory)
            if self._base == before[0]:
                return self._newlines(self._base, end)
            return self._line
        last = unpack(self._base, os.pread(self._idx, RECORD_SIZE, (count - 1) * RECORD_SIZE))
        return last.line + self._newlines(last.offset, end)

    def _newlines(self, start: int, end: int) -> int:
        return os.pread(self._raw, end - start, start - self._base).count(b"\n")


class SharedJournal:
    """Stands in for `labd.journal.Journal` in the daemon. `rx_failing` is what the capture process says."""

    def __init__(self, directory: str, *, keep_bytes: int | None = None, keep_ns: int | None = None) -> None:
        self.directory = directory
        self.limits: dict[str, Any] = {"keep_bytes": keep_bytes, "keep_ns": keep_ns}
        self.rx_failing: str | None = None
        self._tail = RxTail(os.path.join(directory, RX))
        self._events = EventJournal(directory, self._tail.end, **self.limits)
        self.event = self._events.event
        self.tx = self._events.tx
        self.told = self._events.told
        self.sync = self._events.sync

    @property
    def rx_end(self) -> int:
        """The offset of the next byte that the target will send."""
        return self._tail.end()

    @property
    def rx_line(self) -> int:
        """Newlines so far."""
        return self._tail.place()[1]

    @property
    def failing(self) -> str | None:
        """Why something can't be stored just now, or None."""
        return self.rx_failing or self._events.failing

    def close(self) -> None:
        """Sync and give up the events; a second call does nothing."""
        self._events.close()
        self._tail.close()
