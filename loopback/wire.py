"""One direction of a cable: bytes leave one end at the line's speed and arrive at the other, or are lost as on a
real line.

Timing is kept on an absolute schedule: a burst arrives when its last bit would have, the next burst of a busy line
starts at that instant whatever the timer's lateness, and an idle line saves up no credit. So the mean speed is
exact although each wake-up is late by up to a millisecond.

What does not fit: bytes that the receiver's kernel buffer refuses wait in the receiver's FIFO of `fifo` bytes; what
arrives while that is full is lost and counted (`overrun`), the newest first, as a UART does. With flow control, or
on an unpaced line (baud 0), nothing is lost: the sender is held instead. Bytes that arrive while nobody has the far
end open go nowhere (`unheard`).

Owned by `loopback.cable`; runs on its asyncio loop; never blocks.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass

QUANTUM_S = 0.004  # a burst: short enough that a typed key is not felt as late, long enough to cost little
LATE_S = 0.5  # a process that was stopped for longer does not catch up
BURST = 8  # bytes that come at once without being called fast: a timer's lateness
UNPACED_READ = 65536
UNPACED_READS = 16  # a wake-up; a PTY gives 4 KiB at most in one read


@dataclass
class Damage:
    """A fault on the bytes in flight: `every` n-th byte, or the next `count` bytes; `bit` None drops, else flips.

    With `above` it counts only bytes that come faster than so many a second, after a burst of BURST.
    """

    bit: int | None
    every: int = 0
    count: int = 0
    above: int = 0
    seen: int = 0
    _level: float = 0.0
    _then: float = 0.0

    def _too_fast(self, now: float) -> bool:
        if not self.above:
            return True
        self._level = min(BURST, max(0.0, self._level - (now - self._then) * self.above)) + 1
        self._then = now
        return self._level > BURST

    def apply(self, data: bytes, now: float) -> tuple[bytes, int]:
        """What is left of `data`, which arrives at `now` (seconds), and how many bytes were hit."""
        out = bytearray()
        hits = 0
        for byte in data:
            if not self._too_fast(now):
                out.append(byte)
                continue
            self.seen += 1
            hit = self.seen % self.every == 0 if self.every else self.count > 0
            if not hit:
                out.append(byte)
                continue
            hits += 1
            self.count -= 1
            if self.bit is not None:
                out.append(byte ^ (1 << self.bit))
        return bytes(out), hits

    @property
    def spent(self) -> bool:
        """True when no further byte can be hit."""
        return not self.every and self.count <= 0


class Wire:
    """Carries bytes from `source` to `sink` (file descriptors, non-blocking; None while that end is missing).

    `listening()` says whether somebody has the sink's other side open. `hung_up()` is called when reading the
    source says that its other side was closed; the wire then stops reading until `attach` is called again.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        byte_s: float,
        fifo: int,
        hold: bool,
        listening: Callable[[], bool],
        hung_up: Callable[[], None],
    ) -> None:
        self._loop = loop
        self.byte_s = byte_s
        self.fifo = fifo
        self._hold = hold
        self._listening = listening
        self._hung_up = hung_up
        self._source: int | None = None
        self._sink: int | None = None
        self._reading = False
        self._writing = False
        self._free = 0.0  # when the line falls idle, on the loop's clock
        self._flight: asyncio.TimerHandle | None = None
        self._backlog = bytearray()
        self._stalled = False
        self._resume: asyncio.TimerHandle | None = None
        self.damage: list[Damage] = []
        self.counts = {"carried": 0, "delivered": 0, "overrun": 0, "unheard": 0, "dropped": 0, "flipped": 0}

    # -- ends ---------------------------------------------------------------------------------------------------

    def attach(self, source: int | None, sink: int | None) -> None:
        """Join these two ends (or part from them, with None). What was in flight is gone."""
        self._unlisten()
        self._no_writer()
        if self._flight is not None:
            self._flight.cancel()
            self._flight = None
        self._backlog.clear()
        self._source, self._sink = source, sink
        self._listen()

    def _no_writer(self) -> None:
        if self._writing and self._sink is not None:
            self._loop.remove_writer(self._sink)
        self._writing = False

    def _listen(self) -> None:
        held = self._backlog and self._holds
        want = self._source is not None and not self._stalled and self._flight is None and not held
        if want and not self._reading:
            assert self._source is not None
            self._loop.add_reader(self._source, self._readable)
            self._reading = True
        elif not want:
            self._unlisten()

    def _unlisten(self) -> None:
        if self._reading and self._source is not None:
            self._loop.remove_reader(self._source)
        self._reading = False

    # -- faults -------------------------------------------------------------------------------------------------

    def stall(self, seconds: float | None) -> None:
        """Carry nothing for `seconds`, or until `resume()`; the sender's buffers fill up meanwhile."""
        self._stalled = True
        self._unlisten()
        if self._resume is not None:
            self._resume.cancel()
        self._resume = None if seconds is None else self._loop.call_later(seconds, self.resume)

    def resume(self) -> None:
        """End a stall."""
        self._stalled = False
        if self._resume is not None:
            self._resume.cancel()
            self._resume = None
        self._listen()

    # -- bytes --------------------------------------------------------------------------------------------------

    @property
    def watching(self) -> bool:
        """Whether a hang-up of the source would be noticed at once."""
        return self._reading

    @property
    def _holds(self) -> bool:
        return self._hold or not self.byte_s

    def _take(self) -> bytes:
        """What the source has now, at most one burst; empty when it has nothing or was hung up."""
        assert self._source is not None
        size = max(1, int(QUANTUM_S / self.byte_s)) if self.byte_s else UNPACED_READ
        try:
            data = os.read(self._source, size)
        except BlockingIOError:
            return b""
        except OSError:  # EIO: the last opener of the other side closed it
            data = b""
        if not data:
            self._unlisten()
            self._hung_up()
        return data

    def _readable(self) -> None:
        if self.byte_s:
            if data := self._take():
                self._send(data, max(self._loop.time(), self._free))
            return
        for _ in range(UNPACED_READS):
            data = self._take()
            if not data:
                return
            self._arrive_now(data)
            if self._backlog:
                self._listen()
                return

    def _send(self, data: bytes, start: float) -> None:
        self._free = start + len(data) * self.byte_s
        self._flight = self._loop.call_at(self._free, self._landed, data)
        self._unlisten()

    def _landed(self, data: bytes) -> None:
        self._flight = None
        self._arrive_now(data)
        if self._stalled or self._source is None or (self._backlog and self._holds):
            return
        if more := self._take():
            self._send(more, max(self._free, self._loop.time() - LATE_S))
        else:
            self._listen()  # after a hang-up: read once more, refused once more, and silent from then on

    def _arrive_now(self, data: bytes) -> None:
        self.counts["carried"] += len(data)
        for damage in self.damage:
            data, hits = damage.apply(data, self._loop.time())
            self.counts["dropped" if damage.bit is None else "flipped"] += hits
        self.damage = [damage for damage in self.damage if not damage.spent]
        if self._sink is None or not self._listening():
            self.counts["unheard"] += len(data) + len(self._backlog)
            self._backlog.clear()
            self._no_writer()
            return
        if not self._backlog:
            data = data[self._write(data) :]
        if data:
            self._wait(data)

    def _wait(self, data: bytes) -> None:
        room = len(data) if self._holds else max(0, self.fifo - len(self._backlog))
        self._backlog += data[:room]
        self.counts["overrun"] += len(data) - len(data[:room])
        if self._backlog and not self._writing and self._sink is not None:
            self._loop.add_writer(self._sink, self._writable)
            self._writing = True

    def _write(self, data: bytes | bytearray) -> int:
        assert self._sink is not None
        done = 0
        with contextlib.suppress(OSError):  # full, or just hung up: the rest waits and the next look decides
            while done < len(data):
                done += os.write(self._sink, memoryview(data)[done:])
        self.counts["delivered"] += done
        return done

    def _writable(self) -> None:
        if not self._listening():
            self.counts["unheard"] += len(self._backlog)
            self._backlog.clear()
        else:
            done = self._write(bytes(self._backlog))
            del self._backlog[:done]
        if not self._backlog:
            self._no_writer()
            self._listen()
