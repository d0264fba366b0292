"""What is gone from a journal is told, never stepped over in silence; a damaged index costs no byte and no number."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from labd import logquery
from labd.journal_format import RECORD_SIZE, bases, idx_path, raw_path
from labd.journal_read import Reader
from labd.logtext import stamp
from tests.journal.parts import Board
from tests.journal.test_logquery import ask, told

LINES = 3000


@pytest.fixture
def rx(tmp_path: Path) -> str:
    """The rx stream of a journal of 3000 lines in many segments."""
    return _written(tmp_path / "journal")


def _written(directory: Path) -> str:
    board = Board(directory, segment_bytes=4000)
    for number in range(1, LINES + 1, 3):
        board.says(b"".join(b"line %d\r\n" % n for n in range(number, number + 3)))
    board.journal.close()
    return str(directory / "rx")


class Shut:
    """A journal that nobody writes any more, for `ask` and `told`."""

    def __init__(self, rx: str) -> None:
        self.directory = os.path.dirname(rx)


def _age(rx: str) -> None:
    """Files that changed long ago, so that nobody can be writing them."""
    for name in os.listdir(rx):
        os.utime(os.path.join(rx, name), (1_000_000_000, 1_000_000_000))


def _numbers(rx: str, **selectors: Any) -> list[int]:
    return [int(line.split()[0].strip("#*")) for line in ask(Shut(rx), **selectors)]  # type: ignore[arg-type]


def _told(rx: str, **selectors: Any) -> str:
    return told(Shut(rx), **selectors)  # type: ignore[arg-type]


def _delete_middle(rx: str) -> tuple[int, int]:
    """(first, last) line of a segment that is deleted."""
    found = bases(rx)
    middle = found[len(found) // 2]
    after = found[len(found) // 2 + 1]
    reader = Reader(os.path.dirname(rx))
    first, last = reader.seq_at(middle), reader.seq_at(after) - 1
    os.unlink(raw_path(rx, middle))
    os.unlink(idx_path(rx, middle))
    return first, last


def test_a_segment_that_was_deleted_is_told_with_its_lines_and_not_counted(rx: str) -> None:
    first, last = _delete_middle(rx)
    gone = last - first + 1
    assert _numbers(rx, frm=1) == [n for n in range(1, LINES + 1) if not first <= n <= last]
    for selectors in ({"frm": 1}, {"tail": 0}, {"raw": True, "tail": 0}, {"frm": first, "to": last}):
        assert f"lines #{first} to #{last} are gone from the journal's files" in _told(rx, **selectors), selectors
    assert _told(rx, tail=5) == "", "what was asked for is whole"
    assert f"none of {LINES - gone:,} lines" in _told(rx, grep="absent")
    assert f"has lines #1 to #{LINES}, {gone} of them gone" in _told(rx, grep="absent")
    assert f"lines #{first} to #{last} are gone" in _told(rx, grep="absent")


def test_the_last_lines_are_as_many_as_were_asked_for_though_a_hole_lies_among_them(rx: str) -> None:
    first, last = _delete_middle(rx)
    count = LINES - last + 10
    assert _numbers(rx, tail=count) == [*range(first - 10, first), *range(last + 1, LINES + 1)]
    assert f"lines #{first} to #{last} are gone" in _told(rx, tail=count)


def test_a_range_that_ends_in_a_hole_ends_there(rx: str) -> None:
    first, last = _delete_middle(rx)
    assert _numbers(rx, frm=first - 2, to=last - 1) == [first - 2, first - 1]
    assert _numbers(rx, frm=first, to=last + 1) == [last + 1]
    assert _numbers(rx, since=first - 1, to=last + 2) == [last + 1, last + 2]


def test_a_segment_that_was_cut_short_is_told_and_what_is_left_of_its_line_is_shown(rx: str) -> None:
    found = bases(rx)
    middle = found[3]
    os.truncate(raw_path(rx, middle), 1003)
    _age(rx)
    lines = ask(Shut(rx), frm=1)  # type: ignore[arg-type]
    torn = next(line for line in lines if line.split(" ", 1)[1] not in (f"line {n}" for n in range(1, LINES + 1)))
    assert f"line {torn.split()[0][1:]}".startswith(torn.split(" ", 1)[1])
    last = Reader(os.path.dirname(rx)).seq_at(found[4]) - 1
    assert f"to #{last}, and parts of the lines beside them are gone from the journal's files" in _told(rx, frm=1)
    assert f"{found[4] - middle - 1003:,} bytes from offset {middle + 1003}" in _told(rx, frm=1)


def test_a_segment_whose_bytes_are_all_gone_does_not_hide_what_comes_behind_it(rx: str) -> None:
    found = bases(rx)
    os.truncate(raw_path(rx, found[2]), 0)
    _age(rx)
    reader = Reader(os.path.dirname(rx))
    first, last = reader.seq_at(found[2]), reader.seq_at(found[3]) - 1
    assert _numbers(rx, frm=1)[-1] == LINES
    assert f"to #{last} are gone" in _told(rx, frm=1) or f"to #{last}, and" in _told(rx, frm=1)
    assert first == last + 1 or first <= last + 1


@pytest.mark.parametrize("left", [0, 777])
def test_a_newest_segment_that_was_cut_short_is_told(rx: str, left: int) -> None:
    last = bases(rx)[-1]
    size = os.path.getsize(raw_path(rx, last))
    os.truncate(raw_path(rx, last), left)
    _age(rx)
    text = f"{size - left:,} bytes from offset {last + left} are gone from the end of the journal"
    assert text in _told(rx, tail=3) and text in _told(rx, grep="absent")


@pytest.mark.parametrize(
    ("field", "value"),
    [("I", 0xFFFFFFF0), ("xxxxI", 3), ("xxxxI", 0), ("xxxxxxxxQ", 1 << 40), ("xxxxxxxxQ", 0)],
    ids=["offset", "length", "no length", "line high", "line low"],
)
@pytest.mark.parametrize("back", [1, 2])
def test_a_damaged_record_at_the_end_of_the_index_hides_nothing(rx: str, field: str, value: int, back: int) -> None:
    _damage(rx, bases(rx)[-1], -back, field, value)
    _age(rx)
    reader = Reader(os.path.dirname(rx))
    assert (reader.last_seq, reader.partial) == (LINES, False)
    parts = list(logquery.query(reader.directory, raw=True, tail=1))
    assert parts == [b"line %d\r\n" % LINES]
    assert _numbers(rx, tail=2, since_boot=True) == [LINES - 1, LINES]
    assert "gone" not in _told(rx, tail=0)


def test_a_damaged_record_in_the_middle_of_an_index_moves_no_number(rx: str) -> None:
    segment = bases(rx)[-3]
    first = Reader(os.path.dirname(rx)).seq_at(segment)
    for number in (5, 6, 20):
        _damage(rx, segment, number, "xxxxxxxxQ", 1 << 33)
        for seq in range(first, first + 80, 7):
            assert ask(Shut(rx), frm=seq, to=seq) == [f"#{seq} line {seq}"]  # type: ignore[arg-type]


def _damage(rx: str, base: int, number: int, field: str, value: int) -> None:
    path = idx_path(rx, base)
    count = os.path.getsize(path) // RECORD_SIZE
    with open(path, "r+b") as index:
        index.seek((number % count) * RECORD_SIZE + field.count("x"))
        index.write(struct.pack("<" + field.strip("x"), value))


def test_what_an_eviction_took_is_no_hole(tmp_path: Path) -> None:
    board = Board(tmp_path, keep_bytes=20_000)
    board.says(*[b"line %d\n" % n for n in range(1, 3001)])
    assert Reader(board.directory).holes(0) == []


def test_lines_that_an_interruption_glued_together_are_marked(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.journal.event("open", device="x")
    board.says(b"whole\r\n", b"partia")
    board.journal.event("lost", why="unplugged")
    board.journal.event("reopened", gap_ms=300, cause="unplugged", rx=board.journal.rx_end)
    board.says(b"after\r\n", b"next\r\n")
    items = [logquery.as_data(item) for item in logquery.query(board.directory) if isinstance(item, logquery.Line)]
    assert [(item["text"], item.get("gap")) for item in items] == [
        ("whole", None), ("partiaafter", True), ("next", None)]  # fmt: skip
    note = "bytes are missing, or may be, in or before 1 of these lines; --events shows where and why"
    assert told(board) == note
    assert told(board, frm=3) == "" and told(board, to=1) == ""
    assert told(board, raw=True).startswith("bytes are missing, or may be, inside these bytes, in 1 places")


@pytest.mark.parametrize(
    ("kind", "fields", "marked"),
    [
        ("open", {"device": "x"}, True),
        ("open", {"device": "x", "why": "settings changed"}, False),
        ("attached", {"why": "a new daemon"}, False),
        ("repaired", {"what": ["3 bytes lost"], "lost": 3}, True),
        ("repaired", {"what": ["a record"], "lost": 0}, False),
        ("overrun", {"where": "uart", "count": 2, "since_rx": 2}, True),
        ("overrun", {"events": 9, "cause": "disk full"}, False),
        ("tx", {"data": '{"kind":"reopened","rx":5}'}, False),
    ],
)
def test_only_what_interrupts_the_bytes_marks_a_line(
    tmp_path: Path, kind: str, fields: dict[str, Any], marked: bool
) -> None:
    board = Board(tmp_path)
    board.says(b"begin")
    board.journal.event(kind, **fields)
    board.says(b"end\n")
    (line,) = Reader(board.directory).lines()
    (shown,) = logquery.query(board.directory)
    assert isinstance(shown, logquery.Line) and shown.raw == line.raw
    assert shown.gap is marked


def test_an_interruption_between_two_lines_or_before_the_first_byte_marks_none(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.journal.event("open", device="x")
    board.says(b"one\n")
    board.journal.event("reopened", gap_ms=3)
    board.says(b"two\nthr")
    board.journal.event("reopened", gap_ms=3)
    assert told(board) == ""


def test_bytes_that_could_not_be_stored_behind_the_last_line_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.journal.test_journal_full import Faults

    disk, board = Faults(monkeypatch), Board(tmp_path)
    board.says(b"one\n")
    disk.room = 0
    board.says(b"PANIC\n")
    disk.room = None
    board.journal.sync()
    for selectors in ({"tail": 1}, {"grep": "PANIC"}):
        assert "6 bytes that came after the last line could not be stored" in told(board, **selectors)


def test_while_nothing_can_be_stored_every_answer_says_so(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"one\n")
    for selectors in ({"tail": 1}, {"grep": "PANIC"}):
        asked = logquery.query(board.directory, **selectors)  # type: ignore[arg-type]
        list(asked)
        last = asked.notes("pico.console", live=True, failing="No space left: 9 bytes")[-1]
        assert (
            last == "bytes are missing: the journal of pico.console can't be written just now (No space left: 9 bytes)"
        )


def test_a_gap_in_a_line_is_shown_in_its_place(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.journal.event("open", device="x")
    board.says(b"up\r\nlogin: ")
    board.journal.event("lost", why="unplugged")
    board.journal.event("reopened", gap_ms=1234, cause="unplugged", rx=board.journal.rx_end)
    board.says(b"back\r\n")
    board.says(b"wait ")
    board.journal.event("overrun", where="uart", count=7, since_rx=board.journal.rx_end - 2)
    board.says(b"now")

    def shown(**how: Any) -> list[str]:
        items = [item for item in logquery.query(board.directory, **how) if isinstance(item, logquery.Line)]
        text = "\n".join(logquery.as_text(item) for item in items)
        return [row.split("] ", 1)[1] if row.startswith("[") else row for row in text.split("\n")]

    gap = ["#2 login: ", "--- gap 1.2 s: unplugged ---", "#2 back"]
    unplaced = ["#3* wait now", "--- gap: 7 bytes lost in these lines: overrun in the uart ---"]
    assert shown() == ["#1 up", *gap, *unplaced]
    assert shown(grep="login") == gap and shown(grep="back") == gap
    rounds = iter([True, False])
    assert shown(tail=3, follow=True, wait=lambda directory, seconds: next(rounds)) == ["#1 up", *gap, *unplaced]


def test_the_piece_behind_a_gap_has_the_time_it_came_at(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"befo")
    board.journal.event("open", device="x")
    board.says(b"after\n")
    (line,) = logquery.query(board.directory)
    assert isinstance(line, logquery.Line)
    first, gap, second = logquery.as_text(line).split("\n")
    assert gap == "--- gap: it was not captured in between ---"
    came = Reader(board.directory).record_at(4)
    assert came is not None and came.wall_ns > line.wall_ns
    assert first == f"[{stamp(line.wall_ns)}] #1 befo" and second == f"[{stamp(came.wall_ns)}] #1 after"
    assert logquery.as_text(line, color=True).count("\x1b[33m---") == 1


def test_followed_lines_show_a_gap_that_comes_later(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"login: ")
    turns = iter([True, False])

    def wait(directory: str, seconds: float) -> bool:
        board.journal.event("reopened", gap_ms=40, cause="hang-up")
        board.says(b"again\n")
        return next(turns)

    items = [
        item for item in logquery.query(board.directory, follow=True, wait=wait) if isinstance(item, logquery.Line)
    ]
    assert "#1 login: \n--- gap 40 ms: hang-up ---\n[" in logquery.as_text(items[1])


def test_a_gap_that_no_event_tells_of_stands_before_its_line() -> None:
    line = logquery.Line(4, 100, b"torn", 4, 0, 0, False, True)
    assert logquery.as_text(line).startswith("--- gap: bytes are missing here, or in the next line ---\n[")


def test_gaps_in_the_unshown_part_of_a_long_line(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"a" * 1000)
    board.journal.event("reopened", gap_ms=1, cause="x")
    board.says(b"b" * 100_000 + b"\n")
    (line,) = logquery.query(board.directory)
    assert isinstance(line, logquery.Line)
    first, _, second = logquery.as_text(line).split("\n")
    assert first.endswith("#1 [the end of 1000 bytes; --raw has all] ")
    assert "#1 [the end of 100000 bytes; --raw has all] bbbb" in second
