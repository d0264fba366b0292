"""A small device with an HTTP server, for the fakes of this folder: `answer(request)` is what it does."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeDevice:
    """Serves on loopback from `serve` to `close`; `address` is host:port."""

    def serve(self) -> None:
        """Start. The last thing that a device's __init__ does."""
        device = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                device.answer(self)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.address = f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        raise NotImplementedError
