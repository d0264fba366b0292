"""What the channel tests stand on: boards on real PTYs that can be unplugged, and a channel that runs in trio.

Nothing is mocked: a `Board` is the far end of a PTY, a `Rig` is a SerialChannel with its capture loop and journal.
"""

import functools
import json
import os
import subprocess
import sys
import time
import tty
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio

from labd.capture import CaptureLoop
from labd.channels.pump import pump
from labd.channels.serial import SerialChannel

DEADLINE_S = 20.0


class Board:
    """The far end of a PTY, under the link `path`. `unplug` makes the node vanish, `replug` gives it a new one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.master = -1
        self._spare: list[int] = []
        self.replug()

    @property
    def node(self) -> str:
        return os.path.realpath(self.path)

    def replug(self, *, elsewhere: bool = False) -> None:
        if elsewhere:  # take the freed number, so that the board comes back under another one
            self._spare += os.openpty()
        self.master, slave = os.openpty()
        tty.setraw(slave)
        name = os.ttyname(slave)
        os.close(slave)
        os.set_blocking(self.master, False)
        fresh = self.path.with_name(self.path.name + ".new")
        os.symlink(name, fresh)
        os.replace(fresh, self.path)

    def unplug(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self.master)
        self.master = -1

    def say(self, data: bytes) -> None:
        """Write what fits without waiting; tests that need more use a process of its own."""
        assert os.write(self.master, data) == len(data)

    async def hear(self, size: int) -> bytes:
        """Exactly `size` bytes that labd sent."""
        got = b""
        with trio.fail_after(DEADLINE_S):
            while len(got) < size:
                await trio.lowlevel.wait_readable(self.master)
                got += os.read(self.master, size - len(got))
        return got

    def close(self) -> None:
        for fd in [*self._spare, *([self.master] if self.master >= 0 else [])]:
            os.close(fd)


class Rig:
    """A channel that runs. `boards` are made by `board(name)`; `configs` names their interfaces."""

    def __init__(self, tmp_path: Path, **settings: Any) -> None:
        self.tmp = tmp_path
        self.boards: dict[str, Board] = {}
        self.duts: dict[str, Callable[[], Awaitable[str]]] = {}
        self.grew = trio.Event()
        self.capture = CaptureLoop()
        self.channel = SerialChannel(
            str(tmp_path / "lab.toml"),
            "pico",
            journal_root=str(tmp_path / "journal"),
            capture=self.capture,
            start_dut=self._start_dut,
            on_data=self._on_data,
            settings=settings,
        )

    def board(self, name: str = "console") -> Board:
        self.boards[name] = Board(self.tmp / f"tty-{name}")
        return self.boards[name]

    def config(self, name: str = "console", **more: Any) -> dict[str, Any]:
        return {"name": name, "device": str(self.tmp / f"tty-{name}"), "baud": 115200, **more}

    async def watch(self, *names: str, **more: Any) -> list[dict[str, Any]]:
        return await self.channel.watch([self.config(name) for name in names or ("console",)], **more)

    def rx(self, name: str = "console") -> bytes:
        return _stream(self.tmp / "journal" / name / "rx")

    def events(self, name: str = "console", kind: str | None = None) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in _stream(self.tmp / "journal" / name / "events").splitlines()]
        return [event for event in found if kind in (None, event["kind"])]

    async def until(self, true: Callable[[], Any], what: str) -> Any:
        """Wait until `true()`; the failure says `what` was missing."""
        with trio.move_on_after(DEADLINE_S):
            while not (found := true()):
                with trio.move_on_after(0.02):
                    await self.grew.wait()
            return found
        raise AssertionError(f"after {DEADLINE_S} s still not: {what}; events: {self.events()}")

    def state(self, name: str = "console") -> str:
        return next((s["state"] for s in self.channel.status() if s["name"] == name), "closed")

    def _on_data(self, name: str) -> None:
        self.grew.set()
        self.grew = trio.Event()

    async def _start_dut(self, device: str, interface: str, config: Any) -> str:
        return await self.duts[interface]()


def with_rig(test: Callable[..., Awaitable[None]]) -> Callable[[Path], None]:
    """Run an async test with a Rig whose channel and pump are up, and stop them afterwards."""

    @functools.wraps(test)
    def run(tmp_path: Path) -> None:
        async def main() -> None:
            rig = Rig(tmp_path, watch_every_s=0.05)
            try:
                with trio.fail_after(3 * DEADLINE_S):
                    async with trio.open_nursery() as nursery:
                        await nursery.start(pump, rig.capture)
                        await nursery.start(rig.channel.run)
                        await test(rig)
                        nursery.cancel_scope.cancel()
            finally:
                rig.capture.close()
                for board in rig.boards.values():
                    board.close()

        trio.run(main)

    del run.__wrapped__  # pytest must see the signature of `run`
    return run


def process(code: str, *args: object, **more: Any) -> "subprocess.Popen[bytes]":
    """A Python process that runs `code` and says "ready" on a line of its own first; it is the caller's to end."""
    child = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more
    )
    assert child.stdout is not None
    first = child.stdout.readline()
    assert first.strip() == b"ready", first
    return child


def end(child: "subprocess.Popen[bytes]") -> None:
    """End a process that we started, and take its status."""
    child.kill()
    child.communicate(timeout=DEADLINE_S)


def cpu_s() -> float:
    return time.process_time()


def _stream(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.raw")))
