"""Typing by the echo, against consoles that lose, change and delay what is typed."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labd.echo_check import Checked, Typist
from labd.errors import LabdError, Usage


class Console:
    """A line editor: echoes what arrives, erases on DEL, takes a line at CR. `mangle(n, byte)` is the wire to it."""

    def __init__(self, mangle=lambda number, byte: byte, echo: bool = True, row: int = 0) -> None:
        self.mangle = mangle
        self.echo = echo
        self.row = row
        self.line = b""
        self.lines: list[bytes] = []
        self.out = b""
        self.number = 0

    def send(self, data: bytes) -> None:
        for byte in data:
            self.number += 1
            got = self.mangle(self.number, byte)
            if got is None:
                continue
            if got == 0x7F:
                self.out += b"\b \b" if self.line else b"\a"
                self.line = self.line[:-1]
            elif got == 0x0D:
                self.lines.append(self.line)
                self.line = b""
                self.out += b"\r\n# "
            else:
                self.line += bytes([got])
                self.out += bytes([got]) if self.echo else b""
                self.out += b" \r" if self.row and len(self.line) % self.row == 0 else b""

    def read(self, until: float) -> bytes:
        out, self.out = self.out, b""
        if not out:
            time.sleep(max(0.0, min(until - time.monotonic(), 0.002)))
        return out


def typed(console: Console, data: bytes, **more) -> Checked:
    return Typist(console.send, console.read, patience_s=0.01, **more).type(data)


TEXT = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=60).map(str.encode)


@settings(deadline=None)
@given(TEXT, st.one_of(st.just(0), st.integers(8, 40)))  # no wrap, or one at a width that a console can have
def test_a_good_console_gets_every_line_once(text: bytes, row: int):
    console = Console(row=row)
    assert typed(console, text + b"\r").resent == 0
    assert console.lines == [text]


@settings(deadline=None, max_examples=40)
@given(TEXT, st.integers(3, 11))
def test_lost_bytes_are_sent_again_and_the_line_is_right(text: bytes, every: int):
    console = Console(lambda number, byte: None if number % every == 0 and byte != 0x7F else byte)
    typed(console, text + b"\r")
    assert console.lines == [text]


@settings(deadline=None, max_examples=40)
@given(TEXT, st.integers(3, 11))
def test_changed_bytes_are_erased_and_sent_again(text: bytes, every: int):
    console = Console(lambda number, byte: byte ^ 1 if number % every == 0 and 0x20 < byte < 0x7E else byte)
    typed(console, text + b"\r")
    assert console.lines == [text]


def test_a_byte_that_never_comes_back_is_named_and_no_line_is_ended():
    console = Console(lambda number, byte: None if byte == ord("x") else byte)
    with pytest.raises(
        LabdError, match=r"byte 4 of 7 \(b'x'\) did not come back in 5 tries; the 3 before it are right"
    ):
        typed(console, b"abcxyz\r")
    assert (console.lines, console.line) == ([], b"abc")


def test_a_byte_that_always_changes_is_named_with_what_came():
    console = Console(lambda number, byte: ord("y") if byte == ord("x") else byte)
    with pytest.raises(LabdError, match=r"byte 2 of 3 \(b'x'\) came back as b'y'"):
        typed(console, b"ax\r")
    assert console.lines == []


def test_a_console_without_echo_gets_no_line_end():
    console = Console(echo=False)
    with pytest.raises(LabdError, match="did not come back"):
        typed(console, b"reboot\r")
    assert console.lines == []


def test_several_lines_are_typed_one_after_another():
    console = Console()
    done = typed(console, b"one\rtwo\r\rthree\r")
    assert console.lines == [b"one", b"two", b"", b"three"]
    assert done.confirmed == 11


@pytest.mark.parametrize("data", [b"\x03", b"a\tb\r", b"a\x7f"])
def test_control_characters_are_refused_before_anything_is_sent(data: bytes):
    console = Console()
    with pytest.raises(Usage, match="control character"):
        typed(console, data)
    assert console.number == 0
