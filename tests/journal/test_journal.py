"""Every byte is stored once, in order, with its line's number and time, and is there for readers at once."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labd.errors import Busy, LabdError
from labd.journal import Journal
from labd.journal_format import bases
from labd.journal_read import LINE_MAX, Reader
from tests.journal.parts import START, Board

chunks = st.lists(
    st.one_of(st.binary(min_size=1, max_size=40), st.text("ab\r\n", min_size=1, max_size=30).map(str.encode)),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(chunks=chunks, segment=st.integers(1, 100), reopen=st.integers(0, 40))
def test_any_chunks_through_any_segments_come_back_as_bytes_and_lines(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], segment: int, reopen: int
) -> None:
    directory = tmp_path_factory.mktemp("journal")
    board = Board(directory, segment_bytes=segment)
    starts: list[int] = []
    at = 0
    for number, chunk in enumerate(chunks):
        if number == reopen:
            board.journal.close()
            now, board = board.now, Board(directory, segment_bytes=segment)
            board.now = now
            assert board.journal.repaired == []
        board.says(chunk)
        starts.append(at)
        at += len(chunk)
    whole = b"".join(chunks)
    reader = Reader(str(directory))
    assert reader.bytes(0) == whole
    expected = whole.split(b"\n")
    partial = bool(expected.pop())
    lines = list(reader.lines())
    assert [line.raw for line in lines] == whole.split(b"\n")[: len(expected) + partial]
    assert [line.seq for line in lines] == list(range(1, len(lines) + 1))
    assert [line.partial for line in lines] == [False] * len(expected) + [True] * partial
    for line in lines:
        chunk_number = max(n for n, start in enumerate(starts) if start <= line.offset)
        assert line.wall_ns == START + (chunk_number + 1) * 1_000_000
        assert line.mono_ns == (chunk_number + 1) * 1_000_000
        assert whole[line.offset : line.offset + line.length] == line.raw
        assert reader.locate(line.seq) == (line.seq, line.offset)
        assert reader.seq_at(line.offset) == line.seq
        assert [one.raw for one in reader.lines(line.seq, line.seq)] == [line.raw]
    assert (reader.first_seq, reader.last_seq) == (1, len(lines))
    for count in (1, 3, 1000):
        assert [line.seq for line in reader.tail(count)] == [line.seq for line in lines[-count:]]
    assert board.journal.rx_end == len(whole)
    assert board.journal.rx_line == whole.count(b"\n")
    board.journal.close()


def test_the_raw_segments_are_the_wire_and_nothing_else(tmp_path: Path) -> None:
    board = Board(tmp_path, segment_bytes=100)
    every = bytes(range(256)) * 3
    board.says(*(every[i : i + 7] for i in range(0, len(every), 7)))
    board.journal.event("open", device="/dev/ttyUSB0")
    files = sorted((tmp_path / "rx").glob("*.raw"))
    assert len(files) > 3
    assert b"".join(file.read_bytes() for file in files) == every
    assert [int(file.stem) for file in files] == bases(str(tmp_path / "rx"))


def test_a_prompt_without_a_newline_is_there_at_once_and_is_not_doubled_when_its_line_ends(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"\r\n", b"login: ")
    reader = Reader(str(tmp_path))
    (prompt,) = reader.tail(1)
    assert (prompt.seq, prompt.raw, prompt.partial) == (2, b"login: ", True)
    board.says(b"root\r\n")
    assert reader.refresh()
    assert [(line.seq, line.raw, line.partial) for line in reader.tail(1)] == [(2, b"login: root\r", False)]
    assert reader.tail(1)[0].wall_ns == prompt.wall_ns, "a line's time is that of its first byte"


def test_a_line_of_ten_megabytes_is_stored_whole_and_read_in_little_memory(tmp_path: Path) -> None:
    board = Board(tmp_path, segment_bytes=1 << 20)
    piece = b"x" * 65536
    board.says(b"before\n", *[piece] * 160, b"end\nafter\n")
    reader = Reader(str(tmp_path))
    before, long, after = reader.lines()
    assert (before.raw, after.raw, after.seq) == (b"before", b"after", 3)
    assert (long.length, len(long.raw)) == (160 * 65536 + 3, LINE_MAX)
    assert len(bases(str(tmp_path / "rx"))) > 3, "a line that long spans segments"
    assert max(len(data) for _, data in reader.chunks(0)) <= 1 << 18
    assert [line.raw for line in reader.tail(1)] == [b"after"]


def test_memoryviews_and_bytearrays_are_stored_as_they_are_now(tmp_path: Path) -> None:
    board = Board(tmp_path)
    buffer = bytearray(b"hello\n")
    board.says(memoryview(buffer), buffer)  # type: ignore[arg-type]
    buffer[:] = b"xxxxxx"
    assert Reader(str(tmp_path)).bytes(0) == b"hello\nhello\n"


def test_events_and_sent_bytes_stand_beside_the_offset_where_they_happened(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.journal.event("open", device="/dev/ttyUSB0", settings={"baud": 115200})
    board.says(b"=> ")
    board.journal.tx(bytes(range(256)), who={"pid": 7})
    board.says(b"ok\n")
    board.journal.event("lost", why="unplugged")
    reader = Reader(str(tmp_path))
    events = list(reader.events())
    assert [(e.kind, e.rx, e.number) for e in events] == [("open", 0, 1), ("tx", 3, 2), ("lost", 6, 3)]
    assert events[1].fields["data"].encode("latin-1") == bytes(range(256))
    assert events[1].fields["accepted"] == 256
    assert [e.kind for e in reader.events(1)] == ["tx", "lost"]
    assert [e.kind for e in reader.events(0, 3)] == ["open", "tx"]
    assert [e.kind for e in reader.events(after=2)] == ["lost"]
    assert [e.kind for e in reader.events_backwards(("lost", "open"))] == ["lost", "open"]
    for line in (tmp_path / "events" / f"{0:020d}.raw").read_bytes().splitlines():
        assert {"kind", "rx", "wall_ns", "mono_ns"} <= set(json.loads(line))


def test_finding_the_events_of_a_range_among_many_reads_few_of_them(tmp_path: Path) -> None:
    board = Board(tmp_path)
    for number in range(3000):
        board.says(b"0123456789\n")
        board.journal.event("mark", number=number)
    reader = Reader(str(tmp_path))
    found = [event.fields["number"] for event in reader.events(11 * 1500, 11 * 1502)]
    assert found == [1499, 1500, 1501]


def test_what_was_sent_in_bulk_becomes_several_events_of_bounded_size(tmp_path: Path) -> None:
    board = Board(tmp_path)
    data = os.urandom(200_000)
    board.journal.tx(data, accepted=5)
    events = list(Reader(str(tmp_path)).events())
    assert b"".join(e.fields["data"].encode("latin-1") for e in events) == data
    assert [e.fields["accepted"] for e in events] == [65536, 65536, 65536, 5]


def test_a_step_of_the_wall_clock_is_an_event_and_both_clocks_are_kept(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"a\n")
    board.journal.rx(b"b\n", START - 3600 * 1_000_000_000, 2_000_000)
    (step,) = Reader(str(tmp_path)).events()
    assert (step.kind, step.rx, round(step.fields["step_ms"], -3)) == ("clock", 2, -3_600_000)
    assert [line.mono_ns for line in Reader(str(tmp_path)).lines()] == [1_000_000, 2_000_000]


def test_a_second_writer_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    board = Board(tmp_path)
    with pytest.raises(Busy, match=f"pid {os.getpid()}"):
        Journal(str(tmp_path))
    board.journal.close()
    board.journal.close()
    Journal(str(tmp_path)).close()


def test_a_directory_that_cannot_be_made_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LabdError, match="can't be opened"):
        Journal(str(tmp_path / "file" / "journal"))


def test_a_closed_journal_takes_nothing_more(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.journal.close()
    with pytest.raises(ValueError, match="closed"):
        board.says(b"late")


def test_a_journal_that_does_not_exist_is_an_empty_one(tmp_path: Path) -> None:
    reader = Reader(str(tmp_path / "nothing"))
    assert not reader.exists and not reader.captured and not reader.refresh()
    assert (reader.first_seq, reader.last_seq, reader.partial) == (1, 0, False)
    assert list(reader.lines()) == reader.tail(5) == list(reader.events()) == []
    assert reader.bytes(0) == b"" and reader.record_at(0) is None


def test_an_opened_journal_without_a_byte_exists_but_holds_nothing(tmp_path: Path) -> None:
    board = Board(tmp_path)
    reader = Reader(board.directory)
    assert reader.exists and not reader.captured
    board.says(b"x")
    assert reader.refresh() and reader.captured and reader.partial


def test_syncing_in_a_thread_does_not_disturb_what_is_written_meanwhile(tmp_path: Path) -> None:
    board = Board(tmp_path, segment_bytes=4096)
    stop = threading.Event()

    def sync() -> None:
        while not stop.is_set():
            board.journal.sync()

    thread = threading.Thread(target=sync)
    thread.start()
    try:
        for number in range(3000):
            board.says(b"line %06d\n" % number)
    finally:
        stop.set()
        thread.join(30)
    board.journal.close()
    assert [line.raw for line in Reader(board.directory).lines()] == [b"line %06d" % n for n in range(3000)]
    assert board.journal.failing is None


def test_the_reader_needs_no_heavy_module() -> None:
    import subprocess
    import sys

    code = (
        "import sys; before = set(sys.modules)\n"
        "from labd import logquery\n"
        "q = logquery.query('/nonexistent'); list(q); q.facts.captured\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    allowed = {"struct", "_struct", "__future__", "labd", "errno", "time"}
    assert [name for name in loaded if name not in allowed and not name.startswith("labd.")] == []
