"""A command taken apart and put otherwise: no word may be lost, and a value is a value in every spelling."""

import pytest

from graders.argv_words import NUMBER, take_apart

VALUED = {"-n", "--tail", "-t", "--where", NUMBER}


@pytest.mark.parametrize(
    ("argv", "name", "value"),
    [
        (["log", "-n", "5"], "-n", "5"),
        (["log", "-n5"], "-n", "5"),
        (["log", "-n=5"], "-n", "5"),
        (["log", "-5"], NUMBER, "5"),
        (["log", "--tail=5"], "--tail", "5"),
        (["log", "--tail", "-5"], "--tail", "-5"),
        (["count", "--where", "a==b"], "--where", "a==b"),
        (["count", "--where=a==b"], "--where", "a==b"),
    ],
)
def test_a_flags_value_is_found_in_every_spelling(argv: list[str], name: str, value: str) -> None:
    found = take_apart(argv, VALUED).flags([name])
    assert [one.value for one in found] == [value]


def test_a_flag_at_the_end_has_no_value_and_a_switch_takes_none() -> None:
    words = take_apart(["log", "--all", "pico", "--tail"], VALUED)
    assert [(one.name, one.value) for one in words.items] == [
        ("", "log"), ("--all", None), ("", "pico"), ("--tail", None),
    ]  # fmt: skip


def test_behind_two_dashes_everything_is_a_plain_word() -> None:
    words = take_apart(["log", "-n", "1", "--", "-n", "--tail"], VALUED)
    assert [one.value for one in words.rest()] == ["-n", "--tail"]
    assert len(words.flags(["-n"])) == 1
    assert words.has(["--"]) and not words.has(["--tail"])
    assert not take_apart(["log", "-n", "1", "--"], VALUED).has(["--"])


def test_the_command_path_is_found_behind_flags_and_is_whole_words() -> None:
    words = take_apart(["-t", "pico", "serial", "log", "x"], VALUED)
    assert words.is_of("serial log") and words.is_of("serial") and words.is_of("")
    assert not words.is_of("serial lo") and not words.is_of("log")


def test_other_words_in_the_place_of_some_leave_the_others_as_they_are() -> None:
    words = take_apart(["count", "--where", "a=1", "-t", "x", "--", "-t"], VALUED)
    where, kind = words.flags(["--where"])[0], words.flags(["-t"])[0]
    assert words.instead([(where, ["--where", "b=1"])]) == ("count", "--where", "b=1", "-t", "x", "--", "-t")
    assert words.instead([(where, ()), (kind, ["-t", "y"])]) == ("count", "-t", "y", "--", "-t")
    assert words.with_path("count", "places count") == ("places", "count", "--where", "a=1", "-t", "x", "--", "-t")
    assert words.with_more(["--all"]) == ("count", "--where", "a=1", "-t", "x", "--all", "--", "-t")
