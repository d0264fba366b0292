"""A null-modem cable made of two PTYs: `near`, which the program under test opens as it would a USB adapter, and
`far`, which the simulated board opens. Between them two wires (`loopback.wire`), and the faults.

A PTY is not a UART, and three of its habits would falsify a test; each is mended here:

- it keeps what is written while nobody has it open, and hands it to whoever opens it next: so what arrives unheard
  is dropped, and the input that the last opener left unread is flushed when it closes, as a real driver does;
- its master polls as hung up for ever once the last opener has closed: so a closed end is not watched but looked
  at every 20 ms, which costs no measurable time;
- it starts cooked, and a peer that opens it early would have its own bytes echoed back: so both ends are raw before
  anybody is told their names.

Owned by `loopback.player`. All on one asyncio loop, nothing blocks. Linux was measured; macOS has the same calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import termios
import tty
from collections.abc import Callable
from typing import Any

from .wire import Damage, Wire

LOOK_S = 0.02
IDLE_LOOK_S = 0.2  # while the wire itself would notice the end


class Pty:
    """One PTY, raw, with no opener yet; `path` is the node to open."""

    def __init__(self) -> None:
        self.master, slave = os.openpty()
        os.set_blocking(self.master, False)
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        os.close(slave)
        self._poll = select.poll()
        self._poll.register(self.master, select.POLLIN)

    @property
    def is_open(self) -> bool:
        """Whether somebody has the node open right now."""
        events = self._poll.poll(0)
        return not events or not events[0][1] & select.POLLHUP

    @property
    def was_used(self) -> bool:
        """Whether it is open, or an opener that is gone by now wrote something that was not taken yet."""
        events = self._poll.poll(0)
        return not events or bool(events[0][1] & select.POLLIN) or not events[0][1] & select.POLLHUP

    def flush(self) -> bool:
        """Forget what an opener left unread. False when its exclusive lock outlived it and keeps everybody out."""
        try:
            slave = os.open(self.path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            return error.errno != errno.EBUSY or self.is_open  # open: the lock is a new opener's
        try:
            termios.tcflush(slave, termios.TCIFLUSH)
            tty.setraw(slave)
        finally:
            os.close(slave)
        return True

    def close(self) -> None:
        """Pull it: an opener sees a hang-up, its node is gone."""
        os.close(self.master)


class Cable:
    """Both ends and what lies between. `on_port(state)` hears "opened" and "closed" of the near end."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        byte_s: float,
        fifo: int,
        hold: bool,
        link: str | None,
        on_port: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._on_port = on_port
        self.link = link
        self.near: Pty | None = Pty()
        self.far = Pty()
        self._was = ""
        self._opened = False
        self.to_host = Wire(loop, byte_s, fifo, hold, self._near_open, lambda: None)
        self.to_dut = Wire(loop, byte_s, fifo, hold, lambda: True, self._near_closed)
        self._place_link()
        self._tick: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to carry; the board must have opened the far end by now."""
        self._join()
        self._look()

    def close(self) -> None:
        """Part the ends and take the symlink away."""
        if self._tick is not None:
            self._tick.cancel()
        self.to_host.attach(None, None)
        self.to_dut.attach(None, None)
        self._remove_link()

    # -- who is there -------------------------------------------------------------------------------------------

    def _near_open(self) -> bool:
        return self.near is not None and self.near.is_open

    def _join(self) -> None:
        near = None if self.near is None else self.near.master
        self.to_host.attach(self.far.master, near)
        self.to_dut.attach(near if self._opened else None, self.far.master)

    def _look(self) -> None:
        watched = self._opened and self.to_dut.watching
        self._tick = self._loop.call_later(IDLE_LOOK_S if watched else LOOK_S, self._look)
        if self._opened and not self._near_open():
            # Seen here only while the wire is busy with the last bytes that the opener wrote; those still travel.
            self._flush_near()
        elif not self._opened and self.near is not None and self.near.was_used:
            self._opened = True
            self.to_dut.attach(self.near.master, self.far.master)
            self._on_port("opened")

    def _near_closed(self) -> None:
        if not self._opened:
            return
        self._opened = False
        self._flush_near()
        self._on_port("closed")
        self._soon()

    def _soon(self) -> None:
        if self._tick is not None:
            self._tick.cancel()
            self._tick = self._loop.call_later(LOOK_S, self._look)

    def _flush_near(self) -> None:
        if self.near is not None and not self.near.flush() and self.link is not None:
            self.unplug()
            self.replug()

    # -- the symlink --------------------------------------------------------------------------------------------

    def _place_link(self) -> None:
        if self.link is None or self.near is None:
            return
        if os.path.lexists(self.link) and not os.path.islink(self.link):
            raise FileExistsError(errno.EEXIST, "is no symbolic link, so it is not replaced", self.link)
        fresh = f"{self.link}.{os.getpid()}"
        os.symlink(self.near.path, fresh)
        os.replace(fresh, self.link)

    def _remove_link(self) -> None:
        with contextlib.suppress(OSError):
            if self.link and self.near and os.readlink(self.link) == self.near.path:
                os.unlink(self.link)

    # -- faults -------------------------------------------------------------------------------------------------

    def unplug(self) -> None:
        """The adapter leaves the bench: hang-up for its opener, no node, no symlink."""
        if self.near is None:
            return
        self._remove_link()
        self.to_host.attach(self.far.master, None)
        self.to_dut.attach(None, self.far.master)
        self.near.close()
        self._was, self.near = self.near.path, None
        if self._opened:
            self._opened = False
            self._on_port("closed")
            self._soon()

    def replug(self) -> str:
        """The adapter comes back under another node, which the symlink follows. Returns the node's path."""
        if self.near is None:
            fresh = Pty()
            if fresh.path == self._was:  # the kernel hands out the lowest free number: take the next one
                second = Pty()
                fresh.close()
                fresh = second
            self.near = fresh
            self._place_link()
            self._join()
        return self.near.path

    def wires(self, direction: str) -> list[Wire]:
        """The wires of "to_host", "to_dut" or "both"."""
        return {"to_host": [self.to_host], "to_dut": [self.to_dut], "both": [self.to_host, self.to_dut]}[direction]

    def damage(self, direction: str, bit: int | None, every: int, count: int, above: int = 0) -> None:
        """Drop (`bit` None) or flip bytes from now on: each `every`-th, or the next `count`; `above` that rate only."""
        for wire in self.wires(direction):
            wire.damage.append(Damage(bit, every, count, above))

    def wander(self, ms: int) -> None:
        """Leave the bench now, and come back under another node in `ms`."""
        self.unplug()
        self._loop.call_later(ms / 1000, self.replug)

    def clear(self) -> None:
        """End stalls and damage; an unplugged cable stays unplugged."""
        for wire in self.wires("both"):
            wire.damage.clear()
            wire.resume()

    def stats(self) -> dict[str, Any]:
        """Counts of bytes by what became of them, in both directions."""
        return {
            "tty": None if self.near is None else self.near.path,
            "open": self._opened,
            "to_host": dict(self.to_host.counts),
            "to_dut": dict(self.to_dut.counts),
        }
