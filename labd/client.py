"""Talking to the daemon from Python: start it, ask it things by newline JSON-RPC 2.0 over its UNIX socket.

Synchronous and small. The installed program's hot path does not use it (`labd.thin` does less).
"""

from __future__ import annotations

import json
import os
import socket
import time

from labd import __version__, paths, shim
from labd.errors import LabdError, NotFound, PassedOn, Refused, TimedOut, Unreachable, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from labd.call import Call

_KINDS = {kind.name: kind for kind in (LabdError, Usage, Refused, NotFound, TimedOut, Unreachable)}


def start(call: Call) -> None:
    """Make sure that this user's daemon runs and answers. Says so on stderr when it takes over two seconds.

    Raises Refused for an unsafe runtime directory, Unreachable with the daemon's own words when it does not start.
    """
    directory = paths.private_dir(paths.runtime_dir(call.env))
    path = os.path.join(directory, "daemon.sock")
    if len(os.fsencode(path)) > 100:
        raise Unreachable(f"the path of the daemon's socket is too long for a UNIX socket: {path}",
                          hint="set XDG_RUNTIME_DIR to a shorter directory")  # fmt: skip
    log = os.path.join(directory, "daemon.log")
    child = shim.start_daemon(call.env, directory, log)
    began = time.monotonic()
    told = False
    while not answers(path):
        waited = time.monotonic() - began
        if child.poll() not in (None, 0):
            raise Unreachable(f"the daemon did not start: {_last_words(log)}", hint=f"read {log}")
        if waited > shim.DAEMON_START_SECONDS:
            raise Unreachable(f"the daemon did not answer within {waited:.0f} s", hint=f"read {log}")
        if waited > 2 and not told:
            call.note("starting the daemon …")
            told = True
        time.sleep(0.01)


def answers(path: str) -> bool:
    """Whether something accepts connections at the socket `path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def _last_words(log: str) -> str:
    try:
        with open(log, "rb") as file:
            lines = file.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "it said nothing"


class Client:
    """A connection to the daemon of `env`. Use as a context manager.

    Raises Unreachable when no daemon runs or it went away, TimedOut when it does not answer in `timeout_s` seconds,
    else the daemon's own error as the matching LabdError.
    """

    def __init__(self, env: dict[str, str] | None = None, *, timeout_s: float | None = 30.0) -> None:
        self.env = dict(os.environ) if env is None else env
        self.path = paths.socket_path(self.env)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        self._buffer = b""
        self._id = 0
        try:
            self._socket.connect(self.path)
        except OSError as error:
            self._socket.close()
            raise Unreachable(f"no daemon answers at {self.path}: {error.strerror or error}",
                              hint="labd daemons") from None  # fmt: skip

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; whatever still runs for this connection is cancelled at the daemon."""
        self._socket.close()

    def request(self, method: str, params: dict[str, Any] | None = None, *, lab: str | None = None,
                on_item: Callable[[Any], None] | None = None) -> Any:  # fmt: skip
        """Call an operation by its dotted name (`serial.send`) and return its data; stream items go to `on_item`."""
        self._id += 1
        context = {"version": __version__, "cwd": os.getcwd(), "env": _wanted(self.env), "lab": lab}
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params or {}, "labd": context}
        self._socket.sendall(json.dumps(message).encode() + b"\n")
        while True:
            answer = self._read()
            if answer.get("method") == "rpc.item" and on_item is not None:
                on_item(answer["params"]["item"])
            elif answer.get("id") == self._id and "method" not in answer:
                if "error" in answer:
                    raise _error(answer["error"])
                return answer.get("result")

    def _read(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            try:
                data = self._socket.recv(262144)
            except TimeoutError:
                raise TimedOut("the daemon does not answer", hint="labd daemons restart --force") from None
            except OSError as error:
                raise Unreachable(f"the daemon went away: {error.strerror}") from None
            if not data:
                raise Unreachable("the daemon went away before it answered")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _wanted(env: dict[str, str]) -> dict[str, str]:
    from labd.thin import ENV_NAMES

    names = {name.decode() for name in ENV_NAMES}
    return {k: v for k, v in env.items() if k in names or k.startswith("LABD_")}


def _error(error: dict[str, Any]) -> LabdError:
    data = error.get("data") or {}
    kind = _KINDS.get(data.get("code", ""))
    if kind is None:
        return PassedOn(error.get("message", "?"), int(data.get("exit", 1)), hint=data.get("hint"))
    return kind(error.get("message", "?"), hint=data.get("hint"), near=data.get("near") or [])
