"""The end of a ZMODEM transfer into this side: the board's shell must not be sent what its program is gone to take.

Both sides say ZFIN, then the sender says OO and ends. lrzsz's receiver says its ZFIN again when anything else comes
first, which over a pipe is often the rest of the sender's own frame: that second one would be typed into the shell.
So what it says behind its first ZFIN waits: for OO, and is dropped, or for a second without, and is sent, since the
first one was lost then.
"""

from __future__ import annotations

#: The receiver's last frame, as a hex header (Forsberg, The ZMODEM Inter Application File Transfer Protocol, ZFIN).
FIN = b"**\x18B0800000000022d"
#: What ends a hex header, and is sent with it.
_TAIL = b"\r\n\x8a\x8d"
OVER = b"OO"
#: How long (seconds) the sender gets to say OO before the frame counts as lost.
PATIENCE_S = 1.0


class Ending:
    """What may go to the board, given what the receiver says and what the board does."""

    def __init__(self) -> None:
        self._said_at: float | None = None
        self._held = b""
        self._heard = b""
        self.over = False

    def says(self, data: bytes, now: float) -> bytes:
        """The receiver says `data`: what of it is to be sent now."""
        if self.over:
            return b""
        if self._said_at is not None:
            self._held += data
            return self.due(now)
        at = data.find(FIN)
        if at < 0:
            return data
        stop = at + len(FIN)
        while stop < len(data) and data[stop] in _TAIL:
            stop += 1
        self._said_at, self._held, self._heard = now, data[stop:], b""
        return data[:stop]

    def hears(self, data: bytes) -> None:
        """The board says `data`."""
        if self._said_at is None or self.over:
            return
        self._heard = (self._heard + data)[-64:]
        if OVER in self._heard:
            self.over, self._held = True, b""

    def due(self, now: float) -> bytes:
        """What has waited long enough to be sent."""
        if self._said_at is None or self.over or not self._held or now - self._said_at < PATIENCE_S:
            return b""
        held, self._held, self._said_at = self._held, b"", None
        return self.says(held, now)
