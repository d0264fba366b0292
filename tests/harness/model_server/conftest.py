"""A scripted model to talk to, and hand-made clients of its four APIs that know nothing of the server's code."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from harness.model_server import ModelServer, Script
from harness.model_server.script import parse


@dataclass
class Client:
    """Speaks HTTP to one server."""

    url: str
    log: Path

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of an answer; the body of a broken stream is what came of it."""
        wire = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=10)
        wire.request("POST", path, json.dumps(body), {"content-type": "application/json", **(headers or {})})
        answer = wire.getresponse()
        try:
            data = answer.read()
        except http.client.IncompleteRead as error:
            data = error.partial
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, data

    def logged(self) -> list[dict[str, Any]]:
        """What reached the server."""
        return [json.loads(line) for line in self.log.read_bytes().splitlines()]


def events(data: bytes) -> list[dict[str, Any]]:
    """The server-sent events of a body, without `[DONE]`."""
    told = [line[6:] for line in data.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(text) for text in told if text != "[DONE]"]


Serve = Callable[..., Client]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server: `serve({"turn": [...]})` or a Script."""
    with ExitStack() as stack:

        def start(script: dict[str, Any] | Script, values: dict[str, str] | None = None) -> Client:
            made = script if isinstance(script, Script) else parse(script, values or {})
            log = tmp_path / "requests.jsonl"
            return Client(stack.enter_context(ModelServer(made, log)).url, log)

        yield start
