"""What the agent made of a hint: taken, taken later, taken into the answer, or not at all."""

import pytest

from graders.agent_side import ignored, said, uses
from graders.contract import AgentSide
from tests.graders.records import call

WRONG = call("B", "count --where category=bus_stop")
RIGHT = call("ok", "count --where category=bus_station")
OTHER = call("ok", "list countries")
HINT = ("bus_station",)


def found(*calls: object, hints: dict[int, tuple[str, ...]], answer: str = "") -> tuple[AgentSide, ...]:
    return ignored(calls, [hints.get(at, ()) for at in range(len(calls))], answer, "atlas")  # type: ignore[arg-type]


def test_a_hint_that_the_next_call_uses_is_none_ignored() -> None:
    assert found(WRONG, RIGHT, hints={0: HINT}) == ()


def test_an_ignored_hint_tells_its_call_the_window_and_that_it_was_used_later() -> None:
    (one,) = found(OTHER, WRONG, OTHER, WRONG, RIGHT, OTHER, hints={1: HINT})
    assert (one.kind, one.at_call, one.suggestions, one.used_at) == ("ignored_hint", 1, HINT, 4)
    assert one.detail == "hint offered bus_station; calls 3 to 4 did not use it; call 5 did"


def test_a_hint_that_is_never_used_tells_the_whole_rest_as_its_window() -> None:
    (one,) = found(WRONG, WRONG, WRONG, hints={0: HINT})
    assert one.used_at is None
    assert one.detail == "hint offered bus_station; calls 2 to 3 did not use it; nothing did later"


def test_the_hint_of_the_last_call_is_not_ignored_if_the_answer_uses_it() -> None:
    assert found(WRONG, hints={0: HINT}, answer="There are none; it is called `bus_station` there.") == ()
    (one,) = found(WRONG, hints={0: HINT}, answer="There are none.")
    assert one.detail == "hint offered bus_station; no call came after it, and the answer does not use it"


def test_a_hint_used_only_in_the_answer_is_told_so() -> None:
    (one,) = found(WRONG, OTHER, hints={0: HINT}, answer="Try bus_station.")
    assert one.detail == "hint offered bus_station; call 2 did not use it; the answer does"


def test_advice_beside_a_whole_answer_is_no_hint_that_could_be_ignored() -> None:
    assert found(RIGHT, OTHER, hints={0: ("--limit",)}) == ()


def test_words_of_prose_that_stand_in_a_call_are_no_use_of_the_hint() -> None:
    # hint: "did you mean bus_station (L3, travel)": the signs name bus_station alone, and `travel` is no use of it
    (one,) = found(WRONG, call("ok", "count --where category=travel"), hints={0: HINT})
    assert one.used_at is None


@pytest.mark.parametrize(
    ("line", "suggestion"),
    [
        ("count --where category=bus_station", "bus_station"),
        ("count --where=category=bus_station", "bus_station"),
        ("count --type a,bus_station", "bus_station"),
        ("count --limit=5000", "--limit"),
        ("serial list --lab x", "atlas serial list"),
        ("serial list --lab x", "serial list"),
        ("target add pico --dry-run", "atlas target add NAME --dry-run"),
        ("target add pico", "atlas target add <name>"),
    ],
)  # fmt: skip
def test_a_suggestion_is_used_as_an_argument_a_value_or_a_command(line: str, suggestion: str) -> None:
    assert uses(line.split(), [suggestion], "atlas")


@pytest.mark.parametrize(
    ("line", "suggestion"),
    [
        ("count --where category=bus_stations", "bus_station"),
        ("list serial", "atlas serial list"),
        ("serial show", "atlas serial list"),
        ("anything at all", "<name>"),
        ("anything at all", "atlas"),
    ],
)
def test_what_only_looks_alike_is_no_use(line: str, suggestion: str) -> None:
    assert not uses(line.split(), [suggestion], "atlas")


def test_an_answer_uses_whole_words() -> None:
    assert said("run  atlas\nserial list", ["atlas serial list"])
    assert not said("bus_stations", ["bus_station"])
    assert not said("anything", [""])
