"""Virtual boards: the daemon owns one QEMU, behind its player, for each target that names a `board:NAME` device.

All channels of a target mean the same machine: its serial port, its screen, and its hooks, which find it by
`LABD_QMP`. It is started, powered on, when the first of them needs it, and ended when none uses it any more. It ends
with the daemon, also one that was killed: a machine costs memory and a processor. Only a restart of the daemon hands
it over, to play on.
"""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, Any

import trio

from labd import paths, shim
from labd.errors import Busy, Unreachable
from labd.players import Player, Players

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from labd.boards import Keeper
    from labd.players import Key

#: How a device of the lab says that it is a virtual board's.
SCHEME = "board:"

#: Seconds that the machine's power waits for its serial port to be connected, where that is what it is started for.
CABLE_SECONDS = 2


class Machine(Player):
    """One virtual board. `directory` holds its sockets: `qmp` for hooks, `qmp-video` for who looks, `serial`."""

    hint = "labd doctor"

    def __init__(
        self, target: str, device: str, board: str, directory: str, *, cable: bool = False, tap: str | None = None
    ) -> None:
        wait = CABLE_SECONDS if cable else 0
        super().__init__(f"{target}.board", device, shim.machine_argv(board, directory, wait, tap))
        self.board = board
        self.directory = directory

    def place_with(self, part: str) -> str:
        """The directory. Raises Unreachable where the board has no such part ("" for any)."""
        has = self.ready.get("has", ())
        if part and part not in has:
            raise Unreachable(f"the virtual board {self.device} has no {part}; it has {', '.join(has)}",
                              hint="labd discover")  # fmt: skip
        return self.directory

    def status(self) -> dict[str, Any]:
        """Plain data for `labd daemons`."""
        return {**super().status(), "qemu": self.ready.get("qemu"), "directory": self.directory}


