"""How soon a board has its answer: a labd trigger beside a pyserial loop and a pexpect loop that wait for the same.

`python -m tests.bench.bench_trigger [--quick]`. The time is taken at the board, from its question to the first byte of
the answer. labd's trigger is armed anew for each round, through the daemon. Target: p99 ≤ 5 ms.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import serial
from pexpect import fdpexpect

from labd.client import Client
from tests.bench.pty_dut import QUESTION, Dut, figures
from tests.conftest import a_bench

MOST_MS = 5.0
_LAB = '[targets.dut]\n[[targets.dut.serial]]\nname = "console"\ndevice = "{tty}"\n'


def main() -> int:
    """Print one line a contestant; 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    count = 100 if parser.parse_args().quick else 400
    for name, contestant in (("pyserial loop + re", by_pyserial), ("pexpect fdspawn", by_pexpect)):
        with Dut("asking") as dut:
            print(f"{name:24} {figures(in_a_thread(dut, count, contestant))}", flush=True)
    worst = 0.0
    for name, pattern in (("labd trigger, text", "Hit any key"), ("labd trigger, regex", r"Hit \w{3} key")):
        times = by_labd(count, pattern)
        print(f"{name:24} {figures(times)}", flush=True)
        if pattern == "Hit any key":
            worst = sorted(times)[int(len(times) * 0.99)] * 1e3
    return 0 if worst <= MOST_MS else 1


def in_a_thread(dut: Dut, count: int, contestant: Callable[[str, int], None]) -> list[float]:
    """The contestant answers in its own thread; the board asks."""
    thread = threading.Thread(target=contestant, args=(dut.tty, count), daemon=True)
    thread.start()
    times = []
    for _ in range(count):
        dut.ask()
        times.append(dut.took())
    thread.join(10)
    return times


def by_pyserial(tty: str, count: int) -> None:
    """What a careful script does."""
    wanted = re.compile(re.escape(QUESTION))
    with serial.Serial(tty, timeout=5) as port:
        for _ in range(count):
            held = b""
            while not wanted.search(held):
                held += port.read(max(1, port.in_waiting))
            port.write(b" ")


def by_pexpect(tty: str, count: int) -> None:
    """pexpect with its defaults."""
    fd = os.open(tty, os.O_RDWR | os.O_NOCTTY)
    child = fdpexpect.fdspawn(fd, timeout=5)
    for _ in range(count):
        child.expect_exact(QUESTION)
        os.write(fd, b" ")
    os.close(fd)


def by_labd(count: int, pattern: str) -> list[float]:
    """A trigger of the daemon's."""
    times = []
    with Dut("asking") as dut, tempfile.TemporaryDirectory() as root, a_bench(Path(root)) as bench:
        bench.env.pop("LABD_ARGV_LOG")
        bench.lab.write_text(_LAB.format(tty=dut.tty))
        bench("serial", "watch", "dut")
        with Client(bench.env) as client:
            arm = {"target": "dut", "pattern": pattern, "text": " ", "no_newline": True}
            for _ in range(count):
                client.request("serial.trigger.add", arm)
                dut.ask()
                times.append(dut.took())
    return times


if __name__ == "__main__":
    sys.exit(main())
