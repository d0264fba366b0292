"""Requests on the daemon's socket as Calls, and what a call answers as JSON-RPC lines. No rule, no loop of its own."""

from __future__ import annotations

import json
import os
from typing import Any

import trio

from labd.call import Call, face_of
from labd.cli import Sink, width_of
from labd.errors import LabdError, Usage
from labd.rpc_peer import Peer


def argv_call_of(fields: list[bytes], peer: Peer) -> Call:
    """The Call of a thin client's request (`labd.thin.request` has the order). Raises ValueError for any other form."""
    texts = [os.fsdecode(field) for field in fields]
    if len(texts) < 8 or texts[0] != "2":
        raise ValueError("another protocol")
    gap = texts.index("", 7)
    cwd, ttys, columns, program, parent = texts[2:7]
    sink = Sink(peer.frame)
    env = dict([_pair(text) for text in texts[7:gap]])
    face, client = face_of(env)
    call = Call(
        face=face,
        argv=texts[gap + 1 :],
        cwd=cwd,
        env=env,
        out=sink.out,
        err=sink.err,
        read_stdin=lambda: trio.from_thread.run(peer.stdin),
        columns=width_of(columns),
        stdin_tty=ttys[:1] == "1",
        stdout_tty=ttys[1:2] == "1",
        stderr_tty=ttys[2:3] == "1",
        caller={"pid": peer.pid, "ppid": int(parent), "uid": peer.uid, **client},
        program=os.path.join(cwd, program),
    )
    call.flush = sink.flush
    return call


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError("an environment entry without a value")
    return name, value


class RpcAnswer:
    """Turns what a call answers into JSON-RPC lines: one result, or notifications and a count for a stream."""

    def __init__(self, peer: Peer, request_id: Any, stream: bool) -> None:
        self.peer = peer
        self.request_id = request_id
        self.stream = stream
        self.error: LabdError | None = None
        self.notes: list[str] = []
        self.held = b""
        self.count = 0

    def out(self, data: bytes) -> None:
        """Take a piece of the answer (JSON text, a line each)."""
        self.held += data
        if self.stream and len(self.held) > 32768:
            self.flush()

    def err(self, data: bytes) -> None:
        """Take a note; it travels with the result."""
        self.notes.append(data.decode("utf-8", "replace").strip())

    def set_error(self, error: LabdError) -> None:
        """Take the error that ended the call."""
        self.error = error

    def flush(self) -> None:
        """Send the whole lines of a stream as notifications. Called from the call's thread."""
        if not self.stream:
            return
        whole, _, self.held = self.held.rpartition(b"\n")
        lines = [line for line in whole.split(b"\n") if line]
        self.count += len(lines)
        head = b'{"jsonrpc": "2.0", "method": "rpc.item", "params": {"id": ' + json.dumps(self.request_id).encode()
        if lines:  # in one piece: each way over the loop costs more than many items
            told = b"".join(head + b', "item": ' + line + b"}}\n" for line in lines)
            trio.from_thread.run(self.peer.send, told)

    def result(self, code: int | None) -> bytes:
        """The final line. `exit` is what the command line would have exited with."""
        body = b'{"items": %d}' % self.count if self.stream else self.held.strip() or b"null"
        head = {"jsonrpc": "2.0", "id": self.request_id, "exit": code, "notes": self.notes}
        return json.dumps(head).encode()[:-1] + b', "result": ' + body + b"}\n"


def rpc_call_of(argv: list[str], request: dict[str, Any], answer: RpcAnswer) -> Call:
    """The Call of a JSON-RPC request. Raises Usage for a context that no process could have."""
    context = request.get("labd")
    context = context if isinstance(context, dict) else {}
    env, lab, peer = context.get("env"), context.get("lab"), answer.peer
    call = Call(
        face="rpc",
        argv=["--lab", lab, *argv] if isinstance(lab, str) and lab else argv,
        cwd=str(context.get("cwd") or "/"),
        env={str(k): str(v) for k, v in env.items()} if isinstance(env, dict) else dict(os.environ),
        out=answer.out,
        err=answer.err,
        caller={"pid": peer.pid, "uid": peer.uid},
        program=str(context.get("program") or "rpc"),
    )
    for text in (*call.argv, call.cwd, call.program, *call.env, *call.env.values()):
        try:
            if "\0" in text or text.encode("utf-8", "surrogateescape") is None:
                raise ValueError
        except ValueError:
            raise Usage(f"{text[:40]!r} can't be a word of a command or of its environment") from None
    call.on_error = answer.set_error
    call.flush = answer.flush
    return call


def line_of(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def error_line(request_id: Any, code: int, message: str, data: dict[str, Any]) -> bytes:
    error = {"code": code, "message": message, "data": data}
    return line_of({"jsonrpc": "2.0", "id": request_id, "error": error})


def labd_error(request_id: Any, error: LabdError) -> bytes:
    data = {"code": error.name, "exit": error.exit_code, "hint": error.hint, "near": error.near}
    return error_line(request_id, -32000 - error.exit_code, error.message, data)
