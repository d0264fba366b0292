"""A board for round trips: the far end of a PTY in a process of its own, as every contestant meets it.

`answering`: `ping N\\r` is echoed and answered by `pong N`. `asking`: at each `go` on stdin it prints some lines and a
question, and tells on stdout how long the first byte of the answer took, in seconds.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
import tty
from typing import IO

QUESTION = b"Hit any key to stop autoboot: "
_LINES = b"".join(b"[    1.%06d] some driver: some message that a kernel would print\r\n" % n for n in range(4))


def _open() -> int:
    master, slave = os.openpty()
    tty.setraw(slave)
    print(os.ttyname(slave), flush=True)
    return master  # the slave stays open, so that a contestant's close is no hang-up


def answering(master: int) -> None:
    """Echo each line, answer a ping, print a prompt; until stdin ends."""
    held = b""
    while True:
        ready, _, _ = select.select([master, 0], [], [])
        if 0 in ready:
            return
        held += os.read(master, 4096)
        while b"\r" in held:
            line, _, held = held.partition(b"\r")
            os.write(master, line + b"\r\npong " + line.rpartition(b" ")[2] + b"\r\n# ")


def asking(master: int) -> None:
    """Ask at each line of stdin."""
    while sys.stdin.readline():
        os.write(master, _LINES)
        time.sleep(0.005)
        began = time.perf_counter()
        os.write(master, QUESTION)
        select.select([master], [], [], 5.0)
        took = time.perf_counter() - began
        if select.select([master], [], [], 0)[0]:
            os.read(master, 4096)
        os.write(master, b"\r\n")
        print(took, flush=True)


class Dut:
    """The process: `tty` is the node to open. A context manager."""

    def __init__(self, mode: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.pty_dut", mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.out: IO[bytes] = self.process.stdout  # type: ignore[assignment]
        self.into: IO[bytes] = self.process.stdin  # type: ignore[assignment]
        self.tty = self.out.readline().decode().strip()

    def ask(self) -> None:
        """Let it ask."""
        self.into.write(b"go\n")
        self.into.flush()

    def took(self) -> float:
        """How long the answer took, in seconds."""
        return float(self.out.readline())

    def __enter__(self) -> Dut:
        return self

    def __exit__(self, *exc: object) -> None:
        self.into.close()
        self.process.wait(10)
        self.out.close()


def figures(times: list[float]) -> str:
    """p50, p95, p99 and the worst, in milliseconds."""
    ordered = sorted(times)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1e3 for part in (0.5, 0.95, 0.99)]
    return f"p50 {at[0]:6.2f} ms   p95 {at[1]:6.2f} ms   p99 {at[2]:6.2f} ms   worst {ordered[-1] * 1e3:6.2f} ms"


if __name__ == "__main__":
    {"answering": answering, "asking": asking}[sys.argv[1]](_open())
