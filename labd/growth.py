"""How often each journal has grown, and sleeping until it grows again: on the daemon's loop, or in a call's thread.

The loop counts and wakes (`grew`); a thread that waits is woken directly, without a turn through the loop. A count that
was given back closes the gap between two waits: what came meanwhile ends the next one at once. Owned by the bench.
"""

from __future__ import annotations

import time
from _thread import allocate_lock
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable

#: A thread looks after whoever it waits for at least this often (seconds).
LOOK_S = 0.25


class Growth:
    """The journals of one daemon, by directory."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._events: dict[str, trio.Event] = {}
        self._signals: dict[str, list[LockType]] = {}

    def count(self, directory: str) -> int:
        """How often it has grown so far. Thread-safe."""
        return self._counts.get(directory, 0)

    def grew(self, directory: str) -> None:
        """It has grown: wake whoever waits for that. On the loop."""
        self._counts[directory] = self._counts.get(directory, 0) + 1  # before the signals: see `wait`
        for signal in self._signals.pop(directory, ()):
            signal.release()
        event = self._events.pop(directory, None)
        if event is not None:
            event.set()

    async def sleep(self, directory: str, seconds: float, seen: int | None = None) -> int:
        """Sleep on the loop until it has grown beyond `seen` (None: once more), at most `seconds`; the count then."""
        before = self.count(directory) if seen is None else seen
        with trio.move_on_after(seconds):
            while self.count(directory) == before:
                await self._events.setdefault(directory, trio.Event()).wait()
        return self.count(directory)

    def wait(self, directory: str, seconds: float, seen: int, check: Callable[[], None]) -> int:
        """The same in a thread. `check` is asked now and then; what it raises ends the wait."""
        until = time.monotonic() + seconds
        while self.count(directory) == seen:
            left = until - time.monotonic()
            if left <= 0:
                break
            signal = allocate_lock()
            signal.acquire()
            waiting = self._signals.setdefault(directory, [])
            waiting.append(signal)
            if self.count(directory) == seen and not signal.acquire(timeout=min(left, LOOK_S)):
                check()
            if signal in waiting:
                waiting.remove(signal)
        return self.count(directory)
