"""The capture process's door: its lock, its listening socket, and the peers of the same user that came in.

Known by its lock, never by a pid: whoever holds the lock owns the socket's name, so a left-over socket is replaced.
Owned by `labd.capture_process`; knows no port.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket

from labd.capture_wire import LOCK, SOCKET, Wire
from labd.platform.peer import peer_of


class Door:
    """Listens in `runtime`; everything it waits for is registered in `poll`. Raises OSError where it can't."""

    def __init__(self, runtime: str, poll: select.poll) -> None:
        self.runtime = runtime
        self.path = os.path.join(runtime, SOCKET)
        self.lock = take_lock(runtime)
        self.peers: dict[int, Wire] = {}
        self._poll = poll
        self._writing: set[int] = set()
        self._listener, self._identity = self._listen()

    @property
    def fd(self) -> int:
        """The descriptor that is readable when somebody knocks."""
        return self._listener.fileno()

    def accept(self) -> Wire | None:
        """Who knocked, if it is the same user."""
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return None
        if peer_of(connection)[1] != os.getuid():
            connection.close()
            return None
        wire = Wire(connection)
        self.peers[wire.fileno()] = wire
        self._poll.register(wire, select.POLLIN)
        return wire

    def hang_up(self, wire: Wire) -> None:
        """Done with this peer; again: nothing happens."""
        fd = wire.fileno()
        if self.peers.pop(fd, None) is not None:
            self._writing.discard(fd)
            self._poll.unregister(fd)
            wire.close()

    def flush(self) -> list[Wire]:
        """Send what waits, as far as it is taken; the peers that turned out to be gone."""
        gone = []
        for fd, wire in list(self.peers.items()):
            if wire.backlog:
                try:
                    empty = wire.flush()
                except OSError:
                    gone.append(wire)
                    continue
                if not empty and fd not in self._writing:
                    self._writing.add(fd)
                    self._poll.modify(fd, select.POLLIN | select.POLLOUT)
            if not wire.backlog and fd in self._writing:
                self._writing.discard(fd)
                self._poll.modify(fd, select.POLLIN)
        return gone

    def see_to_it(self) -> bool:
        """Make the socket's file again where it was swept away. False when even its directory is gone."""
        try:
            if os.stat(self.path).st_ino == self._identity:
                return True
        except OSError:
            pass
        if not os.path.isdir(self.runtime):
            return False
        old = self._listener
        try:
            self._listener, self._identity = self._listen()
        except OSError:
            return True
        self._poll.unregister(old)
        old.close()
        return True

    def remove(self) -> None:
        """Take the socket's file away, if it is ours."""
        try:
            if os.stat(self.path).st_ino == self._identity:
                os.unlink(self.path)
        except OSError:
            pass

    def _listen(self) -> tuple[socket.socket, int]:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        listener.bind(self.path)  # in a 0700 directory; the mode is the second lock on the same door
        os.chmod(self.path, 0o600)
        listener.listen(16)
        listener.setblocking(False)
        self._poll.register(listener, select.POLLIN)
        return listener, os.stat(self.path).st_ino


def take_lock(runtime: str) -> int:
    """The held lock of a runtime directory, with our pid in it. Raises BlockingIOError when another one has it."""
    fd = os.open(os.path.join(runtime, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    return fd
