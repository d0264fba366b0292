"""Mending what a crash or a power cut left behind in a stream's last segment, when its writer opens it again.

Called by `labd.journal_stream.Stream` alone. A kill leaves at most bytes without a record, or a torn record; a power
cut may also leave records without their bytes. All bytes that are there are kept (of an event stream all whole
lines), every record that tells the truth is kept, what is missing is said in `stream.repaired`, and nothing else is
touched. Raises OSError.
"""

from __future__ import annotations

import os

from labd.journal_format import RECORD_SIZE, RECOVERED, Record, idx_path, raw_path, unpack, unpack_many

TYPE_CHECKING = False
if TYPE_CHECKING:
    from labd.journal_stream import Stream

#: How many of the last records are checked against each other.
CHECKED = 8192
_BLOCK = 1 << 20


def repair(stream: Stream, found: list[int]) -> None:
    """Mend the last of the segments `found`, which is the stream's current one, and say where the stream goes on."""
    base = stream.base
    last = _last_sound(stream)
    began_ns = 0
    if last is None:
        end, line = base, _lines_before(stream.directory, found[:-1])
    else:
        end, line = last.end, last.line + _newlines(stream.directory, base, last)
        with open(idx_path(stream.directory, base), "rb") as index:
            began_ns = unpack(base, index.read(RECORD_SIZE)).wall_ns if stream.settle() else last.wall_ns
    end, line = _index_tail(stream, end, line)
    open_line = end > found[0] and not _ends_line(stream.directory, base, end, found)
    stream.resume(end, line, began_ns=began_ns, open_line=open_line)


def _index_tail(stream: Stream, indexed: int, line: int) -> tuple[int, int]:
    """Give a record to bytes that have none; the end and its line then."""
    end = indexed
    raw = raw_path(stream.directory, stream.base)
    state = os.stat(raw)
    raw_end = stream.base + state.st_size
    if raw_end <= indexed:
        return end, line
    with open(raw, "rb") as file:
        file.seek(indexed - stream.base)
        while end < raw_end:
            data = file.read(_BLOCK)
            if stream.whole_lines:
                data = data[: data.rfind(b"\n") + 1]
            if not data:
                break
            stream.owe(len(data), line, state.st_mtime_ns, rel=end - stream.base, flags=RECOVERED)
            end += len(data)
            line += data.count(b"\n")
            file.seek(end - stream.base)
    if end > indexed:
        stream.repaired.append(f"{end - indexed} bytes from offset {indexed} had no index record; they have one now")
    if end < raw_end:
        stream.cut_raw(end - stream.base)
        stream.repaired.append(f"an incomplete last entry of {raw_end - end} bytes was cut off")
    return end, line


def _last_sound(stream: Stream) -> Record | None:
    """The last record that is whole, follows its predecessor and has its bytes; all behind it are cut off."""
    base = stream.base
    raw_size = os.stat(raw_path(stream.directory, base)).st_size
    index = idx_path(stream.directory, base)
    size = os.stat(index).st_size
    count = size // RECORD_SIZE
    begin = max(0, count - CHECKED)
    with open(index, "rb") as file:
        file.seek(begin * RECORD_SIZE)
        records = list(unpack_many(base, file.read((count - begin) * RECORD_SIZE)))
    linked = _linked(records, records[0].offset if begin else base)
    sound = [record for record in linked if record.offset < base + raw_size]
    kept = begin + len(sound)
    if size != kept * RECORD_SIZE:
        stream.cut_index(kept)
        torn = f"a torn index record of {size % RECORD_SIZE} bytes"
        stream.repaired.append(f"{torn if kept == count else f'{count - kept} unusable index records'} cut off")
    missing = linked[-1].end - base - raw_size if linked else 0
    if missing > 0:
        stream.lost = missing
        stream.repaired.append(f"{missing} bytes from offset {base + raw_size} are lost: they never reached the disk")
    if not sound:
        return None
    last = sound[-1]
    if last.end > base + raw_size:  # only a part of its bytes is there
        last.length = base + raw_size - last.offset
        stream.cut_index(kept - 1)
        rel = last.offset - base
        stream.owe(last.length, last.line, last.wall_ns, rel=rel, flags=last.flags, mono_ns=last.mono_ns)
    return last


def _linked(records: list[Record], expected: int) -> list[Record]:
    """The records from the first on that follow each other, as all do that were ever written."""
    linked: list[Record] = []
    for record in records:
        if not record.length or record.offset != expected:
            break
        linked.append(record)
        expected = record.end
    return linked


def _newlines(directory: str, base: int, record: Record) -> int:
    with open(raw_path(directory, base), "rb") as raw:
        raw.seek(record.offset - base)
        return raw.read(record.length).count(b"\n")


def _lines_before(directory: str, earlier: list[int]) -> int:
    """Newlines up to the end of the earlier segments, counted from the last one that has a record."""
    total = 0
    for base in reversed(earlier):
        last = _last_record(directory, base)
        with open(raw_path(directory, base), "rb") as raw:
            if last is not None:
                raw.seek(last.offset - base)
            while block := raw.read(_BLOCK):
                total += block.count(b"\n")
        if last is not None:
            return total + last.line
    return total


def _last_record(directory: str, base: int) -> Record | None:
    try:
        with open(idx_path(directory, base), "rb") as index:
            count = os.fstat(index.fileno()).st_size // RECORD_SIZE
            if not count:
                return None
            index.seek((count - 1) * RECORD_SIZE)
            return unpack(base, index.read(RECORD_SIZE))
    except FileNotFoundError:
        return None


def _ends_line(directory: str, base: int, end: int, found: list[int]) -> bool:
    """Whether the byte before `end` is a newline."""
    if end == base:
        base = found[-2]
    with open(raw_path(directory, base), "rb") as raw:
        raw.seek(end - 1 - base)
        return raw.read(1) in (b"\n", b"")
