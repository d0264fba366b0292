"""The live side of the daemon: which channels and boards exist, and what operations may ask of them.

Only the shim hands it out. Everything here runs on the daemon's loop, but for the methods that say `thread-safe`.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import trio

from labd import paths, shim
from labd.boards import Boards
from labd.capture_link import CaptureLink
from labd.channels.serial import SerialChannel
from labd.chronicle import Chronicle
from labd.errors import LabdError, NotFound, Unreachable
from labd.growth import Growth
from labd.hookkeep import KeptHooks
from labd.hookrun import Hooks
from labd.machines import SCHEME, Machines
from labd.netboot.serving import Netboots
from labd.policy import SIMULATED
from labd.suspended import Suspended, barred
from labd.trigger_store import TriggerStore
from labd.triggers import Triggers
from labd.video.screens import Screens
from labd.writers import Writers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from labd.lab import Lab
    from labd.lease import Lease

#: Seconds between looks at the lab files in use.
LAB_SECONDS = 1.0


class Entry:
    """One channel in use: the target of one lab. `seen` is the lab file as it was last read."""

    def __init__(self, lab_path: str, target: str, channel: SerialChannel, seen: tuple[int, int, int] | None) -> None:
        self.lab_path = lab_path
        self.target = target
        self.channel = channel
        self.seen = seen
        self.scope = trio.CancelScope()
        self.level = "bench"
        """The policy level of the last watch."""


class Bench:
    """Channels keyed by lab and target. `level` is the daemon's own policy level."""

    def __init__(self, nursery: trio.Nursery, *, level: str, runtime: str, log: Callable[[str], None]) -> None:
        self.nursery = nursery
        self.level = level
        self.runtime = runtime
        self.log = log
        self.state = paths.state_dir(os.environ)
        self.capture = CaptureLink(runtime, lambda: shim.start_capture(runtime), log)
        self.boards = Boards(nursery, runtime, self._board_tells, self.capture)
        self.machines = Machines(nursery, runtime, self._machine_tells, self.capture)
        self.machines.users.append(self._wired_to_machine)
        self.entries: dict[tuple[str, str], Entry] = {}
        self.internal: dict[str, Any] = {}
        self.started = time.time()
        self.leaving = False
        """Whether the daemon ends only to be followed by another one."""
        self.growth = Growth()
        self.chronicle = Chronicle(self.state, log)
        self.hooks = Hooks(self.chronicle, os.path.join(runtime, "helpers"))
        self.hooks.environment = self.machines.hook_environment
        self.kept_hooks = KeptHooks(self.hooks)
        self.netboots = Netboots(runtime, self.state, self.chronicle, log)
        self.suspended = Suspended(self)
        self._making = trio.Lock()
        self.screens = Screens(self)
        self.writers = Writers(self._channel_in_use)
        self.triggers = Triggers(nursery, self._channel_in_use, TriggerStore(runtime, log))
        self.writers.on_send = self.triggers.sent
        self.shells: dict[tuple[str, str, str], Any] = {}  # what `labd.run_shell` found out about consoles

    # --- what operations ask ---------------------------------------------------------------------------------------

    async def watch(self, lab: Lab, target: str, interface: str | None, level: str = "bench") -> list[dict[str, Any]]:
        """Open the target's interfaces (or the one named) and capture them; what each resolved to.

        `level` is what the caller was permitted: edits of the lab are later taken up only as far as that goes.
        """
        configs = self._configs(lab, target)
        entry = await self._entry(lab, target)
        entry.level = entry.channel.known["level"] = level
        try:
            wanted = [config for config in configs if interface in (None, config["name"])]
            self.suspended.forget((entry.lab_path, target), [config["name"] for config in wanted])
            return await entry.channel.watch(wanted, whole=interface is None)
        except LabdError:
            await self._end_boards(entry, [config["name"] for config in configs])
            raise
        finally:
            self._drop_if_idle(entry)

    async def stop(self, lab: Lab, target: str, interface: str | None) -> list[str]:
        """Stop capturing, free the ports, end their triggers and simulated boards; the names of what was open."""
        real = os.path.realpath(lab.path)
        self.triggers.end("the capture was stopped", real, target, interface)
        self.suspended.forget((real, target), None if interface is None else [interface])
        entry = self.entries.get((real, target))
        if entry is None:
            return []
        stopped = await entry.channel.stop(None if interface is None else [interface])
        await self._end_boards(entry, stopped)
        self._drop_if_idle(entry)
        return stopped

    async def send(self, lab: Lab, target: str, interface: str, data: bytes, **how: Any) -> dict[str, Any]:
        """Write bytes to an open interface: see `labd.writers.Writers.send`."""
        return await self.writers.send(lab, target, interface, data, **how)

    async def hold(self, lab: Lab, target: str, interface: str, who: Mapping[str, Any], ttl_s: float,
                   take: bool = False, **how: Any) -> Lease:  # fmt: skip
        """Become a console's one writer for a while: see `labd.writers.Writers.hold`."""
        return await self.writers.hold(lab, target, interface, who, ttl_s, take=take, **how)

    def release(self, lease: Lease) -> bool:
        """Give a console back to others; False if it was not held any more. Thread-safe."""
        return self.writers.leases.release(lease)

    async def break_(self, lab: Lab, target: str, interface: str, ms: float, who: dict[str, Any]) -> dict[str, Any]:
        """Hold the line in break: see `labd.writers.Writers.break_`."""
        return await self.writers.break_(lab, target, interface, ms, who)

    async def pulse_dtr(self, lab: Lab, target: str, interface: str, ms: float, who: dict[str, Any]) -> dict[str, Any]:
        """Turn DTR over for `ms` and back: from `rests` to `pulsed` (true: asserted), held for `held_ms` as measured.

        Raises Unreachable when the port is not captured or has no such line.
        """
        done = await self._captured(lab, target, interface).pulse_dtr(interface, ms, who=who)
        return {"target": target, "interface": interface, "line": "DTR", "ms": ms, "rests": done["rests"],
                "pulsed": done["pulsed"], "held_ms": done["held_ms"]}  # fmt: skip

    async def lines(self, lab: Lab, target: str, interface: str) -> dict[str, Any]:
        """The modem lines of an open interface, read now: dtr, rts, cts, dsr, dcd, ri. Raises Unreachable."""
        return {"target": target, **await self._captured(lab, target, interface).lines(interface)}

    async def set_lines(
        self, lab: Lab, target: str, interface: str, wanted: Mapping[str, bool], who: dict[str, Any]
    ) -> dict[str, Any]:
        """Drive `dtr` and `rts` to the levels in `wanted`; then as `lines`. Raises Unreachable."""
        channel = self._captured(lab, target, interface)
        return {"target": target, **await channel.set_lines(interface, **wanted, who=who)}

    def _channel_in_use(self, lab_path: str, target: str) -> SerialChannel | None:
        entry = self.entries.get((lab_path, target))
        return None if entry is None else entry.channel

    def _captured(self, lab: Lab, target: str, interface: str) -> SerialChannel:
        entry = self.entries.get((os.path.realpath(lab.path), target))
        if entry is None:
            raise Unreachable(
                f"{target}.{interface} is not being captured; nothing was sent", hint=f"labd serial watch {target}"
            )
        return entry.channel

    def status(self, lab_path: str, target: str) -> list[dict[str, Any]]:
        """What the captured interfaces of a target are doing. Thread-safe."""
        entry = self._in_use(lab_path, target)
        if entry is None:
            return []
        lines = entry.channel.status()
        return [{**line, "writer": self.writers.holder((entry.lab_path, target, line["name"]))} for line in lines]

    def captured(self, lab_path: str, target: str) -> dict[str, str]:
        """The captured interfaces of a target by name, each with the device that it has open. Thread-safe."""
        entry = self._in_use(lab_path, target)
        return entry.channel.devices() if entry else {}

    def _in_use(self, lab_path: str, target: str) -> Entry | None:
        return self.entries.get((os.path.realpath(lab_path), target))

    def channels(self) -> list[dict[str, Any]]:
        """Every captured interface of every lab. Thread-safe."""
        return [
            {"lab": entry.lab_path, "target": entry.target, **line}
            for entry in list(self.entries.values())
            for line in entry.channel.status()
        ]

    def captures_real(self) -> bool:
        """Whether any captured line is more than a simulation. Thread-safe."""
        return not all(line["device"].startswith(SIMULATED) for line in self.channels())

    def board_list(self) -> list[dict[str, Any]]:
        """The simulated and virtual boards that run. Thread-safe."""
        return [board.status() for board in list(self.boards.running.values())] + self.machines.list()

    async def stop_board(self, name: str) -> dict[str, Any]:
        """End the simulated board `name` (TARGET.INTERFACE), or a virtual one (TARGET.board) with what watches it.

        `ended` are those captures, by name. Raises NotFound.
        """
        stopped, ended = await self.boards.stop_named(name), []
        for (lab_path, target), machine in list(self.machines.running.items()):
            if machine.name == name:
                ended += await self._leave_machine(lab_path, target)  # ends it too where nothing else uses it
                await self.machines.stop_named(name)
                stopped.append(name)
        if not stopped:
            raise NotFound(f"no simulated board {name!r} runs", hint="labd daemons")
        return {"stopped": stopped, "ended": ended}

    # --- what the daemon runs --------------------------------------------------------------------------------------

    async def follow_labs(self) -> None:
        """Take up edits of the lab files in use."""
        while True:
            await trio.sleep(LAB_SECONDS)
            await self.screens.follow()
            if self.chronicle.waits:
                await trio.to_thread.run_sync(self.chronicle.settle)
            try:
                await self.suspended.follow()
            except LabdError as error:
                self.log(f"what waits to be permitted again goes on waiting: {error.message}")
            for entry in list(self.entries.values()):
                try:
                    await self._follow(entry)
                except LabdError as error:
                    self.log(f"{entry.lab_path}: {error.message}; going on with what was read before")

    async def close(self, *, leave: bool = False) -> None:
        """Close every channel, end every board, and last the capture process.

        With `leave`, only let go: ports stay open and captured, boards play on, and the next daemon takes them up.
        """
        (self.triggers.leave if leave else self.triggers.stop)()
        await trio.to_thread.run_sync(self.kept_hooks.close)
        for entry in list(self.entries.values()):
            await (entry.channel.leave() if leave else entry.channel.stop(None))
        await self.screens.close(leave=leave)
        if leave:
            await self.machines.hand_over()
        else:
            await self.boards.stop_all()
            await self.machines.stop_all()
            await self.capture.quit()
        await trio.to_thread.run_sync(self.netboots.close)
        await trio.to_thread.run_sync(self.chronicle.close)

    async def adopt(self) -> None:
        """Take up what an earlier daemon left with the capture process. Before anybody is served."""
        from labd.adoption import adopt

        await self.triggers.recall()
        await adopt(self)
        self.triggers.recalled()
        await self.screens.recall()

    def event_everywhere(self, kind: str, **fields: Any) -> None:
        """Put one event into every open journal (a stall of the loop concerns them all)."""
        for entry in self.entries.values():
            entry.channel.tell(kind, **fields)

    # --- inside ----------------------------------------------------------------------------------------------------

    async def _entry(self, lab: Lab, target: str) -> Entry:
        real = os.path.realpath(lab.path)
        return await self.enter(real, target, lab.journal, paths.identity(real))

    async def enter(
        self, real: str, target: str, settings: Mapping[str, Any], seen: tuple[int, int, int] | None
    ) -> Entry:
        """The channel in use for `target` of the lab at `real`, made and started if need be."""
        async with self._making:
            entry = self.entries.get((real, target))
            if entry is None:
                entry = Entry(real, target, self._channel(real, target, settings), seen)
                self.entries[real, target] = entry
                await self.nursery.start(self._run_channel, entry)
        return entry

    def journal_root(self, real: str, target: str) -> str:
        """Where the journals of a target's interfaces are."""
        return os.path.join(self.state, "journal", paths.lab_id(real), target)

    def _channel(self, real: str, target: str, settings: Mapping[str, Any]) -> SerialChannel:
        root = self.journal_root(real, target)

        async def start_board(device: str, interface: str, config: Mapping[str, Any]) -> str:
            if device.startswith(SCHEME):
                return os.path.join(await self.machines.need(real, target, device, "serial"), "serial")
            return await self.boards.start(real, f"{target}.{interface}", device, dict(os.environ))

        return SerialChannel(
            real,
            target,
            journal_root=root,
            capture=self.capture,
            start_dut=start_board,
            on_data=lambda interface: self._wake(os.path.join(root, interface)),
            settings=settings,
        )

    async def _run_channel(self, entry: Entry, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        """One channel's task tree behind a barrier: its crash is told, and touches no other."""
        try:
            with entry.scope:
                await entry.channel.run(task_status=task_status)
        except Exception as error:
            self.log(f"channel {entry.target} crashed: {error!r}")
        finally:
            if self.entries.get((entry.lab_path, entry.target)) is entry:
                del self.entries[entry.lab_path, entry.target]

    def _drop_if_idle(self, entry: Entry) -> None:
        """A channel that holds no interface any more is ended."""
        if not entry.channel.status():
            if self.entries.get((entry.lab_path, entry.target)) is entry:
                del self.entries[entry.lab_path, entry.target]
            entry.scope.cancel()

    def _board_tells(self, name: str, kind: str, **fields: Any) -> None:
        target, _, interface = name.rpartition(".")
        for entry in self.entries.values():
            if entry.target == target:
                entry.channel.tell(kind, only=interface, **fields)

    def _machine_tells(self, lab_path: str, target: str, state: str, **fields: Any) -> None:
        entry = self.entries.get((lab_path, target))
        if entry is not None:
            entry.channel.tell("dut", state=state, **fields)
        self.chronicle.tell(lab_path, target, "board", state, **fields)

    async def _leave_machine(self, lab_path: str, target: str) -> list[str]:
        """Stop capturing a virtual board: it would be started again at once. The names of what was captured."""
        ended = [f"{target}'s screen"] if await self.screens.leave_board(lab_path, target) else []
        entry = self.entries.get((lab_path, target))
        if entry is not None:
            names = [name for name, device in entry.channel.devices().items() if device.startswith(SCHEME)]
            ended += [f"{target}.{name}" for name in await entry.channel.stop(names)]
            self._drop_if_idle(entry)
        return ended

    def _wired_to_machine(self, lab_path: str, target: str) -> bool:
        """Whether a captured line is the serial port of the target's virtual board."""
        return any(device.startswith(SCHEME) for device in self.captured(lab_path, target).values())

    def _configs(self, lab: Lab, target: str) -> list[dict[str, Any]]:
        configs = lab.serial(target)
        if not configs:
            raise NotFound(f"target {target!r} has no serial interface",
                           hint=f"labd serial add console -t {target} --device DEVICE")  # fmt: skip
        return configs

    async def _follow(self, entry: Entry) -> None:
        now = paths.identity(entry.lab_path)
        if now == entry.seen or (now is not None and now[2] == 0):  # an empty file is one that is being written
            return
        entry.seen = now
        from labd.lab import load

        lab = await trio.to_thread.run_sync(load, entry.lab_path, dict(os.environ))
        before = {line["name"] for line in entry.channel.status()}
        kept = {config["name"] for config in lab.serial(entry.target)} if entry.target in lab.targets else set()
        for name in before - kept:
            self.triggers.end("it is no longer in the lab", entry.lab_path, entry.target, name)
        why = barred(lab, entry.target, [entry.level, self.level]) if kept else {}
        configs = [config for config in lab.serial(entry.target) if config["name"] not in why] if kept else []
        for name in why.keys() - before:
            self.log(f"{entry.lab_path}: {entry.target}.{name} is not taken up: {why[name]}")
        self.suspended.add(entry, {name: why[name] for name in why.keys() & before})
        for done in await entry.channel.reconcile(configs, why):
            self.log(f"{entry.lab_path}: {entry.target}.{done}")
        await self._end_boards(entry, before - kept)
        self._drop_if_idle(entry)

    async def _end_boards(self, entry: Entry, names: Iterable[str]) -> None:
        """End the simulated boards behind these interfaces, unless they are watched: no other way leads to them.

        A virtual board goes when nothing else uses it.
        """
        await self.machines.release(entry.lab_path, entry.target)
        for name in set(names) - set(entry.channel.devices()):
            board = self.boards.running.get((entry.lab_path, f"{entry.target}.{name}"))
            if board is not None:
                await self.boards.stop(board)

    def _wake(self, directory: str) -> None:
        self.triggers.grew(directory)
        self.growth.grew(directory)
