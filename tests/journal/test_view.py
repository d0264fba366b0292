"""What a person sees of a line: never an exception, never an escape that reaches the terminal, nothing made up."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labd.view import COLUMNS, plain

console = st.lists(
    st.sampled_from(
        [b"\x1b", b"[", b"]0;", b"K", b"31m", b"2J", b"9999999C", b"\x08", b"\r", b"\x00", b"\xe2\x82\xac", b"\xe2",
         b"\xff", b"text", b" ", b";", b"\x07", b"\x1b\\", b"P", b"@", b"\t", b"\x9b", b"\xc2\x9b", b"\xe2\x80\xae"]
    )
).map(b"".join)  # fmt: skip


@given(
    st.one_of(st.binary(), console),
    st.booleans(),
    st.sampled_from(["utf-8", "latin-1", "cp437", "utf-16", "hex", "no"]),
)
def test_any_bytes_in_any_encoding_become_printable_text(raw: bytes, partial: bool, encoding: str) -> None:
    text = plain(raw, encoding, partial=partial)
    assert "\n" not in text or encoding not in ("utf-8", "latin-1", "cp437")
    for char in text:
        assert char == "\t" or char.isprintable() or unicodedata.category(char) == "Zs", repr(text)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"])))
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert plain(text.encode()) == text
    assert plain(text.encode() + b"\r") == text
    assert plain(text.encode() + b"\r\r") == text, "CR CR LF is one line end, not an empty line"


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1), st.data())
def test_a_character_that_has_only_begun_is_not_shown_broken(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    cut = data.draw(st.integers(0, len(raw)))
    assert text.startswith(plain(raw[:cut], partial=True))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[01;32mroot@x \x1b[00m:~# ", "root@x :~# "),
        (b"lss\b \b", "ls "),
        (b"ls\b\b\b\bcd", "cd"),
        (b"\x1b(Bok\x1b)0", "ok"),
        (b"\x1b]0;root@board\x07# \x1b]2;x\x1b\\", "# "),
        (b"\x1b[?2004h$ ", "$ "),
        (b"Hit any key to stop autoboot:  3 \b\b\b 2 \b\b\b 1 \b\b\b 0 ", "Hit any key to stop autoboot:  0 "),
        (b"$ lx\r\x1b[K$ ls", "$ ls"),
        (b"abc\x1b[2D\x1b[KX", "aX"),
        (b"abcd\x1b[3D\x1b[1PX", "aXd"),
        (b"ad\x1b[1D\x1b[2@bc", "abcd"),
        (b"\x1b[1;1Hmenu\x1b[2;5Hitem", "menu item"),
        (b"a\xb7\xff", "a\\xb7\\xff"),
        (b"\xe2\x82\xac", "€"),
        (b"\xe2\x82", "\\xe2\\x82"),
        (b"nul\x00\x01\x7f", "nul\\x00\\x01\\x7f"),
        (b"\xe2\x80\xaeevil", "\\u202eevil"),
        (b"\x1b", "\\x1b"),
        (b"\t|", "\t|"),
        (b"done\x07", "done"),
    ],
)
def test_the_row_is_what_a_terminal_would_leave(raw: bytes, text: str) -> None:
    assert plain(raw) == text


def test_a_progress_bar_shows_its_last_state() -> None:
    states = b"".join(b"%5.1f%% downloading\r" % (n / 30) for n in range(3000))
    assert plain(states, partial=True) == "100.0% downloading"
    assert plain(states + b"done\r") == "done"


def test_a_jump_to_the_right_stops_at_the_edge() -> None:
    assert len(plain(b"\x1b[999999999Cx")) == COLUMNS + 1


def test_an_unfinished_escape_is_held_back_while_its_line_is_unfinished() -> None:
    assert plain(b"x\x1b[1", partial=True) == "x"
    assert plain(b"x\x1b[1") == "x\\x1b[1"


def test_another_encoding_is_read_as_it_is_named_and_an_unknown_one_as_utf_8() -> None:
    assert plain(b"\xe9t\xe9", "latin-1") == "été"
    assert plain("été".encode(), "nonsense") == "été"


def test_a_hostile_line_of_64_kib_takes_no_noticeable_time() -> None:
    import time

    start = time.process_time()
    for part in (b"\x1b]", b"\x1b[1@", b"\b", b"x\x1b[1P", b"\x1b[", b"\r\x1b[255Cx"):
        plain((part * 65536)[:65536])
    assert time.process_time() - start < 5


def test_an_escape_that_is_none_hides_nothing_of_an_unfinished_line() -> None:
    assert plain(b"a\x1b\x01login: ", partial=True) == "a\\x1b\\x01login: "
    assert plain(b"login: \x1b[3", partial=True) == "login: "
