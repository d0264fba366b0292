"""The journal of one interface: all that the target said, and all that was done to it, on one clock.

Owns a directory: `rx/` holds the target's exact bytes, `events/` one JSON object a line (opened, closed, sent, reset,
lost, …), both in the form of `labd.journal_format`. `Journal` is the one writer and holds `lock`; readers
(`labd.journal_read`) need no lock and no daemon. The capture loop calls `rx`, channels call `event` and `tx`.

It never interprets what the target says, never waits for a disk sync inside `rx`, and never raises a write error
into the capture loop: what could not be stored is counted and said as soon as there is space again.
"""

import _thread
import os
import time
from collections.abc import Callable
from typing import Any

from labd.errors import Busy, LabdError
from labd.journal_evict import Keeper
from labd.journal_format import EVENTS, RX
from labd.journal_stream import Stream, _fdatasync

#: Longer writes are told in several `tx` events, so that no event is a burden to a reader.
TX_EVENT_MAX = 1 << 16
#: Events that can't be written wait in memory, up to this many.
WAITING_MAX = 4096
#: Gaps remembered while the disk is full; later ones are added to the last.
GAPS_MAX = 256
#: A step of the wall clock against the monotonic one that is worth an event.
CLOCK_STEP_NS = 1_000_000_000
#: Retention by age is looked at this often.
AGE_CHECK_NS = 60 * 1_000_000_000


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
        segment_bytes: int = 16 << 20,
    ) -> None:
        import json

        if keep_bytes is not None:
            segment_bytes = max(1, min(segment_bytes, keep_bytes // 4))
        self.directory = directory
        self._dumps = json.JSONEncoder(separators=(",", ":"), default=str).encode
        self._state = _thread.allocate_lock()
        self._syncing = _thread.allocate_lock()
        self._closed = False
        self._waiting: list[tuple[bytes, int, int]] = []
        self._gaps: list[dict[str, Any]] = []
        self._dropped_events = 0
        self._told_rx = 0
        self._skew: int | None = None
        self._rolls = self._age_checked = 0
        self._sync_problem: str | None = None
        self._lock = _take_lock(directory)
        try:
            self._rx = Stream(os.path.join(directory, RX), segment_bytes)
            self._events = Stream(os.path.join(directory, EVENTS), min(segment_bytes, 4 << 20), whole_lines=True)
        except OSError as problem:
            os.close(self._lock)
            raise _cannot_open(directory, problem) from problem
        self._keeper = Keeper(self._rx, self._events, keep_bytes, keep_ns)
        self.repaired = [f"rx: {what}" for what in self._rx.repaired]
        self.repaired += [f"events: {what}" for what in self._events.repaired]
        if self.repaired:
            self.event("repaired", what=self.repaired, lost=self._rx.lost)
        with self._state:
            self._evict(time.time_ns())

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
        if self._gaps or self._waiting:
            lost = sum(gap["count"] for gap in self._gaps)
            problem = self._rx.problem or self._events.problem
            return f"{problem.strerror if problem else 'write failed'}: {lost} received bytes could not be stored"
        return self._sync_problem

    def rx(self, data: bytes | bytearray | memoryview, wall_ns: int, mono_ns: int) -> None:
        """Store what the target sent, read at these clocks. On return it survives kill -9, or is counted as lost."""
        if type(data) is not bytes:
            data = bytes(data)
        if not data:
            return
        with self._state:
            if self._closed:
                raise ValueError("the journal is closed")
            skew = wall_ns - mono_ns
            if self._skew is None or not -CLOCK_STEP_NS < skew - self._skew < CLOCK_STEP_NS:
                self._clock(skew, wall_ns, mono_ns)
            stored = self._rx.append(data, wall_ns, mono_ns)
            if stored < len(data):
                self._lose(len(data) - stored, wall_ns)
            elif self._gaps or self._waiting:
                self._settle()
            if self._rolls != self._rx.rolls:
                self._rolls = self._rx.rolls
                self._evict(wall_ns)

    def event(self, kind: str, **fields: Any) -> None:
        """Record that something happened, now (or at `wall_ns` and `mono_ns`, if both are among the fields)."""
        wall_ns = fields.pop("wall_ns", None) or time.time_ns()
        mono_ns = fields.pop("mono_ns", None) or time.monotonic_ns()
        with self._state:
            if self._closed:
                raise ValueError("the journal is closed")
            self._tell(kind, fields, wall_ns, mono_ns)

    def tx(self, data: bytes | bytearray | memoryview, **fields: Any) -> None:
        """Record what was sent to the target: `data` as the port took it; `accepted` defaults to its length."""
        data = bytes(data)
        for start in range(0, len(data) or 1, TX_EVENT_MAX):
            piece = data[start : start + TX_EVENT_MAX]
            own = fields if start + TX_EVENT_MAX >= len(data) else {k: v for k, v in fields.items() if k != "accepted"}
            self.event("tx", **{"data": piece.decode("latin-1"), "accepted": len(piece), **own})

    def sync(self) -> None:
        """Bring all to the disk (fdatasync), retry what could not be written, apply retention by age.

        May take milliseconds to seconds: call it in a thread; `rx` is not held up. Errors end up in `failing`.
        """
        with self._syncing:
            with self._state:
                if self._closed:
                    return
                self._settle()
                now = time.time_ns()
                if abs(now - self._age_checked) > AGE_CHECK_NS:
                    self._age_checked = now
                    self._evict(now)
                streams = (self._rx, self._events)
                files = [fd for stream in streams for fd in stream.take_retired() + stream.dup_current()]
                directories = [stream.directory for stream in streams if stream.take_dir_dirty()]
            self._sync_problem = _sync_all(files, directories)

    def close(self) -> None:
        """Sync and give up the journal; a second call does nothing."""
        self.sync()
        with self._syncing, self._state:
            if not self._closed:
                self._closed = True
                self._rx.close()
                self._events.close()
                os.close(self._lock)

    # -- inside, under the state lock ---------------------------------------------------------------------------

    def _tell(self, kind: str, fields: dict[str, Any], wall_ns: int, mono_ns: int) -> None:
        at = fields["offset"] if kind == "overrun" and "offset" in fields else self._rx.end
        self._told_rx = max(self._told_rx, at)  # readers search events by offset: it never goes back
        whole = {"kind": kind, "rx": self._told_rx, **fields, "wall_ns": wall_ns, "mono_ns": mono_ns}
        if len(self._waiting) < WAITING_MAX:
            self._waiting.append((self._dumps(whole).encode() + b"\n", wall_ns, mono_ns))
        else:
            self._dropped_events += 1
        self._flush()

    def _flush(self) -> bool:
        """Write the events that wait, in order; True if none waits any more."""
        while self._waiting:
            line, wall_ns, mono_ns = self._waiting[0]
            stored = self._events.append(line, wall_ns, mono_ns)
            if stored < len(line):
                self._waiting[0] = (line[stored:], wall_ns, mono_ns)
                return False
            del self._waiting[0]
        return True

    def _settle(self) -> None:
        """Space may be back: write index records that are owed, events that wait, and what was lost."""
        if not (self._rx.settle() and self._events.settle() and self._flush()):
            return
        gaps, self._gaps = self._gaps, []
        for gap in gaps:
            self._tell("overrun", gap, time.time_ns(), time.monotonic_ns())
        if self._dropped_events:
            dropped, self._dropped_events = self._dropped_events, 0
            self._tell("overrun", {"events": dropped, "cause": "disk full"}, time.time_ns(), time.monotonic_ns())

    def _lose(self, count: int, wall_ns: int) -> None:
        offset = self._rx.end
        cause = (self._rx.problem and self._rx.problem.strerror) or "write failed"
        self._rx.mark_gap()
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
        for fields in self._keeper.evict(now_ns):
            self._tell("evicted", fields, time.time_ns(), time.monotonic_ns())


def _take_lock(directory: str) -> int:
    """The lock file's descriptor, locked and with our pid in it."""
    import fcntl

    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise _cannot_open(directory, problem) from problem
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        os.close(lock)
        raise Busy(
            f"the journal {directory} is written by another process" + (f" (pid {holder})" if holder else ""),
            hint="labd daemons",
        ) from None
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)
    except OSError:
        pass  # a full disk: the lock holds all the same, only its holder's number is missing
    return lock


def _cannot_open(directory: str, problem: OSError) -> LabdError:
    return LabdError(
        f"the journal {directory} can't be opened: {problem.strerror}",
        hint=f"df -h {directory}; ls -ld {directory}",
    )


def _sync_all(files: list[int], directories: list[str]) -> str | None:
    """Sync and close the descriptors, sync the directories; the first error, in words."""
    trouble: str | None = None
    sync: Callable[[int], None] = _fdatasync
    for fd in files:
        try:
            sync(fd)
        except OSError as problem:
            trouble = trouble or f"{problem.strerror}: what was received may not survive a power cut"
        os.close(fd)
    for directory in directories:
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            os.fsync(fd)
        except OSError:
            pass
        os.close(fd)
    return trouble
