"""The capture loop: every open port behind one descriptor; read, hand to the sink, wake whoever waits.

Why one nested epoll (kqueue) and not a task or a thread a port: a task a port costs a scheduler round for each
4 KiB and falls to a quarter of the speed at 16 ports; a thread a port costs four times the CPU there. Why no trio:
so that the loop can move, unchanged, into a process of its own that outlives a daemon's restart.

It owns nothing: descriptors are opened and closed by whoever adds them, sinks belong to the journal. It never
blocks, never raises for a port's sake, and never touches a port that it was not given. Not thread-safe.
"""

import os
import time
from collections.abc import Callable

from labd.platform import Poller, current

Sink = Callable[[bytes, int, int], None]

READ_BYTES = 64 << 10
READS_A_PORT = 8
SHORT_READ = 2048
"""A read shorter than this has emptied the port: asking again would only cost a call that says so."""

_EMPTY_READS_MOST = 16
_DRAIN_BYTES = 1 << 20


class Token:
    """One port in the loop. Opaque; compare by identity."""

    __slots__ = ("empty", "fd", "live", "on_gone", "sink", "wake")

    def __init__(self, fd: int, sink: Sink, on_gone: Callable[[str], None], wake: Callable[[], None] | None) -> None:
        self.fd = fd
        self.sink = sink
        self.on_gone = on_gone
        self.wake = wake
        self.live = True
        self.empty = 0


class CaptureLoop:
    """All ports of a process. Wait until `fileno()` is readable, then call `step()`; again and again."""

    def __init__(self, poller: Poller | None = None) -> None:
        self._poller = poller or current().new_poller()
        self._tokens: dict[int, Token] = {}
        self._room = bytearray(READ_BYTES * READS_A_PORT)
        self._view = memoryview(self._room)
        self.faults = 0
        """How many callbacks raised. Their port was given up; the others went on."""

    @property
    def safety_poll_s(self) -> float | None:
        """How often `sweep` must be called although nothing was reported; None where the system can be trusted."""
        return self._poller.safety_poll_s

    def fileno(self) -> int:
        """The one descriptor to wait on."""
        return self._poller.fileno()

    def add(
        self,
        fd: int,
        sink: Sink,
        on_gone: Callable[[str], None],
        wake: Callable[[], None] | None = None,
    ) -> Token:
        """Capture from `fd`, which must be non-blocking, raw and VMIN=1.

        `sink(data, wall_ns, mono_ns)` gets each burst at once, stamped when its first byte was read. `wake()` is
        called once a step after data. `on_gone(reason)` is called once, after the last data, when the other end is
        gone; the port is then out of the loop, and still open. Raises OSError when the system can't watch `fd`.
        """
        if fd in self._tokens:
            raise ValueError(f"descriptor {fd} is in the loop already")
        token = Token(fd, sink, on_gone, wake)
        self._poller.add(fd)
        self._tokens[fd] = token
        return token

    def remove(self, token: Token, *, drain: bool = False) -> None:
        """Take a port out; with `drain`, hand over what has arrived first. Again: nothing happens."""
        if not token.live:
            return
        token.live = False
        if self._tokens.get(token.fd) is token:
            del self._tokens[token.fd]
            self._poller.remove(token.fd)
        if drain:
            self._drain(token)

    def step(self, budget_ns: int = 5_000_000) -> list[Token]:
        """Read all that is ready, in rounds, for about `budget_ns`; the ports that had data, each once.

        A round gives each ready port at most 8 reads of 64 KiB, so none can starve another; several rounds in a
        step spare the caller's event loop a turn for each.
        """
        until = time.monotonic_ns() + budget_ns
        fed: dict[Token, None] = {}
        while ready := self._poller.ready():
            for fd, hung in ready:
                token = self._tokens.get(fd)
                if token is not None and self._read(token, hung):
                    fed[token] = None
            if time.monotonic_ns() >= until:
                break
        return self._wake(fed)

    def sweep(self) -> list[Token]:
        """Look at every port whether or not it was reported; the ports that had data."""
        return self._wake({token: None for token in list(self._tokens.values()) if self._read(token, False)})

    def close(self) -> None:
        """Forget all ports (their descriptors stay open) and free the poller."""
        for token in list(self._tokens.values()):
            self.remove(token)
        self._poller.close()

    def _wake(self, fed: dict[Token, None]) -> list[Token]:
        for token in fed:
            if token.wake is not None:
                try:
                    token.wake()
                except Exception:
                    self.faults += 1
        return list(fed)

    def _read(self, token: Token, hung: bool) -> bool:
        """One port's turn. True when there was data."""
        fd, view = token.fd, self._view
        size = wall = mono = 0
        gone: str | None = None
        for _ in range(READS_A_PORT):
            try:
                got = os.readv(fd, [view[size : size + READ_BYTES]])
            except BlockingIOError:
                gone = self._nothing(token, hung) if hung and not size else None
                break
            except OSError as error:
                gone = f"hang-up ({os.strerror(error.errno or 0)})"
                break
            if not got:
                gone = self._nothing(token, hung or self._poller.hung_up(fd))
                break
            if not size:
                wall, mono = time.time_ns(), time.monotonic_ns()
                token.empty = 0
            size += got
            if got < SHORT_READ:
                break
        if size:
            gone = self._deliver(token, size, wall, mono) or gone
        if gone is None:
            self._poller.done(fd)
        else:
            self._give_up(token, gone)
        return size > 0

    def _nothing(self, token: Token, hung: bool) -> str | None:
        """An empty read. After a hang-up it is the end; else it may be chance, but not for ever: that would spin."""
        token.empty += 1
        if hung:
            return "hang-up (the other end closed)"
        return "reads nothing although it is ready" if token.empty >= _EMPTY_READS_MOST else None

    def _deliver(self, token: Token, size: int, wall: int, mono: int) -> str | None:
        try:
            token.sink(bytes(self._view[:size]), wall, mono)
        except Exception as error:
            self.faults += 1
            return f"what stores its bytes failed ({type(error).__name__}: {error})"
        return None

    def _give_up(self, token: Token, reason: str) -> None:
        self.remove(token)
        try:
            token.on_gone(reason)
        except Exception:
            self.faults += 1

    def _drain(self, token: Token) -> None:
        taken = 0
        while taken < _DRAIN_BYTES:
            try:
                data = os.read(token.fd, READ_BYTES)
            except OSError:
                return
            if not data:
                return
            taken += len(data)
            try:
                token.sink(data, time.time_ns(), time.monotonic_ns())
            except Exception:
                self.faults += 1
                return
