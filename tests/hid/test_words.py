"""The words of input: what they come to, and that what is wrong is told before anything is sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labd.errors import Usage
from labd.hid import words
from labd.hid.words import Step


def one(*said: str) -> Step:
    (step,) = words.parse(said, lambda path: "")
    return step


def test_each_verb():
    assert one("type", "a", "B") == Step("type", chords=((4,), (0x2C,), (0xE1, 5)))
    assert one("KEY", "Enter") == Step("key", chords=((0x28,),))
    assert one("key", "ctrl-c") == one("key", "ctrl+C") == Step("key", chords=((0xE0, 6),))
    assert one("combo", "ctrl", "alt", "del").chords == ((0xE0, 0xE2, 0x4C),)
    assert one("down", "shift") == Step("down", chords=((0xE1,),))
    assert one("moveabs", "32767", "0") == Step("moveabs", x=32767)
    assert one("move", "-5", "7") == Step("move", x=-5, y=7)
    assert one("click") == Step("click", button="left") and one("click", "Right", "2").times == 2
    assert one("mup", "middle") == Step("mup", button="middle")
    assert one("scroll", "-3") == Step("scroll", y=-3)
    assert one("delay", "250").seconds == 0.25 and one("sleep", "2").seconds == 2


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("moveabs 40000 1", "40000 is not within 0 to 32767 .*not pixels"),
        ("moveabs 1", "is not moveabs X Y"),
        ("move 1 x", "is not move DX DY"),
        ("click tertiary", "no mouse button 'tertiary'; there is left, right, middle"),
        ("click left 9", "9 is not within 1 to 3"),
        ("type", "is not type TEXT"),
        ("key", "is not key KEY"),
        ("releaseall now", "is not releaseall"),
        ("sleep 601", "at most 600 s"),
        ("sleep nan", "at most 600 s"),
        ("combo ctrl nokey", "no key 'nokey'"),
        ("run a b", "one command file"),
    ],
)
def test_what_is_wrong_is_bad_usage(said: str, why: str):
    with pytest.raises(Usage, match=why):
        words.parse(said.split(), lambda path: "")


@pytest.mark.parametrize(("said", "near"), [("press", "key"), ("tpye", "type"), ("wheel", "scroll"), ("clik", "click")])
def test_an_unknown_command_has_what_was_meant_first(said: str, near: str):
    with pytest.raises(Usage) as unknown:
        one(said, "x")
    assert unknown.value.near[0] == near


@given(st.lists(st.one_of(st.sampled_from([*words.VERBS, "run", "ctrl-c", "-1", "0", "left"]), st.text(max_size=6)),
                max_size=4), st.text(max_size=60))  # fmt: skip
def test_any_words_are_steps_or_bad_usage(said: list[str], text: str):
    try:
        steps = words.parse(said, lambda path: text)
    except Usage as error:
        assert error.message
    else:
        assert steps and words.lines_of(steps)


def test_a_command_file_has_comments_blanks_and_texts_with_their_blanks():
    text = "\ufeff# log in\n\n  key esc\ntype  root # not a comment \r\nDELAY 100\n"
    steps = words.parse(["run", "f"], lambda path: text)
    assert [step.verb for step in steps] == ["key", "type", "delay"]
    assert steps[1].chords == one("type", " root # not a comment ").chords


@pytest.mark.parametrize(
    ("text", "why"),
    [("key a\nkey bee\n", "keys.txt, line 2: no key 'bee'"), ("# nothing\n\n", "has no command in it"),
     ("type ä", "keys.txt, line 1: can't type"), ("run other", "line 1: a command file can't run another one")],
)  # fmt: skip
def test_a_wrong_command_file_is_told_with_its_line(text: str, why: str):
    with pytest.raises(Usage, match=why):
        words.parse(["run", "keys.txt"], lambda path: text)


def test_steps_are_told_without_the_text_that_was_typed():
    steps = words.script("type hunter2\nkey ctrl-c\nmoveabs 1 2\nclick\n")
    assert words.lines_of(steps) == "type 7 characters, key left_control-c, moveabs 1 2 and 1 more"
