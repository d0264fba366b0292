"""Keys by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labd.errors import Usage
from labd.keys import key


@pytest.mark.parametrize(
    ("name", "sent"),
    [("ctrl-c", b"\x03"), ("Ctrl+C", b"\x03"), ("^c", b"\x03"), ("C-z", b"\x1a"), ("ctrl-]", b"\x1d"), ("esc", b"\x1b"),
     ("Enter", b"\r"), ("tab", b"\t"), ("up", b"\x1b[A"), ("f1", b"\x1bOP"), ("F5", b"\x1b[15~"), ("f12", b"\x1b[24~"),
     ("space", b" "), ("alt-x", b"\x1bx"), ("M-Enter", b"\x1b\r"), ("q", b"q"), ("Q", b"Q"), ("-", b"-"), ("^", b"^"),
     ("pgup", b"\x1b[5~"), ("ctrl-@", b"\x00")],
)  # fmt: skip
def test_a_key_is_known_by_the_names_that_people_use(name: str, sent: bytes):
    assert key(name) == sent


@pytest.mark.parametrize(("name", "near"), [("entr", "enter"), ("ctl-c", "ctrl-c"), ("f13", "f1"), ("escap", "escape")])
def test_an_unknown_key_is_told_with_what_looks_like_it(name: str, near: str):
    with pytest.raises(Usage) as caught:
        key(name)
    assert near in caught.value.near


def test_a_break_is_no_key():
    with pytest.raises(Usage) as caught:
        key("break")
    assert caught.value.hint == "labd serial break"


@given(st.text(min_size=1, max_size=12))
def test_any_name_is_a_key_or_a_usage_error(name: str):
    try:
        assert key(name)
    except Usage:
        pass
