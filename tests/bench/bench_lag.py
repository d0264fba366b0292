"""How late a byte's time stamp is while somebody greps 70 MB: labd's capture process beside a reader thread.

    python -m tests.bench.bench_lag [--quick]

Boards on PTYs write their own monotonic time; the lag is what the reader's stamp is later than that. `thread` is what
a person would write: a thread that reads, in the process that greps. Stamps of labd are those in its index.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import tty
from pathlib import Path

PORTS = 4
EVERY_S = 0.005
GREP_BYTES = 70 << 20

#: The feeder: each port gets a line with the time of its writing.
FEEDER = """
import os, sys, time
seconds, every = float(sys.argv[1]), float(sys.argv[2])
masters = [int(word) for word in sys.argv[3:]]
end = time.monotonic() + seconds
while time.monotonic() < end:
    for fd in masters:
        os.write(fd, b"%020d%s\\n" % (time.monotonic_ns(), b"." * 43))
    time.sleep(every)
"""


def text(size: int) -> bytes:
    """Console-like text to search."""
    pick = random.Random(3)
    lines = [b"[%8d.%06d] usb %d-1: device descriptor read/64, error -%d\n" % (n, n, pick.randrange(9), n % 133)
             for n in range(20_000)]  # fmt: skip
    block = b"".join(lines)
    return block * (size // len(block) + 1)


def feed(masters: list[int], seconds: float) -> "subprocess.Popen[bytes]":
    argv = [sys.executable, "-c", FEEDER, str(seconds), str(EVERY_S), *map(str, masters)]
    return subprocess.Popen(argv, pass_fds=masters)


def by_thread(seconds: float) -> list[float]:
    """Lags in ms of a thread that reads while the main thread searches."""
    pairs = [os.openpty() for _ in range(PORTS)]
    lags: list[float] = []
    stop = threading.Event()

    def read() -> None:
        import select

        poll = select.poll()
        for _, slave in pairs:
            tty.setraw(slave)
            poll.register(slave, select.POLLIN)
        while not stop.is_set():
            for fd, _ in poll.poll(100):
                data, now = os.read(fd, 65536), time.monotonic_ns()
                lags.append((now - int(data[:20])) / 1e6)

    reader = threading.Thread(target=read)
    reader.start()
    sought = text(GREP_BYTES).decode("latin-1")
    feeder = feed([master for master, _ in pairs], seconds)
    while feeder.poll() is None:
        for line in sought.splitlines():
            if re.search(r"error -13[0-9]7", line):
                raise SystemExit("found what is not there")
            if feeder.poll() is not None:
                break
    stop.set()
    reader.join()
    for pair in pairs:
        for fd in pair:
            os.close(fd)
    return lags


def by_labd(seconds: float) -> list[float]:
    """Lags in ms of the stamps in the journals, while clients grep a journal of 70 MB by the daemon."""
    from labd import paths
    from labd.journal import Journal
    from labd.journal_read import Reader
    from tests.conftest import a_bench

    pairs = [os.openpty() for _ in range(PORTS)]
    for _, slave in pairs:
        tty.setraw(slave)
    with tempfile.TemporaryDirectory() as root, a_bench(Path(root)) as bench:
        names = [os.ttyname(slave) for _, slave in pairs]
        for _, slave in pairs:
            os.close(slave)
        tables = [f'[[targets.dut.serial]]\nname = "p{n}"\ndevice = "{name}"\n' for n, name in enumerate(names)]
        big = '[targets.big]\n[[targets.big.serial]]\nname = "console"\ndevice = "/dev/nothing"\n'
        bench.lab.write_text("[targets.dut]\n" + "".join(tables) + big)
        journal = Journal(paths.journal_dir(bench.env, str(bench.lab), "big", "console"))
        data = text(GREP_BYTES)
        for at in range(0, len(data), 1 << 16):
            journal.rx(data[at : at + (1 << 16)], time.time_ns(), time.monotonic_ns())
        journal.close()
        bench("serial", "watch", "dut")
        feeder = feed([master for master, _ in pairs], seconds)
        greps = 0
        while feeder.poll() is None:
            bench("serial", "log", "big", "--tail", "0", "--grep", "error -13[0-9]7", check=None)
            greps += 1
        lags = []
        for number in range(PORTS):
            reader = Reader(paths.journal_dir(bench.env, str(bench.lab), "dut", f"p{number}"))
            lags += [(line.mono_ns - int(line.raw[:20])) / 1e6 for line in reader.lines()]
        print(f"labd: {greps} greps of {len(data) >> 20} MB meanwhile")
    for master, _ in pairs:
        os.close(master)
    return lags


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="4 s instead of 15 s")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    seconds = 4.0 if args.quick else 15.0
    results = {}
    for name, measure in (("thread", by_thread), ("labd", by_labd)):
        lags = sorted(measure(seconds))
        at = [lags[min(len(lags) - 1, int(len(lags) * share))] for share in (0.5, 0.99, 1.0)]
        results[name] = {"n": len(lags), **dict(zip(("p50", "p99", "max"), at, strict=True))}
    if args.json:
        print(json.dumps(results))
        return 0
    print(f"{'reader':10}{'stamps':>8}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}")
    for name, found in results.items():
        print(f"{name:10}{found['n']:8}{found['p50']:9.2f}{found['p99']:9.2f}{found['max']:9.2f}")
    print("target: labd p99 <= 5 ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
