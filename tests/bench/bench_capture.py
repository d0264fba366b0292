"""Capture from flooding PTYs: labd's whole path (port, capture process, journal), `cat > file`, a bare trio loop.

    python -m tests.bench.bench_capture [--quick] [--rounds N] [--json]

The feeder is a process of its own, and so is each reader. Every byte is checked by CRC, labd's index too. Read the
ratios; absolute numbers are the machine's. A PTY that another process holds is refused: two readers would split the
stream and nobody would notice. One dummy PTY stays open, so that a stray reader of a recycled number gets that.
"""

import argparse
import json
import os
import random
import select
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import tty
import zlib
from pathlib import Path
from typing import Any

MB = 1_000_000
PORTS = (1, 4, 16)
DEADLINE_S = 120.0
READERS = ("cat", "trio", "labd")


def block() -> bytes:
    """1 MB like a boot log: 98-byte lines, now and then bytes that a cooked terminal or a text store would change."""
    pick = random.Random(7)
    lines = []
    for number in range(MB // 98):
        text = b"[%12.6f] usb 1-%d: new high-speed device" % (number / 300, pick.randrange(9))
        odd = bytes([0, 3, 13, 17, 19, 26, 127, 255]) if number % 50 == 0 else b""
        lines.append((text + odd).ljust(97, b".") + b"\n")
    return b"".join(lines)


def feed(total: int, masters: list[int]) -> None:
    """The feeder: wait for a line on stdin, then write `total` bytes to each master as fast as they are taken."""
    data = block() * 2
    size = len(data) // 2
    at = dict.fromkeys(masters, 0)
    for fd in masters:
        os.set_blocking(fd, False)
    print("ready", flush=True)
    sys.stdin.readline()
    waiting = select.poll()
    for fd in masters:
        waiting.register(fd, select.POLLOUT)
    view = memoryview(data)
    while at:
        for fd, _ in waiting.poll():
            begin = at[fd] % size
            try:
                at[fd] += os.write(fd, view[begin : begin + min(65536, total - at[fd])])
            except BlockingIOError:
                continue
            if at[fd] >= total:
                waiting.unregister(fd)
                del at[fd]
    sys.stdin.readline()  # keep the masters open until the readers are done


# Readers in Python: each prints "ready", captures `total` bytes a port, and reports -------------------------------


def report(cpu: float) -> None:
    status = Path("/proc/self/status")
    peak = 0
    if status.exists():
        peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"cpu": cpu, "rss_mb": peak / 1024}), flush=True)


