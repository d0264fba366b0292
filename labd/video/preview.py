"""The page that shows a screen live, served by the screen's capture process to browsers on this machine.

On 127.0.0.1 alone, to whoever knows the secret in its address; requests that name another host (DNS rebinding) or come
from another page are refused, and nothing may read or embed it from elsewhere. It looks; it can do nothing.
"""

from __future__ import annotations

import hmac
import html
import http.server
import textwrap
import threading
import time
from typing import Any

import cv2
import numpy as np

from labd.video.eye import Eye
from labd.video.frame import Frame, Picture, jpeg

#: Frames a second that a browser gets at most; while nothing changes, one every KEEP_S seconds.
RATE, KEEP_S = 12.0, 1.0
#: Browsers that may watch at once.
WATCHERS_MOST = 8
#: A browser that takes nothing for this long is gone, seconds.
SEND_S = 10.0

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<style>body{{margin:0;background:#111;color:#bbb;font:14px monospace}}img{{max-width:100%;display:block}}</style>
<img src="live.mjpg" alt="the screen of {title}">
<p>{title}, live. <a href="now.jpg" style="color:#8bf">One picture</a></p>
"""


class Preview:
    """The server. `port` 0 takes a free one; one that is taken by now is replaced by a free one."""

    def __init__(self, eye: Eye, title: str, token: str, port: int) -> None:
        self._eye = eye
        self._watching = threading.BoundedSemaphore(WATCHERS_MOST)
        self._page = _PAGE.format(title=html.escape(title)).encode()
        self._token = token
        preview = self

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = SEND_S

            def log_message(self, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                preview._serve(self)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *args: Any) -> None:
                pass  # a browser that went away

        try:
            server = Server(("127.0.0.1", port), Handler)
        except OSError:
            server = Server(("127.0.0.1", 0), Handler)
        self.port = int(server.server_address[1])
        threading.Thread(target=server.serve_forever, name="preview", daemon=True).start()

    def _serve(self, request: http.server.BaseHTTPRequestHandler) -> None:
        wrong = self._refusal(request)
        if wrong:
            self._answer(request, 403, "text/plain", wrong.encode())
            return
        part = request.path.removeprefix(f"/{self._token}/")
        if part == "":
            self._answer(request, 200, "text/html; charset=utf-8", self._page)
        elif part == "now.jpg":
            self._one(request)
        elif part == "live.mjpg" and self._watching.acquire(blocking=False):
            try:
                self._live(request)
            finally:
                self._watching.release()
        else:
            self._answer(request, 503 if part == "live.mjpg" else 404, "text/plain", b"not now" if part else b"")

    def _refusal(self, request: http.server.BaseHTTPRequestHandler) -> str:
        """Why this request is not answered; empty when it is."""
        own = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
        if host not in own:
            return "this page is for this machine"
        if origin is not None and origin not in {f"http://{name}" for name in own}:
            return "another page may not look at this one"
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return "another page may not look at this one"
        first = request.path.removeprefix("/").partition("/")[0]
        return (
            "" if hmac.compare_digest(first.encode(), self._token.encode()) else "labd video preview tells the address"
        )

    def _answer(self, request: http.server.BaseHTTPRequestHandler, code: int, kind: str, body: bytes) -> None:
        request.send_response(code)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    def _one(self, request: http.server.BaseHTTPRequestHandler) -> None:
        frame = self._eye.next_frame(time.monotonic_ns(), time.monotonic() + 2)
        if frame is None or frame.signal != "ok":
            why = self._eye.state()["why"] if frame is None else frame.why
            self._answer(request, 503, "text/plain; charset=utf-8", f"no picture: {why}".encode())
        else:
            self._answer(request, 200, "image/jpeg", jpeg(frame.picture))

    def _picture(self, frame: Frame | None) -> Picture:
        """The frame's, or what there is to say where it is none of the screen's."""
        state = self._eye.state() if frame is None else frame.facts()
        if frame is not None and state["signal"] == "ok":
            return frame.picture
        card = np.full((360, 640, 3), 40, np.uint8)
        for row, line in enumerate(["no picture", *textwrap.wrap(state["why"] or state["signal"], 60)]):
            cv2.putText(
                card, line, (20, 60 + 28 * row), cv2.FONT_HERSHEY_SIMPLEX, 0.55, (200, 200, 200), 1, cv2.LINE_AA
            )
        return card

    def _live(self, request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        for name, value in {**_HEADERS, "Content-Type": "multipart/x-mixed-replace; boundary=frame"}.items():
            request.send_header(name, value)
        request.end_headers()
        frame, sent, sent_at = None, "", 0.0
        while True:
            frame = self._eye.next_frame(0, time.monotonic() + KEEP_S, after=frame)
            if frame is not None and frame.hash == sent and time.monotonic() - sent_at < KEEP_S:
                time.sleep(1 / RATE)
                continue
            data = jpeg(self._picture(frame))
            head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(data)}\r\n\r\n"
            request.wfile.write(head.encode() + data + b"\r\n")
            sent, sent_at = "" if frame is None else frame.hash, time.monotonic()
            time.sleep(1 / RATE)
