"""How much the journal costs beside a bare file, and whether a long journal is slower to ask than a short one.

`python -m tests.bench.bench_journal [--quick]`. Everything is measured in one run, in turns, so that the ratios hold on
a busy machine; the absolute times don't. Data is made in a temporary directory and removed. Targets: 1.1 bytes on disk
a byte in 4 KiB reads, and `--tail`, `--since`, a range on 5,000,000 lines at most twice the same on 5,000. Appending
has its target where the port is read too (`bench_capture`); here one sees what the index and the counting of lines add
to a bare write.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from labd import logquery
from labd.journal import Journal
from labd.logtext import as_text

SHORT, LONG, LONG_QUICK = 5_000, 5_000_000, 500_000
#: What the capture loop hands over at once while a port floods: eight reads of what a tty holds.
BURST = 32_760
LINE = b"[%12d.%06d] usb 1-1: new device found\r\n"


def main() -> int:
    """Run all and print one line a figure; 1 if a ratio misses its target."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a tenth of the lines, fewer rounds")
    quick = options.parse_args().quick
    rounds = 5 if quick else 11
    with tempfile.TemporaryDirectory(prefix="labd-bench-") as name:
        directory = Path(name)
        for size in (BURST, 4096, 64):
            append(directory, size, 4 if quick else 16, rounds)
        long = LONG_QUICK if quick else LONG
        fill(directory / "short", SHORT)
        seconds, ratio = fill(directory / "long", long)
        good = [ratio <= 1.1]
        print(f"fill {long:,} lines in 4 KiB reads: {seconds:.1f} s; on disk {ratio:.3f} bytes a byte (target 1.1)")
        good += list(ask(directory, long, rounds * 5))
        grep(directory, long)
    return 0 if all(good) else 1


def append(directory: Path, size: int, megabytes: int, rounds: int) -> None:
    """CPU milliseconds a megabyte of `Journal.rx` beside `os.write` of the same chunks."""
    block = b"".join(LINE % (n, n % 1_000_000) for n in range(200_000))
    chunks = [block[i : i + size] for i in range(0, min(len(block), megabytes << 20), size)]
    total = sum(map(len, chunks)) / 1e6
    ours, bare = [], []
    for number in range(rounds):
        journal = Journal(str(directory / f"append{size}-{number}"))
        ours.append(cpu(lambda journal=journal: [journal.rx(c, time.time_ns(), time.monotonic_ns()) for c in chunks]))
        journal.close()
        fd = os.open(directory / "bare", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        bare.append(cpu(lambda fd=fd: [os.write(fd, c) for c in chunks]))
        os.close(fd)
    mine, theirs = statistics.median(ours) / total, statistics.median(bare) / total
    ratio = mine / theirs
    print(f"append {size} B chunks: {mine * 1e3:.2f} CPU-ms/MB, bare os.write {theirs * 1e3:.2f}: ratio {ratio:.2f}")


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def fill(directory: Path, lines: int) -> tuple[float, float]:
    """Make a journal of so many lines in 4 KiB chunks; seconds, and bytes on disk for a byte."""
    start = time.perf_counter()
    journal = Journal(str(directory))
    held = b""
    for first in range(0, lines, 10_000):
        held += b"".join([LINE % (n, n % 1_000_000) for n in range(first, min(lines, first + 10_000))])
        whole = len(held) - len(held) % 4096 if first + 10_000 < lines else len(held)
        for at in range(0, whole, 4096):
            journal.rx(
                held[at : min(at + 4096, whole)], 1_790_000_000_000_000_000 + first * 1000 + at, first * 1000 + at
            )
        held = held[whole:]
    size = journal.rx_end
    journal.close()
    assert journal.rx_line == lines
    disk = sum(path.stat().st_size for path in (directory / "rx").iterdir())
    return time.perf_counter() - start, disk / size


def ask(directory: Path, long: int, rounds: int) -> Iterator[bool]:
    """The same questions to the long journal and to the short one, from opening to rendered text."""
    for name, of in (
        ("--tail 20", lambda n: {"tail": 20}),
        ("--since N, 1000 lines", lambda n: {"since": n - 1000}),
        ("--from/--to, 1000 lines", lambda n: {"frm": n // 3, "to": n // 3 + 999}),
    ):
        times: dict[int, list[float]] = {SHORT: [], long: []}
        for _ in range(rounds):
            for lines, where in ((long, "long"), (SHORT, "short")):
                start = time.process_time()
                shown = [as_text(item) for item in logquery.query(str(directory / where), **of(lines))]  # type: ignore[arg-type, no-untyped-call]
                times[lines].append(time.process_time() - start)
                assert len(shown) == (20 if "tail" in name else 1000)
        slow, fast = statistics.median(times[long]), statistics.median(times[SHORT])
        ratio = slow / fast
        print(
            f"{name}: {slow * 1e3:.2f} ms of {long:,}, {fast * 1e3:.2f} ms of {SHORT:,}: ratio {ratio:.2f} (target 2)"
        )
        yield ratio <= 2


def grep(directory: Path, long: int) -> None:
    """What looking for a text costs beside reading the raw files, for the record."""
    start = time.process_time()
    found = [
        item.seq
        for item in logquery.query(str(directory / "long"), grep=rf"\[ +{long // 2}\.")
        if isinstance(item, logquery.Line)
    ]
    ours = time.process_time() - start
    assert found == [long // 2 + 1], found
    start = time.process_time()
    needle = b"%d." % (long // 2)
    hits = sum(path.read_bytes().count(needle) for path in (directory / "long" / "rx").glob("*.raw"))
    bare = time.process_time() - start
    print(f"--grep one line of {long:,}: {ours * 1e3:.0f} CPU-ms, counting in the raw files {bare * 1e3:.0f}")
    assert hits


if __name__ == "__main__":
    sys.exit(main())
