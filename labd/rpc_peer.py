"""The other end of one connection to the daemon: buffered reads, whole writes, and the caller's stdin."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

#: Bytes of stdin that one call may bring.
STDIN_BYTES = 64 << 20


class Peer:
    """The other end of one connection: buffered reads, whole writes."""

    def __init__(self, stream: trio.SocketStream, pid: int | None, uid: int | None) -> None:
        self.stream = stream
        self.pid = pid
        self.uid = uid
        self.buffer = b""
        self._lock = trio.Lock()
        self._stdin = bytearray()
        self._stdin_done = trio.Event()

    async def _more(self) -> bool:
        data = await self.stream.receive_some(262144)
        self.buffer += data
        return bool(data)

    async def peek(self) -> bytes:
        while not self.buffer and await self._more():
            pass
        return self.buffer[:1]

    async def line(self, limit: int) -> bytes:
        """The next line without its end; b"" at the end of the stream or beyond `limit` bytes."""
        while b"\n" not in self.buffer:
            if len(self.buffer) > limit or not await self._more():
                return b""
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    async def exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            if not await self._more():
                return b""
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    async def pour(self, size: int, write: Callable[[bytes], object]) -> None:
        """Hand on the next `size` bytes as they come. Raises BrokenResourceError when they don't."""
        while size:
            if not self.buffer and not await self._more():
                raise trio.BrokenResourceError
            piece, self.buffer = self.buffer[:size], self.buffer[size:]
            size -= len(piece)
            write(piece)

    async def send(self, data: bytes) -> None:
        async with self._lock:
            await self.stream.send_all(data)

    async def feed_stdin(self) -> None:
        """Take `d` frames until the peer hangs up or breaks the protocol."""
        while header := await self.line(64):
            if header[:1] != b"d" or not header[1:].isdigit():
                return
            size = int(header[1:])
            if size == 0:
                self._stdin_done.set()
            elif len(self._stdin) + size > STDIN_BYTES:
                return
            else:
                self._stdin += await self.exactly(size)

    async def stdin(self) -> bytes:
        """All of the peer's stdin."""
        if not self._stdin_done.is_set():
            await self.send(b"i\n")
            await self._stdin_done.wait()
        return bytes(self._stdin)

    def frame(self, fd: int, data: bytes) -> None:
        """Write a piece of the answer, from the call's thread, which alone writes while the call runs.

        Straight to the socket as far as it takes it: the way over the loop costs more than the rest of a short call.
        """
        trio.from_thread.check_cancelled()
        whole = b"%s%d\n%s" % (b"o" if fd == 1 else b"e", len(data), data)
        try:
            written = os.write(self.stream.socket.fileno(), whole)
        except BlockingIOError:
            written = 0
        except OSError as error:
            raise trio.BrokenResourceError from error
        if written < len(whole):
            trio.from_thread.run(self.send, whole[written:])
