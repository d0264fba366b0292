"""A network camera on loopback: a real MJPEG server whose picture and faults a test decides."""

from __future__ import annotations

import functools
import http.server
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]

BOUNDARY = b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n"


#: Frames of noise that are made, and used in turn.
NOISES = 5


@functools.cache
def noises(shape: tuple[int, ...], strength: float) -> list[NDArray[np.int16]]:
    """Normally distributed noise for pictures of a shape."""
    random = np.random.default_rng(7)
    return [np.round(random.standard_normal(shape, np.float32) * strength).astype(np.int16) for _ in range(NOISES)]


class Camera:
    """Serves what `show` was given last, `fps` times a second, with fresh noise in each frame."""

    def __init__(self, *, fps: float = 30, quality: int = 80, noise: float = 0.0, port: int = 0) -> None:
        self.fps = fps
        self.quality = quality
        self.noise = noise
        self.stalled = threading.Event()
        """Connections stay open and deliver nothing while this is set."""
        self.served = 0
        self.shown_ns = 0
        """When the first frame with the picture that is shown now began to be sent."""
        self._picture: Picture | Callable[[], Picture] = np.zeros((480, 640, 3), np.uint8)
        self._made: dict[int, bytes] = {}
        self._changed = False
        self._clients: list[socket.socket] = []
        camera = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                camera._serve(self)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *args: Any) -> None:
                pass

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/stream.mjpg"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def show(self, picture: Picture | Callable[[], Picture]) -> None:
        """From the next frame on, this picture (or what this function gives each time)."""
        self._picture, self._made = picture, {}
        self._changed = True

    def hang_up(self) -> None:
        """Cut all connections; new ones are served."""
        for client in self._clients:
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        """Cut all connections and refuse new ones."""
        self._server.shutdown()
        self._server.server_close()
        self.hang_up()

    def __enter__(self) -> Camera:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _frame(self) -> bytes:
        """The next frame: a picture that stays has as many different ones as there are kinds of noise."""
        picture, made, kind = self._picture, self._made, self.served % NOISES
        if callable(picture):
            return self._encoded(picture(), kind)
        if kind not in made:
            made[kind] = self._encoded(picture, kind)
        return made[kind]

    def _encoded(self, picture: Picture, kind: int) -> bytes:
        if self.noise:
            rough = picture + noises(picture.shape, self.noise)[kind]
            picture = np.clip(rough, 0, 255).astype(np.uint8)
        return cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, self.quality])[1].tobytes()

    def _serve(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self._clients.append(request.connection)
        request.send_response(200)
        request.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        request.end_headers()
        due = time.monotonic()
        while True:
            while self.stalled.is_set():
                time.sleep(0.02)
                due = time.monotonic()
            changed, self._changed = self._changed, False
            data = self._frame()
            if changed:
                self.shown_ns = time.monotonic_ns()
            request.wfile.write(BOUNDARY % len(data) + data + b"\r\n")
            request.wfile.flush()
            self.served += 1
            due += 1 / self.fps
            time.sleep(max(0.0, due - time.monotonic()))


def console(*lines: str, size: tuple[int, int] = (720, 400), cursor: tuple[int, int] | None = None) -> Picture:
    """A text screen of 80 x 25 cells: grey on black, with an underline cursor at (column, row)."""
    width, height = size
    picture = np.zeros((height, width, 3), np.uint8)
    cell_w, cell_h = width / 80, height / 25
    for row, line in enumerate(lines):
        for column, char in enumerate(line):
            where = (round(column * cell_w), round((row + 0.8) * cell_h))
            cv2.putText(picture, char, where, cv2.FONT_HERSHEY_PLAIN, cell_h / 17, (170, 170, 170), 1, cv2.LINE_8)
    if cursor is not None:
        x, y = round(cursor[0] * cell_w), round((cursor[1] + 0.85) * cell_h)
        cv2.rectangle(picture, (x, y), (round(x + cell_w) - 1, y + max(1, round(cell_h / 8))), (170, 170, 170), -1)
    return picture
