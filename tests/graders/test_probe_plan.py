"""Which probes fit a call, on which words, and which are left out, with the reason."""

import re

import pytest

from graders.probe_plan import plan
from graders.signs import SignsError
from tests.graders.probing_play import empty, only, signs, went_well
from tests.graders.records import attempt, call

SWAP = """
[[probe]]
kind = "column_swap"
command = "count"
flags = ["--where", "-w"]
value = "filter"
candidates = ["class", "subtype", "subclass"]
replace = ["--where", "{candidate}{op}{value}"]
size = { number = '^(\\d+)' }
"""
LIMIT = """
[[probe]]
kind = "limit_raise"
command = "list"
flags = ["--limit", "-n"]
default = 3
raised = "0"
"""


@pytest.mark.parametrize(
    ("word", "field", "op", "value"),
    [
        ("class=recreation", "class", "=", "recreation"),
        ("class==recreation", "class", "==", "recreation"),
        ("class == 'state park'", "class", "==", "state park"),
        ("categories.primary=bus_stop", "categories.primary", "=", "bus_stop"),
        ("class=a=b", "class", "=", "a=b"),
    ],
)
def test_a_filter_comes_apart_at_its_operator_however_long(word: str, field: str, op: str, value: str) -> None:
    planned = only(signs(SWAP), empty(f'count --where "{word}"', "0\n"))
    assert (planned.given["field"], planned.given["op"], planned.given["value"]) == (field, op, value)


@pytest.mark.parametrize("word", ["population>=1000", "population<=1000", "population>1000", "population!=0"])
def test_a_comparison_names_no_value_that_could_be_elsewhere_and_is_left_out_aloud(word: str) -> None:
    made = plan(empty(f"count --where '{word}'", "0\n"), signs(SWAP))
    assert not made.planned
    assert [one.why for one in made.skipped] == [
        f"a comparison by {re.sub('[a-z0-9]', '', word)} names no value that could be looked up"
    ]


def test_the_operator_of_a_filter_stays_what_it_was() -> None:
    planned = only(signs(SWAP), empty("count -w class==x --all", "0\n"))
    assert planned.with_candidate("subtype") == ("count", "--where", "subtype==x", "--all")


def test_each_of_several_filters_is_a_probe_of_its_own_and_the_others_stay() -> None:
    first, second = plan(empty("count --where class=a --where subtype=b", "0\n"), signs(SWAP)).planned
    assert first.with_candidate("subclass") == ("count", "--where", "subclass=a", "--where", "subtype=b")
    assert second.with_candidate("subclass") == ("count", "--where", "class=a", "--where", "subclass=b")


@pytest.mark.parametrize(
    ("line", "rows", "fits"),
    [
        ("list", 3, True),  # the limit that nobody named
        ("list", 2, True),  # it may be another limit than the one that is told
        ("list --limit 5", 5, True),
        ("list --limit=5", 5, True),
        ("list -n5", 5, True),
        ("list --limit 5", 3, True),
        ("list --limit 0", 3, False),  # no limit at all
    ],
)
def test_a_limit_is_suspected_wherever_there_is_one_and_a_loose_one_only_where_it_is_reached(
    line: str, rows: int, fits: bool
) -> None:
    record = went_well(line, "".join(f"row {n}\n" for n in range(rows)))
    assert bool(plan(record, signs(LIMIT)).planned) is fits
    limit = 5 if "5" in line else 3
    assert bool(plan(record, signs(LIMIT + "loose = true\n")).planned) is (fits and rows >= limit)


def test_a_flag_given_once_is_asked_about_where_something_was_found_and_a_repeated_one_is_another_matter() -> None:
    text = "[[probe]]\nkind = 'argv_echo'\nflags = ['--in']\nnothing = 'x'\nsize = { rows = 'lines' }\n"
    assert plan(went_well("list --in Malta", "a\n"), signs(text)).planned
    assert not plan(empty("list --in Malta", ""), signs(text)).planned
    assert not plan(went_well("list --in Malta --in Oslo", "a\n"), signs(text)).planned


def test_where_only_the_head_of_an_answer_is_told_its_length_is_asked_for() -> None:
    assert plan(went_well("list --limit 400", "row\n" * 128), signs(LIMIT)).planned


