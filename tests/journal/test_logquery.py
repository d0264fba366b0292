"""`serial log` shows the lines that were asked for, loses none, and says why when there are none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from labd import logquery
from labd.errors import LabdError, Usage
from labd.journal_read import Event, Line
from labd.logtext import as_data, as_text, stamp
from tests.journal.parts import START, Board


def ask(board: Board, **selectors: Any) -> list[str]:
    """The numbers (with their star) and texts of the answer; events by kind."""
    return list(map(short, logquery.query(board.directory, **selectors)))


def short(item: object) -> str:
    """One item of an answer, without its time."""
    assert isinstance(item, Line | Event | logquery.Note)
    if isinstance(item, logquery.Note):
        return f"note {item.text}"
    return as_text(item).split("] ", 1)[1]


def told(board: Board, **selectors: Any) -> str:
    """What is told beside the answer."""
    asked = logquery.query(board.directory, **selectors)
    list(asked)
    return "; ".join(asked.notes("pico.console", watch="labd serial watch pico"))


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """A board that has said five lines and a prompt."""
    board = Board(tmp_path / "journal")
    board.says(b"one\r\n", b"two\r\nthr", b"ee\r\n", b"\x1b[31mfour\x1b[0m\r\n", b"five\r\n=> ")
    return board


def test_without_a_selector_it_is_the_end_with_the_open_line(board: Board) -> None:
    assert ask(board) == ["#1 one", "#2 two", "#3 three", "#4 four", "#5 five", "#6* => "]
    assert told(board) == ""


def test_the_default_is_200_lines_and_says_what_it_leaves_out(board: Board) -> None:
    board.says(b"\n", *[b"line %d\n" % n for n in range(7, 1841)])
    answer = ask(board)
    assert (len(answer), answer[0], answer[-1]) == (200, "#1641 line 1641", "#1840 line 1840")
    assert told(board) == "showing 200 of 1,840 lines; --tail 0 for all"
    assert len(ask(board, tail=0)) == 1840
    assert told(board, tail=0) == told(board, tail=20) == ""
    assert len(ask(board, since=10)) == 1830, "a cursor gets all that is new, however much"


@pytest.mark.parametrize(
    ("selectors", "answer"),
    [
        ({"tail": 2}, ["#5 five", "#6* => "]),
        ({"tail": 2, "pending": False}, ["#4 four", "#5 five"]),
        ({"frm": 2, "to": 3}, ["#2 two", "#3 three"]),
        ({"frm": 5}, ["#5 five", "#6* => "]),
        ({"to": 1}, ["#1 one"]),
        ({"frm": 0, "to": 1}, ["#1 one"]),
        ({"to": 4, "tail": 1}, ["#4 four"]),
        ({"since": 4}, ["#5 five", "#6* => "]),
        ({"since": "#4"}, ["#5 five", "#6* => "]),
        ({"since": 0, "to": 2}, ["#1 one", "#2 two"]),
        ({"grep": "four"}, ["#4 four"]),
        ({"grep": "^f..[er]$"}, ["#4 four", "#5 five"]),
        ({"grep": "F", "ignore_case": True}, ["#4 four", "#5 five"]),
        ({"grep": "o", "tail": 2}, ["#2 two", "#4 four"]),
        ({"grep": "=> "}, ["#6* => "]),
        ({"grep": "o", "since": 1, "to": 2}, ["#2 two"]),
        ({"frm": 7}, []),
        ({"grep": "absent"}, []),
    ],
)
def test_selectors_choose_lines_and_narrow_each_other(
    board: Board, selectors: dict[str, Any], answer: list[str]
) -> None:
    assert ask(board, **selectors) == answer


def test_since_shows_a_line_again_that_was_seen_unfinished_and_has_grown(board: Board) -> None:
    assert ask(board)[-1] == "#6* => "
    assert ask(board, since=6) == [], "not while it is as it was"
    board.says(b"pri")
    assert ask(board, since=6) == ["#6* => pri"]
    board.says(b"nt\r\nbaud=1\r\n")
    assert ask(board, since=6) == ["#6 => print", "#7 baud=1"]
    assert ask(board, since=6) == ["#6 => print", "#7 baud=1"], "the same question has the same answer"
    assert ask(board, since=7) == []


def test_since_with_a_star_needs_no_memory(board: Board) -> None:
    board.says(b"boot\r\n")
    assert ask(board, since="6*") == ["#6 => boot"]
    assert ask(board, since="#6*") == ["#6 => boot"]
    assert ask(board, since=6) == [], "nobody was shown it unfinished"


def test_since_loses_nothing_to_two_readers_who_saw_different_parts(board: Board) -> None:
    ask(board)
    board.says(b"x")
    ask(board)
    board.says(b"y\n")
    assert ask(board, since=6) == ["#6 => xy"]


def test_polling_with_the_last_number_sees_every_byte_exactly_as_it_ends_up(tmp_path: Path) -> None:
    board = Board(tmp_path / "journal")
    whole = b"".join(b"line %d with words\r\n" % n for n in range(60))
    seen: dict[int, str] = {}
    last = 0
    for at in range(0, len(whole), 7):
        board.says(whole[at : at + 7])
        for item in logquery.query(board.directory, since=last):
            assert isinstance(item, Line)
            seen[item.seq] = as_data(item)["text"]
            last = item.seq
    assert seen == {n + 1: f"line {n} with words" for n in range(60)}


def test_an_exact_cursor_shows_a_line_once_for_each_time_that_it_has_grown(board: Board) -> None:
    assert told(board, since=5) == "next: --since 6+3 (#6 is unfinished and comes again once it has grown)"
    assert ask(board, since="6+3") == []
    board.says(b"pri")
    assert ask(board, since="6+3") == ["#6* => pri"]
    assert told(board, since="6+3").startswith("next: --since 6+6 ")
    assert ask(board, since="#6+6") == [], "also when the number alone would bring it again"
    board.says(b"\n")
    assert ask(board, since="6+6") == ["#6 => pri"]
    assert told(board, since="6+6") == "next: --since 6+7 (#6 is whole now)"
    assert ask(board, since="6+7") == []
    board.says(b"seven\n")
    assert ask(board, since="6+7") == ["#7 seven"] and told(board, since="6+7") == ""


def test_a_poller_that_follows_the_cursor_gets_each_state_once(tmp_path: Path) -> None:
    board = Board(tmp_path / "journal")
    cursor, seen = "0", []
    for piece in (b"=> ", b"", b"he", b"lp\r\n", b"", b"text\r\n=> ", b""):
        if piece:
            board.says(piece)
        seen += ask(board, since=cursor)
        note = told(board, since=cursor)
        if note.startswith("next: --since "):
            cursor = note.split()[2]
    assert seen == ["#1* => ", "#1* => he", "#1 => help", "#2 text", "#3* => "]


def test_a_slow_poller_loses_no_line_to_a_busy_one(board: Board) -> None:
    assert ask(board)[-1] == "#6* => "
    board.says(b"panic\n")
    for number in range(2000):
        board.says(b"%d" % number)
        ask(board, tail=1)
        board.says(b"\n")
    assert ask(board, since=6, to=7) == ["#6 => panic", "#7 0"]


def test_the_memory_of_unfinished_lines_stays_small_and_may_be_read_only(board: Board) -> None:
    for number in range(1000):
        board.says(b"%d" % number)
        ask(board, tail=1)
        board.says(b"\n")
    memory = Path(board.directory, "shown")
    assert memory.stat().st_size < 10_000
    memory.unlink()
    memory.mkdir()
    board.says(b"prompt")
    assert ask(board, tail=1) == ["#1006* prompt"]


def test_events_stand_behind_the_line_they_happened_in(board: Board) -> None:
    board.journal.tx(b"help\r", who={"pid": 7})
    board.says(b"help\r\n", b"bootm\r\n")
    board.journal.event("reset", ms=200)
    assert ask(board, events=True, tail=2) == ["#6 => help", '-- tx "help\\r" who=pid:7', "#7 bootm", "-- reset ms=200"]
    assert ask(board, events=True, since=6) == ['-- tx "help\\r" who=pid:7', "#7 bootm", "-- reset ms=200"]
    assert ask(board, events=True, frm=1, to=2) == ["#1 one", "#2 two"]
    assert ask(board, events=True, to=6)[-2:] == ["#6 => help", '-- tx "help\\r" who=pid:7']
    assert ask(board, events=True, grep="help") == ["#6 => help", '-- tx "help\\r" who=pid:7']
    assert ask(board, grep="reset") == []


def test_what_happened_is_shown_before_the_board_has_said_a_word(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.journal.event("open", device="/dev/ttyUSB0")
    assert ask(board, events=True) == ["-- open device=/dev/ttyUSB0"]
    assert told(board) == "pico.console said nothing while it was captured; labd serial watch pico"


def test_raw_is_byte_exact(tmp_path: Path) -> None:
    board = Board(tmp_path, segment_bytes=100)
    every = bytes(range(256))
    board.says(*(every[i : i + 10] for i in range(0, 256, 10)), b"\nlast \xff")

    def raw(**selectors: Any) -> bytes:
        parts = list(logquery.query(board.directory, raw=True, **selectors))
        assert all(isinstance(part, bytes) for part in parts)
        return b"".join(part for part in parts if isinstance(part, bytes))

    assert raw() == raw(tail=0) == every + b"\nlast \xff"
    assert raw(tail=1) == b"last \xff"
    assert raw(pending=False) == every + b"\n"
    assert raw(frm=1, to=1) == every[:11]
    assert raw(grep="last") == b"last \xff"
    assert raw(frm=9) == b""


def test_json_has_the_keys_of_the_design(board: Board) -> None:
    board.journal.tx(b"\x03")
    items = list(logquery.query(board.directory, tail=1, events=True))
    line, event = (as_data(item) for item in items if not isinstance(item, bytes | logquery.Note))
    assert line == {"seq": 6, "ts_ms": (START + 5_000_000) // 1_000_000, "text": "=> ", "partial": True}
    assert {"event": "tx", "rx": 41, "data": "\x03", "accepted": 1}.items() <= event.items()
    json.dumps([line, event])


def test_text_has_the_form_of_the_design_and_colour_only_on_demand(board: Board) -> None:
    first = next(iter(logquery.query(board.directory)))
    assert isinstance(first, Line)
    assert as_text(first) == f"[{stamp(START + 1_000_000)}] #1 one"
    assert as_text(first).startswith("[2026-09-")
    assert "\x1b[" in as_text(first, color=True) and "one" in as_text(first, color=True)


def test_times_are_utc_with_milliseconds() -> None:
    assert stamp(1_796_000_000_123_999_999) == "2026-11-30T00:53:20.123Z"
    assert stamp(0) == "1970-01-01T00:00:00.000Z"


def test_a_line_that_is_too_long_is_cut_and_says_so_and_is_still_searched_whole(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"x" * 300_000, b"needle", b"y" * 300_000 + b"\n")
    (line,) = logquery.query(board.directory)
    assert isinstance(line, Line)
    assert as_text(line).split("] ", 1)[1].startswith("#1 [the end of 600006 bytes; --raw has all] yyyy")
    assert as_data(line)["length"] == 600_006
    for pattern in ("needle", "n.?edle"):
        (found,) = ask(board, grep=pattern)
        assert "needle" in found and "bytes…] x" in found, "what was found is shown"
    (found,) = ask(board, grep="yy$")
    assert "the end of" in found


def test_of_an_endless_progress_bar_the_newest_state_is_shown(tmp_path: Path) -> None:
    board = Board(tmp_path)
    for percent in range(20_000):
        board.says(b"\rdone %d of 20000" % percent)
    assert ask(board) == ["#1* done 19999 of 20000"]
    assert ask(board, grep="19999") == ["#1* done 19999 of 20000"]
    board.says(b"\r\n")
    assert ask(board) == ["#1 done 19999 of 20000"]


def test_an_over_long_line_is_cut_between_characters(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says("€".encode() * 30_000 + b"\n")
    (found,) = ask(board)
    assert "\\x" not in found and found.endswith("€€")


def test_missing_bytes_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.journal.test_journal_full import Faults

    disk, board = Faults(monkeypatch), Board(tmp_path)
    board.says(b"one\n")
    disk.room = 0
    board.says(b"two\n")
    disk.room = None
    board.says(b"three\n")
    assert "bytes are missing, or may be, in or before 1 of these lines" in told(board)
    assert ask(board, events=True)[1] == "-- overrun: 4 bytes lost at offset 4 (No space left on device)"


def test_an_empty_answer_says_why_and_what_there_is(board: Board, tmp_path: Path) -> None:
    nothing = logquery.query(str(tmp_path / "nothing"))
    assert list(nothing) == [] and not nothing.facts.exists and not nothing.facts.captured
    assert nothing.notes("pico.console", watch="labd serial watch pico") == [
        "no capture of pico.console yet; labd serial watch pico"
    ]
    assert "#99 is beyond the last line of pico.console, #6" in told(board, since=99)
    list(logquery.query(board.directory))
    assert "nothing new on pico.console since #6; the last byte came" in told(board, since=6)
    assert told(board, grep="zz") == "none of 6 lines of pico.console has 'zz'; pico.console has lines #1 to #6*"
    assert told(board, frm=50) == "#50 has not come yet; pico.console has lines #1 to #6*"


def test_evicted_lines_are_told(tmp_path: Path) -> None:
    board = Board(tmp_path, keep_bytes=20_000)
    board.says(*[b"line %d\n" % n for n in range(1, 3001)])
    first = logquery.query(board.directory).facts.first_seq
    assert ask(board, frm=1)[0] == f"#{first} line {first}"
    assert told(board, frm=1).startswith(f"lines #1 to #{first - 1} are no longer kept")
    assert f"lines #1 to #{first - 1} are no longer kept" in told(board, frm=1, to=2)
    assert "no longer kept" in told(board, since=3)


@pytest.mark.parametrize("since", ["", "x", "-1", "1.5", "3**", "²", "3+", "+3", "3*+4", "3+4*", " 3", "1_0", "9" * 30])
def test_a_cursor_that_is_no_number_is_a_usage_error(board: Board, since: str) -> None:
    with pytest.raises(Usage, match="--since takes the number"):
        ask(board, since=since)


def test_selectors_that_contradict_each_other_are_usage_errors(board: Board) -> None:
    with pytest.raises(Usage, match="--to 1 is before --from 3"):
        ask(board, frm=3, to=1)
    with pytest.raises(Usage, match="--events"):
        ask(board, raw=True, events=True)
    with pytest.raises(Usage, match="--follow"):
        ask(board, follow=True, to=3, wait=lambda directory, seconds: False)


def test_a_journal_that_may_not_be_read_is_an_error_in_words(board: Board) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    Path(board.directory, "rx").chmod(0)
    try:
        with pytest.raises(LabdError, match="can't be read"):
            ask(board)
    finally:
        Path(board.directory, "rx").chmod(0o700)
