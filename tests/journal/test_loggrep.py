"""--grep: what is found is what a person sees, a bad pattern is told where, an exploding one ends."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from labd import logquery
from labd.errors import TimedOut, Usage
from labd.journal_read import Line
from labd.loggrep import Pattern, required
from tests.journal.parts import Board

patterns = st.lists(
    st.sampled_from(
        ["a", "b", "ab", ".", "*", "+", "?", "{2}", "{0}", "(", ")", "|", "[ab]", "[^]a]", "^", "$", "\\d", "\\.",
         "\\b", "(?:", "x", "{", "}", "[", "]", "\\x41", "{0,1}"]
    ),
    max_size=8,
).map("".join)  # fmt: skip


@given(patterns, st.lists(st.text("abx.A1 {}[]", max_size=12), max_size=8), st.booleans())
def test_passing_over_a_block_never_hides_a_match(pattern: str, lines: list[str], ignore_case: bool) -> None:
    try:
        compiled = regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except regex.error:
        return
    if not pattern:
        return
    found = Pattern(pattern, ignore_case=ignore_case)
    block = "".join(line + "\r\n" for line in lines).encode()
    matching = [line for line in lines if compiled.search(line)]
    assert [line for line in lines if found.matches(line)] == matching
    assert found.maybe(block) or not matching, required(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("panic", "panic"),
        ("kernel panic: .*", "kernel panic: "),
        (r"\d+ errors?", " error"),
        (r"rc=(\d+)", "rc="),
        ("a|b", ""),
        ("(?i)x", ""),
        ("(optional)?rest", "rest"),
        ("[0-9a-f]+: oops", ": oops"),
        (r"\x41bc", ""),
        ("abc*", "ab"),
        ("abc{2}d", "ab"),
    ],
)
def test_the_text_that_every_match_contains_is_taken_from_the_pattern(pattern: str, text: str) -> None:
    assert required(pattern) == text


def test_colours_and_backspaces_hide_nothing(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"x\r\n" * 5000, b"Ker\x1b[31mnel pa\x1b[0mnic\r\n", b"paniX\bc\r\n", b"10%\rpanic\r\n", b"y\r\n" * 5000)
    found = [item.seq for item in logquery.query(board.directory, grep="panic") if isinstance(item, Line)]
    assert found == [5001, 5002, 5003]


def test_utf_8_that_was_split_between_chunks_is_found(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"caf\xc3", b"\xa9 \xe2\x82", b"\xac\r\n")
    for pattern in ("café €", "caf. €", "É"):
        asked = logquery.query(board.directory, grep=pattern, ignore_case=pattern.isupper())
        assert [item.seq for item in asked if isinstance(item, Line)] == [1]


@pytest.mark.parametrize(("pattern", "position"), [("(a", 2), ("ab[z-a]", 6), ("*x", 0), ("a)", 1)])
def test_a_bad_pattern_is_a_usage_error_that_says_where(tmp_path: Path, pattern: str, position: int) -> None:
    with pytest.raises(Usage, match=f"at position {position} of ") as problem:
        logquery.query(str(tmp_path), grep=pattern)
    assert problem.value.hint is not None and problem.value.hint.startswith("labd serial log --grep")


def test_nothing_to_look_for_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="needs something"):
        logquery.query(str(tmp_path), grep="")


def test_a_pattern_that_explodes_ends_in_bounded_time(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.says(b"a" * 60_000 + b"!\n")
    start = time.monotonic()
    with pytest.raises(TimedOut, match="takes more than"):
        list(logquery.query(board.directory, grep="(a|aa)+$"))
    assert time.monotonic() - start < 10


def test_searching_many_lines_finds_each_match_with_its_number_and_time(tmp_path: Path) -> None:
    board = Board(tmp_path, segment_bytes=100_000)
    for number in range(1, 40_001, 50):
        board.says(
            b"".join(
                b"line %d: %s\r\n" % (n, b"oops" if n % 1000 == 7 else b"fine") for n in range(number, number + 50)
            )
        )
    for pattern in ("oops", "o.ps", "(?i)OOPS"):
        found = [item for item in logquery.query(board.directory, grep=pattern, tail=0) if isinstance(item, Line)]
        assert [line.seq for line in found] == list(range(7, 40_000, 1000))
        assert all(line.raw == b"line %d: oops\r" % line.seq for line in found)
        assert all(line.mono_ns == ((line.seq - 1) // 50 + 1) * 1_000_000 for line in found)
    asked = logquery.query(board.directory, grep="fine")
    assert len(list(asked)) == 200
    assert asked.notes() == ["showing 200 of 39,960 lines with 'fine'; --tail 0 for all"]