def test_an_output_that_says_it_was_cut_is_not_suspected_and_that_is_logged() -> None:
    record = went_well("list", "a\nb\nc\n", stderr_head="showing 3 of 9; --limit 0 for all\n")
    made = plan(record, signs(LIMIT + "told = 'showing \\d+ of'\n"))
    assert not made.planned
    assert [one.why for one in made.skipped] == ["the output says it already"]


def test_what_is_not_the_programs_doing_or_explains_itself_is_left_out_with_its_reason() -> None:
    lines = [call("C", "count --where class=a", stdout_head="0\n")]
    lines += [call("C", "count --where class=a", blame="environment", subtype=None)]
    lines += [call("C", "count --where class=a", recovery="guided", subtype=None)]
    made = plan(attempt(*lines), signs(SWAP))
    assert [one.at for one in made.planned] == [0]
    assert [(one.at, one.why) for one in made.skipped] == [
        (1, "nothing to ask the program: the call failed by the environment"),
        (2, "the answer itself says how to go on"),
    ]


def test_a_call_that_writes_is_never_run_again() -> None:
    made = plan(empty("count --where class=a --output x", "0\n"), signs(SWAP + '[words]\nnever = ["--output"]\n'))
    assert not made.planned and made.skipped[0].why == "never run again: it has --output"


def test_only_calls_having_a_flag_and_lacking_another() -> None:
    text = SWAP + 'having = ["--fast"]\nlacking = ["--slow"]\n'
    fits = [
        bool(plan(empty(f"count --where class=a {more}", "0\n"), signs(text)).planned)
        for more in ("", "--fast", "--fast --slow")
    ]
    assert fits == [False, True, False]


def test_a_repeated_flag_is_one_probe_and_twice_the_same_value_is_none() -> None:
    text = '[[probe]]\nkind = "argv_echo"\nflags = ["--class", "-c"]\nsize = { rows = "lines" }\n'
    planned = only(signs(text), went_well("list --class a -c b --class a", "x\n"))
    assert [item.value for item in planned.items] == ["a", "b", "a"]
    assert planned.with_only(planned.items[1]) == ("list", "-c", "b")
    assert not plan(went_well("list --class a --class a", "x\n"), signs(text)).planned


def test_flags_that_are_several_are_no_repetition_of_one() -> None:
    text = '[[probe]]\nkind = "argv_echo"\nflags = ["--class", "--kind"]\nsize = { rows = "lines" }\napart = true\n'
    assert not plan(went_well("list --class a --kind b", "x\n"), signs(text)).planned
    planned = only(signs(text), went_well("list --class a --kind b --class c", "x\n"))
    assert planned.with_only(planned.items[1]) == ("list", "--kind", "b", "--class", "c")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('kind = "guess"', "signs.toml: probe[0].kind: expected one of"),
        ('kind = "vocabulary"\nflags = ["-x"]\nask = ["list"]', "probe[0].read: missing, and a vocabulary needs it"),
        ('kind = "column_swap"\nflags = ["-x"]\ncandidates = ["a"]', "probe[0].replace: missing"),
        ('kind = "limit_raise"\nflags = ["-n"]', "probe[0].raised: missing"),
        ('kind = "type_sweep"', "probe[0].candidates: missing"),
        ('kind = "argv_echo"\nsize = { rows = "lines" }', "probe[0].flags: missing"),
        ('kind = "argv_echo"\nflags = ["-x"]\nrest = true\nsize = { rows = "lines" }', "not in flags and rest"),
        ('kind = "argv_echo"\nflags = ["-x"]\nsize = { rows = "lines", number = "(.)" }', "one is enough"),
        ('kind = "argv_echo"\nflags = ["-x"]\nvalue = "(a)"\nsize = { rows = "lines" }', "no group named value"),
        ('kind = "argv_echo"\nflags = ["-x"]\nsizes = { rows = "lines" }', "unknown key; did you mean size?"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_named_with_its_key(entry: str, problem: str) -> None:
    with pytest.raises(SignsError) as caught:
        signs(f"[[probe]]\n{entry}\n")
    assert problem in "\n".join(caught.value.problems)
