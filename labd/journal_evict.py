"""Which segments of a journal may go: by size, by age. Deletes whole segments, oldest first, never the newest bytes.

Owned by the writer of each stream. Offsets and line numbers of what stays never change; each eviction is told.
"""

import json
import os
from typing import Any

from labd.journal_format import RECORD_SIZE, bases, idx_path, raw_path, unpack
from labd.journal_stream import Stream


class Keeper:
    """The retention of one stream: at most `keep_bytes` on disk, at most `keep_ns` behind a segment's last byte."""

    def __init__(self, stream: Stream, keep_bytes: int | None, keep_ns: int | None) -> None:
        self.stream = stream
        self.keep_bytes = keep_bytes
        self.keep_ns = keep_ns

    def evict(self, now_ns: int) -> dict[str, Any] | None:
        """Drop what is beyond the limits; the fields of an `evicted` event, or None if nothing was dropped."""
        self._roll_if_old(self.stream, now_ns)
        return self._evict_stream(self.stream, now_ns)

    def _roll_if_old(self, stream: Stream, now_ns: int) -> None:
        """A quiet line never fills its segment; without this its bytes would outlive the limit for ever."""
        if self.keep_ns is not None and stream.end > stream.base and now_ns - stream.began_ns > self.keep_ns // 4:
            stream.roll()

    def _evict_stream(self, stream: Stream, now_ns: int) -> dict[str, Any] | None:
        found = bases(stream.directory)
        sizes = [_disk_size(stream.directory, base) for base in found]
        total = sum(sizes)
        dropped = 0
        why = ""
        least = 2 if stream.end == stream.base else 1  # the last bytes stay: their record knows the line's number
        while len(found) > least:
            last_ns = _last_wall_ns(stream.directory, found[0])
            if self.keep_bytes is not None and total + stream.segment_bytes > self.keep_bytes:
                why = "size"
            elif self.keep_ns is not None and last_ns and now_ns - last_ns > self.keep_ns:
                why = "age"
            else:
                break
            dropped += stream.drop_oldest(found.pop(0))
            total -= sizes.pop(0)
        return {"bytes": dropped, "first_offset": found[0], "why": why} if dropped else None


def follow_rx(events: Stream, rx_directory: str) -> None:
    """Events go with the bytes they stand beside: a segment whose every event is before the first byte kept."""
    kept = bases(rx_directory)
    if not kept:
        return
    found = bases(events.directory)
    while len(found) > 1 and _first_event_rx(events.directory, found[1]) < kept[0]:
        events.drop_oldest(found.pop(0))


def _disk_size(directory: str, base: int) -> int:
    return sum(
        os.stat(path).st_size for path in (raw_path(directory, base), idx_path(directory, base)) if os.path.exists(path)
    )


def _last_wall_ns(directory: str, base: int) -> int:
    """When the segment's last chunk was read; 0 if its index is unreadable."""
    try:
        with open(idx_path(directory, base), "rb") as index:
            size = os.fstat(index.fileno()).st_size
            index.seek(max(0, size - size % RECORD_SIZE - RECORD_SIZE))
            return unpack(base, index.read(RECORD_SIZE)).wall_ns
    except (OSError, ValueError, IndexError):
        return 0
    except Exception:  # struct.error without importing struct for its name
        return 0


def _first_event_rx(directory: str, base: int) -> int:
    """The rx offset of a segment's first event; a huge number if it can't be read, which keeps the segment."""
    try:
        with open(raw_path(directory, base), "rb") as raw:
            return int(json.loads(raw.readline())["rx"])
    except (OSError, ValueError, KeyError, TypeError):
        return 1 << 63
