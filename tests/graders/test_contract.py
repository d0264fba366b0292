"""The record `agenteval/2`: one class from three axes, a validator that never raises, a reader for which axes win."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graders import contract
from graders.contract import AgentSide, Answer, Call, ContractError, Probe, Record, derive, load, validate, write

#: The source's own example, without its comments (they are no JSON).
EXAMPLE: dict[str, Any] = {
    "schema": "agenteval/2",
    "question_id": "bus-stops-cambridge",
    "repeat": 1,
    "calls": [
        {
            "argv": ["count", "-t", "place", "--in", "Cambridge, MA", "--where", "categories.primary=bus_stop"],
            "exit_code": 0,
            "stdout_head": "0",
            "stderr_head": "[botmap] Ambiguous --in ...",
            "duration_s": 12.4,
            "outcome": "empty",
            "blame": "tool",
            "recovery": "unguided",
            "class": "C",
            "subtype": "c-vocabulary",
            "evidence": "bus_stop absent from place taxonomy at all levels; nearest bus_station",
            "probes": [
                {
                    "kind": "vocabulary",
                    "ran": "categories -t place --top 5000 | grep bus_stop",
                    "result": "absent",
                    "conclusive": True,
                }
            ],
        }
    ],
    "agent_side": [
        {"kind": "ignored_hint", "at_call": 3, "detail": "hint offered bus_station; next 4 calls did not use it"}
    ],
    "tools_used": {"Bash": 5, "Skill": 1, "WebSearch": 2},
    "botmap_calls": 0,
    "answer": {"text": "There are no bus stops in Cambridge.", "verified": None},
}


def example(**call: Any) -> dict[str, Any]:
    """The example with another first call."""
    raw = json.loads(json.dumps(EXAMPLE))
    raw["calls"][0].update(call)
    return raw


def a_call(**other: Any) -> Call:
    axes = {"outcome": "ok", "blame": "tool", "recovery": "n/a"}
    return Call(**{"argv": ("show",), "exit_code": 0, "stdout_head": "x", "stderr_head": "", "duration_s": 0.1}
                | axes | other)  # fmt: skip


A_RECORD = Record(
    "q", 1,
    (a_call(), a_call(outcome="empty", recovery="unguided", subtype="c-truncated", evidence="20 of 963",
                      probes=(Probe("limit_raise", "list --top 999", "963", True),)),
     a_call(exit_code=None, duration_s=None, outcome="error", recovery="guided", stdout_head="\udc80 \u2028 \x00")),
    (AgentSide("ignored_hint", 1, "offered x", ("x", "y"), 2),), {"Bash": 2}, 3, Answer("done", True),
    {"name": "atlas", "version": "1", "sha256": "0" * 64}, "cold", {"model": "m"}, {"system": "Linux"}, "T.1", "claude",
)  # fmt: skip

TABLE = {
    ("ok", "guided"): None, ("ok", "unguided"): None, ("ok", "n/a"): None,
    ("empty", "guided"): "B", ("empty", "unguided"): "C",
    ("error", "guided"): "B", ("error", "unguided"): "A",
    ("degenerate", "guided"): "D", ("degenerate", "unguided"): "D",
}  # fmt: skip


@pytest.mark.parametrize(("outcome", "blame", "recovery"), [*product(contract.OUTCOMES, contract.BLAMES,
                                                                    contract.RECOVERIES)])  # fmt: skip
def test_every_combination_of_the_axes_has_a_meaning_or_is_rejected(outcome: str, blame: str, recovery: str) -> None:
    if (outcome, recovery) not in TABLE:
        with pytest.raises(ValueError, match="not n/a"):
            derive(outcome, blame, recovery)
        return
    expected = {"environment": "E", "agent": "F"}.get(blame, TABLE[outcome, recovery])
    assert derive(outcome, blame, recovery) == expected


def test_a_word_on_no_axis_is_rejected() -> None:
    with pytest.raises(ValueError, match="'fine' is none of ok, empty"):
        derive("fine", "tool", "n/a")


def test_a_call_can_not_be_made_against_its_axes() -> None:
    with pytest.raises(ValueError, match="subtype"):
        a_call(subtype="c-unknown")
    with pytest.raises(ValueError, match="subtype"):
        a_call(outcome="empty", recovery="unguided")
    with pytest.raises(ValueError, match="not n/a"):
        a_call(outcome="error")


def test_the_example_of_the_source_is_a_record_with_its_own_name_of_the_count() -> None:
    assert validate(EXAMPLE) == []
    record = load(json.dumps(EXAMPLE).encode())
    assert record.program_calls == 0 and record.calls[0].cls == "C" and record.subject == {}
    assert record.agent_side[0].suggestions == () and record.agent_side[0].used_at is None


def test_what_is_written_is_read_and_written_again_the_same() -> None:
    data = write(A_RECORD)
    assert load(data) == A_RECORD and write(load(data)) == data
    raw = json.loads(data)
    assert raw["atlas_calls"] == 3 and validate(raw) == []
    assert [call["class"] for call in raw["calls"]] == [None, "C", "B"]
    assert list(raw) == sorted(raw) and data.endswith(b"}\n") and data.isascii()


def test_a_record_without_a_subject_is_written_too() -> None:
    record = load(json.dumps(EXAMPLE).encode())
    assert load(write(record)) == record


def test_a_class_against_the_axes_is_a_problem_and_on_reading_the_axes_win() -> None:
    raw = example(recovery="guided")
    assert validate(raw) == [
        "calls[0].class: 'C', and the axes say B",
        "calls[0].subtype: 'c-vocabulary', and the class is B, not C",
    ]
    call = load(json.dumps(raw).encode()).calls[0]
    assert (call.cls, call.subtype) == ("B", None)


@pytest.mark.parametrize("recovery", ["guided", "unguided"])
def test_a_class_of_nothing_is_a_lie_where_the_axes_name_one(recovery: str) -> None:
    assert any(
        line.startswith("calls[0].class: None") for line in validate(example(**{"class": None}, recovery=recovery))
    )


def test_a_class_may_be_left_out_since_it_is_derived() -> None:
    raw = example()
    del raw["calls"][0]["class"]
    assert validate(raw) == [] and load(json.dumps(raw).encode()).calls[0].cls == "C"


def test_class_c_needs_a_subtype_and_a_subtype_its_probes() -> None:
    assert validate(example(subtype=None)) == ["calls[0].subtype: missing, and the class is C"]
    inconclusive = [{**EXAMPLE["calls"][0]["probes"][0], "conclusive": False}]
    another = [{**EXAMPLE["calls"][0]["probes"][0], "kind": "limit_raise"}]
    for probes in ([], inconclusive, another):
        assert validate(example(probes=probes)) == [
            "calls[0].subtype: 'c-vocabulary' without a conclusive probe that led to it"
        ]
    assert validate(example(probes=[], subtype="c-unknown")) == []
    assert "did you mean c-vocabulary" in validate(example(subtype="c-vocabulry"))[0]


def test_a_missing_exit_code_is_not_zero() -> None:
    raw = example(outcome="ok", recovery="n/a", subtype=None, **{"class": None})
    del raw["calls"][0]["exit_code"]
    assert validate(raw) == ["calls[0].exit_code: unknown, and then the outcome can't be ok"]
    raw["calls"][0] |= {"outcome": "error", "recovery": "unguided", "class": "A"}
    assert validate(raw) == [] and load(json.dumps(raw).encode()).calls[0].exit_code is None
    assert validate(example(exit_code=False))[0].startswith("calls[0].exit_code: expected a whole number")


def test_not_applicable_means_that_nothing_went_wrong() -> None:
    assert validate(example(outcome="error", recovery="n/a"))[0].startswith("calls[0]: error leaves something")


@pytest.mark.parametrize("counts", [{}, {"botmap_calls": 1, "atlas_calls": 2}, {"botmap_calls": "3"},
                                    {"botmap_calls": -1}, {"botmap_calls": True}, {"_calls": 1}])  # fmt: skip
def test_the_calls_of_the_program_are_counted_once(counts: dict[str, Any]) -> None:
    raw = {name: value for name, value in EXAMPLE.items() if name != "botmap_calls"} | counts
    assert len(validate(raw)) == 1


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def in_a_circle() -> Any:
    value: dict[str, Any] = {}
    value["again"] = value
    return value


@pytest.mark.parametrize("raw", [
    None, [], 7, "text", True, b"bytes", object(), {1: 2}, {None: None}, {"calls": None}, [EXAMPLE], nested(100_000),
    in_a_circle(), {**EXAMPLE, "schema": "agenteval/1"}, {**EXAMPLE, "schema": []}, {**EXAMPLE, "repeat": "1"},
    {**EXAMPLE, "repeat": 10**5000}, {**EXAMPLE, "answer": None}, {**EXAMPLE, "calls": {}},
    {**EXAMPLE, "calls": [None]},
    {**EXAMPLE, "tools_used": {"Bash": "5"}}, {**EXAMPLE, "agent_side": [{"at_call": -1}]}, {**EXAMPLE, "subject": "x"},
    {**EXAMPLE, "question_id": "x" * 5_000_000}, {**EXAMPLE, "x" * 5_000_000 + "_calls": 1}, example(outcome=["ok"]),
    example(blame={}), example(recovery=None), example(argv="count"), example(argv=[1]),
    example(duration_s=float("nan")),
    example(duration_s=-1), example(probes=[None]), example(probes={}), example(subtype=[]), example(exit_code=0.0),
    {**EXAMPLE, "calls": [EXAMPLE["calls"][0], set()]}, {**EXAMPLE, "tools_used": {"x" * 900_000: None}},
], ids=lambda raw: type(raw).__name__)  # fmt: skip
def test_whatever_it_is_given_problems_are_listed_and_nothing_raises(raw: object) -> None:
    problems = validate(raw)
    assert problems and all(isinstance(line, str) and len(line) < 1000 for line in problems)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", b"[" * 200_000, b"\xff", b"1" * 10_000, b'{"a": NaN}', b'"\\ud800"']
)
def test_bytes_that_are_no_record_are_refused_with_their_problems(data: bytes) -> None:
    with pytest.raises(ContractError) as caught:
        load(data)
    assert caught.value.problems


def test_a_flood_of_problems_is_cut_and_says_so() -> None:
    problems = validate({**EXAMPLE, "calls": [None] * 1000})
    assert len(problems) == contract.MOST_PROBLEMS + 1 and problems[-1] == "and 950 more"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=12,
)
WORDS = st.sampled_from(["ok", "empty", "error", "degenerate", "tool", "agent", "environment", "guided", "unguided",
                         "n/a", "A", "C", "c-unknown", "c-truncated"])  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(ANYTHING)
def test_validate_never_raises(raw: object) -> None:
    assert isinstance(validate(raw), list)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_record_with_anything_in_any_place_is_judged_and_only_then_read(data: st.DataObject) -> None:
    raw = example()
    places = [raw, raw["calls"][0], raw["calls"][0]["probes"][0], raw["agent_side"][0], raw["answer"]]
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(places))
        place[data.draw(st.sampled_from(sorted(place)))] = data.draw(WORDS | ANYTHING)
    problems = validate(raw)
    try:
        text = json.dumps(raw).encode()
    except TypeError:  # bytes, keys of several kinds: nothing that a file could hold
        return
    try:
        record = load(text)
    except ContractError as error:
        assert error.problems
        return
    assert load(write(record)) == record
    if not problems:
        assert [call.cls for call in record.calls] == [call.get("class", "C") for call in raw["calls"]]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_load_raises_nothing_but_its_own_error(data: bytes) -> None:
    with pytest.raises(ContractError):
        load(data)


def test_a_thousand_records_are_read_in_little_time() -> None:
    import time

    many = replace(A_RECORD, calls=A_RECORD.calls * 10)
    data = write(many)
    started = time.process_time()
    for _ in range(100):
        load(data)
    assert time.process_time() - started < 1.0
