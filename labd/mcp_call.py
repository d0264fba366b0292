"""One call of `labd mcp`: to the daemon over its wire, as the thin client goes; else by the program itself.

Where no daemon runs, or the verb needs a process of its own, `labd` is run as it would be typed, in a group of its own
that ends with the call (`labd.lifeline`). So nothing is decided here, and what is recorded is recorded where it runs.
"""

from __future__ import annotations

import os
import socket
import sys
from _socket import socket as RawSocket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import trio

from labd import shim, thin
from labd.call import FACE_VARIABLE
from labd.errors import LabdError, Unreachable

#: Bytes of an answer that are kept; what is longer is dropped, and counted.
KEPT_BYTES = 8 << 20

#: Seconds between telling a process of ours to end and ending it.
GRACE_S = 5.0

OnNote = Callable[[str], Awaitable[None]]


@dataclass
class Answer:
    """What a call gave so far: the first bytes of both streams, how many were not kept, and in the end its code."""

    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    dropped: int = 0
    code: int | None = None

    def take(self, stream: bytearray, data: bytes) -> None:
        """Keep a piece, as far as there is room."""
        room = max(0, KEPT_BYTES - len(stream))
        stream += data[:room]
        self.dropped += max(0, len(data) - room)


@dataclass
class Request:
    """What is asked: the words, the input that they may read, the client's name, who hears notes as they come."""

    words: list[str]
    stdin: bytes
    client: str
    on_note: OnNote
    answer: Answer = field(default_factory=Answer)

    @property
    def face(self) -> str:
        """What the record tells of the face."""
        return f"mcp {self.client}"


async def perform(request: Request) -> None:
    """Run it to its end; `request.answer` fills meanwhile. Cancelling ends what runs. Raises Unreachable."""
    connection = thin.connect()
    if connection is None or not await _asked(request, connection):
        await _run_program(request)


async def _asked(request: Request, connection: RawSocket) -> bool:
    """Whether the daemon took it; its frames are `labd.thin`'s."""
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(socket.socket(fileno=connection.detach())))
    env = {**os.environb, FACE_VARIABLE.encode(): os.fsencode(request.face)}
    async with stream:
        try:
            await stream.send_all(thin.request(request.words, b"000", b"100", env))
            return await _Frames(stream, request).read()
        except trio.BrokenResourceError:
            raise Unreachable(thin.GONE) from None


class _Frames:
    """Reads what the daemon answers."""

    def __init__(self, stream: trio.SocketStream, request: Request) -> None:
        self.stream = stream
        self.request = request
        self.buffer = bytearray()

    async def read(self) -> bool:
        """To the end of the call; False where this process has to do the work."""
        answer = self.request.answer
        with trio.move_on_after(thin.ACK_SECONDS) as waiting:
            head = await self._head()
        if waiting.cancelled_caught:
            raise Unreachable(
                f"the daemon does not answer for {thin.ACK_SECONDS:.0f} s", hint="labd daemons restart --force"
            )
        while True:
            kind, size = head[:1], head[1:]
            if kind == b"o":
                answer.take(answer.out, await self._exactly(int(size)))
            elif kind == b"e":
                said = await self._exactly(int(size))
                answer.take(answer.err, said)
                await self.request.on_note(said.decode("utf-8", "replace").strip())
            elif kind == b"x":
                answer.code = int(size)
                return True
            elif kind == b"i":
                await self._send_stdin()
            elif kind != b"a":
                return False
            head = await self._head()

    async def _head(self) -> bytes:
        while (end := self.buffer.find(b"\n")) < 0:
            await self._more()
        head = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        return head

    async def _exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            await self._more()
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    async def _more(self) -> None:
        data = await self.stream.receive_some(262144)
        if not data:
            raise Unreachable(thin.GONE)
        self.buffer += data

    async def _send_stdin(self) -> None:
        given = self.request.stdin
        if given:
            await self.stream.send_all(b"d%d\n%s" % (len(given), given))
        await self.stream.send_all(b"d0\n")


async def _run_program(request: Request) -> None:
    process, line = await shim.start_own(request.words, request.stdin, env={**os.environ, FACE_VARIABLE: request.face})
    answer = request.answer
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_take, process.stdout, answer, answer.out, None)
            nursery.start_soon(_take, process.stderr, answer, answer.err, request.on_note)
            answer.code = _as_shell_says(await process.wait())
            nursery.cancel_scope.deadline = trio.current_time() + 1  # a daemon that it left may hold the pipes
    finally:
        os.close(line)
        with trio.CancelScope(shield=True):
            await _end(process)


async def _take(stream: trio.abc.ReceiveStream | None, answer: Answer, kept: bytearray, on_note: OnNote | None) -> None:
    assert stream is not None
    async for piece in stream:
        answer.take(kept, bytes(piece))
        if on_note is not None:
            await on_note(bytes(piece).decode("utf-8", "replace").strip())


def _as_shell_says(code: int) -> int:
    return code if code >= 0 else 128 - code


async def _end(process: trio.Process) -> None:
    """See that it ends, and all of its group: it was interrupted, as by Ctrl-C, when the lifeline was closed."""
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            await stream.aclose()
    with trio.move_on_after(GRACE_S):
        await process.wait()
    if process.returncode is None:
        await trio.to_thread.run_sync(shim.end_group, process.pid)
        await process.wait()


def refused(words: list[str], client: str, error: LabdError) -> Answer:
    """The answer to words that the tool may not run, recorded as every passage is."""
    from labd.call import Call
    from labd.record import Passage
    from labd.render import error_text

    answer = Answer(code=error.exit_code)
    caller = {"pid": os.getpid(), "ppid": os.getppid(), "uid": os.getuid(), "client": client}
    call = Call(face="mcp", argv=words, cwd=os.getcwd(), env=dict(os.environ), out=answer.out.extend,
                err=answer.err.extend, caller=caller, program=os.path.abspath(sys.argv[0]))  # fmt: skip
    passage = Passage(call)
    try:
        passage.start(operation=None, effect=None, decision="invalid")
        answer.err += error_text(error).encode() + b"\n"
        passage.saw(2, bytes(answer.err))
        passage.end(error.exit_code)
    except LabdError as unrecorded:
        answer.err += error_text(unrecorded).encode() + b"\n"
    return answer
