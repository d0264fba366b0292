"""What a journal holds and what of it was asked for: counted, so that an answer can be explained. Light.

Made by `labd.logquery`, put into words by `labd.logexplain`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from labd.journal_read import Reader
    from labd.journal_scan import Hole


class Note:
    """Something to tell beside the answer, on stderr."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Facts:
    """What the journal held and what was taken of it; `matched`, `looked`, `shown`, `gaps` are final once all was
    iterated. `holes` are all that was stored and is not there any more."""

    __slots__ = ("boot", "captured", "cursor_beyond", "end_offset", "exists", "first_offset", "first_seq", "gaps",
                 "holes", "last_seq", "last_wall_ns", "looked", "matched", "partial", "shown", "start_seq",
                 "stop_seq")  # fmt: skip

    def __init__(self, reader: Reader) -> None:
        self.exists = reader.exists
        self.captured = reader.captured
        self.first_seq = reader.first_seq
        self.last_seq = reader.last_seq
        self.partial = reader.partial and reader.captured
        self.first_offset = reader.first_offset
        self.end_offset = reader.end_offset
        self.last_wall_ns = reader.last_wall_ns
        self.start_seq = self.first_seq
        self.stop_seq = self.last_seq
        self.boot: str | None = None
        self.cursor_beyond = False
        self.matched = self.looked = self.shown = self.gaps = 0
        self.holes: list[Hole] = reader.holes(self.first_offset) if self.captured else []

    def missing(self, first: int, last: int) -> int:
        """How many of the lines `first` to `last` are gone as a whole."""
        return sum(max(0, min(hole.last_seq or 0, last) - max(hole.first_seq, first) + 1) for hole in self.holes)

    def holes_among(self, first: int, last: int) -> list[Hole]:
        """The holes that take something from the lines `first` to `last`."""
        return [
            hole
            for hole in self.holes
            if hole.first_seq - (not hole.clean) <= last + (hole.last_seq is None and last == self.last_seq)
            and (hole.last_seq is None or hole.last_seq + (not hole.clean) >= first)
        ]

    def back(self, last: int, count: int) -> int:
        """The first of the last `count` lines up to `last` that are there."""
        first = last - count + 1
        for hole in reversed(self.holes):
            if hole.lines and hole.first_seq <= last and hole.last_seq is not None and first <= hole.last_seq:
                first -= min(hole.last_seq, last) - hole.first_seq + 1
        return first
