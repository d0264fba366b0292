"""A light load: one process that writes to the masters of many PTYs by a clock, so that what reads them is measured.

Every port says the same endless text, `block` over and over, so whoever has a count knows each byte and each line. A
port that does not take what is due gets it later: nothing is left out. Protocol: the nodes as JSON on stdout; a line
on stdin begins; what was sent to each port, and how it went (JSON), ends it; the masters stay open until stdin ends.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
import tty
from functools import cache, partial
from types import TracebackType
from typing import Any

#: How often a USB adapter hands over what came, in seconds: FTDI's default.
TICK_S = 0.016
_NICE = 10


@cache
def block() -> bytes:
    """About 1 MB like a boot log, with bytes that a cooked terminal or a text store would change."""
    lines = []
    for number in range(10_000):
        odd = bytes([0, 3, 13, 17, 19, 26, 127, 255]) if number % 50 == 0 else b""
        text = b"[%12.6f] usb 1-%d: new high-speed device %05d" % (number / 300, number % 9, number)
        lines.append((text + odd).ljust(97, b".") + b"\n")
    return b"".join(lines)


def lines_in(count: int) -> int:
    """How many lines end in the first `count` bytes of the endless text."""
    whole, rest = divmod(count, len(block()))
    return whole * block().count(b"\n") + block().count(b"\n", 0, rest)


class Load:
    """The process: `nodes` to open, `go`, and `sent` when it is over. A context manager; it is niced.

    `rate` is bytes a second and port, 0 as much as is taken; `seconds` how long.
    """

    def __init__(self, ports: int, rate: float, seconds: float) -> None:
        argv = [sys.executable, "-m", "tests.bench.pty_load", str(ports), str(rate), str(seconds)]
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=partial(os.nice, _NICE)
        )
        self.nodes: list[str] = self._said()

    def go(self) -> None:
        """Begin."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def over(self, within_s: float) -> bool:
        """Whether all is sent, after at most so long."""
        return bool(select.select([self.process.stdout], [], [], within_s)[0])

    def sent(self) -> tuple[list[int], float, float]:
        """The bytes of each port; for how long one took nothing while it was full, and for how long this process got
        no turn: the first is what is measured, the second is the machine's. Seconds. Waits for the end.
        """
        answer = self._said()
        return answer["sent"], answer["stuck_s"], answer["idle_s"]

    def _said(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the load generator ended")
        return json.loads(line)

    def __enter__(self) -> Load:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self.process.kill()
        self.process.communicate()


def write(ports: int, rate: float, seconds: float) -> None:
    """The process itself."""
    pairs = [os.openpty() for _ in range(ports)]
    masters = [master for master, _ in pairs]
    for _, slave in pairs:
        tty.setraw(slave)
    print(json.dumps([os.ttyname(slave) for _, slave in pairs]), flush=True)
    for master, slave in pairs:
        os.set_blocking(master, False)
        os.close(slave)  # a second opener would be told of
    sys.stdin.readline()
    print(json.dumps(_by_clock(masters, rate, seconds)), flush=True)
    sys.stdin.readline()


def _by_clock(masters: list[int], rate: float, seconds: float) -> dict[str, Any]:
    """Write what is due at each tick; the answer of `Load.sent`."""
    data = memoryview(block() + block()[:65536])
    size = len(block())
    sent = dict.fromkeys(masters, 0)
    full_since: dict[int, float] = {}
    stuck = idle = 0.0
    begun = wanted = time.monotonic()
    while True:
        turn = time.monotonic()
        idle = max(idle, turn - wanted)
        now = min(turn - begun, seconds)
        due = int(now * rate) if rate else 1 << 62 if now < seconds else 0
        full = []
        for fd in masters:
            while sent[fd] < due:
                at = sent[fd] % size
                try:
                    sent[fd] += os.write(fd, data[at : at + min(65536, due - sent[fd])])
                    full_since.pop(fd, None)
                except BlockingIOError:
                    full.append(fd)
                    stuck = max(stuck, turn - full_since.setdefault(fd, turn))
                    break
        if now >= seconds and not full:
            return {"sent": list(sent.values()), "stuck_s": round(stuck, 3), "idle_s": round(idle, 3)}
        wanted = begun + ((time.monotonic() - begun) // TICK_S + 1) * TICK_S
        _until(wanted, full)


def _until(tick: float, full: list[int]) -> None:
    """Sleep until the next tick, or until one that was full takes more."""
    poll = select.poll()
    for fd in full:
        poll.register(fd, select.POLLOUT)
    poll.poll(max(0.0, tick - time.monotonic()) * 1000)


if __name__ == "__main__":
    write(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
