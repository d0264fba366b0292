"""A full disk: capture goes on, what could not be stored is counted and said, and all else is as it was."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from labd import journal_stream
from labd.journal import Journal
from labd.journal_read import Event, Reader
from tests.journal.parts import Board


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte, where this user may mount one."""
    if os.geteuid() or sys.platform != "linux":
        pytest.skip("mounting a small file system needs root on Linux; fault injection tests the same elsewhere")
    where = tmp_path / "disk"
    where.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(where)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True)


def overruns(directory: Path) -> list[Event]:
    """What the journal says was lost."""
    return [event for event in Reader(str(directory)).events() if event.kind == "overrun"]


def test_a_full_disk_loses_what_has_no_place_and_says_how_much_where_and_why(small_disk: Path) -> None:
    directory = small_disk / "journal"
    ballast = small_disk / "ballast"
    board = Board(directory, segment_bytes=200_000)
    board.says(b"before\n")
    ballast.write_bytes(bytes(700_000))
    sent = [b"%06d " % number + b"x" * 500 + b"\n" for number in range(2000)]
    board.says(*sent)
    board.journal.tx(b"while it is full")
    assert board.journal.failing is not None and "No space left" in board.journal.failing
    board.journal.sync()
    stored_full = board.journal.rx_end
    ballast.unlink()
    board.says(b"\n", b"after\n")
    assert board.journal.failing is None
    total = len(b"before\n") + sum(map(len, sent)) + len(b"\nafter\n")
    told = overruns(directory)
    assert sum(event.fields["count"] for event in told) == total - board.journal.rx_end
    assert told[-1].fields["offset"] == stored_full
    assert told[0].fields["cause"] == "No space left on device"
    assert [e.kind for e in Reader(str(directory)).events()].count("tx") == 1
    board.journal.close()
    assert Journal(str(directory)).repaired == [], "nothing was left half done"
    reader = Reader(str(directory))
    lines = list(reader.lines())
    stored = reader.bytes(0)
    assert stored.startswith(b"before\n" + b"".join(sent)[:100_000]) and stored.endswith(b"\nafter\n")
    assert [line.seq for line in lines if line.gap], "the line that misses bytes is marked"
    assert lines[-1].raw == b"after" and not lines[-1].gap


def test_a_journal_on_a_disk_that_is_full_from_the_start_still_opens_or_says_why(small_disk: Path) -> None:
    (small_disk / "journal").mkdir()
    try:
        (small_disk / "ballast").write_bytes(bytes(2_000_000))
    except OSError:
        pass
    board = Board(small_disk / "journal")
    board.says(b"lost\n")
    assert board.journal.failing is not None
    (small_disk / "ballast").unlink()
    board.says(b"kept\n")
    assert [line.raw for line in Reader(str(small_disk / "journal")).lines()] == [b"kept"]
    assert [event.fields["count"] for event in overruns(small_disk / "journal")] == [5]


def test_kill_9_on_a_full_disk_leaves_a_journal_that_opens(small_disk: Path) -> None:
    code = (
        "import sys, time, os, signal\n"
        "from labd.journal import Journal\n"
        "j = Journal(sys.argv[1])\n"
        "for n in range(3000): j.rx(b'%06d ' % n + b'y' * 600 + b'\\n', time.time_ns(), time.monotonic_ns())\n"
        "assert j.failing\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    directory = small_disk / "journal"
    ended = subprocess.run([sys.executable, "-c", code, str(directory)], cwd=Path(__file__).parents[2])
    assert ended.returncode == -9
    journal = Journal(str(directory))
    whole = b"".join(b"%06d " % n + b"y" * 600 + b"\n" for n in range(3000))
    assert Reader(str(directory)).bytes(0) == whole[: journal.rx_end]
    assert journal.rx_end > 500_000
    assert journal.rx_line == whole[: journal.rx_end].count(b"\n")


class Faults:
    """Stands in for os.write: takes `room` more bytes, then says that the disk is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        monkeypatch.setattr(journal_stream, "_write", self.write)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if self.room is None:
            return os.write(fd, data)
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = os.write(fd, data[: self.room])
        self.room -= done
        return done


@pytest.mark.parametrize("room", [0, 1, 5, 6, 7, 20, 38, 39, 45, 50, 77, 78, 100])
def test_wherever_the_space_ends_the_journal_stays_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    disk = Faults(monkeypatch)
    board = Board(tmp_path)
    board.says(b"first\n")
    board.journal.event("mark", at="start")
    disk.room = room
    board.says(b"line 2\n", b"line 3\n")
    board.journal.event("mark", at="full")
    board.says(b"line 4\n")
    stored = board.journal.rx_end
    sent = b"first\nline 2\nline 3\nline 4\n"
    disk.room = None
    board.says(b"last\n")
    reader = Reader(str(tmp_path))
    kept = reader.bytes(0)
    lost = sum(event.fields["count"] for event in overruns(tmp_path))
    assert len(kept) + lost == len(sent) + 5 and kept.endswith(b"last\n")
    assert kept[:stored] == sent[:stored] or lost
    assert [line.raw for line in reader.lines()] == kept.split(b"\n")[:-1]
    assert [e.fields["at"] for e in reader.events() if e.kind == "mark"] == ["start", "full"]
    assert board.journal.failing is None
    board.journal.close()
    assert Journal(str(tmp_path)).repaired == []


def test_an_error_of_the_disk_itself_is_reported_and_capture_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labd import journal_files

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    board = Board(tmp_path)
    monkeypatch.setattr(journal_files, "fdatasync", fail)
    board.says(b"x\n")
    board.journal.sync()
    assert board.journal.failing == "Input/output error: what was received may not survive a power cut"
    monkeypatch.undo()
    board.journal.sync()
    assert board.journal.failing is None


def test_more_events_than_can_wait_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from labd import journal_events

    monkeypatch.setattr(journal_events, "WAITING_MAX", 3)
    disk = Faults(monkeypatch)
    board = Board(tmp_path)
    disk.room = 0
    for number in range(10):
        board.journal.event("mark", number=number)
    disk.room = None
    board.journal.sync()
    events = list(Reader(str(tmp_path)).events())
    assert [event.fields["number"] for event in events if event.kind == "mark"] == [0, 1, 2]
    assert [event.fields["events"] for event in events if event.kind == "overrun"] == [7]
