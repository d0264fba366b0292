"""--follow: each line once it is there, unfinished ones at once, nothing lost and nothing doubled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labd import logquery
from tests.journal.parts import Board
from tests.journal.test_logquery import short


def following(board: Board, *acts: Callable[[], object], **selectors: Any) -> list[Any]:
    """The answer while `acts` happen, one a wake-up, with a quiet wake-up at the end."""
    steps = iter(acts)

    def wait(directory: str, seconds: float) -> bool:
        act = next(steps, None)
        if act is not None:
            act()
        return act is not None

    return list(logquery.query(board.directory, follow=True, wait=wait, **selectors))


def nothing() -> None:
    """A wake-up without news."""


def test_it_goes_on_after_what_was_shown(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"one\r\n", b"=> ")
    answer = following(
        board,
        lambda: board.says(b"help\r\n"),
        nothing,
        lambda: board.says(b"a\r\nb\r\n"),
        tail=1,
    )
    assert list(map(short, answer)) == ["#2* => ", "#2 => help", "#3 a", "#4 b"]


def test_an_unfinished_line_is_shown_at_once_and_again_when_it_has_grown_and_is_quiet(tmp_path: Path) -> None:
    board = Board(tmp_path)
    typed = [lambda c=c: board.says(c) for c in (b"l", b"o", b"g", b"i", b"n")]
    answer = following(board, *typed, nothing, nothing, lambda: board.says(b": x\n"), tail=5)
    assert list(map(short, answer)) == ["note nothing captured yet; waiting", "#1* l", "#1* login", "#1 login: x"]


def test_without_pending_only_whole_lines_come(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"one\npart")
    answer = following(board, nothing, lambda: board.says(b"ial"), nothing, lambda: board.says(b"\n"), pending=False)
    assert list(map(short, answer)) == ["#1 one", "#2 partial"]


def test_raw_follows_byte_by_byte(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"a\r\n")
    answer = following(board, lambda: board.says(b"\xff\x00"), nothing, lambda: board.says(b"\x1b"), raw=True)
    assert answer == [b"a\r\n", b"\xff\x00", b"\x1b"]
    whole = following(board, lambda: board.says(b"x\ny"), raw=True, pending=False)
    assert b"".join(whole) == b"a\r\n\xff\x00\x1bx\n"


def test_grep_and_events_apply_to_what_comes(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"ok 1\n")
    acts = (lambda: board.says(b"bad\n"), lambda: board.journal.tx(b"ok\r"), lambda: board.says(b"ok 2\n"))
    assert list(map(short, following(board, *acts, grep="ok"))) == ["#1 ok 1", "#3 ok 2"]
    board.journal.event("mark", word="ok")
    answer = following(board, lambda: board.says(b"ok 3\n"), lambda: board.journal.tx(b"\x03"), tail=1, events=True)
    assert list(map(short, answer)) == [
        '-- tx "ok\\r"',
        "#3 ok 2",
        "-- mark word=ok",
        "#4 ok 3",
        '-- tx "\\x03"',
    ]


def test_what_was_left_out_is_told_before_the_following_begins(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"line\n" * 300)
    answer = following(board, lambda: board.says(b"new\n"))
    assert list(map(short, answer[-2:])) == ["note showing 200 of 300 lines; --tail 0 for all", "#301 new"]


def test_a_cursor_beyond_the_end_is_told_and_followed_from_the_end(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"one\n")
    answer = following(board, lambda: board.says(b"two\n"), since=99)
    assert list(map(short, answer)) == ["note line #99 is beyond the last one, #1; following from there", "#2 two"]


def test_what_was_evicted_before_it_could_be_shown_is_told(tmp_path: Path) -> None:
    board = Board(tmp_path, keep_bytes=8000)
    board.says(b"one\n")
    answer = following(board, lambda: board.says(*[b"0123456789\n"] * 2000))
    first = answer[2].seq
    assert list(map(short, answer[:3])) == [
        "#1 one",
        f"note lines #2 to #{first - 1} were evicted before they could be shown",
        f"#{first} 0123456789",
    ]
    assert [line.seq for line in answer[2:]] == list(range(first, 2002))


def test_a_reader_beside_a_busy_writer_gets_every_line_once(tmp_path: Path) -> None:
    board = Board(tmp_path, segment_bytes=50_000)
    count = 20_000
    board.says(b"0\n")
    deadline = time.monotonic() + 60

    def write() -> None:
        for number in range(1, count):
            board.says(b"%d" % number, b"\n")

    writer = threading.Thread(target=write)
    seen: list[str] = []

    def wait(directory: str, seconds: float) -> bool:
        return time.monotonic() < deadline

    writer.start()
    try:
        for item in logquery.query(board.directory, tail=0, follow=True, wait=wait, pending=False):
            seen.append(short(item))
            if len(seen) == count:
                break
    finally:
        writer.join(60)
    assert seen == [f"#{n + 1} {n}" for n in range(count)]
