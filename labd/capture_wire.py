"""What the daemon and the capture process say to each other: lines over a UNIX socket, descriptors beside them.

One JSON object a line, or a notice `n ID END LINE MONO_NS` that an open port (by its number) has new bytes. A message
with `fds: N` brings N descriptors by SCM_RIGHTS. Both sides are same-uid processes of one runtime directory.

What stays for ever, so that versions can part politely: the process greets with `{"labd": "capture", "protocol",
"version", "pid", "ports": [{"key"}]}`, and `{"do": "quit"}` ends it. Everything else belongs to `PROTOCOL`.
Knows no trio, no port and no journal. Light: the capture process lives on it.
"""

from __future__ import annotations

import array
import json
import os
import socket

from labd import lockfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

PROTOCOL = 1
SOCKET = "capture.sock"
LOCK = "capture.lock"
#: The most descriptors that one message brings.
FDS_MOST = 4
#: A peer that lets this much wait is not reading any more.
BACKLOG_MOST = 8 << 20

_RECEIVE = 1 << 16
_ROOM = socket.CMSG_SPACE(FDS_MOST * array.array("i").itemsize)
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # macOS has none: it is set afterwards there


class Wire:
    """One end of the connection. Never blocks; not thread-safe. Owns its socket and what waits in it."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self._out: list[tuple[memoryview, list[int]]] = []
        self._waiting = 0
        self._in = b""
        self._fds: list[int] = []

    def fileno(self) -> int:
        """To wait on."""
        return self.socket.fileno()

    @property
    def backlog(self) -> int:
        """Bytes that the other side has not taken yet."""
        return self._waiting

    def post(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send a message, in its turn; the descriptors are copied, so the caller's may be closed at once."""
        if fds:
            message = {**message, "fds": len(fds)}
        self.post_raw(json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n", fds)

    def post_raw(self, data: bytes, fds: Sequence[int] = ()) -> None:
        """Send whole lines that are encoded already."""
        self._out.append((memoryview(data), [os.dup(fd) for fd in fds]))
        self._waiting += len(data)

    def flush(self) -> bool:
        """Send what the other side takes now; True when nothing waits any more. Raises OSError when it is gone."""
        while self._out:
            data, fds = self._out[0]
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
            try:
                sent = self.socket.sendmsg([data], rights)
            except BlockingIOError:
                if self._waiting > BACKLOG_MOST:
                    raise ConnectionAbortedError("the other side does not read") from None
                return False
            self._waiting -= sent
            _close_all(fds)
            if sent < len(data):
                self._out[0] = (data[sent:], [])
            else:
                del self._out[0]
        return True

    def receive(self) -> list[Any]:
        """All messages that have arrived: dicts (`fds` then holds descriptors, now the caller's), notices as tuples.

        Raises EOFError when the other side has hung up, ValueError when it talks nonsense, OSError.
        """
        while True:
            try:
                data, ancillary, _, _ = self.socket.recvmsg(_RECEIVE, _ROOM, _CLOEXEC)
            except BlockingIOError:
                break
            for level, kind, payload in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    self._take(payload)
            if not data:
                if not self._in.count(b"\n"):
                    raise EOFError
                break
            self._in += data
            if len(data) < _RECEIVE and not ancillary:
                break
        *lines, self._in = self._in.split(b"\n")
        return [self._parse(line) for line in lines if line]

    def close(self) -> None:
        """Hang up, and close the descriptors that nobody took."""
        self.socket.close()
        for _, fds in self._out:
            _close_all(fds)
        _close_all(self._fds)
        self._out, self._fds = [], []

    def _take(self, payload: bytes) -> None:
        got = array.array("i")
        got.frombytes(payload[: len(payload) - len(payload) % got.itemsize])
        if not _CLOEXEC:
            for fd in got:
                os.set_inheritable(fd, False)
        self._fds += got

    def _parse(self, line: bytes) -> Any:
        if line.startswith(b"n "):
            return tuple(map(int, line[2:].split()))
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError("not a message")
        count = int(message.get("fds", 0))
        message["fds"], self._fds = self._fds[:count], self._fds[count:]
        if len(message["fds"]) != count:
            raise ValueError("descriptors are missing")
        return message


def notice(number: int, end: int, line: int, mono_ns: int) -> bytes:
    """The line that says how far a port's journal reaches, and when its last bytes were read."""
    return b"n %d %d %d %d\n" % (number, end, line, mono_ns)


def connect(runtime: str) -> Wire:
    """A connection to the capture process of a runtime directory. Raises OSError when none listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(os.path.join(runtime, SOCKET))
        return Wire(connection)
    except OSError:
        connection.close()
        raise


def greeting(runtime: str, *, then: dict[str, Any] | None = None, seconds: float = 2.0) -> dict[str, Any] | None:
    """What the capture process of a runtime directory says of itself, or None when there is none; blocks.

    `then` is a request to leave behind, such as `{"do": "quit"}`.
    """
    import select

    try:
        wire = connect(runtime)
    except OSError:
        return None
    try:
        for _ in range(3):
            if not select.select([wire], [], [], seconds)[0]:
                return None
            if messages := wire.receive():
                if then is not None:
                    wire.post(then)
                    wire.flush()
                first = messages[0]
                return first if isinstance(first, dict) and first.get("labd") == "capture" else None
    except (OSError, EOFError, ValueError):
        pass
    finally:
        wire.close()
    return None


def holder(runtime: str) -> int | None:
    """The pid of the capture process that holds the lock of a runtime directory; None when it is free."""
    return lockfile.holder(os.path.join(runtime, LOCK))


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        try:
            os.close(fd)
        except OSError:
            pass
    fds.clear()
