"""The far side of network ports, for tests: a TCP server, and a serial port that pyserial's PortManager puts on it.

`Wires` is the serial port: what the client drives is recorded with its time, what the board drives is set by the test.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import serial.rfc2217

Handler = Callable[[socket.socket], None]


class Server:
    """Accepts on a free port of this machine and gives each connection to `handler` in a thread of its own."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.connections: list[socket.socket] = []
        self.port = 0
        self._listener: socket.socket | None = None
        self.start()

    def start(self) -> None:
        """Listen, on the same port as before."""
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self._listener.listen()
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections from now on, and end those there are."""
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        self.hang_up()

    def hang_up(self, *, reset: bool = False) -> None:
        """End the connections there are."""
        for line in self.connections:
            with contextlib.suppress(OSError):
                if reset:
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                else:
                    line.shutdown(socket.SHUT_RDWR)
                line.close()
        self.connections.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections.append(line)
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            self.handler(line)


@contextlib.contextmanager
def serving(handler: Handler) -> Iterator[Server]:
    server = Server(handler)
    try:
        yield server
    finally:
        server.stop()


class Wires:
    """A serial port as PortManager wants it. `driven` is what the client did: (wire, level, monotonic seconds)."""

    def __init__(self) -> None:
        self.baudrate, self.bytesize, self.parity, self.stopbits = 9600, 8, "N", 1
        self.xonxoff = self.rtscts = False
        self.cts = self.dsr = self.ri = self.cd = False
        self.driven: list[tuple[str, bool, float]] = []
        self.purged = 0

    def _drive(wire: str) -> property:  # type: ignore[misc]
        return property(None, lambda self, level: self.driven.append((wire, bool(level), time.monotonic())))

    dtr, rts, break_condition = _drive("dtr"), _drive("rts"), _drive("break")

    def reset_input_buffer(self) -> None:
        self.purged += 1

    reset_output_buffer = reset_input_buffer

    def levels(self, wire: str) -> list[bool]:
        return [level for name, level, _ in self.driven if name == wire]

    def pulse_ms(self, wire: str) -> float:
        """How long the wire was in the state before its last, as the far side saw it."""
        (_, _, on), (_, _, off) = [event for event in self.driven if event[0] == wire][-2:]
        return (off - on) * 1000


class Rfc2217Server(Server):
    """A board behind RFC 2217: `heard` is what it was sent, `say` what it says; the wires are `wires`."""

    def __init__(self, *, banner: bytes = b"", echo: bool = False, tells_changes: bool = True) -> None:
        self.wires = Wires()
        self.banner, self.echo, self.tells_changes = banner, echo, tells_changes
        self.heard = bytearray()
        self.reading = threading.Event()
        self.reading.set()
        self._locks: dict[socket.socket, threading.Lock] = {}
        super().__init__(self._play)

    def say(self, data: bytes) -> None:
        for line in self.connections:
            self._write(line, data.replace(b"\xff", b"\xff\xff"))

    def _write(self, line: socket.socket, data: bytes) -> None:
        with self._locks.setdefault(line, threading.Lock()):
            line.sendall(data)

    def _play(self, line: socket.socket) -> None:
        class Connection:
            write = staticmethod(lambda data: self._write(line, data))

        manager = serial.rfc2217.PortManager(self.wires, Connection)
        if self.banner:
            self._write(line, self.banner.replace(b"\xff", b"\xff\xff"))
        over = threading.Event()
        if self.tells_changes:
            threading.Thread(target=self._tell, args=(manager, over), daemon=True).start()
        try:
            while self.reading.wait() and (data := line.recv(65536)):
                got = b"".join(manager.filter(data))
                self.heard += got
                if self.echo and got:
                    self._write(line, b"".join(manager.escape(got)))
        finally:
            over.set()

    def _tell(self, manager: serial.rfc2217.PortManager, over: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while not over.wait(0.02):
                manager.check_modem_lines()


@contextlib.contextmanager
def rfc2217(**how: object) -> Iterator[Rfc2217Server]:
    server = Rfc2217Server(**how)  # type: ignore[arg-type]
    try:
        yield server
    finally:
        server.stop()
