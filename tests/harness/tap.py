"""A wire that can be listened to: a TCP proxy that remembers every byte that passes, in both directions."""

import socket
import threading


class Tap:
    """Stands between a client and HOST:PORT. `seen` has all bytes so far."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._far = (host, int(port))
        self._door = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = [self._door]
        self.address = f"127.0.0.1:{self._door.getsockname()[1]}"
        self.seen = bytearray()

    def __enter__(self) -> "Tap":
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._open:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            far = socket.create_connection(self._far)
            self._open += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self.seen += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass
