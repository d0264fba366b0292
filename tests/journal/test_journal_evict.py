"""Retention by size and by age: whole old segments go, numbers stay, readers get through, and it is said."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from labd.journal import Journal
from labd.journal_format import bases
from labd.journal_read import Reader
from tests.journal.parts import SECOND, Board


def disk(directory: Path) -> int:
    """What the journal's streams take on disk."""
    return sum(path.stat().st_size for what in ("rx", "events") for path in (directory / what).iterdir())


def test_eviction_by_size_keeps_the_newest_and_every_number(tmp_path: Path) -> None:
    board = Board(tmp_path, keep_bytes=40_000)
    for number in range(1, 5001):
        board.says(b"line %d\r\n" % number)
    reader = Reader(str(tmp_path))
    assert 100 < reader.first_seq < 5000
    assert reader.last_seq == 5000
    for line in reader.lines():
        assert line.raw == b"line %d\r" % line.seq
    assert sum(path.stat().st_size for path in (tmp_path / "rx").iterdir()) <= 40_000
    evicted = [event for event in reader.events() if event.kind == "evicted"]
    assert evicted and evicted[-1].fields["first_offset"] == reader.first_offset
    assert evicted[-1].fields["why"] == "size"
    assert [line.seq for line in reader.lines(1, reader.first_seq + 1)] == [reader.first_seq, reader.first_seq + 1]


def test_numbers_and_offsets_go_on_when_an_evicted_journal_is_opened_again(tmp_path: Path) -> None:
    board = Board(tmp_path, keep_bytes=10_000)
    board.says(*[b"0123456789\n"] * 3000)
    end, line = board.journal.rx_end, board.journal.rx_line
    board.journal.close()
    journal = Journal(str(tmp_path), keep_bytes=10_000)
    assert (journal.rx_end, journal.rx_line, journal.repaired) == (end, line, [])


def test_events_go_with_the_bytes_they_stood_beside(tmp_path: Path) -> None:
    board = Board(tmp_path, keep_bytes=60_000)
    for _ in range(3000):
        board.says(b"0123456789012345678901234567890123456789\n")
        board.journal.tx(b"x")
    reader = Reader(str(tmp_path))
    events = list(reader.events())
    assert events[0].number > 1
    assert [event.number for event in events] == list(range(events[0].number, events[-1].number + 1))
    assert disk(tmp_path) <= 2 * 60_000


def test_events_alone_cannot_fill_the_disk(tmp_path: Path) -> None:
    board = Board(tmp_path, keep_bytes=40_000)
    for _ in range(3000):
        board.journal.tx(b"nobody answers")
    board.says(b"x" * 30_000 + b"\n", b"y" * 30_000 + b"\n")
    board.journal.sync()
    board.journal.close()
    Journal(str(tmp_path), keep_bytes=40_000).close()
    assert sum(path.stat().st_size for path in (tmp_path / "events").iterdir()) <= 60_000


def test_eviction_by_age_takes_old_segments_of_a_line_that_says_little(tmp_path: Path) -> None:
    board = Board(tmp_path, keep_ns=100 * SECOND)
    board.now = time.time_ns() - 400 * SECOND
    board.says(b"old\n")
    board.journal.sync()
    board.now += 250 * SECOND
    board.says(b"newer\n")
    board.journal.close()
    board = Board(tmp_path, keep_ns=100 * SECOND)
    assert [(line.seq, line.raw) for line in Reader(str(tmp_path)).lines()] == [(2, b"newer")], "the last bytes stay"
    board.now = time.time_ns()
    board.says(b"today\n")
    board.journal.close()
    Journal(str(tmp_path), keep_ns=100 * SECOND).close()
    reader = Reader(str(tmp_path))
    assert [(line.seq, line.raw) for line in reader.lines()] == [(3, b"today")]
    assert [event.fields["why"] for event in reader.events_backwards(("evicted",))] == ["age", "age"]


def test_a_reader_reads_through_an_eviction_and_the_numbers_show_what_it_missed(tmp_path: Path) -> None:
    board = Board(tmp_path, keep_bytes=400_000)
    for number in range(1, 8001):
        board.says(b"line %07d of a long log\n" % number)
    reader = Reader(str(tmp_path))
    walk = reader.lines()
    seen = [next(walk).seq for _ in range(10)]
    for number in range(8001, 40_001):
        board.says(b"line %07d of a long log\n" % number)
    for line in walk:
        assert line.raw == b"line %07d of a long log" % line.seq
        seen.append(line.seq)
    assert seen == sorted(set(seen)) and len(seen) < 8000


def test_a_reader_that_was_overtaken_completely_says_where_the_journal_is_now(tmp_path: Path) -> None:
    board = Board(tmp_path, keep_bytes=8000)
    board.says(*[b"first\n"] * 100)
    reader = Reader(str(tmp_path))
    board.says(*[b"later\n"] * 9000)
    assert reader.locate(5)[0] in (5, Reader(str(tmp_path)).first_seq)
    reader.refresh()
    assert {line.raw for line in reader.lines(1)} == {b"later"}


def test_readers_poll_while_a_writer_rolls_and_evicts(tmp_path: Path) -> None:
    board = Board(tmp_path, keep_bytes=64_000)
    stop, wrong, polls = threading.Event(), [], [0]

    def poll() -> None:
        reader = Reader(str(tmp_path))
        while not stop.is_set():
            reader.refresh()
            tail = reader.tail(20)
            first = tail[0].seq if tail else 0
            if [(line.seq, line.raw) for line in tail] != [(n, b"%09d" % n) for n in range(first, first + len(tail))]:
                wrong.append(tail)
            polls[0] += 1

    threads = [threading.Thread(target=poll) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        number = 0
        while number < 60_000 or (polls[0] < 50 and number < 2_000_000):
            number += 1
            board.says(b"%09d\n" % number)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert wrong == []
    assert polls[0] >= 50
    assert bases(str(tmp_path / "rx"))[0] > 0
