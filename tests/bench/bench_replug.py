"""From a replug to its first byte in the journal: labd's channel beside the loop that people write with pyserial.

    python -m tests.bench.bench_replug [--quick] [--rounds N]

A board on a PTY vanishes for a while (0.1 to 1.5 s, so that every back-off is met), returns as another node under the
same name, and speaks at once. The same for a `socket://` server that stops and starts. The peer opens the same name
every 0.75 s, which is what serialcap-like daemons and most scripts do. Milliseconds; the limit is 500.
"""

import argparse
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import serial
import trio

from labd.channels.line import STEADY_S
from labd.channels.pump import pump
from tests.channels.far import Server
from tests.channels.rig import Board, Rig

LIMIT_MS = 500
PEER_RETRY_S = 0.75
FIRST = b"first\n"


class Peer:
    """A thread with pyserial: read; on any error close, sleep, open again. `at`: when it last got FIRST."""

    def __init__(self, path: str) -> None:
        self.path, self.at, self.over = path, 0.0, threading.Event()
        self.up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self.over.is_set():
            try:
                with serial.Serial(self.path, 115200, timeout=0.05) as port:
                    self.up.set()
                    while not self.over.is_set():
                        if FIRST in port.read(100):
                            self.at = time.monotonic()
            except (OSError, serial.SerialException):
                self.up.clear()
                self.over.wait(PEER_RETRY_S)

    def stop(self) -> None:
        self.over.set()
        self._thread.join(5)


async def until(true: Callable[[], object]) -> None:
    with trio.fail_after(20):
        while not true():
            await trio.sleep(0.001)


async def tty(rig: Rig, rounds: int, away: Callable[[], float]) -> list[float]:
    board = rig.board()
    await rig.watch()
    taken = []
    for _ in range(rounds):
        size = len(rig.rx())
        board.unplug()
        await until(lambda: rig.state() == "lost")
        await trio.sleep(away())
        begin = time.monotonic()
        board.replug(elsewhere=True)
        board.say(FIRST)
        await until(lambda size=size: rig.channel.status()[0]["rx"] > size)
        taken.append((time.monotonic() - begin) * 1000)
    return taken


async def network(rig: Rig, rounds: int, away: Callable[[], float]) -> list[float]:
    def greet(line: object) -> None:
        line.sendall(FIRST)  # type: ignore[attr-defined]
        line.recv(1)  # type: ignore[attr-defined]

    server = Server(greet)
    taken = []
    try:
        await rig.channel.watch([rig.config(device=f"socket://127.0.0.1:{server.port}")])
        for _ in range(rounds):
            size = await _whole(rig)
            await trio.sleep(STEADY_S)  # one that lives for less is asked again later and later
            server.stop()
            await until(lambda: rig.state() == "lost")
            await trio.sleep(away())
            begin = time.monotonic()
            server.start()
            await until(lambda size=size: rig.channel.status()[0]["rx"] > size)
            taken.append((time.monotonic() - begin) * 1000)
    finally:
        server.stop()
    return taken


async def _whole(rig: Rig) -> int:
    await until(lambda: rig.rx().endswith(FIRST))
    return len(rig.rx())


def labd(
    what: Callable[[Rig, int, Callable[[], float]], Awaitable[list[float]]], rounds: int, seed: int
) -> list[float]:
    """Run one of the two with a channel of its own."""
    pick = random.Random(seed)

    async def main(rig: Rig) -> list[float]:
        async with trio.open_nursery() as nursery:
            await nursery.start(pump, rig.capture)
            await nursery.start(rig.channel.run)
            taken = await what(rig, rounds, lambda: pick.uniform(0.1, 1.5))
            nursery.cancel_scope.cancel()
        return taken

    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(Path(folder))
        try:
            return trio.run(main, rig)
        finally:
            rig.capture.close()
            for board in rig.boards.values():
                board.close()


def peer(rounds: int, seed: int) -> list[float]:
    """The same plugs and unplugs for the pyserial loop."""
    pick, taken = random.Random(seed), []
    with tempfile.TemporaryDirectory() as folder:
        board = Board(Path(folder) / "tty")
        reader = Peer(str(board.path))
        try:
            reader.up.wait(5)
            for _ in range(rounds):
                board.unplug()
                while reader.up.is_set():
                    time.sleep(0.001)
                time.sleep(pick.uniform(0.1, 1.5))
                begin = time.monotonic()
                board.replug(elsewhere=True)
                reader.up.wait(5)
                time.sleep(0.02)  # pyserial purges what came before its open: it hears only what is said later
                board.say(FIRST)
                while reader.at < begin:
                    time.sleep(0.001)
                taken.append((reader.at - begin) * 1000)
        finally:
            reader.stop()
            board.close()
    return taken


def main() -> int:
    """Print the table; 1 if labd was over the limit."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--quick", action="store_true")
    asked.add_argument("--rounds", type=int, default=0)
    args = asked.parse_args()
    rounds = args.rounds or (5 if args.quick else 20)
    rows = [("labd, tty", labd(tty, rounds, 1)), ("labd, socket://", labd(network, rounds, 1)),
            (f"pyserial loop, every {PEER_RETRY_S:g} s", peer(rounds, 1))]  # fmt: skip
    print(f"{'replug to first byte (ms)':<32}{'p50':>8}{'max':>8}   of {rounds}")
    for name, taken in rows:
        print(f"{name:<32}{statistics.median(taken):>8.0f}{max(taken):>8.0f}")
    print("the pyserial loop loses what the board says before it has opened: its byte is sent after that")
    print(f"limit for labd on a tty: {LIMIT_MS} ms")
    return 1 if max(rows[0][1]) > LIMIT_MS else 0


if __name__ == "__main__":
    sys.exit(main())
