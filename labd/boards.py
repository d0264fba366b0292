"""Simulated boards: the daemon owns one player process for each `loopback:` device that is watched.

A player that dies by itself is started again, as a board that lost power comes back; one that was stopped stays
stopped. A player ends when its stdin does, so none outlives the daemon, however that dies.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import trio

from labd import paths, shim
from labd.errors import NotFound, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

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
        self.process: trio.Process | None = None
        self.ready: dict[str, Any] = {}
        self.restarts = 0
        self.stopping = False
        self.gone = trio.Event()

    def status(self) -> dict[str, Any]:
        """Plain data for `labd daemons`."""
        pid = self.process.pid if self.process is not None else None
        return {"name": self.name, "device": self.device, "pid": pid, "tty": self.ready.get("tty"),
                "restarts": self.restarts, "record": self.record}  # fmt: skip


class Boards:
    """All players of one daemon. `tell(name, kind, **fields)` hears what happens to them."""

    def __init__(self, nursery: trio.Nursery, runtime: str, tell: Callable[..., None]) -> None:
        self.nursery = nursery
        self.runtime = runtime
        self.tell = tell
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
                return board.link
            if board is not None:
                await self.stop(board)
            board = self._make(lab, name, device, env)
            await self._spawn(board)
            self.running[key] = board
            self.nursery.start_soon(self._supervise, key, board)
            return board.link

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
                self.tell(board.name, "dut", state="exited", code=code, device=board.device)
                await trio.sleep(RESTART_SECONDS)
                board.restarts += 1
                try:
                    await self._spawn(board)
                except (NotFound, Unreachable) as error:
                    self.tell(board.name, "dut", state="failed", why=error.message, device=board.device)
                    return
                self.tell(board.name, "dut", state="started", pid=board.status()["pid"], device=board.device)
        finally:
            self.running.pop(key, None)
            board.gone.set()

    async def stop(self, board: Board) -> None:
        """End one player: close its stdin, then TERM, then KILL."""
        board.stopping = True
        process = board.process
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

    async def stop_all(self) -> None:
        """End every player."""
        for board in list(self.running.values()):
            await self.stop(board)


async def _drain(stream: trio.abc.ReceiveStream | None) -> None:
    """Read what a player says, so that it never blocks on a full pipe."""
    if stream is None:
        return
    try:
        async for _ in stream:
            pass
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
