"""The daemon's side of a connection: argv calls of the thin client and newline JSON-RPC 2.0, on one UNIX socket.

A connection belongs to one peer of the same uid. Each call runs in a worker thread, so that rendering and reading
never hold the loop; what it answers goes straight to the peer's socket, whose buffer is the bound: a peer that stops
reading holds its own thread and nobody else. A peer that hangs up cancels what runs for it.
"""

from __future__ import annotations

import json
import os
from functools import partial
from typing import Any

import trio

from labd import __version__, shim
from labd.argv import operation_named, words_of
from labd.call import Call
from labd.cli import Sink, execute
from labd.errors import LabdError, Usage
from labd.platform.peer import peer_of

#: Bytes of one request line or argv call; more is not a call but an attack or an accident.
REQUEST_BYTES = 4 << 20

#: Bytes of stdin that one call may bring.
STDIN_BYTES = 64 << 20

#: Calls that may run at once in the whole daemon, one thread each.
THREADS = 200

#: Requests of one JSON-RPC connection that may run at once.
PER_CONNECTION = 16


class Server:
    """Serves connections for one bench."""

    def __init__(self, bench: Any) -> None:
        self.bench = bench
        self.limiter = trio.CapacityLimiter(THREADS)
        self.calls: dict[int, dict[str, Any]] = {}
        self._next = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection, to its end. Errors of the peer end this connection alone."""
        pid, uid = peer_of(stream.socket)
        try:
            async with stream:
                if uid != os.getuid():
                    return
                await self._first(_Peer(stream, pid, uid))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the peer hung up; what ran for it was cancelled

    async def _first(self, peer: _Peer) -> None:
        first = await peer.peek()
        if first == b"X":
            await self._argv_call(peer)
        elif first == b"{":
            await self._json_rpc(peer)
        elif first:
            self.bench.log(f"pid {peer.pid} spoke no protocol of ours")

    async def _argv_call(self, peer: _Peer) -> None:
        header = await peer.line(64)
        size = int(header[1:]) if header[1:].isdigit() else REQUEST_BYTES + 1
        body = await peer.exactly(size) if size <= REQUEST_BYTES else b""
        fields = body.split(b"\0")
        if len(fields) < 7 or fields[0] != b"1":
            text = b"labd: the daemon could not read the request\n"
            await peer.send(b"e%d\n%sx2\n" % (len(text), text))
            return
        if fields[1] != __version__.encode():
            await peer.send(b"v%s\n" % __version__.encode())
            return
        await peer.send(b"a\n")
        call = _call_of(fields, peer)
        code = await self._run(call, peer, watch=True)
        if code is not None:
            await peer.send(b"h\n" if code < 0 else b"x%d\n" % code)

    async def _run(self, call: Call, peer: _Peer, watch: bool) -> int | None:
        """Run one call in a thread; -1 when it needs the caller's own process, None when the peer hung up."""
        self._next += 1
        key = self._next
        self.calls[key] = {"pid": peer.pid, "argv": call.argv, "since": trio.current_time()}
        code: int | None = None

        call.env["XDG_STATE_HOME"] = os.path.dirname(self.bench.state)  # the journals are this daemon's

        seen: dict[str, int] = {}

        def wait(directory: str, seconds: float) -> bool:
            call.flush()
            known = seen.get(directory, -1)  # the first wait ends at once: what came since the first look is not lost
            seen[directory] = trio.from_thread.run(self.bench.wait_journal, directory, seconds, known)
            return True

        call.wait_data = wait
        call.hop = _hop

        def work() -> int:
            try:
                return execute(call, self.bench)
            except shim.NeedsClient:
                return -1

        try:
            async with trio.open_nursery() as nursery:
                if watch:
                    nursery.start_soon(self._hang_up, peer, nursery.cancel_scope)
                code = await trio.to_thread.run_sync(work, limiter=self.limiter)
                nursery.cancel_scope.cancel()
        finally:
            del self.calls[key]
        return code

    async def _hang_up(self, peer: _Peer, scope: trio.CancelScope) -> None:
        """Cancel the call when its peer goes; take its stdin meanwhile."""
        await peer.feed_stdin()
        scope.cancel()

    async def _json_rpc(self, peer: _Peer) -> None:
        slots = trio.CapacityLimiter(PER_CONNECTION)
        async with trio.open_nursery() as nursery:
            while line := await peer.line(REQUEST_BYTES):
                try:
                    request = json.loads(line)
                    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
                        raise ValueError("not a request object")
                except (ValueError, RecursionError) as error:
                    await peer.send(_error_line(None, -32700, f"parse error: {error}", {}))
                    continue
                if request["method"] in self.bench.internal:
                    await self._answer(peer, request)
                else:
                    await slots.acquire_on_behalf_of(request_key := object())
                    nursery.start_soon(self._in_slot, peer, request, slots, request_key)
            nursery.cancel_scope.cancel()

    async def _in_slot(self, peer: _Peer, request: dict[str, Any], slots: trio.CapacityLimiter, key: object) -> None:
        try:
            await self._answer(peer, request)
        finally:
            slots.release_on_behalf_of(key)

    async def _answer(self, peer: _Peer, request: dict[str, Any]) -> None:
        method, params, request_id = request["method"], request.get("params") or {}, request.get("id")
        internal = self.bench.internal.get(method)
        try:
            if not isinstance(params, dict):
                raise Usage("params is an object of the operation's parameters by name")
            if internal is not None:
                result = await internal(**params)
                await peer.send(_line({"jsonrpc": "2.0", "id": request_id, "result": result}))
                return
            op = operation_named(method)
            argv = ["--json", *words_of(op, params)]
        except LabdError as error:
            await peer.send(_labd_error(request_id, error))
            return
        except TypeError as error:
            await peer.send(_labd_error(request_id, Usage(str(error))))
            return
        await self._operation(_RpcAnswer(peer, request_id, op.stream), request, argv)

    async def _operation(self, answer: _RpcAnswer, request: dict[str, Any], argv: list[str]) -> None:
        context = request.get("labd")
        call = _rpc_call(argv, context if isinstance(context, dict) else {}, answer)
        code = await self._run(call, answer.peer, watch=False)
        if code == -1:
            answer.error = Usage(f"{request['method']} runs in a terminal only")
        if answer.error is not None:
            await answer.peer.send(_labd_error(answer.request_id, answer.error))
        else:
            await answer.peer.send(answer.result(code))


