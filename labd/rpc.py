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
from labd.cli import execute
from labd.errors import Busy, LabdError, Usage
from labd.platform.peer import peer_of
from labd.record import Passage
from labd.remote_door import Visit, welcome
from labd.rpc_call import RpcAnswer, argv_call_of, error_line, labd_error, line_of, rpc_call_of
from labd.rpc_peer import Peer

#: Bytes of one request line or argv call; more is not a call but an attack or an accident.
REQUEST_BYTES = 4 << 20

#: Calls that may run at once in the whole daemon, one thread each.
THREADS = 200

#: Requests of one JSON-RPC connection that may run at once.
PER_CONNECTION = 16


class Server:
    """Serves connections for one bench."""

    def __init__(self, bench: Any) -> None:
        self.bench = bench
        self.limiter = trio.CapacityLimiter(2 * THREADS)  # the bound is `full`, which refuses instead of waiting
        self.calls: dict[int, dict[str, Any]] = {}
        self._next = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection, to its end. Errors of the peer end this connection alone."""
        pid, uid = peer_of(stream.socket)
        try:
            async with stream:
                if uid == os.getuid():
                    await self._first(Peer(stream, pid, uid))
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the peer hung up; what ran for it was cancelled

    async def _first(self, peer: Peer) -> None:
        first = await peer.peek()
        if first == b"X":
            await self._argv_call(peer)
        elif first == b"S":
            await self._visitor(peer)
        elif first == b"{":
            await self._json_rpc(peer)
        elif first:
            self.bench.log(f"pid {peer.pid} spoke no protocol of ours")

    async def _visitor(self, peer: Peer) -> None:
        """A call of another machine, which brings its lab along; or only a lab, for what runs beside the daemon."""
        visit = await welcome(peer, self.bench.state)
        if visit is None:
            return
        try:
            if await peer.peek() == b"X":
                await self._argv_call(peer, visit)
        finally:
            await visit.close()

    async def _argv_call(self, peer: Peer, visit: Visit | None = None) -> None:
        header = await peer.line(64)
        size = int(header[1:]) if header[1:].isdigit() else REQUEST_BYTES + 1
        body = await peer.exactly(size) if size <= REQUEST_BYTES else b""
        fields = body.split(b"\0")
        if fields[1:2] and fields[1] != __version__.encode():
            await peer.send(b"v%s\n" % __version__.encode())
            return
        try:
            call = argv_call_of(fields, peer)
        except ValueError:
            text = b"labd: the daemon could not read the request\n"
            await peer.send(b"e%d\n%sx2\n" % (len(text), text))
            return
        if self.full:
            await peer.send(b"f\n")
            return
        await peer.send(b"a\n")
        if visit is not None:
            visit.dress(call)
        code = await self._run(call, peer, watch=True)
        if visit is not None and code is not None:
            await visit.bring_back()
        if code is not None:
            await peer.send(b"h\n" if code < 0 else b"x%d\n" % code)

    @property
    def full(self) -> bool:
        """Whether as many calls run as may; another would have to wait, perhaps for ever."""
        return len(self.calls) >= THREADS

    async def _run(self, call: Call, peer: Peer, watch: bool) -> int | None:
        """Run one call in a thread; -1 when it needs the caller's own process, None when the peer hung up."""
        self._next += 1
        key = self._next
        self.calls[key] = {"pid": peer.pid, "argv": call.argv, "since": trio.current_time()}
        code: int | None = None

        call.env["XDG_STATE_HOME"] = os.path.dirname(self.bench.state)  # the journals are this daemon's

        seen: dict[str, int] = {}

        def wait(directory: str, seconds: float) -> bool:
            call.flush()
            growth = self.bench.growth
            if directory in seen:
                seen[directory] = growth.wait(directory, seconds, seen[directory], trio.from_thread.check_cancelled)
            else:  # the first wait ends at once: what came since the first look is not lost
                seen[directory] = growth.count(directory)
                trio.from_thread.check_cancelled()
            return True

        call.wait_data = wait
        call.hop = _hop
        call.check_cancelled = trio.from_thread.check_cancelled

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

    async def _hang_up(self, peer: Peer, scope: trio.CancelScope) -> None:
        """Cancel the call when its peer goes; take its stdin meanwhile."""
        await peer.feed_stdin()
        scope.cancel()

    async def _json_rpc(self, peer: Peer) -> None:
        slots = trio.CapacityLimiter(PER_CONNECTION)
        async with trio.open_nursery() as nursery:
            while line := await peer.line(REQUEST_BYTES):
                try:
                    request = _request_of(line)
                except (ValueError, RecursionError) as error:
                    await peer.send(error_line(None, -32700, f"parse error: {error}", {}))
                    continue
                if request["method"] in self.bench.internal:
                    await self._answer(peer, request)
                else:
                    await slots.acquire_on_behalf_of(request_key := object())
                    nursery.start_soon(self._in_slot, peer, request, slots, request_key)
            if peer.buffer:
                await peer.send(error_line(None, -32600, f"a request is at most {REQUEST_BYTES} bytes, and a line", {}))
            nursery.cancel_scope.cancel()

    async def _in_slot(self, peer: Peer, request: dict[str, Any], slots: trio.CapacityLimiter, key: object) -> None:
        try:
            await self._answer(peer, request)
        finally:
            slots.release_on_behalf_of(key)

    async def _answer(self, peer: Peer, request: dict[str, Any]) -> None:
        method, params, request_id = request["method"], request.get("params") or {}, request.get("id")
        try:
            if not isinstance(params, dict):
                raise Usage("params is an object of the operation's parameters by name")
            if method in self.bench.internal:
                result = await self._internal(peer, request, params)
                await peer.send(line_of({"jsonrpc": "2.0", "id": request_id, "result": result}))
                return
            if self.full:
                raise Busy("the daemon runs as many calls as it can", hint="labd daemons")
            op = operation_named(method)
            answer = RpcAnswer(peer, request_id, op.stream)
            call = rpc_call_of(["--json", *words_of(op, params)], request, answer)
        except LabdError as error:
            await peer.send(labd_error(request_id, error))
            return
        await self._operation(answer, method, call)

    async def _internal(self, peer: Peer, request: dict[str, Any], params: dict[str, Any]) -> Any:
        """A request about the daemon itself. What changes something is decided and recorded like an operation."""
        method = self.bench.internal[request["method"]]
        method.check(request["method"], params)
        if not method.words:
            return await method.run(**params)
        call = rpc_call_of([*method.words, *map(str, params.values())], request, RpcAnswer(peer, None, False))
        passage = Passage(call)
        code = 1
        try:
            shim.admit(passage, " ".join(method.words), call, self.bench, self.bench.captures_real())
            result = await method.run(**params)
            code = 0
            return result
        except LabdError as error:
            code = error.exit_code
            raise
        finally:
            passage.end(code)

    async def _operation(self, answer: RpcAnswer, method: str, call: Call) -> None:
        code = await self._run(call, answer.peer, watch=False)
        if code == -1:
            answer.error = Usage(f"{method} runs in a terminal only")
        if answer.error is not None:
            await answer.peer.send(labd_error(answer.request_id, answer.error))
        else:
            await answer.peer.send(answer.result(code))


class Internal:
    """A method that is no operation: `run(**params)`. `words` say how it is recorded where it changes something."""

    def __init__(
        self, run: Any, need: tuple[str, ...] = (), may: tuple[str, ...] = (), words: tuple[str, ...] = ()
    ) -> None:
        self.run = run
        self.need = need
        self.may = may
        self.words = words

    def check(self, name: str, params: dict[str, Any]) -> None:
        """Raises Usage for a parameter that is missing or unknown."""
        wrong = [p for p in self.need if p not in params] + [p for p in params if p not in (*self.need, *self.may)]
        if wrong:
            takes = ", ".join((*self.need, *self.may)) or "nothing"
            raise Usage(f"{name} takes {takes}; look at {wrong[0]!r}")


def _request_of(line: bytes) -> dict[str, Any]:
    """The request in a line. Raises ValueError, also for what is no JSON (NaN, and words that are no text)."""

    def no_constant(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    request = json.loads(line, parse_constant=no_constant)
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        raise ValueError("not a request object")
    return request


def _hop(function: Any, *args: Any, **named: Any) -> Any:
    return trio.from_thread.run(partial(function, *args, **named))
