"""A soak: ports that flood for a time, and byte counts that add up.

    python -m tests.bench soak [--quick] [--ports N] [--minutes M] [--rate MB/S] [--keep-mb N]

Sent by each device = in the journal = indexed; of the kept bytes each one is compared; no gap recorded; what the
capture process and the daemon use of CPU and memory is printed. Journals are bounded by `--keep-mb` a port as on any
bench, so an hour needs no disk for an hour: what was evicted must then be exactly what is not kept. 1 where anything
does not add up.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from labd import paths
from labd.completeness import KINDS
from labd.journal_read import Reader
from tests.bench.pty_load import Load, block, lines_in
from tests.conftest import BenchInAFolder, a_bench
from tests.torture.subject import cpu_s, memory_mb

#: Events that mean that bytes are missing, may be others, or that a port was away.
LOSSES = tuple(set(KINDS) - {"open"})
SAMPLE_S = 1.0
PATIENCE_S = 30.0


def main() -> int:
    """Run it, print the figures."""
    options = argparse.ArgumentParser(prog="python -m tests.bench soak", description=__doc__)
    options.add_argument("--quick", action="store_true", help="four ports for five seconds")
    options.add_argument("--ports", type=int, default=8)
    options.add_argument("--minutes", type=float, default=1.0)
    options.add_argument("--rate", type=float, default=1.5, help="MB/s a port; 0 is as much as is taken")
    options.add_argument("--keep-mb", type=int, default=64, help="of each port's journal, in MiB")
    asked = options.parse_args()
    ports, seconds = (4, 5.0) if asked.quick else (asked.ports, asked.minutes * 60)
    return carry(ports, asked.rate * 1e6, seconds, asked.keep_mb)


@dataclass
class Use:
    """What a process uses: CPU seconds, and MB of memory of its own at each sample."""

    pid: int
    began_cpu: float = 0.0
    cpu: float = 0.0
    memory: list[float] = field(default_factory=list)

    def sample(self) -> None:
        """Look now."""
        self.memory.append(memory_mb([self.pid]))
        self.cpu = cpu_s([self.pid])
        if len(self.memory) == 1:
            self.began_cpu = self.cpu

    def told(self, wall_s: float, megabytes: float) -> str:
        """In words; memory after a third and at last tell whether it grows."""
        used = self.cpu - self.began_cpu
        third = self.memory[len(self.memory) // 3]
        return (
            f"{used / wall_s:6.1%} of a core, {used / megabytes * 1000:5.1f} CPU-ms/MB, memory "
            f"{self.memory[0]:.1f} MB at first, {third:.1f} after a third, {max(self.memory):.1f} at most, "
            f"{self.memory[-1]:.1f} at last"
        )


def carry(ports: int, rate: float, seconds: float, keep_mb: int) -> int:
    """Capture `ports` ports that say `rate` bytes/s each for so long, and check every count; 1 where one is wrong."""
    with tempfile.TemporaryDirectory(prefix="labd-bench-") as root, a_bench(Path(root)) as bench:
        bench.env.pop("LABD_ARGV_LOG")
        with Load(ports, rate, seconds) as load:
            bench.lab.write_text(_lab(load.nodes, keep_mb))
            bench("serial", "watch", "dut")
            uses = _uses(bench)
            began = time.monotonic()
            load.go()
            while not load.over(SAMPLE_S):
                for use in uses.values():
                    use.sample()
            sent, stuck_s, idle_s = load.sent()
            readers = [_read_all(bench, number, count) for number, count in enumerate(sent)]
            wall_s = time.monotonic() - began
            for use in uses.values():
                use.sample()
            wrong = [f"p{n}: {what}" for n, count in enumerate(sent) for what in _wrong(readers[n], count)]
    megabytes = sum(sent) / 1e6
    _print(readers, sent)
    print(f"{ports} ports, {wall_s:.1f} s, {megabytes:.1f} MB sent, {megabytes / wall_s:.2f} MB/s in all")
    print(
        f"a full port took nothing for {stuck_s * 1000:.0f} ms at most; the writer had no turn for {idle_s * 1000:.0f}"
    )
    for name, use in uses.items():
        print(f"{name:8} {use.told(wall_s, megabytes)}")
    for what in wrong:
        print(f"WRONG: {what}")
    print("it adds up: no byte lost, none twice, no gap" if not wrong else f"{len(wrong)} counts do not add up")
    return 1 if wrong else 0


def _lab(nodes: list[str], keep_mb: int) -> str:
    tables = [f'[[targets.dut.serial]]\nname = "p{n}"\ndevice = "{node}"\n' for n, node in enumerate(nodes)]
    return f"[journal]\nkeep_mb = {keep_mb}\n\n[targets.dut]\n" + "".join(tables)


def _uses(bench: BenchInAFolder) -> dict[str, Use]:
    pids = {"capture": bench.capture_pid(), "daemon": bench.daemon_pid()}
    uses = {name: Use(pid) for name, pid in pids.items() if pid is not None}
    for use in uses.values():
        use.sample()
    return uses


def _read_all(bench: BenchInAFolder, number: int, count: int) -> Reader:
    """The journal of a port, once as much as was sent is in it, or nothing more comes."""
    reader = Reader(paths.journal_dir(bench.env, str(bench.lab), "dut", f"p{number}"))
    deadline = time.monotonic() + PATIENCE_S
    while reader.end_offset < count and time.monotonic() < deadline:
        time.sleep(0.01)
        reader.refresh()
    return reader


def _wrong(reader: Reader, sent: int) -> list[str]:
    """What does not add up in one port's journal."""
    found = []
    if reader.end_offset != sent:
        found.append(f"{sent} bytes sent, {reader.end_offset} captured")
    events = list(reader.events(after=0))
    evicted = sum(event.fields["bytes"] for event in events if event.kind == "evicted")
    on_disk = sum(file.stat().st_size for file in Path(reader.directory, "rx").glob("*.raw"))
    if evicted != reader.first_offset or evicted + on_disk != sent:
        found.append(f"{sent} bytes sent; {evicted} evicted and {on_disk} kept, from {reader.first_offset} on")
    found += [f"{event.kind} told at {event.rx}: {event.fields}" for event in events if event.kind in LOSSES]
    return found + _wrong_bytes(reader, sent) + _wrong_index(reader, sent)


