"""What every kind of port needs to be opened once and closed for good: whose it is, the last bytes, no complaints.

Ours is told by a table of this process, since neither flock nor a server on the network can tell us from ourselves.
Functions here block for at most DRAIN_S, and are thread-safe.
"""

import fcntl
import termios
import threading
import time
from collections.abc import Callable

from labd.errors import Busy

DRAIN_S = 1.0
"""How long a close waits for bytes that the kernel accepted and the wire has not seen."""

_ours: dict[int | str, str] = {}
_ours_lock = threading.Lock()


def refuse_own(key: int | str, what: str, label: str) -> None:
    """Raise Busy if this process has the port `key` (a device number, or host:port) open, and for whom."""
    with _ours_lock:
        owner = _ours.get(key)
    if owner is not None:
        raise Busy(f"{label}: {what} is in use by {owner}, in this daemon", hint="labd serial stop  # the other one")


def claim(key: int | str, owner: str) -> None:
    """From now on, `owner` has it."""
    with _ours_lock:
        _ours[key] = owner


def release(key: int | str) -> None:
    """Nobody has it any more."""
    with _ours_lock:
        _ours.pop(key, None)


def quietly(*acts: Callable[[], object]) -> None:
    """All of them, whatever each says: a port that is going down refuses some."""
    for act in acts:
        try:
            act()
        except (OSError, termios.error):
            pass


def drain(fd: int) -> None:
    """Wait until the kernel has nothing left to send, at most DRAIN_S."""
    until = time.monotonic() + DRAIN_S
    while time.monotonic() < until:
        left = fcntl.ioctl(fd, termios.TIOCOUTQ, b"\0\0\0\0")
        if not any(left):
            return
        time.sleep(0.005)
