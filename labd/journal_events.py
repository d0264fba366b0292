"""The writer of what was done to a target and what happened to its port: the `events` stream of one journal.

Owned by the daemon (`labd.channels.line`), or by `labd.journal.Journal` where one process writes both streams. Each
event has the rx offset at which it happened; `rx_end()` gives the offset of the next byte, and must neither block nor
raise. Events that can't be written wait, and are counted when too many wait. All methods are thread-safe.
"""

from __future__ import annotations

import _thread
import os
import time

from labd.journal_evict import Keeper, follow_rx
from labd.journal_files import cannot_open, sync_all, take_lock
from labd.journal_format import EVENTS, RX
from labd.journal_rx import AGE_CHECK_NS, SEGMENT_BYTES, segment_size
from labd.journal_stream import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Longer writes are told in several `tx` events, so that no event is a burden to a reader.
TX_EVENT_MAX = 1 << 16
#: Events that can't be written wait in memory, up to this many.
WAITING_MAX = 4096


class EventJournal:
    """The one writer of the `events` stream in `directory`, which is made if need be.

    `also_repaired` is what was mended of the other stream, and how many of its bytes are lost, to be told in one.

    Raises Busy if another process writes it (it is named), LabdError if it can't be opened.
    """

    def __init__(
        self,
        directory: str,
        rx_end: Callable[[], int],
        *,
        keep_bytes: int | None = None,
        keep_ns: int | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        also_repaired: tuple[list[str], int] = ([], 0),
    ) -> None:
        import json

        self.directory = directory
        self.closed = False
        self._rx_end = rx_end
        self._dumps = json.JSONEncoder(separators=(",", ":"), default=str).encode
        self._state = _thread.allocate_lock()
        self._syncing = _thread.allocate_lock()
        self._waiting: list[tuple[bytes, int, int]] = []
        self._dropped = 0
        self._told_rx = 0
        self._rolls = self._age_checked = 0
        self._sync_problem: str | None = None
        self._lock = take_lock(directory, EVENTS)
        size = min(segment_size(segment_bytes, keep_bytes), 4 << 20)
        try:
            self.stream = Stream(os.path.join(directory, EVENTS), size, whole_lines=True)
        except OSError as problem:
            os.close(self._lock)
            raise cannot_open(directory, problem) from problem
        self._keeper = Keeper(self.stream, keep_bytes, keep_ns)
        self.repaired = [f"events: {what}" for what in self.stream.repaired]
        what, lost = also_repaired
        if what or self.repaired:
            self.event("repaired", what=what + self.repaired, lost=lost)
        with self._state:
            self._evict(time.time_ns())

    @property
    def failing(self) -> str | None:
        """Why something can't be stored just now, or None."""
        if self._waiting:
            problem = self.stream.problem
            return f"{problem.strerror if problem else 'write failed'}: {len(self._waiting)} events wait"
        return self._sync_problem

    @property
    def waits(self) -> bool:
        """Whether something could not be written yet."""
        return bool(self._waiting)

    def event(self, kind: str, **fields: Any) -> None:
        """Record that something happened, now (or at `wall_ns` and `mono_ns`, if both are among the fields).

        `rx` among the fields is where it happened, when that was looked at before; else it is the offset now.
        """
        wall_ns = fields.pop("wall_ns", None) or time.time_ns()
        mono_ns = fields.pop("mono_ns", None) or time.monotonic_ns()
        self.told(kind, fields, wall_ns, mono_ns)

    def told(self, kind: str, fields: dict[str, Any], wall_ns: int, mono_ns: int) -> None:
        """Record what the writer of the other stream told."""
        with self._state:
            if self.closed:
                raise ValueError("the journal is closed")
            if kind == "evicted":
                self._evict(wall_ns)
            self._put(kind, fields, wall_ns, mono_ns)

    def tx(self, data: bytes | bytearray | memoryview, **fields: Any) -> None:
        """Record what was sent to the target: `data` as the port took it; `accepted` defaults to its length."""
        data = bytes(data)
        for start in range(0, len(data) or 1, TX_EVENT_MAX):
            piece = data[start : start + TX_EVENT_MAX]
            own = fields if start + TX_EVENT_MAX >= len(data) else {k: v for k, v in fields.items() if k != "accepted"}
            self.event("tx", **{"data": piece.decode("latin-1"), "accepted": len(piece), **own})

    def flush(self) -> bool:
        """Try again to write what waits; True if nothing waits any more."""
        with self._state:
            return self.closed or self._settle()

    def sync(self) -> None:
        """Bring all to the disk, retry what waits, apply retention. Slow: call it in a thread."""
        with self._syncing:
            with self._state:
                if self.closed:
                    return
                self._settle()
                now = time.time_ns()
                if abs(now - self._age_checked) > AGE_CHECK_NS:
                    self._age_checked = now
                    self._evict(now)
                files = self.stream.take_retired() + self.stream.dup_current()
                directories = [self.stream.directory] if self.stream.take_dir_dirty() else []
            self._sync_problem = sync_all(files, directories)

    def close(self) -> None:
        """Sync and give up the stream; a second call does nothing."""
        self.sync()
        with self._syncing, self._state:
            if not self.closed:
                self.closed = True
                self.stream.close()
                os.close(self._lock)

    # -- inside, under the state lock ---------------------------------------------------------------------------

    def _put(self, kind: str, fields: dict[str, Any], wall_ns: int, mono_ns: int) -> None:
        at = fields["offset"] if kind == "overrun" and "offset" in fields else fields.get("rx")
        at = self._rx_end() if at is None else at
        self._told_rx = max(self._told_rx, at)  # readers search events by offset: it never goes back
        whole = {"kind": kind, **fields, "rx": self._told_rx, "wall_ns": wall_ns, "mono_ns": mono_ns}
        if len(self._waiting) < WAITING_MAX:
            self._waiting.append((self._dumps(whole).encode() + b"\n", wall_ns, mono_ns))
        else:
            self._dropped += 1
        self._flush()
        if self._rolls != self.stream.rolls:
            self._evict(wall_ns)

    def _flush(self) -> bool:
        """Write the events that wait, in order; True if none waits any more."""
        while self._waiting:
            line, wall_ns, mono_ns = self._waiting[0]
            stored = self.stream.append(line, wall_ns, mono_ns)
            if stored < len(line):
                self._waiting[0] = (line[stored:], wall_ns, mono_ns)
                return False
            del self._waiting[0]
        return True

    def _settle(self) -> bool:
        """Write what waits, and then say how many did not even find a place to wait."""
        if not (self.stream.settle() and self._flush()):
            return False
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._put("overrun", {"events": dropped, "cause": "disk full"}, time.time_ns(), time.monotonic_ns())
        return True

    def _evict(self, now_ns: int) -> None:
        self._rolls = self.stream.rolls
        self._keeper.evict(now_ns)
        follow_rx(self.stream, os.path.join(self.directory, RX))
