"""Player processes: programs that play a board for as long as the daemon holds their standard input.

One that dies by itself is started again, as a board that lost power comes back; one that was stopped stays stopped.
What is played, and where, is known to the two who use this: `labd.boards` (simulated serial boards) and
`labd.machines` (virtual boards in QEMU). All of it runs on the daemon's loop.
"""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import trio

from labd import shim
from labd.errors import NotFound, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Key = tuple[str, str]

#: Seconds for a player to say that it is ready.
READY_SECONDS = 15.0

#: Seconds before a player that died is started again.
RESTART_SECONDS = 0.5


class Player:
    """One running player: `argv` starts it, `device` is what the lab calls the board, `name` what `labd daemons` does.

    `hint` is the command that shows why it may not start.
    """

    hint: str | None = None

    def __init__(self, name: str, device: str, argv: list[str]) -> None:
        self.name = name
        self.device = device
        self.argv = argv
        self.process: trio.Process | AdoptedPlayer | None = None
        self.ready: dict[str, Any] = {}
        self.restarts = 0
        self.stopping = False

    @property
    def down(self) -> bool:
        """Whether its process is not there."""
        return self.process is None or self.process.returncode is not None

    def clear(self) -> None:
        """Take away what a killed player left behind."""

    def status(self) -> dict[str, Any]:
        """Plain data for `labd daemons`."""
        pid = self.process.pid if self.process is not None else None
        return {"name": self.name, "device": self.device, "pid": pid, "restarts": self.restarts}


class Players:
    """The players of one kind, by (lab, name)."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.running: dict[Key, Any] = {}
        self._starting = trio.Lock()

    # --- what the two kinds add ------------------------------------------------------------------------------------

    async def up(self, key: Key, player: Player) -> None:
        """A player has just been started."""

    async def gone(self, key: Key, player: Player) -> None:
        """A player is stopped, or has ended."""

    def tell(self, key: Key, player: Player, state: str, **fields: Any) -> None:
        """What became of a player: "exited", "failed", "started"."""

    def heard(self, key: Key, player: Player, said: dict[str, Any]) -> None:
        """A player wrote a line (JSON) after it was ready."""

    # --- what they call --------------------------------------------------------------------------------------------

    async def launch(self, key: Key, player: Player) -> None:
        """Start it, and see to it from now on. Raises NotFound for what does not exist, Unreachable otherwise."""
        await self._spawn(player)
        self.running[key] = player
        await self.up(key, player)
        self.nursery.start_soon(self._supervise, key, player)

    def take_up(self, key: Key, player: Player, known: dict[str, Any], fds: Sequence[int]) -> None:
        """Go on with one that an earlier daemon started: `known` has its `ready` and `restarts`."""
        player.ready, player.restarts = known["ready"], known["restarts"]
        player.process = AdoptedPlayer(player.ready["pid"], fds)
        self.running[key] = player
        self.nursery.start_soon(self._supervise, key, player)

    async def stop(self, player: Player) -> None:
        """End one player: close its stdin, then TERM, then KILL."""
        player.stopping = True
        process = player.process
        for key in [key for key, running in self.running.items() if running is player]:
            await self.gone(key, player)
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
        player.clear()

    async def stop_named(self, name: str) -> list[str]:
        """End the players of this name; their names, one each."""
        found = [player for player in self.running.values() if player.name == name]
        for player in found:
            await self.stop(player)
        return [player.name for player in found]

    async def stop_all(self) -> None:
        """End every player."""
        for player in list(self.running.values()):
            await self.stop(player)

    # --- inside ----------------------------------------------------------------------------------------------------

    async def _spawn(self, player: Player) -> None:
        process = await shim.start_board(player.argv, "/")
        line = b""
        with trio.move_on_after(READY_SECONDS):
            assert process.stdout is not None
            while b"\n" not in line:
                data = await process.stdout.receive_some(4096)
                if not data:
                    break
                line += data
        try:
            ready = json.loads(line.partition(b"\n")[0])
        except ValueError:
            ready = {}
        if not ready.get("ready"):
            raise await self._no_start(player, process)
        player.process, player.ready = process, ready

    async def _no_start(self, player: Player, process: trio.Process) -> Exception:
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
        return kind(f"the simulated board {player.device} does not start: {said}", hint=player.hint)

    async def _supervise(self, key: Key, player: Player) -> None:
        try:
            while True:
                code = await self._attend(key, player)
                if player.stopping:
                    return
                player.clear()
                await self.gone(key, player)
                self.tell(key, player, "exited", code=code)
                await trio.sleep(RESTART_SECONDS)
                player.restarts += 1
                try:
                    await self._spawn(player)
                except (NotFound, Unreachable) as error:
                    self.tell(key, player, "failed", why=error.message)
                    return
                await self.up(key, player)
                self.tell(key, player, "started", pid=player.status()["pid"])
        finally:
            if self.running.get(key) is player:
                del self.running[key]

    async def _attend(self, key: Key, player: Player) -> int | None:
        """Listen to a player until it has ended; its exit status, if that is known."""
        process = player.process
        assert process is not None
        lines = _Lines(lambda said: self.heard(key, player, said))
        async with trio.open_nursery() as pumps:
            pumps.start_soon(_pump, process.stdout, lines.add)
            pumps.start_soon(_pump, process.stderr, None)
            if isinstance(process, AdoptedPlayer):
                process.on_output = lines.add
            code = await process.wait()
            pumps.cancel_scope.cancel()
        return code


class AdoptedPlayer:
    """A player whose parent is gone: no exit status, and its end is that of its output. As much of trio.Process."""

    def __init__(self, pid: int, fds: Sequence[int]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.on_output: Callable[[bytes], None] | None = None
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
                if data and self.on_output is not None:
                    self.on_output(data)
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


class _Lines:
    """Bytes in, JSON objects out, one a line; what is none is passed over."""

    def __init__(self, hear: Callable[[dict[str, Any]], None]) -> None:
        self._hear = hear
        self._rest = b""

    def add(self, data: bytes | bytearray) -> None:
        *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        self._rest = self._rest[-65536:]
        for line in lines:
            try:
                said = json.loads(line)
            except ValueError:
                continue
            if isinstance(said, dict):
                self._hear(said)


async def _pump(stream: trio.abc.ReceiveStream | None, take: Callable[[bytes | bytearray], None] | None) -> None:
    """Read what a player says, so that it never blocks on a full pipe."""
    if stream is None:
        return
    try:
        async for data in stream:
            if take is not None:
                take(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
