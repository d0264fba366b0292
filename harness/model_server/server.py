"""The server: listens on a free port of 127.0.0.1, routes by path to an API, plays the turn with its faults, keeps a
log of what reached it.

It lives as long as its `with` block and no longer; a stream that stalls ends with it.
"""

import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from harness.model_server import anthropic, chat, gemini, responses
from harness.model_server.play import Exchange, next_turn
from harness.model_server.script import Script, Turn
from harness.model_server.tools import NotOffered, Reply, translate

_APIS = {"/messages": anthropic, "/responses": responses, "/chat/completions": chat, ":generateContent": gemini,
         ":streamGenerateContent": gemini}  # fmt: skip

#: Headers and parts of a query that hold a key; what they hold is blanked wherever it stands.
_SECRETS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "key"})

BLANK = "[redacted]"

_KEY = re.compile(r"(\bkey=)[^&]*")

#: The most that a request may hold (bytes).
BODY_LIMIT = 64 << 20


class ModelServer:
    """A scripted model that listens while its `with` block runs; `requests` is where its log goes (None: nowhere)."""

    def __init__(self, script: Script, requests: Path | None = None) -> None:
        self.script = script
        self.ending = threading.Event()
        self.asked = 0
        self._faults: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._log = os.open(requests, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600) if requests else -1
        self._http = _Listener(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name="model", daemon=True)

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> "ModelServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        with self._lock:
            if self._log >= 0:
                os.close(self._log)
            self._log = -1

    def number(self) -> int:
        """A new number for an answer."""
        with self._lock:
            self.asked += 1
            return self.asked

    def faulty(self, turn: Turn, key: str) -> bool:
        """Whether this answer has the turn's fault: the first `times` at this place, or all where that is 0."""
        with self._lock:
            self._faults[key] += 1
            return turn.times == 0 or self._faults[key] <= turn.times

    def log(self, record: dict[str, Any], secrets: set[str]) -> None:
        """One line of the log, keys blanked."""
        line = json.dumps({"t": round(time.time(), 3), **record}, sort_keys=True)
        for secret in sorted(secrets, key=len, reverse=True):
            line = line.replace(json.dumps(secret)[1:-1], BLANK)
        with self._lock:
            if self._log >= 0:
                os.write(self._log, line.encode() + b"\n")


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, model: ModelServer) -> None:
        self.model = model
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is its own business."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener

    def log_message(self, *_: object) -> None:
        """Our own log says it all."""

    def do_HEAD(self) -> None:
        self._whole(200, {})

    def do_GET(self) -> None:
        self._note({})
        if urlsplit(self.path).path.endswith("/models"):
            listed = [{"id": "scripted", "object": "model", "created": 0, "owned_by": "script"}]
            return self._whole(200, {"object": "list", "data": listed, "models": []})
        return self._whole(404, {"error": {"message": "the scripted model has no such path"}})

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        api = next((api for end, api in _APIS.items() if path.endswith(end)), None)
        try:
            body = json.loads(self._body())
        except (ValueError, OSError):
            body = None
        if isinstance(body, dict) and path.endswith(("/count_tokens", ":countTokens")):
            self._note({"body": body})
            return self._whole(200, {"input_tokens": 100, "totalTokens": 100})
        if api is None or not isinstance(body, dict):
            self._note({"problem": "no such path" if api is None else "the body is no JSON object"})
            said = (api or responses).error(400 if api else 404, "the scripted model can't make sense of this request")
            return self._whole(400 if api else 404, said)
        return self._play(api, api.read(body, path), body)

    def _play(self, api: ModuleType, exchange: Exchange, body: dict[str, Any]) -> None:
        model = self.server.model
        turn, key = (step := next_turn(model.script, exchange)).turn, step.key
        number = model.number()
        note = {"body": body, "n": number, "turn": key}
        faulty = model.faulty(turn, key)
        if faulty and turn.error:
            self._note({**note, "status": turn.error})
            more = {} if turn.retry_after is None else {"retry-after": f"{turn.retry_after:g}"}
            return self._whole(turn.error, api.error(turn.error, turn.message or f"scripted error {turn.error}"), more)
        try:
            uses = [translate(call, exchange.offered, f"call_{number}_{at}") for at, call in enumerate(turn.calls)]
        except NotOffered as error:
            self._note({**note, "status": 400, "problem": str(error)})
            return self._whole(400, api.error(400, f"the script of this model: {error}"))
        self._note({**note, "status": 200})
        model.ending.wait(turn.delay_s)
        reply = Reply(f"{number:04d}", exchange.model, turn.text, tuple(uses), turn.usage)
        if exchange.stream:
            return self._stream(list(api.stream(reply)), turn if faulty else Turn())
        return self._whole(200, api.whole(reply))

    def _stream(self, events: list[bytes], turn: Turn) -> None:
        """The events, with the turn's own faults in their middle."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for at, data in enumerate(events):
            if at == len(events) // 2:
                self.server.model.ending.wait(turn.stall_s)
                if turn.cut:
                    self.close_connection = True
                    return
            if at:
                self.server.model.ending.wait(turn.slow_s)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def _whole(self, status: int, body: dict[str, Any], more: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(data)),
                            **(more or {})}.items():  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _body(self) -> bytes:
        """The request's body, of a known length or in chunks. Raises ValueError if it is too big or broken."""
        if "chunked" in (self.headers.get("transfer-encoding") or ""):
            return b"".join(self._chunks())
        length = int(self.headers.get("content-length") or 0)
        if not 0 <= length <= BODY_LIMIT:
            self.close_connection = True
            raise ValueError("too big")
        return self.rfile.read(length)

    def _chunks(self) -> Iterator[bytes]:
        total = 0
        while size := int(self.rfile.readline().split(b";")[0].strip() or b"0", 16):
            total += size
            if total > BODY_LIMIT:
                self.close_connection = True
                raise ValueError("too big")
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _note(self, record: dict[str, Any]) -> None:
        """Log this request. A key is known by the header or the part of the query that holds it."""
        url = urlsplit(self.path)
        held = [(name.lower(), value) for name, value in [*self.headers.items(), *parse_qsl(url.query)]]
        secrets = {part for name, value in held if name in _SECRETS for part in (value, value.rpartition(" ")[2])}
        headers = {name.lower(): value for name, value in self.headers.items()}
        hidden = {name: BLANK if name in _SECRETS else value for name, value in headers.items()}
        path = url._replace(query=_KEY.sub(rf"\1{BLANK}", url.query)).geturl()
        self.server.model.log({"method": self.command, "path": path, "headers": hidden, **record},
                              {secret for secret in secrets if len(secret) >= 8})  # fmt: skip
