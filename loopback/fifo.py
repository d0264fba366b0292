"""The input FIFO of a board that polls its UART: what comes while it is full is lost.

A polling board looks for input only while it waits for it. While it prints it sees nothing; in a pause it takes what
came and throws it away, but for ^C. Owned by `loopback.dut`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from .discipline import INTR
from .record import Record


class InputFifo:
    """`size` bytes. `read(data)` takes what the board read; `prints_s()` is how long the line still prints."""

    def __init__(self, size: int, read: Callable[[bytes], None], prints_s: Callable[[], float], record: Record) -> None:
        self.listens = False  # the board waits for input now
        self.pauses = False  # it waits for something else, and looks for ^C
        self.poll_ms = 0
        self.lost = 0
        self._size = size
        self._read = read
        self._prints_s = prints_s
        self._record = record
        self._bytes: deque[int] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def clear(self) -> None:
        """The board starts over."""
        self._bytes.clear()
        self.listens = self.pauses = False

    def received(self, data: bytes) -> None:
        """Bytes came in on the port."""
        if not self.poll_ms and not self._bytes:
            self._read(data)
            return
        room = max(0, self._size - len(self._bytes))
        self._bytes.extend(data[:room])
        self._lose(data[room:])
        self._again(self.poll_ms / 1000)

    def _lose(self, data: bytes) -> None:
        self.lost += len(data)
        self._record.bytes("lost", data)

    def _again(self, wait_s: float) -> None:
        if self._bytes and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._look)

    def _look(self) -> None:
        self._timer = None
        prints_s = self._prints_s()
        if self._bytes and prints_s <= 0 and (self.listens or self.pauses or not self.poll_ms):
            byte = self._bytes.popleft()
            if self.listens or byte == INTR or not self.poll_ms:
                self._read(bytes([byte]))
            else:
                self._lose(bytes([byte]))
        self._again(max(self.poll_ms / 1000, prints_s))
