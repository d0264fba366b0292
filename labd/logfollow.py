"""`serial log --follow`: what comes after what was shown. Imported only for that; used by `labd.logquery` alone.

Lines come as they end. An unfinished one is shown at once when it appears, again when it has grown and been quiet
for a moment (typing and progress bars would be a flood otherwise), and whole when it is finished.
"""

from __future__ import annotations

from labd.journal_read import Event, Line
from labd.logquery import Note, Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: How long an unfinished line that grew is left alone before it is shown again, in seconds.
QUIET_S = 0.2
#: How long to sleep when nothing is held back; new bytes wake us before.
IDLE_S = 5.0


def follow(asked: Query) -> Iterator[Line | Event | Note | bytes]:
    """What comes, for ever; ends when `asked.wait` says that nobody listens any more."""
    facts = asked.facts
    if facts.cursor_beyond:
        yield Note(f"line #{asked.since} is beyond the last one, #{facts.last_seq}; following from there")
    elif not facts.captured:
        yield Note("nothing captured yet; waiting")
    elif facts.shown or asked.events_shown:
        for text in asked.notes():  # there is no end after which they could be told
            yield Note(text)
    facts.gaps = 0
    yield from _raw(asked) if asked.raw and asked.pattern is None else _lines(asked)


def _raw(asked: Query) -> Iterator[Note | bytes]:
    reader = asked.reader
    at = _limit(asked)
    assert asked.wait is not None
    while asked.wait(reader.directory, IDLE_S):
        reader.refresh()
        for found, data in reader.chunks(at, _limit(asked)):
            if found != at:
                yield Note(f"{found - at} bytes were evicted before they could be shown")
            yield data
            at = found + len(data)


def _limit(asked: Query) -> int:
    """The offset up to which bytes are shown now."""
    reader = asked.reader
    return reader.end_offset if asked.pending or not reader.partial else reader.locate(reader.last_seq)[1]


class _Cursor:
    """Which line is next, and how much of it was shown unfinished (-1: nothing)."""

    __slots__ = ("held_back", "seq", "told")

    def __init__(self, asked: Query) -> None:
        facts = asked.facts
        self.held_back = False
        self.told = -1
        self.seq = facts.last_seq + 1
        if facts.partial:
            self.seq = facts.last_seq
            if asked.pending:
                shown = asked.shown_before.length(self.seq)
                self.told = -1 if shown is None else facts.end_offset - asked.reader.locate(self.seq)[1]


def _lines(asked: Query) -> Iterator[Line | Event | Note | bytes]:
    reader = asked.reader
    cursor = _Cursor(asked)
    assert asked.wait is not None
    while asked.wait(reader.directory, QUIET_S if cursor.held_back else IDLE_S):
        grown = reader.refresh()
        if reader.first_seq > cursor.seq and reader.captured:
            yield Note(f"lines #{cursor.seq} to #{reader.first_seq - 1} were evicted before they could be shown")
            cursor.seq, cursor.told = reader.first_seq, -1
        fresh = _fresh(asked, cursor, quiet=not grown)
        if asked.events:
            yield from asked.merged(fresh)
            continue
        for line in fresh:
            asked.count(line)
            if asked.raw:
                yield from (data for _, data in reader.chunks(line.offset, line.end))
            else:
                yield line


def _fresh(asked: Query, cursor: _Cursor, *, quiet: bool) -> Iterator[Line]:
    """The lines to show now, the unfinished one only when it is its turn."""
    cursor.held_back = False
    for line in asked.flagged(asked.reader.lines(cursor.seq)):
        if line.partial:
            cursor.held_back = asked.pending and not asked.raw and line.length > cursor.told
            if not cursor.held_back or not (quiet or cursor.told < 0):
                return
            cursor.held_back = False
            cursor.told = line.length
        else:
            cursor.seq, cursor.told = line.seq + 1, -1
        if asked.line_matches(line):
            yield line
