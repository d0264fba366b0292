"""MJPEG over HTTP, read by ourselves: a network camera's or a streaming program's newest frame, and how old it may be.

FFmpeg would read such streams too, but decodes every frame and can't tell what waits in the socket: a reader that was
held up gets old frames from it as if they were new. Here whatever has come in is read at once, all but its newest frame
is thrown away undecoded, and a frame counts as taken after a request only if nothing of it had come in before. What is
no plain MJPEG stream (https, a redirect, a password that wants a digest, other formats) is left to FFmpeg.
"""

from __future__ import annotations

import base64
import os
import re
import select
import socket
import time
from urllib.parse import unquote, urlsplit

import cv2
import numpy as np

from labd.lab.redact import redact
from labd.video.frame import Picture
from labd.video.sources import OPEN_MS, READ_MS, Lost, Source, in_colour

#: The most that is to wait in the socket, bytes: a second of 1080p. The system may make it less.
WAITING_MOST = 4 << 20
#: The most that a header and a frame may have, bytes.
HEAD_MOST, FRAME_MOST = 1 << 16, 64 << 20

_LENGTH = re.compile(rb"(?im)^content-length:\s*(\d+)")
_BOUNDARY = re.compile(rb'(?im)^content-type:\s*multipart/x-mixed-replace\s*;\s*boundary="?([^"\s;]+)"?')


class NoMjpeg(Exception):
    """The server answers, but not with a stream that this module reads."""


class Mjpeg(Source):
    """One connection. Raises Lost where nobody answers, NoMjpeg where it is for FFmpeg to try."""

    def __init__(self, url: str) -> None:
        self._what = redact(url)
        self._jpeg = b""
        self._socket: socket.socket = _connected(url, self._what)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WAITING_MOST)
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_w, False)
        try:
            self._parts = Parts(*_begin(self._socket, url))
        except (OSError, NoMjpeg) as error:
            self.close()
            if isinstance(error, OSError):
                raise Lost(f"{self._what} does not answer: {error}") from None
            raise
        self._socket.setblocking(False)
        self._room = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        self._empty_ns = self._mark_ns = time.monotonic_ns()
        self._since_mark = 0

    def take(self) -> int:
        """The newest frame that has come in whole; waits for one."""
        until = time.monotonic() + READ_MS / 1000
        while True:
            found = self._drain()
            if found is not None:
                self._jpeg, self.floor_ns = found
                return time.monotonic_ns()
            left = until - time.monotonic()
            if left <= 0:
                raise Lost(f"{self._what} has sent no frame for {READ_MS / 1000:g} s")
            if self._wake_r in select.select([self._socket.fileno(), self._wake_r], [], [], left)[0]:
                os.read(self._wake_r, 4096)

    def poke(self) -> None:
        """Look now what has come in: what comes after that is newer than who asks."""
        try:
            os.write(self._wake_w, b"x")
        except BlockingIOError:
            pass  # it is about to look anyhow

    def picture(self) -> Picture:
        """Decoded now: most frames never are."""
        found = cv2.imdecode(np.frombuffer(self._jpeg, np.uint8), cv2.IMREAD_COLOR)
        if found is None:
            raise Lost(f"{self._what} delivers frames that can't be decoded")
        return in_colour(found)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()
        os.close(self._wake_r)
        os.close(self._wake_w)

    def _drain(self) -> tuple[bytes, int] | None:
        """Read what has come in, or as much as may wait at once: a sender that knows no pace must not keep us here."""
        newest, read = None, 0
        while newest is None or read < self._room:
            try:
                data = self._socket.recv(1 << 18)
            except BlockingIOError:
                self._empty_ns = self._mark_ns = time.monotonic_ns()
                self._since_mark = 0
                return newest
            except OSError as error:
                raise Lost(f"{self._what}: {error.strerror}") from None
            if not data:
                raise Lost(f"{self._what} gives no more frames: the connection was closed")
            read += len(data)
            self._count(len(data))
            newest = self._parts.feed(data, self._empty_ns) or newest
        return newest

    def _count(self, read: int) -> None:
        """What waited at the mark has been read when as much as may wait was read since: then that was as if empty."""
        self._since_mark += read
        if self._since_mark > self._room:
            self._empty_ns, self._mark_ns, self._since_mark = self._mark_ns, time.monotonic_ns(), 0


class Parts:
    """The frames of a multipart stream, cut out as the bytes come in. `rest` came with the header."""

    def __init__(self, boundary: bytes, rest: bytes) -> None:
        self._boundary = b"--" + boundary.removeprefix(b"--")
        self._buffer = bytearray()
        self._floor_ns = 0
        self.feed(rest, 0)

    def feed(self, data: bytes, empty_ns: int) -> tuple[bytes, int] | None:
        """The newest frame that `data` completes, and the time before which nothing of it had come in.

        `empty_ns` is when everything had been read last. Raises Lost for what is no such stream.
        """
        if not self._buffer:
            self._floor_ns = empty_ns
        self._buffer += data
        newest = None
        while (frame := self._cut()) is not None:
            newest = (frame, self._floor_ns)
            self._floor_ns = empty_ns
        return newest

    def _cut(self) -> bytes | None:
        """The first frame in the buffer, taken out of it, with what leads to the next."""
        buffer = self._buffer
        start = buffer.find(b"\r\n\r\n")
        if start < 0:
            if len(buffer) > HEAD_MOST:
                raise Lost("the stream is no MJPEG: a frame's header has no end")
            return None
        length = _LENGTH.search(buffer, 0, start + 2)
        end = start + 4 + int(length[1]) if length else buffer.find(b"\r\n" + self._boundary, start + 4)
        if not length and end < 0:
            end = FRAME_MOST + 1 if len(buffer) > FRAME_MOST else len(buffer) + 1
        if end - start > FRAME_MOST:
            raise Lost("the stream is no MJPEG: a frame has no end")
        if end > len(buffer):
            return None
        frame = bytes(buffer[start + 4 : end])
        del buffer[:end]
        for skipped in (b"\r\n", self._boundary + b"\r\n"):  # sent with this frame, it says nothing of the next
            if buffer.startswith(skipped):
                del buffer[: len(skipped)]
        return frame


def _connected(url: str, what: str) -> socket.socket:
    parts = urlsplit(url)
    try:
        return socket.create_connection((parts.hostname or "", parts.port or 80), OPEN_MS / 1000)
    except (OSError, ValueError) as error:
        raise Lost(f"{what} can't be opened: {getattr(error, 'strerror', None) or error}") from None


def _begin(line: socket.socket, url: str) -> tuple[bytes, bytes]:
    """Ask for the stream: its boundary, and what came behind the header. HTTP/1.0, whose answers have no chunks."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    lines = [f"GET {target} HTTP/1.0", f"Host: {host}", "Accept: multipart/x-mixed-replace", "User-Agent: labd"]
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        lines.append(f"Authorization: Basic {base64.b64encode(login).decode()}")
    line.sendall("\r\n".join([*lines, "", ""]).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        data = line.recv(4096)
        if not data or len(head) > HEAD_MOST:
            raise NoMjpeg
        head += data
    head, _, rest = head.partition(b"\r\n\r\n")
    boundary = _BOUNDARY.search(head)
    if not re.match(rb"HTTP/1\.\d 200 ", head) or boundary is None or b"chunked" in head.lower():
        raise NoMjpeg
    return boundary[1], rest
