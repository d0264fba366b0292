"""Finding the capture process of a runtime directory, starting one where there is none, replacing one, ending one.

Owned by `labd.capture_link`. Starts nothing by itself: `start()` is the shim's.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import trio

from labd import capture_wire
from labd.capture_wire import PROTOCOL, Wire

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds for a new capture process to answer, and for any to answer a request.
START_S = 20.0
ANSWER_S = 10.0
#: Seconds that one which is to be replaced or ended gets to end by itself.
QUIT_S = 5.0
#: A child that ended at once lost to another one, or can't run: the next is started this much later.
AGAIN_S = 1.0


class Starter:
    """See the module."""

    def __init__(self, runtime: str, start: Callable[[], Any], log: Callable[[str], None]) -> None:
        self.runtime = runtime
        self.log = log
        self._start = start
        self._child: Any = None

    async def find(self, replaced: Callable[[list[str], str], None]) -> tuple[Wire, dict[str, Any]]:
        """A connection and the greeting of one that speaks our protocol. Tries for ever.

        `replaced(keys, why)` hears which ports were taken from one that spoke another.
        """
        began = time.monotonic()
        next_start = 0.0
        while True:
            try:
                wire = capture_wire.connect(self.runtime)
            except OSError:
                now = time.monotonic()
                if now >= next_start and (self._child is None or self._child.poll() is not None):
                    self._child = self._start()
                    next_start = now + AGAIN_S
                if now - began > START_S:
                    self.log(f"the capture process does not start; read {self.runtime}/capture.log")
                    began = now
                await trio.sleep(0.005)
                continue
            hello = await greeting(wire)
            if hello.get("protocol") == PROTOCOL:
                return wire, hello
            if hello:
                await self._replace(wire, hello, replaced)
            else:
                wire.close()
                await trio.sleep(0.05)

    async def gone(self, pid: int | None) -> None:
        """Wait until no capture process holds the lock; after a while, help by force. Then take its status."""
        await _free(self.runtime, pid)
        child, self._child = self._child, None
        if child is not None:
            with trio.move_on_after(QUIT_S):
                await trio.to_thread.run_sync(child.wait, abandon_on_cancel=True)

    async def _replace(self, wire: Wire, hello: dict[str, Any], replaced: Callable[[list[str], str], None]) -> None:
        why = f"a capture process of another version ({hello.get('version', 'unknown')}) was replaced"
        self.log(f"{why}: it speaks protocol {hello.get('protocol')}, not {PROTOCOL}")
        replaced([str(port.get("key")) for port in hello.get("ports", ())], why)
        try:
            wire.post({"do": "quit"})
            wire.flush()
        except OSError:
            pass
        await self.gone(hello.get("pid"))
        wire.close()


async def greeting(wire: Wire) -> dict[str, Any]:
    """What the other side says first; empty when it is no capture process, or says nothing in time."""
    try:
        with trio.move_on_after(ANSWER_S):
            while True:
                await trio.lowlevel.wait_readable(wire.fileno())
                for message in wire.receive():
                    return message if isinstance(message, dict) and message.get("labd") == "capture" else {}
    except (OSError, EOFError, ValueError):
        pass
    return {}


async def _free(runtime: str, pid: int | None) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL, None):
        with trio.move_on_after(QUIT_S):
            while (holder := capture_wire.holder(runtime)) is not None:
                await trio.sleep(0.005)
            return
        if number is not None:
            kill(holder or pid, number)


def kill(pid: int | None, number: int) -> None:
    """Send a signal to one that may be gone."""
    if pid:
        try:
            os.kill(pid, number)
        except OSError:
            pass
