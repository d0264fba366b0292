"""Reads a captured journal: what a bench heard from a port and what it sent, with times. Read only.

The form on disk, as its writers document it: a directory with two streams, `rx/` (the target's exact bytes) and
`events/` (one JSON object a line; those of kind "tx" have `data`, each character one byte, `accepted`, and `rx`, the
offset in the rx stream at that moment). A stream is segments: `<offset of its first byte in 20 digits>.raw`, and `.idx`
beside it with a record of 32 bytes for each chunk, little-endian `<IIQQQ`: offset in the segment, length (24 bits) and
flags (8), lines before it, wall clock and monotonic clock in nanoseconds. Raw bytes without a record are a crash's.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RECORD = struct.Struct("<IIQQQ")
LENGTH = (1 << 24) - 1


class NoJournal(Exception):
    """There is no journal in that directory, or nothing in it."""


@dataclass(frozen=True)
class Chunk:
    """Bytes that were read at once. `at` is where they begin in the stream."""

    at: int
    data: bytes
    wall_ns: int
    mono_ns: int

    def after_ms(self, other: Chunk) -> float:
        """How much later than `other` it came; the wall clock decides where the monotonic one began anew."""
        passed = self.mono_ns - other.mono_ns
        if not self.mono_ns or not other.mono_ns or passed < 0:
            passed = max(0, self.wall_ns - other.wall_ns)
        return passed / 1e6

    def cut(self, start: int, end: int) -> Chunk:
        """The part of it between two offsets of the stream."""
        low, high = max(start, self.at), min(end, self.at + len(self.data))
        return Chunk(low, self.data[low - self.at : max(low, high) - self.at], self.wall_ns, self.mono_ns)


def chunks(stream: Path) -> Iterator[Chunk]:
    """All chunks of the stream in directory `stream`, in order."""
    for raw in sorted(stream.glob("*.raw")):
        base = int(raw.stem)
        data = raw.read_bytes()
        index = raw.with_suffix(".idx")
        records = index.read_bytes() if index.exists() else b""
        whole = records[: len(records) // RECORD.size * RECORD.size]
        for rel, mixed, _line, wall_ns, mono_ns in RECORD.iter_unpack(whole):
            if piece := data[rel : rel + (mixed & LENGTH)]:
                yield Chunk(base + rel, piece, wall_ns, mono_ns)


@dataclass(frozen=True)
class Capture:
    """A whole journal: `heard` in order; `sent` likewise, where `at` is the offset that had been heard by then."""

    heard: tuple[Chunk, ...]
    sent: tuple[Chunk, ...]


def read(directory: Path) -> Capture:
    """The journal in `directory`. Raises NoJournal, OSError."""
    if not (directory / "rx").is_dir():
        raise NoJournal(f"{directory} holds no journal: a journal's directory has rx/ and events/ in it")
    heard = tuple(chunks(directory / "rx"))
    sent = tuple(_sent(chunks(directory / "events")))
    if not heard:
        raise NoJournal(f"the journal in {directory} is empty")
    return Capture(heard, sent)


def _sent(events: Iterator[Chunk]) -> Iterator[Chunk]:
    pending = b""
    for chunk in events:
        *lines, rest = (pending + chunk.data).split(b"\n")
        for line in lines:
            if (found := _tx(line)) is not None:
                at, data = found
                yield Chunk(at, data, chunk.wall_ns, chunk.mono_ns)
        pending = rest


def _tx(line: bytes) -> tuple[int, bytes] | None:
    """The offset and bytes of a `tx` event; None for what is another event, or torn."""
    try:
        event = json.loads(line)
        if event["kind"] != "tx":
            return None
        data = event["data"].encode("latin-1")
        return int(event["rx"]), data[: int(event.get("accepted", len(data)))]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
