"""The pure parts: templates, the tty's line editing, the shell's words, the control language."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopback import control, shell
from loopback.discipline import MAX_LINE, Discipline, Event
from loopback.template import TemplateError, compile_template


@settings(deadline=None)
@given(st.text())
def test_a_text_with_doubled_braces_is_itself(text: str) -> None:
    escaped = text.replace("{", "{{").replace("}", "}}")
    assert compile_template(escaped).render(lambda name, arg: "?") == text


@settings(deadline=None)
@given(st.text(alphabet="{}ab:1_ ", max_size=12))
def test_any_text_compiles_or_says_where_the_brace_is(text: str) -> None:
    try:
        compile_template(text)
    except TemplateError as error:
        assert "at character" in str(error)


def test_values_are_not_expanded_again() -> None:
    template = compile_template("<{a}|{b:x y}>")
    assert template.render(lambda name, arg: f"{{{name}}}{arg}") == "<{a}|{b}x y>"


def line_mode() -> Discipline:
    tty = Discipline(b"\r\n")
    tty.mode, tty.echo = "line", True
    return tty


def test_cr_and_lf_each_end_a_line() -> None:
    echo, events = line_mode().feed(b"a\r\nb\n")
    assert echo == b"a\r\n\r\nb\r\n"
    assert events == [Event("line", b"a"), Event("line", b""), Event("line", b"b")]


@pytest.mark.parametrize(
    ("typed", "line", "echo"),
    [
        (b"ab\x7fc\r", b"ac", b"ab\b \bc\r\n"),
        (b"\x7f\r", b"", b"\r\n"),
        ("aé\x08b\r".encode(), b"ab", "aé\b \bb\r\n".encode()),
        (b"one two\x17x\r", b"one x", b"one two" + b"\b \b" * 3 + b"x\r\n"),
        (b"one\x15x\r", b"x", b"one" + b"\b \b" * 3 + b"x\r\n"),
        (b"a\x01\x7f\r", b"a", b"a^A\b \b\b \b\r\n"),
    ],
)
def test_editing_keys_do_what_a_tty_does(typed: bytes, line: bytes, echo: bytes) -> None:
    got, events = line_mode().feed(typed)
    assert (events, got) == ([Event("line", line)], echo)


def test_control_c_and_control_d_are_events() -> None:
    tty = line_mode()
    assert tty.feed(b"abc\x03")[1] == [Event("intr")]
    assert tty.feed(b"\x04")[1] == [Event("eof")]
    assert tty.feed(b"x\x04\r")[1] == [Event("line", b"x")]


def test_a_line_is_bounded() -> None:
    tty = line_mode()
    echo, _ = tty.feed(b"x" * 10000)
    assert echo == b"x" * MAX_LINE + b"\a" * (10000 - MAX_LINE)
    assert tty.feed(b"\r")[1] == [Event("line", b"x" * MAX_LINE)]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=20)))
def test_how_input_is_cut_makes_no_difference(pieces: list[bytes]) -> None:
    whole, cut = line_mode(), line_mode()
    echo, events = b"", []
    for piece in pieces:
        more, found = cut.feed(piece)
        echo += more
        events += found
    assert whole.feed(b"".join(pieces)) == (echo, events)


def test_a_loop_returns_bytes_and_a_mute_tty_nothing() -> None:
    tty = Discipline(b"\r\n")
    assert tty.feed(b"a\r") == (b"", [])
    tty.mode = "loop"
    assert tty.feed(bytes(range(256))) == (bytes(range(256)), [])
    tty.mode = "key"
    assert tty.feed(b"ab") == (b"", [Event("key", b"a"), Event("key", b"b")])


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("a; b", [(";", "a"), (";", "b")]),
        ("a && b || c", [(";", "a"), ("&&", "b"), ("||", "c")]),
        ("echo 'a;b' \"c&&d\"", [(";", "echo 'a;b' \"c&&d\"")]),
        (" ; ;", []),
        ("a & b | c", [(";", "a & b | c")]),
        ("it's", [(";", "it's")]),
    ],
)
def test_a_line_is_split_where_a_shell_splits_it(line: str, parts: list[tuple[str, str]]) -> None:
    assert list(shell.split(line)) == parts


def test_quotes_go_and_parameters_are_replaced_outside_single_quotes() -> None:
    values = {"X": "5", "?": "1"}
    text = shell.expand("echo  $X '$X' \"a  $X\" ${X}y \\$X $?", lambda name: values.get(name, ""))
    assert text == "echo 5 $X a  5 5y $X 1"


@settings(deadline=None)
@given(st.text(max_size=30))
def test_any_line_can_be_split_and_expanded(line: str) -> None:
    for _, command in shell.split(line):
        shell.expand(command, lambda name: "")


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ("unplug", {"fault": "unplug"}),
        ("drop every=7 direction=both", {"fault": "drop", "every": 7, "direction": "both"}),
        ("power cycle", {"power": "cycle"}),
        ("say hello there", {"say": "hello there\r\n"}),
        ("quit", {"quit": True}),
        ("", None),
        ('{"fault": "stall", "ms": 5, "id": 1}', {"fault": "stall", "ms": 5, "id": 1}),
    ],
)
def test_requests_are_words_or_json(words: str, request_: object) -> None:
    assert control.parse(words) == request_


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("unplugg", "no fault is named 'unplugg'"),
        ("drop", "drop takes one of count, every"),
        ("drop count=1 every=2", "drop takes one of count, every"),
        ("drop count=x", "count: expected int"),
        ("unplug now", "'now' is no name=value"),
        ("unplug ms=1", "unknown key 'ms'"),
        ("power up", "power is one of off, on, cycle"),
        ('{"say": "€"}', "each one byte"),
        ('{"flip": 1}', "one of fault, power, lines, say, stats, quit is required"),
        ('{"fault": "flip", "count": 1, "bit": 8}', "bit is 0 to 7"),
        ('{"fault": "stall", "direction": "up"}', "direction is one of"),
        ('{"fault": "fifo", "bytes": -1}', "negative"),
        ('{"fault": ["unplug"]}', "no fault"),
        ("{", "not JSON"),
    ],
)
def test_bad_requests_say_what_would_be_right(line: str, message: str) -> None:
    with pytest.raises(control.ControlError, match="^.*" + __import__("re").escape(message)):
        control.parse(line)


@settings(deadline=None)
@given(
    st.text(max_size=40) | st.dictionaries(st.sampled_from(["fault", "say", "ms", "id"]), st.integers()).map(json.dumps)
)
def test_no_request_breaks_the_parser(line: str) -> None:
    try:
        control.parse(line)
    except control.ControlError:
        pass
