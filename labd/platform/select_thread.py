"""A thread that waits with select(2) for descriptors which kqueue refuses, and tells of them through a pipe.

Owned by the macOS poller, which watches `fileno()` in their stead. Level-triggered with a handshake: a descriptor
that was reported is not waited on again until `done(fd)`, so that a slow reader never makes the thread spin.
Never reads or closes a descriptor that it waits on.
"""

import os
import select
import threading

_HANDSHAKE_S = 1.0


class SelectThread:
    """Starts its (daemon) thread at once. `add`, `remove`, `take`, `done` are for one caller's thread."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._armed: set[int] = set()
        self._busy: set[int] = set()  # what the thread's current select() was given
        self._found: set[int] = set()
        self._stopped = False
        self._nudge_r, self._nudge_w = os.pipe()
        self._told_r, self._told_w = os.pipe()
        for fd in (self._nudge_r, self._nudge_w, self._told_r, self._told_w):
            os.set_blocking(fd, False)
        self._thread = threading.Thread(target=self._run, name="labd-select", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Readable when `take` has something."""
        return self._told_r

    def add(self, fd: int) -> None:
        """Wait for `fd` from now on."""
        with self._lock:
            self._armed.add(fd)
        self._nudge()

    done = add

    def remove(self, fd: int) -> None:
        """Forget `fd`. Returns when the thread no longer waits on it, so that it may be closed."""
        with self._lock:
            self._armed.discard(fd)
            self._found.discard(fd)
            self._nudge()
            self._lock.wait_for(lambda: fd not in self._busy, timeout=_HANDSHAKE_S)
            self._found.discard(fd)

    def take(self) -> list[int]:
        """What was found ready since the last time."""
        try:
            os.read(self._told_r, 4096)
        except BlockingIOError:
            pass
        with self._lock:
            found, self._found = sorted(self._found), set()
        return found

    def close(self) -> None:
        """End the thread."""
        with self._lock:
            self._stopped = True
        self._nudge()
        self._thread.join(_HANDSHAKE_S)
        if not self._thread.is_alive():
            for fd in (self._nudge_r, self._nudge_w, self._told_r, self._told_w):
                os.close(fd)

    def _nudge(self) -> None:
        _poke(self._nudge_w)

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._stopped:
                    return
                self._busy = set(self._armed)
            ready = self._wait(self._busy)
            with self._lock:
                ready &= self._armed
                self._armed -= ready
                self._found |= ready
                self._busy = set()
                self._lock.notify_all()
            if ready:
                _poke(self._told_w)

    def _wait(self, fds: set[int]) -> set[int]:
        try:
            readable, _, _ = select.select([self._nudge_r, *fds], [], [])
        except (OSError, ValueError):  # one of them was closed under us: report it, its reader finds out why
            return {fd for fd in fds if not _open(fd)}
        if self._nudge_r in readable:
            try:
                os.read(self._nudge_r, 4096)
            except BlockingIOError:
                pass
        return set(readable) - {self._nudge_r}


def _open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _poke(fd: int) -> None:
    try:
        os.write(fd, b"!")
    except BlockingIOError:  # full: it is told already
        pass
