"""kill -9 at any moment, torn indexes, a power cut: what was acknowledged is there, what is not is said."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from labd.journal import Journal
from labd.journal_format import RECORD_SIZE, RECOVERED, bases
from labd.journal_read import Reader
from tests.journal.parts import Board, kill, last_segment, start_writer, stream, wait_for_bytes


def check_against_the_stream(reader: Reader) -> None:
    """All that is kept is exactly the endless stream, and its lines have their right numbers."""
    first, end = reader.first_offset, reader.end_offset
    assert reader.bytes(first, end) == stream(first, end - first)
    assert (reader.first_seq, reader.last_seq) == (first // 64 + 1, end // 64 + bool(end % 64))
    for line in (*reader.lines(reader.first_seq, reader.first_seq + 5), *reader.tail(20)):
        start = (line.seq - 1) * 64
        assert line.offset == max(start, first)
        assert line.raw == stream(line.offset, line.length)


@pytest.mark.parametrize("seed", range(6))
def test_kill_9_loses_no_acknowledged_byte_and_doubles_none(tmp_path: Path, seed: int) -> None:
    directory, dice = tmp_path / "journal", random.Random(seed)
    for round_ in range(3):
        acks = tmp_path / f"acks{round_}"
        writer = start_writer(directory, acks, seed * 10 + round_)
        try:
            wait_for_bytes(acks, dice.randrange(1, 1200))
            for at, data in Reader(str(directory)).chunks(0):
                assert data == stream(at, len(data)), "what is read beside the writer differs"
        finally:
            kill(writer)
        acknowledged = int(acks.read_bytes().rsplit(b"\n", 2)[-2])
        check_against_the_stream(Reader(str(directory)))
        assert Reader(str(directory)).end_offset >= acknowledged
        said = []
        if round_ == 1:
            with open(last_segment(directory, "idx"), "ab") as index:
                index.write(b"\x01" * 7)
            said = ["torn index record of 7 bytes"]
        elif round_ == 2 and last_segment(directory, "idx").stat().st_size >= 2 * RECORD_SIZE:
            os.truncate(last_segment(directory, "idx"), last_segment(directory, "idx").stat().st_size - RECORD_SIZE)
            said = ["had no index record"]
        journal = Journal(str(directory), segment_bytes=1 << 18, keep_bytes=1 << 20)
        journal.close()
        assert journal.rx_end >= acknowledged, "acknowledged bytes are lost"
        assert journal.rx_line == journal.rx_end // 64
        assert all(any(words in what for what in journal.repaired) for words in said), journal.repaired
        reader = Reader(str(directory))
        check_against_the_stream(reader)
        if said:
            assert next(reader.events_backwards(("repaired",))).fields["what"] == journal.repaired


def test_a_reader_sees_a_torn_tail_without_anybody_repairing_it(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"one\n", b"two\n", b"login: ")
    board.journal.close()
    index = last_segment(tmp_path, "idx")
    os.truncate(index, RECORD_SIZE + 5)
    old = time.time() - 60
    os.utime(last_segment(tmp_path, "raw"), (old, old))
    lines = list(Reader(str(tmp_path)).lines())
    assert [(line.seq, line.raw, line.partial) for line in lines] == [
        (1, b"one", False),
        (2, b"two", False),
        (3, b"login: ", True),
    ]
    assert abs(lines[2].wall_ns / 1e9 - old) < 1, "their time is when the file was last written"
    assert index.stat().st_size == RECORD_SIZE + 5, "a reader never writes"


def test_bytes_without_a_record_get_one_and_it_is_said(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"one\n")
    board.journal.close()
    with open(last_segment(tmp_path, "raw"), "ab") as raw:
        raw.write(b"two\nthr")
    journal = Journal(str(tmp_path))
    assert journal.repaired == ["rx: 7 bytes from offset 4 had no index record; they have one now"]
    assert (journal.rx_end, journal.rx_line) == (11, 2)
    journal.close()
    reader = Reader(str(tmp_path))
    assert [line.raw for line in reader.lines()] == [b"one", b"two", b"thr"]
    record = reader.record_at(5)
    assert record is not None and record.flags == RECOVERED
    assert Journal(str(tmp_path)).repaired == [], "once mended, it is whole"


def test_an_index_that_is_gone_altogether_is_made_again(tmp_path: Path) -> None:
    board = Board(tmp_path, segment_bytes=8)
    board.says(b"line 1\nli", b"ne 2\n", b"line 3\nli", b"ne 4")
    board.journal.close()
    last_segment(tmp_path, "idx").unlink()
    os.utime(last_segment(tmp_path, "raw"), (1, 1))
    assert [line.raw for line in Reader(str(tmp_path)).lines()] == [b"line %d" % n for n in (1, 2, 3, 4)]
    journal = Journal(str(tmp_path), segment_bytes=8)
    assert journal.rx_line == 3
    journal.rx(b"\n", 1, 1)
    journal.close()
    assert [(line.seq, line.raw) for line in Reader(str(tmp_path)).lines()] == [
        (n, b"line %d" % n) for n in (1, 2, 3, 4)
    ]


def test_records_whose_bytes_never_reached_the_disk_are_cut_and_the_loss_is_said(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"one\n", b"two\n", b"three\n", b"four\n")
    board.journal.close()
    os.truncate(last_segment(tmp_path, "raw"), 10)
    assert [line.raw for line in Reader(str(tmp_path)).lines()] == [b"one", b"two", b"th"]
    journal = Journal(str(tmp_path))
    assert any("9 bytes from offset 10 are lost" in what for what in journal.repaired)
    assert (journal.rx_end, journal.rx_line) == (10, 2)
    journal.rx(b"IRD\n", 1, 1)
    reader = Reader(str(tmp_path))
    assert [line.raw for line in reader.lines()] == [b"one", b"two", b"thIRD"]
    (event,) = [e for e in reader.events() if e.kind == "repaired"]
    assert event.fields["lost"] == 9
    assert reader.record_at(8).wall_ns == board.now - 1_000_000, "the part that is there keeps its time"  # type: ignore[union-attr]


def test_zeroed_records_behind_a_power_cut_are_cut_off(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"one\n", b"two\n")
    board.journal.close()
    with open(last_segment(tmp_path, "idx"), "ab") as index:
        index.write(bytes(3 * RECORD_SIZE))
    assert [line.raw for line in Reader(str(tmp_path)).lines()] == [b"one", b"two"]
    journal = Journal(str(tmp_path))
    assert journal.repaired == ["rx: 3 unusable index records cut off"]
    assert journal.rx_end == 8


def test_a_half_written_event_is_cut_off_and_whole_ones_stay(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.journal.event("open", device="x")
    board.journal.close()
    with open(last_segment(tmp_path, "raw", "events"), "ab") as raw:
        raw.write(b'{"kind":"tx","rx":0,"data":"x","wall_ns":5,"mono_ns":5}\n{"kind":"tx","da')
    journal = Journal(str(tmp_path))
    assert [what.split(":")[0] for what in journal.repaired] == ["events", "events"]
    assert [event.kind for event in Reader(str(tmp_path)).events()] == ["open", "tx", "repaired"]


def test_a_kill_between_the_two_deletions_of_an_eviction_leaves_nothing_behind(tmp_path: Path) -> None:
    board = Board(tmp_path, segment_bytes=10)
    board.says(*[b"123456789\n"] * 5)
    board.journal.close()
    first = bases(str(tmp_path / "rx"))[0]
    (tmp_path / "rx" / f"{first:020d}.raw").unlink()
    assert Reader(str(tmp_path)).first_seq > 1
    Journal(str(tmp_path), segment_bytes=10).close()
    names = {path.stem for path in (tmp_path / "rx").glob("*.idx")}
    assert names == {path.stem for path in (tmp_path / "rx").glob("*.raw")}
