"""A Shelly Gen2 plug on 127.0.0.1: the part of the documented HTTP RPC that switching uses, with faults on demand."""

import hashlib
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.helpers.fake_device import FakeDevice


class FakeShelly(FakeDevice):
    """`output` is each switch's state. `stuck`: takes commands and does nothing. `refuse_on`: how many calls that
    would switch on are dropped without an answer. `timers`: whether `toggle_after` works."""

    def __init__(self, *, password: str | None = None, switches: int = 1, on: bool = True) -> None:
        self.output = dict.fromkeys(range(switches), on)
        self.password = password
        self.stuck = False
        self.refuse_on = 0
        self.timers = True
        self.silent = False
        self.gen1 = False
        self.calls: list[str] = []
        self.changes: list[tuple[float, int, bool]] = []
        self._flip: dict[int, float] = {}
        self._lock = threading.Lock()
        self.serve()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        with self._lock:
            self._tick()
            self.calls.append(request.path)
            if self.silent:
                request.close_connection = True
                return
            if self.gen1:
                self._send(request, 404, b"Not Found")
            elif self.password is not None and not self._authorised(request):
                self._challenge(request)
            elif parts.path == "/rpc/Switch.Set" and query.get("on") == "true" and self.refuse_on > 0:
                self.refuse_on -= 1
                request.close_connection = True
            else:
                status, body = self._rpc(parts.path, query)
                self._send(request, status, json.dumps(body).encode())

    def _tick(self) -> None:
        for switch, when in list(self._flip.items()):
            if time.monotonic() >= when:
                del self._flip[switch]
                self._change(switch, not self.output[switch])

    def _change(self, switch: int, on: bool) -> None:
        if on != self.output[switch]:
            self.output[switch] = on
            self.changes.append((time.monotonic(), switch, on))

    def _rpc(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if path == "/rpc/Shelly.GetDeviceInfo":
            return 200, {"id": "shellyplugs-a8032ab1", "model": "SNPL-00112EU", "gen": 2, "ver": "1.4.4",
                         "app": "PlusPlugS", "auth_en": self.password is not None}  # fmt: skip
        if path not in ("/rpc/Switch.Set", "/rpc/Switch.GetStatus"):
            return 404, {"code": 404, "message": f"No handler for {path.removeprefix('/rpc/')}"}
        switch = int(query.get("id", "-1"))
        if switch not in self.output:
            return 500, {"code": -105, "message": f"Argument 'id', value {switch} not found!"}
        if path == "/rpc/Switch.GetStatus":
            return 200, {"id": switch, "source": "HTTP_in", "output": self.output[switch], "apower": 3.4}
        was = self.output[switch]
        if not self.stuck:
            self._flip.pop(switch, None)
            if "toggle_after" in query and self.timers:
                self._flip[switch] = time.monotonic() + float(query["toggle_after"])
            self._change(switch, query["on"] == "true")
        return 200, {"was_on": was}

    def _challenge(self, request: BaseHTTPRequestHandler) -> None:
        request.send_response(401)
        request.send_header("WWW-Authenticate", 'Digest qop="auth", realm="shellyplugs-a8032ab1", nonce="60dc2c69",'
                            " algorithm=SHA-256")  # fmt: skip
        request.send_header("Content-Length", "0")
        request.end_headers()

    def _authorised(self, request: BaseHTTPRequestHandler) -> bool:
        told = dict(re.findall(r'(\w+)="?([^",]+)"?', request.headers.get("Authorization", "")))

        def sha(text: str) -> str:
            return hashlib.sha256(text.encode()).hexdigest()

        secret = sha(f"admin:shellyplugs-a8032ab1:{self.password}")
        wanted = sha(f"{secret}:60dc2c69:{told.get('nc')}:{told.get('cnonce')}:auth:{sha(f'GET:{request.path}')}")
        return told.get("username") == "admin" and told.get("response") == wanted

    def _send(self, request: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
