"""Words → operation and values: what is understood, and what each mistake is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labd import argv
from labd.errors import LabdError, Usage, nearest
from labd.operations.model import Operation, Param

TARGET = Param("target", "t")
TABLE = {
    "serial": [
        Operation(
            ("serial", "send"),
            "type",
            effect="actuate",
            missing="x",
            params=(
                TARGET,
                Param("text", "x", required=True),
                Param("target", "t", flags=("-t", "--target")),
                Param("no_newline", "x", kind="switch", flags=("--no-newline",), default=False),
                Param("pace_ms", "x", kind="float", flags=("--pace-ms",), default=0.0, minimum=0, unit="ms"),
            ),
        ),
        Operation(
            ("serial", "trigger", "add"),
            "arm",
            effect="actuate",
            missing="x",
            params=(
                TARGET,
                Param("pattern", "x", required=True),
                Param("text", "x", required=True, unless=("key",)),
                Param("key", "x", flags=("--key",), repeat=True),
            ),
        ),
        Operation(
            ("serial", "add"),
            "add",
            effect="config",
            missing="x",
            params=(
                Param("name", "n", required=True),
                Param("target", "t", flags=("-t", "--target"), required=True),
                Param("baud", "b", kind="int", flags=("--baud",), minimum=50, maximum=4_000_000, unit="baud"),
                Param("sense", "s", kind="choice", flags=("--sense",), choices=("cts", "dsr", "dcd", "ri")),
                Param("power_button", "p", kind="switch", flags=("--power-button",)),
                Param("unset", "u", flags=("--unset",), repeat=True),
            ),
        ),
    ],
    "hid": [
        Operation(
            ("hid", "send"),
            "keys",
            effect="actuate",
            missing="x",
            params=(
                Param("target", "t", flags=("-t", "--target")),
                Param("words", "w", kind="rest"),
            ),
        )
    ],
    "daemons": [
        Operation(("daemons", "list"), "l", effect="observe", missing="x", aliases=(("daemons",),)),
        Operation(("daemons", "stop"), "s", effect="admin", missing="x", params=(Param("names", "n", kind="rest"),)),
    ],
    "doctor": [Operation(("doctor",), "d", effect="observe", missing="x", params=(TARGET,))],
}


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    def operations(noun: str) -> list[Operation]:
        if noun not in TABLE:
            raise Usage(f"no command {noun!r}", near=nearest(noun, list(TABLE)))
        return TABLE[noun]

    monkeypatch.setattr(argv, "noun_operations", operations)


def values(line: str | list[str]) -> dict[str, Any]:
    parsed = argv.parse(line.split() if isinstance(line, str) else line)
    assert parsed.args is not None
    return vars(parsed.args)


def mistake(line: str | list[str]) -> LabdError:
    with pytest.raises(Usage) as caught:
        argv.parse(line.split() if isinstance(line, str) else line)
    return caught.value


def test_one_positional_is_the_text_and_two_are_target_and_text():
    assert values("serial send hello")["text"] == "hello"
    for line in ("serial send pico hello", "serial send -t pico hello", "serial send hello -t pico"):
        assert (values(line)["target"], values(line)["text"]) == ("pico", "hello")


def test_a_verb_of_two_words_is_told_apart_from_one_that_is_missing_or_unknown():
    parsed = argv.parse(["serial", "trigger", "add", "pico", "login:", "root"])
    assert parsed.operation is not None and parsed.operation.name == "serial trigger add"
    assert mistake("serial trigger").message == "labd serial trigger needs a verb: add"
    assert mistake("serial trigger ad pico").near == ["serial trigger add"]
    assert argv.parse(["serial", "trigger", "--help"]).words == ("serial",)


def test_a_required_word_may_be_left_out_where_another_parameter_stands_for_it():
    found = values("serial trigger add pico login: --key esc")
    assert (found["target"], found["pattern"], found["text"]) == ("pico", "login:", None)
    assert values("serial trigger add login: root")["target"] is None
    assert "TEXT" in mistake("serial trigger add login:").message


def test_a_target_named_by_flag_and_by_place_is_named_twice():
    assert "twice" in mistake("serial send -t pico other hello").message


@pytest.mark.parametrize(
    "line", ["--json serial send x", "serial --json send x", "serial send --json x", "serial send x --json"]
)
def test_global_flags_stand_anywhere(line: str):
    assert argv.parse(line.split()).globals["json"] is True


@pytest.mark.parametrize("line", ["--lab a serial send x", "serial send x --lab=a", "serial send --lab a x"])
def test_the_lab_is_named_with_or_without_an_equals_sign(line: str):
    assert argv.parse(line.split()).globals["lab"] == "a"


def test_behind_two_dashes_everything_is_data_also_a_request_for_help():
    parsed = argv.parse(["serial", "send", "pico", "--", "-h"])
    assert not parsed.wants_help and vars(parsed.args)["text"] == "-h"  # type: ignore[arg-type]


def test_a_pass_through_tail_is_taken_as_it_is():
    assert values("hid send -t pico type --json -h x")["words"] == ["type", "--json", "-h", "x"]
    assert values("hid send -- --x y")["words"] == ["--x", "y"]


def test_the_value_of_an_option_is_never_a_verb():
    assert values("serial add bmc -t stop")["target"] == "stop"


def test_a_repeated_single_value_flag_is_an_error_and_a_repeatable_one_a_list():
    assert "twice" in mistake("serial add bmc -t a --baud 9600 --baud 115200").message
    assert values("serial add bmc -t a --unset x --unset y")["unset"] == ["x", "y"]


def test_an_unknown_flag_names_its_near_matches():
    assert mistake("serial add bmc -t a --buad 9600").near == ["--baud"]


def test_nothing_is_abbreviated():
    assert "no flag '--bau'" in mistake("serial add bmc -t a --bau 9600").message


def test_an_unknown_verb_names_its_near_matches_and_the_list():
    error = mistake("serial sned x")
    assert error.near == ["serial send"] and error.hint == "labd serial --help"


def test_a_group_without_a_verb_names_its_verbs():
    assert "add, send" in mistake("serial").message


def test_a_bare_group_with_a_default_verb_is_that_verb():
    assert argv.parse(["daemons"]).operation is TABLE["daemons"][0]
    assert "no verb 'lst'" in mistake("daemons lst").message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("serial add bmc -t a --baud fast", "whole number"),
        ("serial add bmc -t a --baud 10", "at least 50"),
        ("serial add bmc -t a --baud 99999999", "at most"),
        ("serial add bmc -t a --sense ctx", "one of cts"),
        ("serial add bmc -t a --power-button=maybe", "true or false"),
        ("serial add bmc", "needs -t/--target"),
        ("serial add -t a", "needs NAME"),
        ("serial add bmc -t", "needs a value"),
        ("serial add bmc -t --baud 9600", "needs a value"),
        ("serial add bmc con -t a", "no place for 'con'"),
        ("serial send a b c", "no place for 'c'"),
        ("serial send x --pace-ms -1", "at least 0"),
        ("serial send x --pace-ms nan", "is a number"),
        ("--lab x serial", "needs a verb"),
        ("serial -t pico send x", "comes after the verb"),
        ("--nope serial send x", "before a command"),
        ("--json=1 serial send x", "takes no value"),
    ],
)
def test_each_mistake_is_named(line: str, words: str):
    assert words in mistake(line).message


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("serial send pico x --pace-ms 40ms", "write --pace-ms 40"),
        ("serial send pico x --pace-ms=2min", "write --pace-ms 120000"),
        ("serial send pico x --pace-ms 1.5s", "write --pace-ms 1500"),
        ("serial send pico x --pace-ms fast", "write --pace-ms 10"),
        ("serial add bmc -t a --baud 9600baud", "write --baud 9600"),
        ("serial add bmc -t a --baud fast", "write --baud 50"),
        ("serial add bmc -t a --baud 9600 --baud 115200", "leave one out: --baud 9600"),
        ("serial send pico x --no-newline --no-newline", "leave one out: --no-newline"),
        ("--lab a --lab b serial send x", "leave one out: --lab a"),
    ],
)
def test_how_a_number_is_written_and_what_to_leave_out_is_said(line: str, hint: str):
    assert mistake(line).hint == hint


def test_a_switch_takes_true_or_false_or_nothing():
    assert values("serial add bmc -t a --power-button")["power_button"] is True
    assert values("serial add bmc -t a --power-button false")["power_button"] is False
    assert values("serial add bmc -t a --power-button=true")["power_button"] is True


def test_a_short_flag_may_have_its_value_attached():
    assert values("serial add bmc -tpico")["target"] == "pico"


@pytest.mark.parametrize(
    "line", ["serial --help", "serial send -h", "help serial", "help serial send", "serial send x --help"]
)
def test_help_is_asked_for_in_any_of_these_ways(line: str):
    assert argv.parse(line.split()).wants_help


def test_rpc_parameters_become_words_that_parse_to_the_same_values():
    op = TABLE["serial"][2]
    params = {"name": "bmc", "target": "-x", "baud": 9600, "power_button": False, "unset": ["a", "b"]}
    got = values(argv.words_of(op, params))
    assert {k: got[k] for k in params} == params


def test_an_unknown_rpc_parameter_is_an_error_with_near_matches():
    with pytest.raises(Usage) as caught:
        argv.words_of(TABLE["serial"][2], {"bau": 1})
    assert caught.value.near == ["baud"]


WORDS = ["serial", "send", "add", "-t", "--", "--json", "-h", "--baud", "x", "-", "=", "--="]


@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=10))
def test_any_words_give_an_answer_or_a_usage_error(words: list[str]):
    try:
        argv.parse(words)
    except Usage as error:
        assert error.message
