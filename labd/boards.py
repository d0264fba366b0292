"""Simulated boards: the daemon owns one player process for each `loopback:` device that is watched.

A player ends when its stdin does. The capture process keeps its stdin open too, so that it plays on while a daemon is
restarted, and goes when both are gone.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import trio

from labd import paths, shim
from labd.errors import Unreachable
from labd.players import Player, Players

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    class Keeper(Protocol):
        """Who keeps descriptors open for the daemon that comes next."""

        async def hold(self, key: str, meta: Any, fds: Sequence[int]) -> None: ...
        async def drop(self, key: str) -> None: ...


class Board(Player):
    """One simulated board: `link` leads to its near end, `record` is the file of what it received and did."""

    hint = "labd serial devices"

    def __init__(self, name: str, device: str, dut: str, link: str, record: str) -> None:
        super().__init__(name, device, shim.board_argv(dut, link, record))
        self.dut = dut
        self.link = link
        self.record = record

    def clear(self) -> None:
        """Take away the link that a killed player left: the node behind it may soon be somebody else's."""
        if os.path.islink(self.link):
            os.unlink(self.link)

    def status(self) -> dict[str, Any]:
        """Plain data for `labd daemons`."""
        return {**super().status(), "tty": self.ready.get("tty"), "record": self.record}


class Boards(Players):
    """All simulated boards of one daemon. `tells(name, kind, **fields)` hears what happens to them; `keeper` outlives
    us."""

    def __init__(self, nursery: trio.Nursery, runtime: str, tells: Callable[..., None], keeper: Keeper) -> None:
        super().__init__(nursery)
        self.runtime = runtime
        self.tells = tells
        self.keeper = keeper

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
                return str(board.link)
            if board is not None:
                await self.stop(board)
            board = self._make(lab, name, device, env)
            await self.launch(key, board)
            return board.link

    def adopt(self, found: dict[str, Any]) -> None:
        """Go on with a player that an earlier daemon started: `found` has its facts (`meta`) and `fds`."""
        known = found["meta"]
        board = Board(known["name"], known["device"], known["dut"], known["link"], known["record"])
        self.take_up((known["lab"], known["name"]), board, known, found["fds"])

    async def up(self, key: tuple[str, str], player: Player) -> None:
        """So that the player outlives us, and the next daemon knows it."""
        process = player.process
        if not isinstance(process, trio.Process) or not isinstance(player, Board):
            return
        meta = {"lab": key[0], "name": key[1], "device": player.device, "dut": player.dut, "link": player.link,
                "record": player.record, "ready": player.ready, "restarts": player.restarts}  # fmt: skip
        streams: list[Any] = [process.stdin, process.stdout, process.stderr]
        await self.keeper.hold(" ".join(key), meta, [stream.fileno() for stream in streams])

    async def gone(self, key: tuple[str, str], player: Player) -> None:
        """Nobody need keep its descriptors any more."""
        await self.keeper.drop(" ".join(key))

    def tell(self, key: tuple[str, str], player: Player, state: str, **fields: Any) -> None:
        """Into the journal of its interface."""
        self.tells(player.name, "dut", state=state, device=player.device, **fields)

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
