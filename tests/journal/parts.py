"""What the journal's tests share: a writer with a clock of its own, and processes that write until they are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from labd.journal import Journal
from labd.journal_format import bases

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
ROOT = Path(__file__).resolve().parents[2]


class Board:
    """Writes to a journal as a capture loop would, a millisecond later each time."""

    def __init__(self, directory: Path, **options: int) -> None:
        self.directory = str(directory)
        self.journal = Journal(self.directory, **options)
        self.now = START

    def says(self, *chunks: bytes) -> None:
        """The board sends these chunks."""
        for chunk in chunks:
            self.now += 1_000_000
            self.journal.rx(chunk, self.now, self.now - START)


def stream(offset: int, size: int) -> bytes:
    """A part of an endless stream of 64-byte lines, each with its number and all manner of bytes in it."""
    first, last = offset // 64, (offset + size) // 64 + 1
    return b"".join(map(_line, range(first, last)))[offset - first * 64 :][:size]


_NOISE = [bytes((n * 7 + i * 13) % 256 for i in range(50)).replace(b"\n", b"\x0b") for n in range(256)]


def _line(number: int) -> bytes:
    return b"%012d %b\n" % (number, _NOISE[number % 256])


WRITER = """
import random, sys, time
from labd.journal import Journal
from tests.journal.parts import stream
directory, acks, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
journal = Journal(directory, segment_bytes=1 << 18, keep_bytes=1 << 20)
out = open(acks, "wb", buffering=0)
dice = random.Random(seed)
block = stream(journal.rx_end, 1 << 21)
start = journal.rx_end
while journal.rx_end - start < len(block) - 70000:
    size = dice.choice((1, 17, 64, 700, 4096, 30000))
    at = journal.rx_end - start
    journal.rx(block[at : at + size], time.time_ns(), time.monotonic_ns())
    out.write(b"%d\\n" % journal.rx_end)
    if dice.random() < 0.2:
        journal.tx(b"key", who={"pid": 1})
time.sleep(60)
"""


def start_writer(directory: Path, acks: Path, seed: int) -> subprocess.Popen[bytes]:
    """A process that appends the endless stream to a journal and notes each acknowledged offset in a file."""
    command = [sys.executable, "-c", WRITER, str(directory), str(acks), str(seed)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


def wait_for_bytes(path: Path, size: int, seconds: float = 30) -> None:
    """Until a file has grown to `size`."""
    deadline = time.monotonic() + seconds
    while not path.exists() or path.stat().st_size < size:
        assert time.monotonic() < deadline, f"{path.name} did not grow to {size} bytes in {seconds} s"
        time.sleep(0.002)


def kill(process: subprocess.Popen[bytes]) -> None:
    """kill -9, and wait until it is gone."""
    process.send_signal(signal.SIGKILL)
    process.wait(30)


def last_segment(directory: Path, kind: str, what: str = "rx") -> Path:
    """The newest `.raw` or `.idx` file of a stream."""
    return directory / what / f"{bases(str(directory / what))[-1]:020d}.{kind}"
