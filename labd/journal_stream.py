"""One append-only stream of the journal: segments and their index.

Owned by `labd.journal.Journal`, which holds the lock that makes it the only writer. Appending never raises on a
write error: it says how many bytes were stored and keeps the error in `problem`. Never deletes what it did not
write itself, but for `drop_oldest` (eviction) and the incomplete last line of an event stream.

Why not a database: a row per line cannot hold a prompt that has no newline yet, a transaction per chunk costs
eight times the CPU, and a check-point stalls the capture loop. Two plain files survive kill -9 because the page
cache does: what `append` has acknowledged is in it.
"""

import os

from labd.journal_format import CHUNK_MAX, CONTINUED, GAP, RECORD_SIZE, bases, idx_path, pack, raw_path

#: Index records that could not be written wait in memory up to this many bytes.
OWED_MAX = 1 << 20
#: A segment's size must fit the record's 32-bit offset.
SEGMENT_LIMIT = 1 << 32

_OPEN = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
_write = os.write
_fdatasync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class Stream:
    """The writing end of one stream. `end` is the next byte's offset, `line` the newlines so far.

    `whole_lines` says that an incomplete last line is worthless (events); it is then cut off on opening.
    `repaired` lists, in words, what opening had to mend; `lost` counts acknowledged bytes that are no more.
    Raises OSError from the constructor only.
    """

    def __init__(self, directory: str, segment_bytes: int, *, whole_lines: bool = False) -> None:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self.directory = directory
        self.segment_bytes = min(segment_bytes, SEGMENT_LIMIT // 4)
        self.whole_lines = whole_lines
        self.problem: OSError | None = None
        self.repaired: list[str] = []
        self.lost = 0
        self.rolls = 0
        self.began_ns = 0
        self.base = self.end = self.line = 0
        self._raw = self._idx = -1
        self._owed = b""
        self._flags = 0
        self._open_line = False
        self._retry_at = 0
        self._retired: list[int] = []
        self._dir_dirty = True
        self._sweep()
        found = bases(directory)
        if found:
            from labd.journal_repair import repair

            self._open(found[-1])
            repair(self, found)
        else:
            self._open(0)

    # -- appending --------------------------------------------------------------------------------------------

    def append(self, data: bytes, wall_ns: int, mono_ns: int) -> int:
        """Store `data` and return how many of its bytes, from its beginning, are stored now.

        They are safe against kill -9 on return. Fewer than all means that `problem` says why.
        """
        if self.end - self.base < self.segment_bytes and len(data) <= CHUNK_MAX:
            return self._put(data, wall_ns, mono_ns)
        stored = 0
        while stored < len(data):
            piece = self._piece(data, stored)
            got = self._put(piece, wall_ns, mono_ns)
            stored += got
            if got < len(piece):
                break
        return stored

    def mark_gap(self) -> None:
        """Flag the next chunk: bytes that belonged before it are lost."""
        self._flags |= GAP

    def settle(self) -> bool:
        """Write index records that are still owed; True if none is."""
        if self._owed:
            try:
                done = _write(self._idx, self._owed)
            except OSError as problem:
                self.problem = problem
            else:
                self._owed = self._owed[done:]
        return not self._owed

    def owe(self, length: int, line: int, wall_ns: int, *, rel: int, flags: int = 0, mono_ns: int = 0) -> None:
        """Repair's way to give bytes that are on disk a record; it is written now, or as soon as there is space."""
        self._owed += pack(rel, length, flags, line, wall_ns, mono_ns)
        self.settle()

    def resume(self, end: int, line: int, *, began_ns: int, open_line: bool) -> None:
        """Repair's last word: where the stream goes on."""
        self.end, self.line, self.began_ns, self._open_line = end, line, began_ns, open_line
        if end == self.base and open_line:
            self._flags |= CONTINUED

    def cut_index(self, records: int) -> None:
        """Keep only that many records of the current segment."""
        os.ftruncate(self._idx, records * RECORD_SIZE)

    def cut_raw(self, size: int) -> None:
        """Keep only that many bytes of the current segment."""
        os.ftruncate(self._raw, size)

    def _put(self, data: bytes, wall_ns: int, mono_ns: int) -> int:
        size = len(data)
        rel = self.end - self.base
        if self._owed and not self._may_owe_more(rel + size):
            return 0
        stored = 0
        try:
            stored = _write(self._raw, data)
            while stored < size:
                stored += _write(self._raw, memoryview(data)[stored:])
        except OSError as problem:
            self.problem = problem
            if not stored:
                return 0
            data = data[:stored]
        record = self._owed + pack(rel, stored, self._flags, self.line, wall_ns, mono_ns)
        self._owed = b""
        try:
            done = _write(self._idx, record)
            if done != len(record):
                self._owed = record[done:]
        except OSError as problem:
            self.problem = problem
            self._owed = record
        if not rel:
            self.began_ns = wall_ns
        self._flags = 0
        self.end += stored
        self.line += data.count(b"\n")
        self._open_line = not data.endswith(b"\n")
        return stored

    def _may_owe_more(self, rel: int) -> bool:
        return len(self._owed) < OWED_MAX or self.settle()

    def _piece(self, data: bytes, start: int) -> bytes:
        """What to put next. A full segment is left at a line's end, or anywhere if no line ends for as long again."""
        stop = start + min(CHUNK_MAX, self.segment_bytes)
        held = self.end - self.base
        if held >= self.segment_bytes and self.end >= self._retry_at:
            cut = data.find(b"\n", start, stop) + 1 if self._open_line else 0
            if cut:
                return data[start:cut]
            if not self._open_line or held >= 2 * self.segment_bytes:
                self.roll()
        return data[start:stop]

    # -- segments ---------------------------------------------------------------------------------------------

    def roll(self) -> bool:
        """Begin a new segment. Where that fails (no space, no inode) the old one goes on; True if it was begun."""
        if self.end == self.base or not self.settle():
            self._retry_at = self.end + (1 << 20)
            return False
        old = [self._raw, self._idx]
        try:
            self._open(self.end)
        except OSError as problem:
            self.problem = problem
            self._retry_at = self.end + (1 << 20)
            return False
        self._retired += old
        self._flags |= CONTINUED if self._open_line else 0
        self.rolls += 1
        if len(self._retired) > 16:  # nobody syncs
            self._close_all(self.take_retired())
        return True

    def take_retired(self) -> list[int]:
        """Descriptors of segments that are complete but not synced; the caller syncs and closes them."""
        taken, self._retired = self._retired, []
        return taken

    def dup_current(self) -> list[int]:
        """Copies of the current segment's descriptors, for a sync in another thread, which closes them."""
        return [os.dup(self._raw), os.dup(self._idx)]

    def take_dir_dirty(self) -> bool:
        """Whether segments were made or dropped since the last call, so that the directory needs a sync."""
        dirty, self._dir_dirty = self._dir_dirty, False
        return dirty

    def drop_oldest(self, base: int) -> int:
        """Delete the segment that begins at `base`, never the current one; how many bytes of the stream it held."""
        if base == self.base:
            return 0
        size = 0
        for path in (raw_path(self.directory, base), idx_path(self.directory, base)):
            try:
                size = size or os.stat(path).st_size
                os.unlink(path)
            except FileNotFoundError:
                pass
        self._dir_dirty = True
        return size

    def close(self) -> None:
        """Close all files. The stream can't be used any more."""
        self._close_all([*self.take_retired(), self._raw, self._idx])
        self._raw = self._idx = -1

    def _open(self, base: int) -> None:
        # The index first: readers look for raw files, and must find the index of each.
        idx = os.open(idx_path(self.directory, base), _OPEN, 0o600)
        try:
            self._raw = os.open(raw_path(self.directory, base), _OPEN, 0o600)
        except OSError:
            os.close(idx)
            raise
        self._idx = idx
        self.base = base
        self._dir_dirty = True

    @staticmethod
    def _close_all(descriptors: list[int]) -> None:
        for descriptor in descriptors:
            if descriptor >= 0:
                os.close(descriptor)

    def _sweep(self) -> None:
        """Remove indexes whose bytes were evicted just before a crash."""
        for name in os.listdir(self.directory):
            if name.endswith(".idx") and not os.path.exists(os.path.join(self.directory, name[:-4] + ".raw")):
                os.unlink(os.path.join(self.directory, name))
