"""The record of keys that are typed one by one: those of a moment, told to the journal in one `tx` event.

Sending is not delayed, only what is written of it: until a line's end, `TELL_S` at most, and never beyond anything else
that the journal is told of the line, nor beyond the next bytes of the board, which may be the echo of these keys. On
the loop alone.
"""

from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from labd.channels.line import Line

TELL_S = 0.05
MOST = 4096


class Typed:
    """The keys of one line that were sent and not told yet, all by the same `who`."""

    def __init__(self, line: "Line") -> None:
        self._line = line
        self._data = bytearray()
        self._who: dict[str, Any] = {}
        self._rx = 0
        self._begun = trio.Event()

    def add(self, data: bytes, *, rx: int, who: dict[str, Any]) -> None:
        """The port took `data` when the board's stream was at `rx`."""
        if self._data and who != self._who:
            self.tell()
        if not self._data:
            self._who, self._rx = who, rx
            self._begun.set()
        self._data += data
        if b"\r" in data or b"\n" in data or len(self._data) >= MOST:
            self.tell()

    def tell(self) -> None:
        """Put what is not told yet into the journal."""
        if self._data:
            data, self._data = bytes(self._data), bytearray()
            self._begun = trio.Event()
            size = len(data)
            self._line.tell_sent(data, accepted=size, rx=self._rx, total=size, who=self._who, rx_before=self._rx)

    async def tell_in_time(self) -> None:
        """Tell what has waited for long enough, until cancelled."""
        while True:
            await self._begun.wait()
            await trio.sleep(TELL_S)
            self.tell()
