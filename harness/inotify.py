"""What the kernel tells about files as it happens (inotify, Linux), through ctypes. Knows nothing of trials.

Events are queued by the kernel, so that none is missed however late it is read; a queue that ran over says so.
Where there is no inotify, `Inotify()` raises OSError.
"""

import ctypes
import os
import select
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple

MODIFY, ATTRIB, OPEN = 0x2, 0x4, 0x20
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
OVERFLOW = 0x4000

_HEAD = struct.Struct("iIII")


class Event(NamedTuple):
    """One event: the directory that is watched, what happened (a mask), to which name in it."""

    directory: str
    mask: int
    name: str


class Inotify:
    """One queue of events."""

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError("there is no inotify here")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._watched: dict[int, str] = {}
        self._woken, self._waker = os.pipe()

    def watch(self, directory: str, mask: int) -> None:
        """Hear of `mask` in a directory. Raises OSError."""
        number = self._libc.inotify_add_watch(self.fd, os.fsencode(directory), mask)
        if number < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch", directory)
        self._watched[number] = directory

    def wait(self, seconds: float) -> None:
        """Come back when there is an event, when somebody calls `wake`, or after that time."""
        select.select([self.fd, self._woken], [], [], seconds)

    def wake(self) -> None:
        """End the present `wait` and all that follow."""
        os.write(self._waker, b".")

    def events(self) -> Iterator[Event]:
        """All that are queued."""
        while True:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                number, mask, _, size = _HEAD.unpack_from(data, at)
                name = os.fsdecode(data[at + _HEAD.size : at + _HEAD.size + size].split(b"\0", 1)[0])
                yield Event(self._watched.get(number, ""), mask, name)
                at += _HEAD.size + size

    def close(self) -> None:
        """Stop hearing."""
        for fd in (self.fd, self._woken, self._waker):
            os.close(fd)