def _hop(function: Any, *args: Any, **named: Any) -> Any:
    return trio.from_thread.run(partial(function, *args, **named))


class _Peer:
    """The other end of one connection: buffered reads, whole writes."""

    def __init__(self, stream: trio.SocketStream, pid: int | None, uid: int | None) -> None:
        self.stream = stream
        self.pid = pid
        self.uid = uid
        self.buffer = b""
        self._lock = trio.Lock()
        self._stdin = bytearray()
        self._stdin_done = trio.Event()

    async def _more(self) -> bool:
        data = await self.stream.receive_some(262144)
        self.buffer += data
        return bool(data)

    async def peek(self) -> bytes:
        while not self.buffer and await self._more():
            pass
        return self.buffer[:1]

    async def line(self, limit: int) -> bytes:
        """The next line without its end; b"" at the end of the stream or beyond `limit` bytes."""
        while b"\n" not in self.buffer:
            if len(self.buffer) > limit or not await self._more():
                return b""
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    async def exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            if not await self._more():
                return b""
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    async def send(self, data: bytes) -> None:
        async with self._lock:
            await self.stream.send_all(data)

    async def feed_stdin(self) -> None:
        """Take `d` frames until the peer hangs up or breaks the protocol."""
        while header := await self.line(64):
            if header[:1] != b"d" or not header[1:].isdigit():
                return
            size = int(header[1:])
            if size == 0:
                self._stdin_done.set()
            elif len(self._stdin) + size > STDIN_BYTES:
                return
            else:
                self._stdin += await self.exactly(size)

    async def stdin(self) -> bytes:
        """All of the peer's stdin."""
        if not self._stdin_done.is_set():
            await self.send(b"i\n")
            await self._stdin_done.wait()
        return bytes(self._stdin)

    async def frame(self, fd: int, data: bytes) -> None:
        await self.send(b"%s%d\n%s" % (b"o" if fd == 1 else b"e", len(data), data))


def _call_of(fields: list[bytes], peer: _Peer) -> Call:
    """The Call of a thin client's request (`labd.thin.hello` has the order)."""
    texts = [os.fsdecode(field) for field in fields]
    gap = texts.index("", 6)
    cwd, ttys, columns, program = texts[2:6]
    sink = Sink(lambda fd, data: trio.from_thread.run(peer.frame, fd, data))
    call = Call(
        face="cli",
        argv=texts[gap + 1 :],
        cwd=cwd,
        env=dict(pair.split("=", 1) for pair in texts[6:gap]),
        out=sink.out,
        err=sink.err,
        read_stdin=lambda: trio.from_thread.run(peer.stdin),
        columns=max(40, int(columns)) if columns.isdigit() else 80,
        stdin_tty=ttys[:1] == "1",
        stdout_tty=ttys[1:2] == "1",
        stderr_tty=ttys[2:3] == "1",
        caller={"pid": peer.pid, "uid": peer.uid},
        program=os.path.join(cwd, program),
    )
    call.flush = sink.flush
    return call


class _RpcAnswer:
    """Turns what a call answers into JSON-RPC lines: one result, or notifications and a count for a stream."""

    def __init__(self, peer: _Peer, request_id: Any, stream: bool) -> None:
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
        for line in filter(None, whole.split(b"\n")):
            self.count += 1
            head = b'{"jsonrpc": "2.0", "method": "rpc.item", "params": {"id": %s, "item": %s}}\n'
            trio.from_thread.run(self.peer.send, head % (json.dumps(self.request_id).encode(), line))

    def result(self, code: int | None) -> bytes:
        """The final line. `exit` is what the command line would have exited with."""
        body = b'{"items": %d}' % self.count if self.stream else self.held.strip() or b"null"
        head = {"jsonrpc": "2.0", "id": self.request_id, "exit": code, "notes": self.notes}
        return json.dumps(head).encode()[:-1] + b', "result": ' + body + b"}\n"


def _rpc_call(argv: list[str], context: dict[str, Any], answer: _RpcAnswer) -> Call:
    env, lab, peer = context.get("env"), context.get("lab"), answer.peer
    call = Call(
        face="rpc",
        argv=["--lab", lab, *argv] if isinstance(lab, str) and lab else argv,
        cwd=str(context.get("cwd") or "/"),
        env={str(k): str(v) for k, v in env.items()} if isinstance(env, dict) else dict(os.environ),
        out=answer.out,
        err=answer.err,
        caller={"pid": peer.pid, "uid": peer.uid},
        program="rpc",
    )
    call.on_error = answer.set_error
    call.flush = answer.flush
    return call


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _error_line(request_id: Any, code: int, message: str, data: dict[str, Any]) -> bytes:
    error = {"code": code, "message": message, "data": data}
    return _line({"jsonrpc": "2.0", "id": request_id, "error": error})


def _labd_error(request_id: Any, error: LabdError) -> bytes:
    data = {"code": error.name, "exit": error.exit_code, "hint": error.hint, "near": error.near}
    return _error_line(request_id, -32000 - error.exit_code, error.message, data)
