"""The journal of one interface: all that the target said, and all that was done to it, on one clock.

Owns a directory: `rx/` holds the target's exact bytes (`labd.journal_rx`), `events/` one JSON object a line (opened,
closed, sent, reset, lost, …; `labd.journal_events`), both in the form of `labd.journal_format`. Each stream has one
writer and a lock: in the bench the capture process writes `rx`, the daemon the events. `Journal` is both in one
process, for who captures by himself. Readers (`labd.journal_read`) need no lock and no daemon.

It never interprets what the target says, never waits for a disk sync inside `rx`, and never raises a write error
into the capture loop: what could not be stored is counted and said as soon as there is space again.
"""

from __future__ import annotations

from labd.journal_events import EventJournal
from labd.journal_rx import SEGMENT_BYTES, RxJournal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Journal:
    """The one writer of the journal in `directory`, which is made if need be. All methods are thread-safe.

    `keep_bytes` bounds what is on disk, `keep_ns` how long a segment is kept behind its last byte; whole segments go,
    oldest first, and numbers of lines and offsets of what stays never change. `segment_bytes` is when a new segment
    is begun (at a line's end; inside a line only after as much again).

    Raises Busy if another process writes this journal (it is named), LabdError if it can't be opened.
    """

    def __init__(
        self,
        directory: str,
        *,
        keep_bytes: int | None = None,
        keep_ns: int | None = None,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.directory = directory
        limits: dict[str, Any] = {"keep_bytes": keep_bytes, "keep_ns": keep_ns, "segment_bytes": segment_bytes}
        self._rx = RxJournal(directory, **limits)
        try:
            repaired = (self._rx.repaired, self._rx.stream.lost)
            self._events = EventJournal(directory, lambda: self._rx.end, also_repaired=repaired, **limits)
        except BaseException:
            self._rx.close()
            raise
        self._rx.begin(self._events.told, self._events.flush)
        self.repaired = self._rx.repaired + self._events.repaired
        self.event = self._events.event
        self.tx = self._events.tx

    @property
    def rx_end(self) -> int:
        """The offset of the next byte that the target will send."""
        return self._rx.end

    @property
    def rx_line(self) -> int:
        """Newlines so far; the line that is being received has the seq `rx_line + 1`."""
        return self._rx.line

    @property
    def failing(self) -> str | None:
        """Why something can't be stored just now, or None. What was lost is told in an `overrun` event later."""
        return self._rx.failing or self._events.failing

    def rx(self, data: bytes | bytearray | memoryview, wall_ns: int, mono_ns: int) -> None:
        """Store what the target sent, read at these clocks. On return it survives kill -9, or is counted as lost."""
        self._rx.rx(data, wall_ns, mono_ns)
        if self._events.waits:
            self._events.flush()

    def sync(self) -> None:
        """Bring all to the disk (fdatasync), retry what could not be written, apply retention by age.

        May take milliseconds to seconds: call it in a thread; `rx` is not held up. Errors end up in `failing`.
        """
        self._events.sync()
        self._rx.sync()

    def close(self) -> None:
        """Sync and give up the journal; a second call does nothing."""
        self._rx.close()
        self._events.close()
