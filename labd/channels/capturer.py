"""Who captures for a line: the capture process (`labd.capture_link`), or this very process (`LocalCapturer`).

A line hands over an open port and its journal and is told what happens to them; it does not know where the reading is
done. `LocalCapturer` is for whoever runs a channel without a daemon: tests, and programs of one purpose.
"""

from collections.abc import Callable
from typing import Any, Protocol

import trio

from labd.capture import CaptureLoop, Token
from labd.channels.portmodel import Port
from labd.journal import Journal

When = dict[str, Any]
"""`wall_ns`, `mono_ns` and `rx` of something that was not told at once; empty for now."""


class LineJournal(Protocol):
    """What a line writes its events to, and what it asks how far the target's bytes reach."""

    directory: str

    @property
    def rx_end(self) -> int:
        """The offset of the next byte."""

    @property
    def rx_line(self) -> int:
        """Newlines so far."""

    @property
    def failing(self) -> str | None:
        """Why something can't be stored, or None."""

    def event(self, kind: str, **fields: Any) -> None:
        """Record an event."""

    def tx(self, data: bytes, **fields: Any) -> None:
        """Record what was sent."""

    def sync(self) -> None:
        """Bring it to the disk; blocks."""


class Tap(Protocol):
    """A port that is captured. `start` is the offset of the first byte that can have come from it."""

    start: int


class Capturer(Protocol):
    """See the module."""

    async def open_journal(self, directory: str, *, keep_bytes: int | None, keep_ns: int | None) -> Any:
        """The journal in `directory`, to be given to `begin`. Raises Busy, LabdError."""

    async def begin(
        self, port: Port, journal: Any, on_gone: Callable[[str, When], None], wake: Callable[[], None], meta: Any
    ) -> Tap:
        """Capture from `port` into `journal`; `meta` is what a later daemon needs to go on. Raises LabdError.

        `wake()` is called after data, `on_gone(reason, when)` once after the last data, both on the loop.
        """

    async def end(self, tap: Any) -> None:
        """Store what has arrived and let go of the port's descriptor. Never raises, also while cancelled."""

    def remember(self, tap: Any, meta: Any) -> None:
        """What a later daemon needs has changed."""

    async def close_journal(self, journal: Any) -> None:
        """Give the journal up. Never raises, also while cancelled."""

    async def leave(self, journal: Any) -> None:
        """Give up this process's part of the journal; its port goes on being captured, if that can be."""


class LocalTap:
    """A port in this process's loop."""

    def __init__(self, token: Token, start: int) -> None:
        self.token = token
        self.start = start


class LocalCapturer:
    """Captures by a loop of this process, which somebody must drive (`labd.channels.pump`)."""

    def __init__(self, loop: CaptureLoop, limiter: trio.CapacityLimiter) -> None:
        self.loop = loop
        self.limiter = limiter

    async def open_journal(self, directory: str, *, keep_bytes: int | None, keep_ns: int | None) -> Journal:
        """See `Capturer`."""
        return await trio.to_thread.run_sync(
            lambda: Journal(directory, keep_bytes=keep_bytes, keep_ns=keep_ns), limiter=self.limiter
        )

    async def begin(
        self,
        port: Port,
        journal: Journal,
        on_gone: Callable[[str, When], None],
        wake: Callable[[], None],
        meta: Any,
    ) -> LocalTap:
        """See `Capturer`."""
        start = journal.rx_end
        return LocalTap(self.loop.add(port.fd, journal.rx, lambda reason: on_gone(reason, {}), wake), start)

    async def end(self, tap: LocalTap) -> None:
        """See `Capturer`."""
        self.loop.remove(tap.token, drain=True)

    def remember(self, tap: LocalTap, meta: Any) -> None:
        """Nothing outlives this process."""

    async def close_journal(self, journal: Journal) -> None:
        """See `Capturer`."""
        with trio.CancelScope(shield=True), trio.move_on_after(5.0):
            await trio.to_thread.run_sync(journal.close, abandon_on_cancel=True, limiter=self.limiter)

    leave = close_journal
