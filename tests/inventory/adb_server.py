"""An adb server for tests: it lists what it was given, in adb's own protocol."""

import socket
import threading


class AdbServer:
    """An adb server that lists one device, on a port of its own, for any number of questions."""

    def __init__(self, line: str) -> None:
        self.text = f"{line}\n".encode()

    def __enter__(self) -> tuple[str, int]:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()
        return ("127.0.0.1", self.listener.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                assert client.recv(64) == b"000ehost:devices-l"
                client.sendall(b"OKAY%04x" % len(self.text) + self.text)
