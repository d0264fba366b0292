"""Talking to the daemon from Python: start it, ask it things by newline JSON-RPC 2.0 over its UNIX socket.

`Lab` is what test suites and scripts use (`from labd.client import Lab`; it lives in `labd.lab_client`). Below it,
`Client` is one connection: synchronous, small, not thread-safe, no trio. The installed program's hot path uses neither
(`labd.thin` does less).
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

from labd import __version__, errors, paths, shim
from labd.errors import LabdError, PassedOn, TimedOut, Unreachable, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from labd.call import Call
    from labd.lab_client import Lab as Lab

_KINDS = {
    kind.name: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, LabdError) and kind is not PassedOn
}


def __getattr__(name: str) -> Any:
    if name == "Lab":  # not imported above: whoever only starts the daemon does not pay for it
        from labd.lab_client import Lab

        return Lab
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def start(call: Call) -> Any:
    """Make sure that this user's daemon runs and answers. Says so on stderr when it takes over two seconds.

    Returns the process that was started (a Popen): a caller that lives on has to wait for its end, or keeps a zombie.
    Raises Refused for an unsafe runtime directory, Unreachable with the daemon's own words when it does not start.
    """
    directory = paths.private_dir(paths.runtime_dir(call.env))
    path = paths.socket_in(directory)
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
    return child


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


class Reply:
    """What a call answered: its data, the exit code that the command line would have had, and its notes."""

    __slots__ = ("exit", "notes", "result")

    def __init__(self, result: Any, exit: int | None, notes: list[str]) -> None:  # noqa: A002 - the wire's word
        self.result = result
        self.exit = exit
        self.notes = notes


class Client:
    """A connection to the daemon of `env`. Use as a context manager. One thread at a time.

    Raises Unreachable when no daemon runs or it went away, TimedOut when it does not answer in `timeout_s` seconds,
    else the daemon's own error as the matching LabdError.
    """

    def __init__(self, env: dict[str, str] | None = None, *, timeout_s: float | None = 30.0) -> None:
        self.env = dict(os.environ) if env is None else env
        self.path = paths.socket_path(self.env)
        self.timeout_s = timeout_s
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_seconds(timeout_s))
        self._buffer = b""
        self._id = 0
        self._pid = os.getpid()
        self.in_step = True
        """Whether every question had its answer: a connection where one is still to come should not be used again."""
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
        """Hang up; whatever still runs for this connection is cancelled at the daemon.

        A forked process that closes its copy leaves its parent's alone.
        """
        self.interrupt()  # else a child forked meanwhile would keep the line, and what is held on it, open
        self._socket.close()

    def interrupt(self) -> None:
        """From any thread: end whatever waits on this connection now, and all later uses, with Unreachable."""
        if not self.own:
            return
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    @property
    def own(self) -> bool:
        """Whether this process made the connection, rather than inherited it by a fork."""
        return self._pid == os.getpid()

    def fileno(self) -> int:
        """For select: readable when there is something for `arrived`."""
        return self._socket.fileno()

    @property
    def idle_and_alive(self) -> bool:
        """Whether a connection that waits for no answer is still good: nothing came, and the peer has not hung up."""
        if not self.own:
            return False
        try:
            self._socket.settimeout(0)
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return not self._buffer
        except OSError:
            return False
        return False

    def request(self, method: str, params: dict[str, Any] | None = None, *, lab: str | None = None,
                on_item: Callable[[Any], None] | None = None) -> Any:  # fmt: skip
        """Call an operation by its dotted name (`serial.send`) and return its data; stream items go to `on_item`."""
        return self.ask(method, params, lab=lab, on_item=on_item).result

    def ask(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        lab: str | None = None,
        on_item: Callable[[Any], None] | None = None,
        timeout_s: float | None = None,
    ) -> Reply:
        """As `request`, with the exit code and notes too. `timeout_s` is for this answer, instead of the usual one."""
        self.in_step = False
        asked = self.post(method, params, lab=lab)
        self._socket.settimeout(_seconds(self.timeout_s if timeout_s is None else timeout_s))
        while True:
            answer = self.message()
            if answer.get("method") == "rpc.item" and on_item is not None:
                on_item(answer["params"]["item"])
            elif answer.get("id") == asked and "method" not in answer:
                self.in_step = True
                return reply_of(answer)

    def post(self, method: str, params: dict[str, Any] | None = None, *, lab: str | None = None) -> int:
        """Send a request without waiting for its answer; returns its id. Raises Unreachable, and Usage for a value that
        is none of JSON's.
        """
        if not self.own:
            raise Unreachable("this connection is that of the process that forked this one")
        self._id += 1
        context = {"version": __version__, "cwd": _cwd(), "env": _wanted(self.env), "lab": lab,
                   "program": os.path.join(_cwd(), sys.argv[0])}  # fmt: skip
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params or {}, "labd": context}
        line = _encoded(message, method, params or {})
        self._socket.settimeout(_seconds(self.timeout_s))
        try:
            self._socket.sendall(line)
        except TimeoutError:
            raise TimedOut("the daemon does not take requests", hint="labd daemons restart --force") from None
        except OSError as error:
            raise _went_away(error.strerror) from None
        return self._id

    def arrived(self) -> list[dict[str, Any]]:
        """The messages that are there, without waiting. Raises Unreachable when the daemon hung up."""
        data = b""
        try:
            self._socket.settimeout(0)
            data = self._socket.recv(262144)
            if not data:
                raise Unreachable("the daemon went away")
        except BlockingIOError:
            pass
        except OSError as error:
            raise Unreachable(f"the daemon went away: {error.strerror}") from None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def message(self) -> dict[str, Any]:
        """The next message, waiting for it. Raises TimedOut, Unreachable."""
        while b"\n" not in self._buffer:
            try:
                data = self._socket.recv(262144)
            except TimeoutError:
                raise TimedOut("the daemon does not answer", hint="labd daemons restart --force") from None
            except OSError as error:
                raise _went_away(error.strerror) from None
            if not data:
                raise _went_away()
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _encoded(message: dict[str, Any], method: str, params: dict[str, Any]) -> bytes:
    """The request on one line. Raises Usage, naming the parameter, for a value that JSON has no form for."""
    try:
        return json.dumps(message, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError):
        for name, value in params.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError):
                raise Usage(f"{method}: {name} can't be {value!r}: text, numbers, true or false, and lists of them are"
                            " what it takes") from None  # fmt: skip
        raise


def _went_away(why: str | None = None) -> Unreachable:
    """A question was under way: whether it was acted on, only the journal tells."""
    return Unreachable(
        f"the daemon went away before it answered{f' ({why})' if why else ''}, and may have done it already",
        hint="labd timeline TARGET",
    )


def _seconds(timeout_s: float | None) -> float | None:
    """What a socket takes as a timeout: how long a call may take is for the daemon to check."""
    return None if timeout_s is None else max(0.0, min(timeout_s, 1e9))


def reply_of(answer: dict[str, Any]) -> Reply:
    """The reply in a JSON-RPC answer. Raises the error in it as the matching LabdError."""
    if "error" in answer:
        raise error_of(answer["error"])
    return Reply(answer.get("result"), answer.get("exit"), answer.get("notes") or [])


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _wanted(env: dict[str, str]) -> dict[str, str]:
    from labd.thin import ENV_NAMES

    names = {name.decode() for name in ENV_NAMES}
    return {k: v for k, v in env.items() if k in names or k.startswith("LABD_")}


def error_of(error: dict[str, Any]) -> LabdError:
    """A JSON-RPC error object as the LabdError that it was."""
    data = error.get("data") or {}
    kind = _KINDS.get(data.get("code", ""))
    if kind is None:
        return PassedOn(error.get("message", "?"), int(data.get("exit", 1)), hint=data.get("hint"))
    return kind(error.get("message", "?"), hint=data.get("hint"), near=data.get("near") or [])
