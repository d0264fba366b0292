"""The DUT file is read strictly: each mistake is named with its file and its key."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopback.dutfile import load, parse
from loopback.dutmodel import Dut
from loopback.strict import DutFileError


def read(text: str, **settings: str) -> Dut:
    return parse(tomllib.loads(text), "x.toml", "x", settings)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "x.toml: title: is required"),
        ('title = "t"\nbaner = "b"', "x.toml: baner: unknown key; did you mean banner?"),
        ("title = 3\n", "x.toml: title: expected a string, got 3"),
        ('title = "t"\n[line]\nbuad = 1', "x.toml: line.buad: unknown key; did you mean baud?"),
        ('title = "t"\n[line]\nparity = "odf"', "is not one of none, even, odd; did you mean odd?"),
        ('title = "t"\n[line]\nbaud = true', "x.toml: line.baud: expected a number"),
        ('title = "t"\n[line]\nbaud = -1', "x.toml: line.baud: -1 is negative"),
        ('title = "t"\nrespond = "no"', "x.toml: respond: expected an array of tables ([[respond]])"),
        ('title = "t"\n[[respond]]\nreply = "a"', "x.toml: respond[1].match: is required"),
        ('title = "t"\n[[respond]]\nmatch = "("', "x.toml: respond[1].match: is no regular expression"),
        ('title = "t"\n[[respond]]\nmatch = "a"\nreply = "{1}"', "respond[1].reply: unknown variable {1}"),
        ('title = "t"\n[[respond]]\nmatch = "a"\nreply = "{upime}"', "{upime}; did you mean uptime?"),
        ('title = "t"\nbanner = "a { b"', "x.toml: banner: a lone '{' at character 3; write {{"),
        ('title = "t"\nbanner = "{text:mising}"\n[texts]\nmissing = "a"', "did you mean missing?"),
        ('title = "t"\n[texts]\na = "{text:a}"', "x.toml: texts.a: no text named 'a'"),
        ('title = "t"\n[states.one]\nthen = "tow"\n[states.two]', "states.one.then: no state is named 'tow'"),
        ('title = "t"\nstart = "b"\n[states.a]', "x.toml: start: no state is named 'b'"),
        (
            'title = "t"\n[states.a]\nthen = "a"\nprmpt = ""',
            "x.toml: states.a.prmpt: unknown key; did you mean prompt?",
        ),
        ('title = "t"\nprompt = "a"\n[states.a]', "x.toml: prompt: unknown key"),
        ('title = "t"\n[variables]\nuptime = "1"', "is a name that the player gives a value itself"),
        ('title = "t"\n[[after]]\nprint = "x"', "x.toml: after[1].ms: is required"),
        ('title = "t"\n[[after]]\nms = 0\nrepeat = true', "would never pause"),
        ('title = "t"\n[input]\npoll_ms = "{x}"\n[variables]\nx = "fast"', "which is not a whole number"),
        ('title = "t"\n[[respond]]\nmatch = "a"\nset.q = "1"', "respond[1].set.q: no such variable"),
        ('title = "t"\n[[respond]]\nmatch = "a"\nreboot = true\ngoto = "main"', "a reboot goes to the first state"),
        ('title = "t"\n[flood]\nrate = 1', "x.toml: flood.line: is required"),
        ('title = "t"\n[flood]\nline = "{n:x}"', "after the colon comes a width"),
        ('title = "t"\ninclude = "uboot"', "include"),
        ('title = "t"\n[states.a]\nthen = "b"\n[states.b]\nthen = "a"', "then: goes round in a circle"),
    ],
)
def test_mistakes_are_named(text: str, error: str) -> None:
    with pytest.raises(DutFileError) as raised:
        read(text)
    assert error in str(raised.value)


def test_a_syntax_error_names_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "d.toml").write_text('title = "t"\nbanner = \n')
    with pytest.raises(DutFileError, match=r"d\.toml: is not TOML: .*line 2"):
        load(tmp_path / "d.toml")


def test_a_board_includes_another_and_changes_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(
        'title = "base"\n[variables]\na = "1"\nb = "2"\n[states.x]\nprompt = "x"\n[states.y]\nprompt = "y"\n'
    )
    (tmp_path / "top.toml").write_text('include = "base.toml"\n[variables]\nb = "3"\n[states.y]\nprompt = "{a}{b}"\n')
    dut = load(tmp_path / "top.toml", {"a": "9"})
    assert (dut.title, list(dut.states), dict(dut.variables)) == ("base", ["x", "y"], {"a": "9", "b": "3"})


def test_an_error_in_an_included_file_names_that_file_and_a_circle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('title = "base"\nbaner = ""\n')
    (tmp_path / "top.toml").write_text('include = "base.toml"\n')
    with pytest.raises(DutFileError, match=r"base\.toml: baner"):
        load(tmp_path / "top.toml")
    (tmp_path / "base.toml").write_text('title = "base"\ninclude = "top.toml"\n')
    with pytest.raises(DutFileError, match="includes this file"):
        load(tmp_path / "top.toml")
    (tmp_path / "top.toml").write_text('include = "ubot"\n')
    with pytest.raises(DutFileError, match="did you mean uboot"):
        load(tmp_path / "top.toml")


def test_numbers_may_be_made_of_variables() -> None:
    text = 'title = "t"\n[line]\nbaud = "{b}"\n[variables]\nb = "9600"\n'
    assert read(text).line.baud == 9600
    assert read(text, b="300").line.baud == 300


def test_a_nonce_is_needed_only_where_it_is_used() -> None:
    assert read('title = "t"\nbanner = "{nonce}"').needs == ("nonce",)
    assert read('title = "t"\nbanner = "{nonce}"', nonce="1").needs == ()
    assert read('title = "t"', nonce="1").needs == ()


def test_a_character_takes_its_bits() -> None:
    line = read('title = "t"\n[line]\nbaud = 1200\nbytesize = 7\nparity = "even"\nstopbits = 2').line
    assert line.byte_s == pytest.approx(11 / 1200)


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["title", "states", "respond", "after", "match", "line", "flood", "prompt", "ms", "q"]),
                inner,
                max_size=4,
            ),
        ),
        max_leaves=12,
    ).filter(lambda data: isinstance(data, dict))
)
def test_any_data_is_a_board_or_a_named_error(data: dict[str, object]) -> None:
    try:
        parse(data, "x.toml", "x", {})
    except DutFileError as error:
        assert str(error).startswith("x.toml")
