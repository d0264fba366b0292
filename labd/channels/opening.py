"""Opening and closing ports from trio: in threads, with a limit, and nothing left behind when it is cut short.

A thread can't be cancelled. So when an open takes too long or its caller is cancelled, the thread is abandoned, and
whatever it still opens it closes itself; a close that hangs is abandoned with its descriptor. Either way the loop
goes on at once.
"""

import threading
import time
from collections.abc import Callable

import trio

from labd.channels import access
from labd.channels.port import Port, close_port
from labd.errors import Unreachable

OPEN_LIMIT_S = 10.0
CLOSE_LIMIT_S = 5.0
UDEV_GRACE_S = 1.0
"""A node may belong to root for a moment after it appears: permission is asked for again this long."""


class _Abandonable:
    """One open in a thread, which must be either taken by its caller or closed."""

    def __init__(self, opener: Callable[[], Port]) -> None:
        self._opener = opener
        self._lock = threading.Lock()
        self._abandoned = False
        self._port: Port | None = None

    def run(self) -> Port:
        """In the thread."""
        port = self._opener()
        with self._lock:
            self._port = port
            abandoned = self._abandoned
        if abandoned:
            close_port(port, hung_up=True)
        return port

    def abandon(self) -> Port | None:
        """From the loop: nobody will take it. The port, if it is open already, for the caller to close."""
        with self._lock:
            self._abandoned = True
            return self._port


async def open_in_thread(opener: Callable[[], Port], *, label: str, node: str, limiter: trio.CapacityLimiter) -> Port:
    """Run `opener` in a thread. Raises what it raises, and Unreachable after OPEN_LIMIT_S."""
    until = trio.current_time() + UDEV_GRACE_S
    while True:
        try:
            return await _open_once(opener, label, limiter)
        except access.Forbidden:
            if trio.current_time() > until or not access.fresh(node, 3.0, time.time()):
                raise
        await trio.sleep(0.1)


async def _open_once(opener: Callable[[], Port], label: str, limiter: trio.CapacityLimiter) -> Port:
    attempt = _Abandonable(opener)
    try:
        with trio.fail_after(OPEN_LIMIT_S):
            return await trio.to_thread.run_sync(attempt.run, abandon_on_cancel=True, limiter=limiter)
    except (trio.Cancelled, trio.TooSlowError) as error:
        late = attempt.abandon()
        if late is not None:
            await close_in_thread(late, hung_up=True, limiter=limiter)
        if isinstance(error, trio.TooSlowError):
            raise Unreachable(f"{label}: opening took longer than {OPEN_LIMIT_S:.0f} s") from None
        raise


async def close_in_thread(port: Port, *, hung_up: bool, limiter: trio.CapacityLimiter, leave: bool = False) -> bool:
    """Close `port`, even while cancelled. False when the driver did not let go within CLOSE_LIMIT_S.

    With `leave`, only our descriptor of it: somebody else goes on with the port.
    """
    trio.lowlevel.notify_closing(port.fd)
    with trio.CancelScope(shield=True), trio.move_on_after(CLOSE_LIMIT_S) as limit:
        await trio.to_thread.run_sync(
            port.leave if leave else lambda: close_port(port, hung_up=hung_up), abandon_on_cancel=True, limiter=limiter
        )
    return not limit.cancelled_caught
