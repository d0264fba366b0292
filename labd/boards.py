"""Simulated boards: the daemon owns one player process for each `loopback:` device that is watched.

A player that dies by itself is started again, as a board that lost power comes back; one that was stopped stays
stopped. A player ends when its stdin does. The capture process keeps its stdin open too, so that it plays on while a
daemon is restarted, and goes when both are gone.
"""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import trio

from labd import paths, shim
from labd.errors import NotFound, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    class Keeper(Protocol):
        """Who keeps descriptors open for the daemon that comes next."""

        async def hold(self, key: str, meta: Any, fds: Sequence[int]) -> None: ...
        async def drop(self, key: str) -> None: ...


#: Seconds for a player to say that it is ready.
READY_SECONDS = 15.0

#: Seconds before a player that died is started again.
RESTART_SECONDS = 0.5


class Board:
    """One running player."""

    def __init__(self, name: str, device: str, dut: str, link: str, record: str) -> None:
        self.name = name
        self.device = device
        self.dut = dut
        self.link = link
        self.record = record
        self.process: trio.Process | AdoptedPlayer | None = None
        self.ready: dict[str, Any] = {}
        self.restarts = 0
        self.stopping = False
        self.gone = trio.Event()

    @property
    def down(self) -> bool:
        """Whether its player is not there: then its link, if it is still there, leads to nobody's or another's tty."""
        return self.process is None or self.process.returncode is not None

    def unlink(self) -> None:
        """Take away the link that a killed player left: the node behind it may soon be somebody else's."""
        if os.path.islink(self.link):
            os.unlink(self.link)

    def status(self) -> dict[str, Any]:
        """Plain data for `labd daemons`."""
        pid = self.process.pid if self.process is not None else None
        return {"name": self.name, "device": self.device, "pid": pid, "tty": self.ready.get("tty"),
                "restarts": self.restarts, "record": self.record}  # fmt: skip