class Machines(Players):
    """All virtual boards of one daemon, by (lab, target).

    `tells(lab_path, target, state, **fields)` hears what happens to them. `users` say, each for its channels, whether
    a target's machine is in use (`user(lab_path, target)`): see `release`.
    """

    def __init__(self, nursery: trio.Nursery, runtime: str, tells: Callable[..., None], keeper: Keeper) -> None:
        super().__init__(nursery)
        self.runtime = runtime
        self.tells = tells
        self.keeper = keeper
        self.users: list[Callable[[str, str], bool]] = []

    # --- for the channels ------------------------------------------------------------------------------------------

    async def need(self, lab_path: str, target: str, device: str, part: str = "") -> str:
        """The directory of the target's machine, which runs when this returns; `device` is `board:NAME` or NAME.

        `part` is what is needed of it: "serial", "video". A machine that is started for its serial port gets its power
        when somebody is connected to that, so that the first words are not lost. Raises NotFound for a board that does
        not exist, Unreachable when it has no such part, can't be started (QEMU or firmware missing: says what to
        install) or is starting again, Busy when the target's machine is another one and in use.
        """
        device = SCHEME + device.removeprefix(SCHEME)
        key = (os.path.realpath(lab_path), target)
        async with self._starting:
            machine: Machine | None = self.running.get(key)
            if machine is not None and machine.device == device:
                if machine.down:
                    raise Unreachable(f"{target}: the virtual board {device} is starting again")
                return machine.place_with(part)
            if machine is not None:
                if self._used(*key):
                    raise Busy(f"{target}: its virtual board is {machine.device}, which is in use, not {device}",
                               hint=f"labd daemons stop {machine.name}")  # fmt: skip
                await self.stop(machine)
            machine = await trio.to_thread.run_sync(self._make, key, device, part == "serial")
            await self.launch(key, machine)
            self.tell(key, machine, "started", pid=machine.ready["qemu"])
            try:
                return machine.place_with(part)
            except Unreachable:
                await self.stop(machine)
                raise

    async def release(self, lab_path: str, target: str) -> None:
        """A channel has let go of the target's machine: it is ended, unless another one uses it."""
        key = (os.path.realpath(lab_path), target)
        async with self._starting:
            machine = self.running.get(key)
            if machine is not None and not self._used(*key):
                await self.stop(machine)

    def directory(self, lab_path: str, target: str) -> str:
        """Where the sockets of a target's machine are, whether it runs or not. Raises Unreachable if too long."""
        raw = os.fsencode(os.path.realpath(lab_path)) + b"\0" + target.encode()
        place = os.path.join(self.runtime, "boards", f"{zlib.crc32(raw):08x}{zlib.crc32(raw[::-1]):08x}")
        if len(os.fsencode(place)) + len("/qmp-video") > paths.SOCKET_BYTES:
            raise Unreachable(f"the path of a virtual board's sockets is too long: {place}",
                              hint="set XDG_RUNTIME_DIR to a shorter directory")  # fmt: skip
        return place

    def list(self) -> list[dict[str, Any]]:
        """The machines that run. Thread-safe."""
        return [machine.status() for machine in list(self.running.values())]

    def hook_environment(self, lab_path: str, target: str) -> Mapping[str, str]:
        """`LABD_QMP` for a hook of a target that has a virtual board, which is started if it does not run.

        Called in the worker thread of the call that runs the hook. Raises what `need` raises.
        """
        from labd.lab import load
        from labd.lab.model import virtual_board

        device = virtual_board(load(lab_path, dict(os.environ)).targets.get(target, {}))
        if device is None:
            return {}
        return {"LABD_QMP": os.path.join(trio.from_thread.run(self.need, lab_path, target, device), "qmp")}

    # --- for the daemon --------------------------------------------------------------------------------------------

    async def hand_over(self) -> None:
        """The daemon ends to be followed by another: let the machines play on for that one."""
        for key, machine in list(self.running.items()):
            process = machine.process
            if not isinstance(process, trio.Process):
                continue  # adopted: still held
            meta = {"machine": machine.board, "lab": key[0], "target": key[1], "device": machine.device,
                    "directory": machine.directory, "ready": machine.ready, "restarts": machine.restarts}  # fmt: skip
            streams: list[Any] = [process.stdin, process.stdout, process.stderr]
            await self.keeper.hold(_hold_key(key), meta, [stream.fileno() for stream in streams])

    def adopt(self, found: dict[str, Any]) -> None:
        """Go on with a machine that an earlier daemon handed over: `found` has its facts (`meta`) and `fds`."""
        known = found["meta"]
        machine = Machine(known["target"], known["device"], known["machine"], known["directory"])
        self.take_up((known["lab"], known["target"]), machine, known, found["fds"])

    # --- inside ----------------------------------------------------------------------------------------------------

    async def gone(self, key: Key, player: Player) -> None:
        """Said, where it was meant; and nobody need keep its descriptors any more."""
        if player.stopping:
            self.tell(key, player, "stopped")
        await self.keeper.drop(_hold_key(key))

    def tell(self, key: Key, player: Player, state: str, **fields: Any) -> None:
        """To who writes it down."""
        self.tells(*key, state, device=player.device, **fields)

    def heard(self, key: Key, player: Player, said: dict[str, Any]) -> None:
        """The machine was reset, switched off or on by itself, by a hook, or by hand."""
        if isinstance(said.get("state"), str):
            self.tells(*key, said["state"], device=player.device)

    def _used(self, lab_path: str, target: str) -> bool:
        return any(user(lab_path, target) for user in self.users)

    def _make(self, key: Key, device: str, cable: bool) -> Machine:
        board = device.removeprefix(SCHEME)
        if "/" in board or board.endswith(".toml"):
            board = paths.expand(board, os.environ, os.path.dirname(key[0]))
        directory = self.directory(*key)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        return Machine(key[1], device, board, directory, cable=cable, tap=_tap(*key))


def _tap(lab_path: str, target: str) -> str | None:
    """The target's netboot interface, where that is a tap of this host: the other end is the board's Ethernet.

    Any other interface is a real one, that no virtual board hangs on.
    """
    from labd.lab import load

    netboot = load(lab_path, dict(os.environ)).targets.get(target, {}).get("netboot", {})
    interface = str(netboot.get("interface", ""))
    return interface if interface and os.path.exists(f"/sys/class/net/{interface}/tun_flags") else None


def _hold_key(key: Key) -> str:
    return " ".join(("machine", *key))
