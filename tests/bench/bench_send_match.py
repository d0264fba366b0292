"""Send → match round trips of a connected client, beside pyserial and pexpect on a port of their own.

`python -m tests.bench.bench_send_match [--quick]`. The board echoes `ping N` and answers `pong N`. labd's is one
request through the daemon: recorded, journaled, echo left out. `run` is a whole command in a real shell (dash), framed.
Targets: p50 ≤ 1 ms, p95 ≤ 3 ms; `labd serial run dut true` as a process ≤ 1.6 times `python3 -c pass` plus the board's
own time, taken to be what a connected client waits for it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import serial
from pexpect import fdpexpect

from labd.client import Client
from tests.bench.bench_trigger import _LAB
from tests.bench.pty_dut import Dut, figures
from tests.conftest import a_bench, a_board

P50_MS, P95_MS, STARTS = 1.0, 3.0, 1.6


def main() -> int:
    """Print one line a contestant; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    count = 100 if parser.parse_args().quick else 500
    with Dut("answering") as dut, serial.Serial(dut.tty, timeout=5) as port:
        print(f"{'pyserial read_until':24} {figures(timed(count, lambda n: by_pyserial(port, n)))}", flush=True)
    with Dut("answering") as dut:
        fd = os.open(dut.tty, os.O_RDWR | os.O_NOCTTY)
        child = fdpexpect.fdspawn(fd, timeout=5)
        print(f"{'pexpect fdspawn':24} {figures(timed(count, lambda n: by_pexpect(child, fd, n)))}", flush=True)
        os.close(fd)
    times = by_labd(count)
    print(f"{'labd, one request':24} {figures(times)}", flush=True)
    good = statistics.median(times) * 1e3 <= P50_MS and sorted(times)[int(len(times) * 0.95)] * 1e3 <= P95_MS
    return 0 if runs(count // 5) and good else 1


def timed(count: int, one: Callable[[int], None]) -> list[float]:
    """Each round's seconds."""
    times = []
    for n in range(count):
        began = time.perf_counter()
        one(n)
        times.append(time.perf_counter() - began)
    return times


def by_pyserial(port: serial.Serial, n: int) -> None:
    """What a careful script does."""
    port.write(b"ping %d\r" % n)
    port.read_until(b"pong %d\r\n# " % n)


def by_pexpect(child: fdpexpect.fdspawn, fd: int, n: int) -> None:
    """pexpect with its defaults."""
    os.write(fd, b"ping %d\r" % n)
    child.expect_exact(b"pong %d\r\n# " % n)


def by_labd(count: int) -> list[float]:
    """A connected client of the daemon's."""
    with Dut("answering") as dut, tempfile.TemporaryDirectory() as root, a_bench(Path(root)) as bench:
        bench.env.pop("LABD_ARGV_LOG")
        bench.lab.write_text(_LAB.format(tty=dut.tty))
        bench("serial", "watch", "dut")
        with Client(bench.env) as client:

            def one(n: int) -> None:
                ask = {"target": "dut", "interface": "console", "text": f"ping {n}", "expect": f"pong {n}\n# ",
                       "literal": True}  # fmt: skip
                client.request("serial.send", ask)

            timed(10, one)
            return timed(count, one)


def runs(count: int) -> bool:
    """`serial run true`: by a client, and as a whole process beside a bare interpreter."""
    with a_board("dash-shell") as bench:
        bench("serial", "watch", "dut")
        bench("serial", "run", "dut", "true")
        with Client(bench.env) as client:
            ask = {"target": "dut", "interface": "console", "command": "true"}
            by_client = timed(count, lambda n: client.request("serial.run", ask))
        print(f"{'run true, by a client':24} {figures(by_client)}", flush=True)
        whole, bare = [], []
        for _ in range(max(10, count // 4)):
            whole += timed(1, lambda n: bench("serial", "run", "dut", "true", "-q"))
            bare += timed(1, lambda n: subprocess.run([sys.executable, "-c", "pass"], check=True))
        own = statistics.median(by_client)
        ratio = (statistics.median(whole) - own) / statistics.median(bare)
        print(f"{'labd serial run true':24} p50 {statistics.median(whole) * 1e3:6.2f} ms, less the board's own: "
              f"{ratio:.2f} x python3 -c pass ({statistics.median(bare) * 1e3:.2f} ms)")  # fmt: skip
        return ratio <= STARTS


if __name__ == "__main__":
    sys.exit(main())
