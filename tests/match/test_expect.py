"""Waiting over a real journal: from the cursor, with what was sent, until it comes, dies, ends or is too late."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labd.errors import Usage
from labd.expect import cursor_since, expect, live_end
from labd.journal import Journal
from labd.journal_read import Reader
from labd.logshown import Shown
from labd.match import Result


class Board:
    """A journal that is written as a capture would."""

    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)
        self.journal = Journal(self.directory)

    def says(self, *chunks: bytes) -> None:
        for chunk in chunks:
            self.journal.rx(chunk, time.time_ns(), time.monotonic_ns())

    def gets(self, data: bytes) -> int:
        at = self.journal.rx_end
        self.journal.tx(data)
        return at


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    board = Board(tmp_path / "console")
    yield board
    board.journal.close()


def steps(*acts: Callable[[], None]) -> Callable[[str, float], bool]:
    """A `wait` that lets the next thing happen each time it is asked to sleep; then sleeps for real."""
    left = list(acts)

    def wait(directory: str, seconds: float) -> bool:
        if left:
            left.pop(0)()
        else:
            time.sleep(min(seconds, 0.005))
        return True

    return wait


def ask(board: Board, *patterns: str, acts: tuple[Callable[[], None], ...] = (), **options: object) -> Result:
    return expect(board.directory, patterns, **{"wait": steps(*acts), "timeout_s": 10.0, **options})  # type: ignore[arg-type]


def test_it_begins_with_what_comes_from_now_on(board: Board):
    board.says(b"old login: \r\n")
    result = ask(board, "login: ", acts=(lambda: board.says(b"new lo"), lambda: board.says(b"gin: ")))
    assert (result.ended, result.start, result.seq, result.before) == ("matched", 17, 2, "new ")


def test_from_a_cursor_what_came_meanwhile_is_not_missed_and_takes_no_wait(board: Board):
    cursor = live_end(board.directory)
    board.says(b"one\r\n\x1b[32mtwo\x1b[0m\r\nthr", b"ee\r\n")
    result = ask(board, "two", cursor=cursor, timeout_s=0)
    assert result.matched and (result.seq, result.seq_end, result.start, result.stop) == (2, 2, 10, 13)
    again = ask(board, "three", cursor=result.cursor, timeout_s=0)
    assert (again.seq, again.before) == (3, "\n")


def test_since_means_what_it_means_to_serial_log(board: Board):
    board.says(b"one\r\ntwo\r\nlogin: ")
    assert cursor_since(board.directory, 0) == 0
    assert cursor_since(board.directory, 1) == 5
    assert cursor_since(board.directory, "#2") == 10
    assert cursor_since(board.directory, "3*") == 10
    assert cursor_since(board.directory, 3) == 17
    assert cursor_since(board.directory, 99) == 17
    assert cursor_since(board.directory, "2+2") == 7, "behind the bytes that were seen"
    assert cursor_since(board.directory, "#3+5") == 15
    assert cursor_since(board.directory, "2+90") == 10, "no further than the line"
    assert cursor_since(board.directory, "2+0") == cursor_since(board.directory, "2*")
    Shown(board.directory).remember(3, 3)
    assert cursor_since(board.directory, 3) == 10, "it has grown since it was shown"
    with pytest.raises(Usage):
        cursor_since(board.directory, "x")


def test_what_was_sent_before_or_during_the_wait_is_known_for_its_echo(board: Board):
    board.says(b"# ")
    cursor = board.gets(b"echo DONE\r")
    board.says(b"echo DONE\r\n")
    late = lambda: board.says(b"DONE\r\n# ")  # noqa: E731
    result = ask(board, "DONE", cursor=cursor, acts=(late,))
    assert (result.start, result.echo) == (13, ((2, 13),))

    def type_and_echo() -> None:
        board.gets(b"cat DONE2\r")
        board.says(b"cat DONE2\r\nx DONE2\r\n")

    assert ask(board, "DONE2", acts=(type_and_echo,)).before.endswith("\nx ")


def test_an_echo_that_began_before_the_cursor_is_still_known(board: Board):
    board.says(b"# ")
    board.gets(b"echo DONE\r")
    board.says(b"echo ")
    result = ask(board, "DONE", acts=(lambda: board.says(b"DONE\r\nDONE\r\n"),))
    assert result.start == 13


def test_a_long_send_whose_events_come_late_is_known_from_its_begin(board: Board):
    board.says(b"# echo DONE\r\n# ")
    board.journal.tx(b"echo DONE\r", rx_before=2)
    result = ask(board, "DONE", cursor=2, timeout_s=0)
    assert result.ended == "timed_out"


def test_a_prompt_that_is_old_needs_no_quiet_time_any_more(board: Board):
    then = time.time_ns() - 10**10
    board.journal.rx(b"root@x:~# ", then, time.monotonic_ns() - 10**10)
    begun = time.monotonic()
    assert ask(board, r"[#$] $", cursor=0, settle_ms=5000).matched
    assert time.monotonic() - begun < 4


def test_a_match_that_could_grow_waits_for_quiet(board: Board):
    result = ask(board, r"rc=\d+", acts=(lambda: board.says(b"rc=1"), lambda: board.says(b"27")), settle_ms=50)
    assert result.text == "rc=127" and "50 ms" in result.why


def test_a_panic_ends_it_at_once(board: Board):
    result = ask(board, "login: ", acts=(lambda: board.says(b"a\r\nKernel panic - not syncing"),))
    assert (result.ended, result.seq, result.text) == ("died", 2, "Kernel panic")


def test_a_timeout_tells_the_nearest_miss_and_the_last_lines(board: Board):
    board.gets(b"boot\r")
    result = ask(board, "login: ", timeout_s=0.05, acts=(lambda: board.says(b"boot\r\nhello\r\nlogim: "),))
    assert (result.ended, result.cursor) == ("timed_out", 20)
    assert [line["text"] for line in result.last_lines] == ["boot", "hello", "logim: "]
    assert result.nearest[0]["seq"] == 3 and "'m' instead of 'n'" in result.nearest[0]["differs"]
    assert "20 bytes came" in result.why


def test_a_timeout_says_so_when_it_stood_there_before(board: Board):
    board.says(b"x\r\nlogin: ")
    (miss,) = ask(board, "login: ", timeout_s=0).nearest
    assert miss["seq"] == 2 and "--since 1" in miss["differs"]


def test_where_nothing_is_captured_what_is_stored_counts_and_then_it_is_over(board: Board):
    board.says(b"login: ")
    assert ask(board, "login: ", cursor=0, live=lambda: False).matched
    assert ask(board, "login: ", live=lambda: False).ended == "gone"


def test_a_capture_that_ends_during_the_wait_ends_it_with_what_came_last(board: Board):
    alive = [True]

    def last_words() -> None:
        board.says(b"rc=12")
        alive[0] = False

    assert ask(board, r"rc=\d+", acts=(last_words,), live=lambda: alive[0], settle_ms=60000).text == "rc=12"


def test_who_does_not_listen_any_more_is_not_waited_for(board: Board):
    assert ask(board, "x", wait=lambda directory, seconds: False).ended == "cancelled"


def test_a_wait_of_over_two_seconds_says_what_for(board: Board, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("labd.expect.PROGRESS_S", 0.01)
    told: list[str] = []
    ask(board, "login: ", timeout_s=0.1, progress=told.append)
    (text,) = told
    assert "'login: '" in text


def test_a_journal_that_does_not_exist_yet_can_be_waited_for(tmp_path: Path):
    made: list[Board] = []

    def begin() -> None:
        made.append(Board(tmp_path / "later"))
        made[0].says(b"login: ")

    result = expect(str(tmp_path / "later"), ["login: "], wait=steps(begin), timeout_s=10)
    made[0].journal.close()
    assert result.matched


def test_a_cursor_that_is_no_more_kept_is_refused_with_the_oldest(tmp_path: Path):
    journal = Journal(str(tmp_path / "j"), segment_bytes=1000, keep_bytes=4000)
    for _ in range(200):
        journal.rx(b"x" * 99 + b"\n", time.time_ns(), time.monotonic_ns())
    assert Reader(str(tmp_path / "j")).first_offset > 0
    with pytest.raises(Usage, match="no more kept"):
        expect(str(tmp_path / "j"), ["x"], cursor=0, wait=steps())
    journal.close()


def test_a_writer_in_another_thread_is_seen_byte_for_byte(board: Board):
    def flood() -> None:
        for number in range(3000):
            board.says(b"line %d\r\n" % number)
        board.says(b"the ", b"end\r\n")

    writer = threading.Thread(target=flood)
    writer.start()
    result = ask(board, "the end", cursor=0, timeout_s=30)
    writer.join()
    assert result.matched and result.seq == 3001
