"""The text names what a fix needs: class, command, result, evidence, nearest value, and whether the tool knew."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.contract import CLASSES, SUBTYPES, AgentSide, Probe
from graders.explain import explain, explain_call, explain_hint, knew
from tests.graders.records import attempt, call

BUS = call(
    "C",
    "count --in 'Cambridge, MA' --where categories.primary=bus_stop",
    subtype="c-vocabulary",
    duration_s=12.4,
    probes=(Probe("vocabulary", "categories --top 5000", "absent; nearest bus_station", True),),
)
NOTHING = Probe("type_sweep", "count -t land", "nothing", False)


def test_the_bus_stops_are_explained_whole() -> None:
    assert explain_call(BUS, 3, "atlas").splitlines() == [
        f"CLASS C ({CLASSES['C']}): c-vocabulary ({SUBTYPES['c-vocabulary']})",
        "  Call 3, the agent ran: atlas count --in 'Cambridge, MA' --where categories.primary=bus_stop",
        "  Result: nothing on stdout, exit 0, nothing on stderr, 12.40 s.",
        "  Probe vocabulary: atlas categories --top 5000 → absent; nearest bus_station",
        "  Nearest real value: bus_station",
        "  The tool had the information needed to say this, and did not.",
        "  Missing: never return nothing without saying why: name the values that exist.",
    ]


def test_evidence_names_the_nearest_value_too() -> None:
    for told, near in (
        ("nearest bus_station (L3, travel)", "bus_station (L3, travel)"),
        ("nearest: bus_station, New York; asked twice", "bus_station, New York"),
    ):
        text = explain_call(call("C", evidence=f"bus_stop is none of the 9 values that there are; {told}"), 1, "atlas")
        assert f"  Nearest real value: {near}" in text.splitlines()
    assert "Nearest" not in explain_call(call("A"), 1, "atlas")


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (BUS, "had the information needed to say this, and did not"),
        (call("C", probes=(NOTHING,)), "had not the information, as far as 1 probes"),
        (call("C"), "is not known: no probe"),
        (call("A"), "is not known: no probe"),
        (call("B"), "had the information, and said it"),
        (call("D"), "in a way that nobody can use"),
        (call("E"), "had not the information: what it depends on failed"),
        (call("F"), "had the information, and said it"),
    ],
)  # fmt: skip
def test_it_says_whether_the_tool_had_the_information(one: object, words: str) -> None:
    assert words in knew(one)  # type: ignore[arg-type]


def test_an_inconclusive_probe_is_told_as_such_and_an_unknown_exit_too() -> None:
    text = explain_call(call("C", exit_code=None, probes=(NOTHING,)), 1, "atlas")
    assert "Probe type_sweep: atlas count -t land → nothing (inconclusive)" in text
    assert "exit unknown" in text


def test_what_is_proved_is_said_once_and_what_proved_nothing_in_a_line() -> None:
    proof = Probe("column_swap", "count --subtype recreation", "0 vs 86: none with class recreation", True)
    one = call("C", subtype="c-wrong-column", evidence=proof.result, probes=(NOTHING, proof))
    lines = explain_call(one, 1, "atlas").splitlines()
    assert [line for line in lines if "0 vs 86" in line] == [
        "  Probe column_swap: atlas count --subtype recreation → 0 vs 86: none with class recreation"
    ]
    assert "  Probes that proved nothing: type_sweep" in lines
    not_asked = Probe("vocabulary", "", "not asked: another build is installed", False)
    text = explain_call(call("C", probes=(not_asked,)), 1, "atlas")
    assert "is not known: no probe" in text
    assert "  Probe vocabulary: nothing was run → not asked: another build is installed (inconclusive)" in text


def test_an_attempt_is_explained_failure_by_failure_with_the_ignored_hints() -> None:
    side = AgentSide("ignored_hint", 1, "hint offered bus_station; call 3 did not use it; nothing did later")
    text = explain(attempt("ok", "B", "A", agent_side=(side,)))
    assert [line.split(":")[0] for line in text.splitlines() if not line.startswith(" ")] == [
        "CLASS B (soft failure", "CLASS A (hard failure", "AGENT (ignored_hint), not charged",
    ]  # fmt: skip
    assert "  Call 2: hint offered bus_station" in text
    assert explain(attempt("ok", "ok")) == ""


def test_nothing_that_was_said_makes_a_line_or_reaches_a_terminal() -> None:
    evil = "x\nCLASS A\x1b[31m" + "y" * 5000
    one = call(
        "A",
        f"'{evil}'",
        stdout_head=evil,
        stderr_head=evil,
        evidence=evil,
        probes=(Probe("argv_echo", evil, evil, True),),
    )
    text = explain_call(one, 1, "atlas")
    assert "\x1b" not in text
    assert not [line for line in text.splitlines()[1:] if line.startswith("CLASS")]
    assert "… (5014 characters)" in text
    assert "\n" not in explain_hint(AgentSide("ignored_hint", 0, evil)).split("\n", 1)[1]


def test_a_call_without_fault_has_nothing_to_explain() -> None:
    with pytest.raises(ValueError, match="no fault"):
        explain_call(call("ok"), 1, "atlas")


TEXTS = st.text(max_size=40)


@given(st.lists(st.sampled_from(["ok", *CLASSES]), max_size=6), TEXTS, TEXTS, TEXTS)
def test_any_attempt_can_be_explained_in_lines_of_ours_alone(names: list[str], word: str, out: str, why: str) -> None:
    calls = [replace(call(name), argv=(word,), stdout_head=out, stderr_head=out, evidence=why) for name in names]
    text = explain(attempt(*calls))
    assert all(char.isprintable() or char == "\n" for char in text)
    heads = [line for line in text.split("\n") if line and not line.startswith("  ")]
    assert [line[:7] for line in heads] == [f"CLASS {name}" for name in names if name != "ok"]
