"""Which unfinished lines were shown, so that `--since N` can show them again, whole, when they have grown.

A small file `shown` beside the journal, written by whoever shows lines, best effort: a read-only journal only means
that a reader must write `N*` or `N+BYTES` itself. For each line the shortest length that anybody was shown is kept. So
a question asked twice gets the same answer twice, and no reader loses a line because another one saw more of it. The
file stays small: old lines are forgotten up to a `floor`, and all below it count as shown unfinished, since a line that
comes twice harms nobody. Light.
"""

import os

_KEEP = 128
_COMPACT_AT = 1 << 13


class Shown:
    """The memory of the journal in `directory`. Never raises."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, "shown")
        self._known: dict[int, int] | None = None
        self._floor = 0

    def length(self, seq: int) -> int | None:
        """The shortest length at which line `seq` was shown unfinished; None if it was not. 0: that is forgotten."""
        return self._load().get(seq, 0 if 0 < seq <= self._floor else None)

    def remember(self, seq: int, length: int) -> None:
        """Line `seq` was just shown unfinished, `length` bytes of it."""
        known = self._load()
        if known.get(seq, length + 1) <= length:
            return
        known[seq] = length
        try:
            fd = self._locked()
            try:
                os.write(fd, b"%d %d\n" % (seq, length))
                if os.fstat(fd).st_size > _COMPACT_AT:
                    self._compact()
            finally:
                os.close(fd)
        except OSError:
            pass

    def _locked(self) -> int:
        """The file, locked, so that no entry is written into one that another reader is just replacing."""
        import fcntl

        while True:
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(fd), os.stat(self._path)):
                    return fd
            except FileNotFoundError:
                pass
            except OSError:
                os.close(fd)
                raise
            os.close(fd)

    def _load(self) -> dict[int, int]:
        if self._known is None:
            self._known = {}
            try:
                fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return self._known
            try:
                data = os.read(fd, 1 << 20)
            except OSError:
                data = b""
            os.close(fd)
            for entry in data.split(b"\n"):
                words = entry.split()
                if len(words) == 2 and words[0] == b"floor" and words[1].isdigit():
                    self._floor = int(words[1])
                if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
                    seq, length = int(words[0]), int(words[1])
                    self._known[seq] = min(length, self._known.get(seq, length))
        return self._known

    def _compact(self) -> None:
        """Keep the newest entries only. The caller holds the lock."""
        self._known = None
        entries = sorted(self._load().items())
        if len(entries) > _KEEP:
            self._floor = max(self._floor, entries[-_KEEP - 1][0])
        temporary = f"{self._path}.{os.getpid()}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, b"floor %d\n" % self._floor + b"".join([b"%d %d\n" % entry for entry in entries[-_KEEP:]]))
        finally:
            os.close(fd)
        os.replace(temporary, self._path)