class Boards:
    """All players of one daemon. `tell(name, kind, **fields)` hears what happens to them; `keeper` outlives us."""

    def __init__(self, nursery: trio.Nursery, runtime: str, tell: Callable[..., None], keeper: Keeper) -> None:
        self.nursery = nursery
        self.runtime = runtime
        self.tell = tell
        self.keeper = keeper
        self.running: dict[tuple[str, str], Board] = {}
        self._starting = trio.Lock()

    async def start(self, lab: str, name: str, device: str, env: dict[str, str]) -> str:
        """The tty path (a link that follows replugs) of the board that plays `device` for `name` of `lab`.

        Raises NotFound for a DUT that does not exist, Unreachable when its player does not start.
        """
        async with self._starting:
            key = (lab, name)
            board = self.running.get(key)
            if board is not None and board.device == device:
                if board.down:
                    raise Unreachable(f"the simulated board {device} is starting again")
                return board.link
            if board is not None:
                await self.stop(board)
            board = self._make(lab, name, device, env)
            await self._spawn(board)
            self.running[key] = board
            await self._keep(key, board)
            self.nursery.start_soon(self._supervise, key, board)
            return board.link

    def adopt(self, found: dict[str, Any]) -> None:
        """Go on with a player that an earlier daemon started: `found` has its facts (`meta`) and `fds`."""
        known = found["meta"]
        key = (known["lab"], known["name"])
        board = Board(known["name"], known["device"], known["dut"], known["link"], known["record"])
        board.ready, board.restarts = known["ready"], known["restarts"]
        board.process = AdoptedPlayer(board.ready["pid"], found["fds"])
        self.running[key] = board
        self.nursery.start_soon(self._supervise, key, board)

    async def _keep(self, key: tuple[str, str], board: Board) -> None:
        """So that the player outlives us, and the next daemon knows it."""
        process = board.process
        if not isinstance(process, trio.Process):
            return
        meta = {"lab": key[0], "name": key[1], "device": board.device, "dut": board.dut, "link": board.link,
                "record": board.record, "ready": board.ready, "restarts": board.restarts}  # fmt: skip
        streams: list[Any] = [process.stdin, process.stdout, process.stderr]
        await self.keeper.hold(" ".join(key), meta, [stream.fileno() for stream in streams])

    def _make(self, lab: str, name: str, device: str, env: dict[str, str]) -> Board:
        dut = device.partition(":")[2]
        if "/" in dut or dut.endswith(".toml"):
            dut = paths.expand(dut, env, os.path.dirname(os.path.realpath(lab)))
        links = os.path.join(self.runtime, "loopback")
        os.makedirs(links, mode=0o700, exist_ok=True)
        link = os.path.join(links, f"{paths.lab_id(lab)[-8:]}.{name}")
        record = os.path.join(paths.state_dir(env), "loopback", paths.lab_id(lab), f"{name}.jsonl")
        os.makedirs(os.path.dirname(record), mode=0o700, exist_ok=True)
        return Board(name, device, dut, link, record)

    async def _spawn(self, board: Board) -> None:
        process = await shim.start_board(shim.board_argv(board.dut, board.link, board.record), "/")
        line = b""
        with trio.move_on_after(READY_SECONDS):
            assert process.stdout is not None
            while b"\n" not in line:
                data = await process.stdout.receive_some(4096)
                if not data:
                    break
                line += data
        try:
            ready = json.loads(line)
        except ValueError:
            ready = {}
        if not ready.get("ready"):
            raise await self._no_start(board, process)
        board.process, board.ready = process, ready

    async def _no_start(self, board: Board, process: trio.Process) -> Exception:
        process.kill()
        words = b""
        with trio.move_on_after(2):
            assert process.stderr is not None
            async for data in process.stderr:
                words += data
            await process.wait()
        lines = words.decode("utf-8", "replace").strip().splitlines()
        said = lines[-1] if lines else "its player said nothing"
        kind = NotFound if process.returncode in (2, 4) else Unreachable
        return kind(f"the simulated board {board.device} does not start: {said}", hint="labd serial devices")

    async def _supervise(self, key: tuple[str, str], board: Board) -> None:
        try:
            while True:
                process = board.process
                assert process is not None
                async with trio.open_nursery() as pumps:
                    pumps.start_soon(_drain, process.stdout)
                    pumps.start_soon(_drain, process.stderr)
                    code = await process.wait()
                    pumps.cancel_scope.cancel()
                if board.stopping:
                    return
                board.unlink()
                await self.keeper.drop(" ".join(key))
                self.tell(board.name, "dut", state="exited", code=code, device=board.device)
                await trio.sleep(RESTART_SECONDS)
                board.restarts += 1
                try:
                    await self._spawn(board)
                except (NotFound, Unreachable) as error:
                    self.tell(board.name, "dut", state="failed", why=error.message, device=board.device)
                    return
                await self._keep(key, board)
                self.tell(board.name, "dut", state="started", pid=board.status()["pid"], device=board.device)
        finally:
            self.running.pop(key, None)
            board.gone.set()

    async def stop(self, board: Board) -> None:
        """End one player: close its stdin, then TERM, then KILL."""
        board.stopping = True
        process = board.process
        for key in [key for key, running in self.running.items() if running is board]:
            await self.keeper.drop(" ".join(key))
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            await process.stdin.aclose()
        for end in (process.terminate, process.kill):
            with trio.move_on_after(2):
                await process.wait()
                break
            end()
        await process.wait()
        board.unlink()

    async def stop_all(self) -> None:
        """End every player."""
        for board in list(self.running.values()):
            await self.stop(board)


class AdoptedPlayer:
    """A player whose parent is gone: no exit status, and its end is that of its output. As much of trio.Process."""

    def __init__(self, pid: int, fds: Sequence[int]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        stdin, stdout, stderr = (trio.lowlevel.FdStream(fd) for fd in fds)
        self.stdin, self.stderr = stdin, stderr
        self.stdout: trio.lowlevel.FdStream | None = None  # `wait` reads it
        self._output = stdout
        self._reading = trio.Lock()

    async def wait(self) -> int | None:
        """Until it has ended."""
        async with self._reading:
            while self.returncode is None:
                try:
                    data = await self._output.receive_some(4096)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    data = b""
                if not data:
                    self.returncode = -1
                    for stream in (self.stdin, self._output, self.stderr):
                        await stream.aclose()
        return None

    def terminate(self) -> None:
        """SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.returncode is None:  # its output is open, so it lives, and its number is its own
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass


async def _drain(stream: trio.abc.ReceiveStream | None) -> None:
    """Read what a player says, so that it never blocks on a full pipe."""
    if stream is None:
        return
    try:
        async for _ in stream:
            pass
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
