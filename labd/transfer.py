"""A file transfer program (lrzsz) on a captured line: its output is sent, what the board answers is its input.

For `serial xfer`, in its handler's thread, inside the daemon. Bytes are carried exactly and held back nowhere, but at
the end of receiving by ZMODEM (`labd.transfer_end`): the board's are in the journal, ours in a pipe. The program is
started by the shim; nothing here knows a protocol.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from labd import shim
from labd.errors import LabdError, PassedOn, TimedOut, Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from labd.call import Call
    from labd.console_io import Console
    from labd.transfer_end import Ending

#: How long the console is held without a sign of life, and how often that is renewed (seconds).
TTL_S = 60.0
RENEW_S = 10.0
#: Seconds between two words of progress, and before the first.
PROGRESS_S = 2.0
#: Bytes of one send, and of the board's that may wait for the program.
SEND_BYTES = 1 << 14
HELD_BYTES = 1 << 18
#: Seconds that the program gets to end once it was told to.
END_S = 5.0
#: What tells the other side of each of these protocols that it is over.
CANCEL = b"\x18" * 8 + b"\x08" * 8

_NAMES = {(True, "x"): "sx", (True, "y"): "sb", (True, "z"): "sz",
          (False, "x"): "rx", (False, "y"): "rb", (False, "z"): "rz"}  # fmt: skip


def program(send: bool, protocol: str, env: Mapping[str, str]) -> str:
    """The path of the program. Raises Unreachable that names the package to install."""
    import shutil

    name = _NAMES[send, protocol]
    for spelled in (name, f"l{name}"):
        found = shutil.which(spelled, path=env.get("PATH"))
        if found is not None:
            return found
    command = "brew install lrzsz" if sys.platform == "darwin" else "sudo apt-get install lrzsz"
    raise Unreachable(f"serial xfer needs lrzsz: no {name} on PATH; nothing was sent", hint=command)


def argv_of(path: str, send: bool, protocol: str, files: list[str], *, flow: str) -> list[str]:
    """The program's argv: binary, and with control characters escaped where the line's flow control eats them."""
    argv = [path, "--binary", "--verbose"]
    if protocol == "z" and flow == "xonxoff":
        argv.append("--escape")
    if not send and protocol == "x":
        argv.append("--with-crc")
    return [*argv, "--", *files] if files else argv


def run(
    call: Call, board: Console, argv: list[str], *, cwd: str, size: int | None, ending: Ending | None = None
) -> dict[str, Any]:
    """Carry bytes until the program, run in `cwd`, ends: `bytes` and `seconds`. `size` is that of the files that are
    sent, None where they are received; `ending` knows what not to send any more.

    Raises PassedOn with the program's exit code and last words, Unreachable when the port goes, Busy when somebody
    takes the console over; then both sides are told to stop.
    """
    token = call.hop(_token)
    process = shim.start_piped(argv, cwd, call.env)
    pump = _Pump(call, board, process, size, ending)
    try:
        pump.run()
    except BaseException:
        pump.kill()
        try:  # the caller may be gone, and with it the right to wait for the loop as usual
            send = partial(_cancel, call, board)
            trio.from_thread.run(send, trio_token=token)
        except LabdError:
            pass
        raise
    finally:
        pump.close()
    code = process.returncode
    if code:
        last = pump.last_words()
        raise PassedOn(f"{os.path.basename(argv[0])} ended with {code}" + (f": {last}" if last else ""),
                       code if code > 0 else 128 - code,
                       hint=f"labd serial send {board.target} -i {board.line['name']} --key ctrl-c  "
                       "# where the board's shell is left with half a line")  # fmt: skip
    done = {"bytes": pump.carried, "seconds": round(time.monotonic() - pump.began, 3)}
    return done | ({"size": size} if size is not None else {})


def progress(carried: int, size: int | None, seconds: float) -> str:
    """How far it is, in words: `carried` bytes on the line, of files of `size` bytes (None: they are received)."""
    rate = f"{carried / seconds:.0f} bytes/s …"
    if size is None:
        return f"received {carried} bytes, {rate}"
    part = min(99, carried * 100 // size) if size else 99
    return f"sent {carried} of about {size} bytes ({part} %), {rate}"


async def _token() -> trio.lowlevel.TrioToken:
    return trio.lowlevel.current_trio_token()


async def _cancel(call: Call, board: Console) -> None:
    await call.bench.send(board.lab, board.target, board.line["name"], CANCEL, pace_ms=0.0, who=board.who,
                          timeout_s=2.0, lease=board.lease)  # fmt: skip


class _Pump:
    def __init__(self, call: Call, board: Console, process: Any, size: int | None, ending: Ending | None) -> None:
        self.call = call
        self.board = board
        self.process = process
        self.size = size
        self.ending = ending
        self.began = self.told_at = self.renewed_at = time.monotonic()
        self.sent = self.received = 0
        self.words = b""
        self._held = bytearray()
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._in, self._out, self._err = (p.fileno() for p in (process.stdin, process.stdout, process.stderr))
        for fd in (self._in, self._out, self._err):
            os.set_blocking(fd, False)
        self._in_open = self._out_open = self._err_open = True

    @property
    def carried(self) -> int:
        """Bytes on the line so far, in the direction of the files."""
        return self.received if self.size is None else self.sent

    def run(self) -> None:
        """Until the program has ended and all that it said was sent."""
        seen = self.call.bench.growth.count(self.board.reader.directory)
        while self._out_open:
            self._take()
            if self.ending is not None:
                self._send(self.ending.due(time.monotonic()))
            self._feed()
            self._drain()
            self._keep_up()
            if self._out_open:
                seen = self.call.hop(self._wait, seen)
        while self.process.poll() is None:
            if time.monotonic() - self.told_at > END_S + PROGRESS_S:
                raise TimedOut(f"{self.board.name}: the transfer program does not end")
            self.call.hop(trio.sleep, 0.01)
        self._drain()

    async def _wait(self, seen: int) -> int:
        """Sleep until the journal grew, the program said something, or can take more; how often the journal has."""
        directory = self.board.reader.directory
        async with trio.open_nursery() as nursery:

            async def first(wait: Any, *args: Any) -> None:
                await wait(*args)
                nursery.cancel_scope.cancel()

            nursery.start_soon(first, trio.lowlevel.wait_readable, self._out)
            if self._err_open:
                nursery.start_soon(first, trio.lowlevel.wait_readable, self._err)
            if self._held and self._in_open:
                nursery.start_soon(first, trio.lowlevel.wait_writable, self._in)
            if len(self._held) < HELD_BYTES:
                nursery.start_soon(first, self.call.bench.growth.sleep, directory, 1.0, seen)
            else:
                nursery.start_soon(first, trio.sleep, 1.0)
        return int(self.call.bench.growth.count(directory))

    def _take(self) -> None:
        """What the board said, as far as there is room."""
        board = self.board
        board.reader.refresh()
        room = HELD_BYTES - len(self._held)
        if room > 0:
            for at, data in board.reader.chunks(board.cursor, board.cursor + room):
                self._held += data
                if self.ending is not None:
                    self.ending.hears(data)
                self.received += len(data)
                board.cursor = at + len(data)

    def _feed(self) -> None:
        while self._held and self._in_open:
            try:
                count = os.write(self._in, self._held)
            except BlockingIOError:
                return
            except BrokenPipeError:
                self._in_open = False
                return
            del self._held[:count]

    def _drain(self) -> None:
        """Send what the program wants to, one piece a turn; keep what it tells people."""
        if self._err_open:
            try:
                words = os.read(self._err, 4096)
                self._err_open = bool(words)
                self.words = (self.words + words)[-8192:]
            except BlockingIOError:
                pass
        try:
            data = os.read(self._out, SEND_BYTES)
        except BlockingIOError:
            return
        self._out_open = bool(data)
        self._send(data if self.ending is None else self.ending.says(data, time.monotonic()))

    def _send(self, data: bytes) -> None:
        if data:
            self.board.send(data, timeout_s=60.0)
            self.sent += len(data)

    def _keep_up(self) -> None:
        """Notice a lost port, keep the lease, tell how far it is."""
        now = time.monotonic()
        if now - self.renewed_at > RENEW_S:
            self.renewed_at = now
            self.board.lease = self.call.bench.writers.leases.renew(self.board.lease, TTL_S)
        if now - self.told_at > PROGRESS_S:
            self.told_at = now
            self.board.check()
            self.call.note(progress(self.carried, self.size, now - self.began))

    def last_words(self) -> str:
        """The last line that the program told people."""
        lines = [line.strip() for line in self.words.decode("utf-8", "replace").replace("\r", "\n").split("\n")]
        return next((line for line in reversed(lines) if line), "")

    def kill(self) -> None:
        """End the program, whatever it is at."""
        if self.process.poll() is None:
            self.process.kill()

    def close(self) -> None:
        """Close the pipes and take the program's end."""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                assert pipe is not None
                pipe.close()
            except OSError:
                pass
        try:
            self.process.wait(END_S)
        except Exception:
            self.process.kill()