def read_trio(directory: str, total: int, slaves: list[str]) -> None:
    """What a person would write first: a task a port, wait, read, write."""
    import trio

    async def reader(index: int, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        out = os.open(f"{directory}/{index}", os.O_WRONLY | os.O_CREAT, 0o600)
        got = 0
        while got < total:
            await trio.lowlevel.wait_readable(fd)
            data = os.read(fd, 65536)
            os.write(out, data)
            got += len(data)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for index, path in enumerate(slaves):
                nursery.start_soon(reader, index, path)
            await trio.testing.wait_all_tasks_blocked()
            print("ready", flush=True)
            start.append(time.process_time())

    import trio.testing

    start: list[float] = []
    trio.run(main)
    report(time.process_time() - start[0])


def read_labd(directory: str, total: int, slaves: list[str]) -> None:
    """The product's own path: this is the daemon's part, and it has a capture process. CPU is that of both."""
    import trio

    from labd.capture_link import CaptureLink
    from labd.channels.serial import SerialChannel

    async def no_dut(device: str, interface: str, config: object) -> str:
        raise NotImplementedError

    left = {str(index) for index in range(len(slaves))}
    done = trio.Event()

    def on_data(name: str) -> None:
        line = channel._lines.get(name)
        if line is not None and line.rx_end >= total:
            left.discard(name)
            if not left:
                done.set()

    runtime = tempfile.mkdtemp(prefix="lb-", dir="/tmp")
    argv = [sys.executable, "-m", "labd.capture_process", runtime]
    capture = CaptureLink(runtime, lambda: subprocess.Popen(argv, start_new_session=True), print)
    channel = SerialChannel(
        "/bench/lab.toml", "bench", journal_root=directory, capture=capture, start_dut=no_dut, on_data=on_data
    )

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(capture.run)
            await nursery.start(channel.run)
            await channel.watch([{"name": str(i), "device": path} for i, path in enumerate(slaves)])
            print("ready", flush=True)
            pid = int(capture.status()["pid"])
            start = time.process_time() + _cpu(pid)
            await done.wait()
            cpu = time.process_time() + _cpu(pid) - start
            print(json.dumps({"cpu": cpu, "rss_mb": _peak(pid)}), flush=True)
            await channel.stop()
            await capture.quit()
            nursery.cancel_scope.cancel()

    trio.run(main)
    shutil.rmtree(runtime, ignore_errors=True)


# One measurement --------------------------------------------------------------------------------------------------


class Ptys:
    """`n` raw PTYs that nobody else has open."""

    def __init__(self, n: int) -> None:
        self.pairs = [os.openpty() for _ in range(n)]
        for _, slave in self.pairs:
            tty.setraw(slave)
        self.masters = [master for master, _ in self.pairs]
        self.names = [os.ttyname(slave) for _, slave in self.pairs]
        from labd.platform import current

        for name in self.names:
            if others := current().holders(name):
                raise SystemExit(f"{name} is open in {others}: its bytes would be split; end that process first")

    def close(self) -> None:
        for pair in self.pairs:
            for fd in pair:
                os.close(fd)


def measure(reader: str, ports: int, total: int, where: str) -> dict[str, float]:
    """MB/s, CPU-ms a MB and peak RSS of one reader; raises SystemExit when a byte is wrong."""
    directory = tempfile.mkdtemp(prefix="labd-bench-", dir=where)
    ptys = Ptys(ports)
    children: list[subprocess.Popen[bytes]] = []
    try:
        feeder = _start(["feed", str(total), *map(str, ptys.masters)], children, pass_fds=ptys.masters)
        if reader == "cat":
            result = _cat(directory, total, ptys, feeder, children)
        else:
            child = _start([reader, directory, str(total), *ptys.names], children)
            begin = _go(feeder)
            assert child.stdout is not None
            answer = child.stdout.readline()
            result = {"wall": time.perf_counter() - begin, **json.loads(answer or b"{}")}
            child.wait(DEADLINE_S)
        _verify(reader, directory, ports, total)
    finally:
        for child in children:
            child.kill()
            child.wait()
        ptys.close()
        shutil.rmtree(directory, ignore_errors=True)
    megabytes = ports * total / MB
    return {
        "mb_s": megabytes / result["wall"],
        "cpu_ms_mb": result["cpu"] * 1000 / megabytes,
        "rss_mb": result["rss_mb"],
    }


def _start(words: list[str], children: list[Any], **more: Any) -> "subprocess.Popen[bytes]":
    argv = [sys.executable, "-m", "tests.bench.bench_capture", "--as", *words]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
    children.append(child)
    assert child.stdout is not None
    if child.stdout.readline().strip() != b"ready":
        raise SystemExit(f"{words[0]} did not start")
    return child


def _go(feeder: "subprocess.Popen[bytes]") -> float:
    assert feeder.stdin is not None
    feeder.stdin.write(b"\n")
    feeder.stdin.flush()
    return time.perf_counter()


def _cat(directory: str, total: int, ptys: Ptys, feeder: Any, children: list[Any]) -> dict[str, float]:
    cats = []
    for index, name in enumerate(ptys.names):
        with open(f"{directory}/{index}", "wb") as out:
            cats.append(subprocess.Popen(["cat", name], stdout=out, stdin=subprocess.DEVNULL))
    children += cats
    from labd.platform import current

    until = time.perf_counter() + DEADLINE_S
    while any(cat.pid not in {h["pid"] for h in current().holders(n)} for cat, n in zip(cats, ptys.names, strict=True)):
        if time.perf_counter() > until:
            raise SystemExit("cat did not open its port")
        time.sleep(0.005)
    before = sum(_cpu(cat.pid) for cat in cats)
    begin = _go(feeder)
    while any(os.path.getsize(f"{directory}/{index}") < total for index in range(len(cats))):
        if time.perf_counter() > until:
            raise SystemExit("cat did not finish")
        time.sleep(0.002)
    wall = time.perf_counter() - begin
    cpu = sum(_cpu(cat.pid) for cat in cats) - before
    return {"wall": wall, "cpu": cpu, "rss_mb": sum(_peak(cat.pid) for cat in cats)}


def _cpu(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _peak(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _verify(reader: str, directory: str, ports: int, total: int) -> None:
    data = block()
    wanted = zlib.crc32((data * (total // len(data) + 1))[:total])
    for index in range(ports):
        files = [Path(directory, str(index))]
        if reader == "labd":
            files = sorted(Path(directory, str(index), "rx").glob("*.raw"))
            _verify_index(files)
        crc = 0
        for file in files:
            crc = zlib.crc32(file.read_bytes(), crc)
        if crc != wanted:
            size = sum(file.stat().st_size for file in files)
            raise SystemExit(f"{reader}: port {index} is not byte-exact ({size} of {total} bytes)")


def _verify_index(files: list[Path]) -> None:
    """Every byte belongs to exactly one chunk record, and the records count the lines right."""
    lines = 0
    for file in files:
        raw, at = file.read_bytes(), 0
        for start, length, line, _, _ in struct.iter_unpack("<IIQQQ", file.with_suffix(".idx").read_bytes()):
            size = length & 0xFFFFFF
            if start != at or line != lines:
                raise SystemExit(f"{file}: the index is wrong at byte {at}")
            lines += raw.count(b"\n", at, at + size)
            at += size
        if at != len(raw):
            raise SystemExit(f"{file}: {len(raw) - at} bytes are not in the index")


# The table --------------------------------------------------------------------------------------------------------


def main() -> int:
    if len(sys.argv) > 2 and sys.argv[1] == "--as":
        role, *words = sys.argv[2:]
        if role == "feed":
            feed(int(words[0]), [int(word) for word in words[1:]])
        else:
            {"trio": read_trio, "labd": read_labd}[role](words[0], int(words[1]), words[2:])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="16 MB and one round instead of 64 MB and three")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--dir", default=None, help="where to write (default: the temporary directory)")
    args = parser.parse_args()
    size = (16 if args.quick else 64) * MB
    rounds = args.rounds or (1 if args.quick else 3)
    dummy = os.openpty()
    results: dict[str, dict[str, float]] = {}
    for ports in PORTS:
        runs: dict[str, list[dict[str, float]]] = {reader: [] for reader in READERS}
        for _ in range(rounds):
            for reader in READERS:
                runs[reader].append(measure(reader, ports, size // ports, args.dir or tempfile.gettempdir()))
        for reader in READERS:
            keys = runs[reader][0]
            results[f"{reader} x{ports}"] = {k: statistics.median(run[k] for run in runs[reader]) for k in keys}
    for fd in dummy:
        os.close(fd)
    print(json.dumps(results)) if args.json else _table(results, size, rounds)
    return 0


def _table(results: dict[str, dict[str, float]], size: int, rounds: int) -> None:
    print(f"{size // MB} MB in all, median of {rounds}; every byte checked; labd: journal and index included")
    print(f"{'reader':12}{'MB/s':>8}{'CPU-ms/MB':>11}{'peak RSS MB':>13}{'CPU : cat':>11}")
    for name, found in results.items():
        cat = results["cat " + name.split()[1]]
        ratio = found["cpu_ms_mb"] / cat["cpu_ms_mb"]
        print(f"{name:12}{found['mb_s']:8.1f}{found['cpu_ms_mb']:11.2f}{found['rss_mb']:13.1f}{ratio:10.2f}x")
    print("labd: CPU of daemon and capture process, RSS of the latter")
    print("target: labd >= 40 MB/s on one port, CPU <= 2x cat at 1 and 16 ports, RSS <= 60 MB")


if __name__ == "__main__":
    sys.exit(main())
