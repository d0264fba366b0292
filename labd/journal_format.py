"""The journal's form on disk: segment names, index records, flags. Shared by its one writer and all its readers.

A stream is a directory of segments. `<base>.raw` holds exact bytes and nothing else; `base` is the absolute offset
of its first byte in twenty digits, so that `cat *.raw` in name order is the stream. `<base>.idx` holds one 32-byte
record for each chunk: offset within the segment (u32), length (low 24 bits) and flags (high 8 bits) (u32), newlines
before the chunk since the stream began (u64), wall clock (u64 ns), monotonic clock (u64 ns); little-endian.

The raw bytes are written before their record. So a crash can only leave raw bytes without a record, never a record
without its bytes; those bytes are found again by comparing sizes. Never writes. Light: `serial log` pays for it.
"""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD = struct.Struct("<IIQQQ")
RECORD_SIZE = RECORD.size

#: The longest chunk that one record can describe.
CHUNK_MAX = (1 << 24) - 1

#: The bytes were found without a record after a crash: their times are the file's last change, monotonic 0.
RECOVERED = 1
#: The segment begins inside a line that an earlier segment holds the beginning of.
CONTINUED = 2
#: Bytes that came just before this chunk could not be stored; an `overrun` event says how many.
GAP = 4

#: What a journal says of itself while it loses bytes.
NOT_STORED = "received bytes could not be stored"

RX = "rx"
EVENTS = "events"


class Record:
    """One chunk: `offset` is absolute, `line` the newlines before it, `wall_ns` and `mono_ns` when it was read."""

    __slots__ = ("flags", "length", "line", "mono_ns", "offset", "wall_ns")

    def __init__(self, offset: int, length: int, flags: int, line: int, wall_ns: int, mono_ns: int) -> None:
        self.offset = offset
        self.length = length
        self.flags = flags
        self.line = line
        self.wall_ns = wall_ns
        self.mono_ns = mono_ns

    @property
    def end(self) -> int:
        """The absolute offset behind the chunk's last byte."""
        return self.offset + self.length


def pack(rel: int, length: int, flags: int, line: int, wall_ns: int, mono_ns: int) -> bytes:
    """One index record. Clocks are clamped to what the record can hold, as a broken clock must not stop capture."""
    top = (1 << 64) - 1
    return RECORD.pack(rel, length | flags << 24, line, min(max(wall_ns, 0), top), min(max(mono_ns, 0), top))


def unpack(base: int, data: bytes, at: int = 0) -> Record:
    """The record at byte `at` of `data`, of the segment that begins at `base`."""
    rel, mixed, line, wall_ns, mono_ns = RECORD.unpack_from(data, at)
    return Record(base + rel, mixed & CHUNK_MAX, mixed >> 24, line, wall_ns, mono_ns)


def unpack_many(base: int, data: bytes) -> Iterator[Record]:
    """All whole records in `data`."""
    usable = len(data) - len(data) % RECORD_SIZE
    for rel, mixed, line, wall_ns, mono_ns in RECORD.iter_unpack(memoryview(data)[:usable]):
        yield Record(base + rel, mixed & CHUNK_MAX, mixed >> 24, line, wall_ns, mono_ns)


def bases(directory: str) -> list[int]:
    """Where the segments of a stream begin, in order; empty if there is no such directory."""
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(name[:20]) for name in names if len(name) == 24 and name.endswith(".raw") and name[:20].isdigit())


def raw_path(directory: str, base: int) -> str:
    """The file of the segment's bytes."""
    return f"{directory}/{base:020d}.raw"


def idx_path(directory: str, base: int) -> str:
    """The file of the segment's records."""
    return f"{directory}/{base:020d}.idx"
