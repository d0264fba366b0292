"""The writer of what a target said: the `rx` stream of one journal, its lock, its retention, and its gaps.

Owned by the capture process (`labd.capture_process`), or by `labd.journal.Journal` where one process does both. It
writes no events: what has to be told goes to `tell`, which must neither block nor raise. Never waits for a disk sync
inside `rx`, and never raises a write error into the capture loop: what could not be stored is counted, and told as
soon as there is space again. All methods are thread-safe.
"""

from __future__ import annotations

import _thread
import os
import time

from labd.journal_evict import Keeper
from labd.journal_files import cannot_open, sync_all, take_lock
from labd.journal_format import NOT_STORED, RX
from labd.journal_stream import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Tell = Callable[[str, dict[str, Any], int, int], None]

SEGMENT_BYTES = 16 << 20
#: Gaps remembered while the disk is full; later ones are added to the last.
GAPS_MAX = 256
#: A step of the wall clock against the monotonic one that is worth an event.
CLOCK_STEP_NS = 1_000_000_000
#: Retention by age is looked at this often.
AGE_CHECK_NS = 60 * 1_000_000_000


def segment_size(segment_bytes: int, keep_bytes: int | None) -> int:
    """Segments small enough that a bound of `keep_bytes` can be kept by dropping whole ones."""
    return segment_bytes if keep_bytes is None else max(1, min(segment_bytes, keep_bytes // 4))


class RxJournal:
    """The one writer of the `rx` stream in `directory`, which is made if need be; then `begin` it.

    Raises Busy if another process writes it (it is named), LabdError if it can't be opened.
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
        self.closed = False
        self._state = _thread.allocate_lock()
        self._syncing = _thread.allocate_lock()
        self._tell: Tell = lambda kind, fields, wall_ns, mono_ns: None
        self._may_tell: Callable[[], bool] = lambda: True
        self._gaps: list[dict[str, Any]] = []
        self._skew: int | None = None
        self._rolls = self._age_checked = 0
        self._sync_problem: str | None = None
        self._lock = take_lock(directory, RX)
        try:
            self.stream = Stream(os.path.join(directory, RX), segment_size(segment_bytes, keep_bytes))
        except OSError as problem:
            os.close(self._lock)
            raise cannot_open(directory, problem) from problem
        self._keeper = Keeper(self.stream, keep_bytes, keep_ns)
        self.repaired = [f"rx: {what}" for what in self.stream.repaired]

    def begin(self, tell: Tell, may_tell: Callable[[], bool] | None = None) -> None:
        """Tell through `tell(kind, fields, wall_ns, mono_ns)` from now on; first what is evicted at once.

        `may_tell` is asked before a gap is told while nothing arrives: False leaves it growing. What was `repaired`
        is the caller's to tell.
        """
        self._tell = tell
        self._may_tell = may_tell or self._space
        with self._state:
            self._evict(time.time_ns())

    @property
    def end(self) -> int:
        """The offset of the next byte that the target will send."""
        return self.stream.end

    @property
    def line(self) -> int:
        """Newlines so far; the line that is being received has the seq `line + 1`."""
        return self.stream.line

    @property
    def failing(self) -> str | None:
        """Why something can't be stored just now, or None. What was lost is told as an `overrun` later."""
        if self._gaps:
            lost = sum(gap["count"] for gap in self._gaps)
            problem = self.stream.problem
            return f"{problem.strerror if problem else 'write failed'}: {lost} {NOT_STORED}"
        return self._sync_problem

    def rx(self, data: bytes | bytearray | memoryview, wall_ns: int, mono_ns: int) -> None:
        """Store what the target sent, read at these clocks. On return it survives kill -9, or is counted as lost."""
        if type(data) is not bytes:
            data = bytes(data)
        if not data:
            return
        with self._state:
            if self.closed:
                raise ValueError("the journal is closed")
            skew = wall_ns - mono_ns
            if self._skew is None or not -CLOCK_STEP_NS < skew - self._skew < CLOCK_STEP_NS:
                self._clock(skew, wall_ns, mono_ns)
            stored = self.stream.append(data, wall_ns, mono_ns)
            if stored < len(data):
                self._lose(len(data) - stored, wall_ns)
            elif self._gaps:
                self._settle()
            if self._rolls != self.stream.rolls:
                self._rolls = self.stream.rolls
                self._evict(wall_ns)

    def sync(self) -> None:
        """Bring all to the disk (fdatasync), retry what could not be written, apply retention by age.

        May take milliseconds to seconds: call it in a thread; `rx` is not held up. Errors end up in `failing`.
        """
        with self._syncing:
            with self._state:
                if self.closed:
                    return
                if not self._gaps or self._may_tell():
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

    def _settle(self) -> None:
        """Space may be back: write index records that are owed, and tell what was lost."""
        if not self.stream.settle():
            return
        gaps, self._gaps = self._gaps, []
        for gap in gaps:
            self._tell("overrun", gap, time.time_ns(), time.monotonic_ns())

    def _space(self) -> bool:
        """Whether there seems to be space again, while nothing arrives that would show it."""
        try:
            found = os.statvfs(self.directory)
        except OSError:
            return False
        return found.f_bavail * found.f_frsize >= 1 << 16

    def _lose(self, count: int, wall_ns: int) -> None:
        offset = self.stream.end
        cause = (self.stream.problem and self.stream.problem.strerror) or "write failed"
        self.stream.mark_gap()
        if self._gaps and (self._gaps[-1]["offset"] == offset or len(self._gaps) >= GAPS_MAX):
            self._gaps[-1]["count"] += count
            self._gaps[-1]["until_ns"] = wall_ns
        else:
            self._gaps.append(
                {"offset": offset, "count": count, "cause": cause, "since_ns": wall_ns, "until_ns": wall_ns}
            )

    def _clock(self, skew: int, wall_ns: int, mono_ns: int) -> None:
        if self._skew is not None:
            self._tell("clock", {"step_ms": (skew - self._skew) // 1_000_000}, wall_ns, mono_ns)
        self._skew = skew

    def _evict(self, now_ns: int) -> None:
        fields = self._keeper.evict(now_ns)
        if fields:
            self._tell("evicted", fields, time.time_ns(), time.monotonic_ns())