def _wrong_bytes(reader: Reader, sent: int) -> list[str]:
    """Whether each byte that is kept is the one that was sent."""
    endless, size = block() * 2, len(block())
    expected = reader.first_offset
    for offset, data in reader.chunks(expected):
        if offset != expected:
            return [f"a hole from {expected} to {offset}"]
        for begin in range(0, len(data), size):
            piece = data[begin : begin + size]
            at = (offset + begin) % size
            if endless[at : at + len(piece)] != piece:
                return [f"a byte differs behind {offset + begin}"]
        expected = offset + len(data)
    return [] if expected == sent else [f"{sent} bytes sent, readable to {expected}"]


def _wrong_index(reader: Reader, sent: int) -> list[str]:
    """Whether every kept byte belongs to exactly one record, with the right number of lines before it."""
    at = reader.first_offset
    for file in sorted(Path(reader.directory, "rx").glob("*.idx"), key=lambda file: int(file.stem)):
        base = int(file.stem)
        for start, length, lines, _, _ in struct.iter_unpack("<IIQQQ", file.read_bytes()):
            if base + start != at:
                return [f"the index goes on at {base + start}, not at {at}"]
            if lines != lines_in(at):
                return [f"the index has {lines} lines before {at}, not {lines_in(at)}"]
            at += length & 0xFFFFFF
    return [] if at == sent else [f"{sent} bytes sent, indexed to {at}"]


def _print(readers: list[Reader], sent: list[int]) -> None:
    print("port        sent    captured      gone by size        kept       lines")
    for number, (reader, count) in enumerate(zip(readers, sent, strict=True)):
        end, first = reader.end_offset, reader.first_offset
        print(f"p{number:<3}{count:12d}{end:12d}{first:18d}{end - first:12d}{lines_in(count):12d}")


if __name__ == "__main__":
    sys.exit(main())
