"""The order that the weights stand for: silence is the worst, a refusal with a hint costs next to nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders import score as scoring
from graders.score import mean, score
from tests.graders.records import attempt, call

CHARGED = st.lists(st.sampled_from(["ok", "A", "B", "D", "F"]), max_size=12)


def value(*names: str) -> float:
    found = score(attempt(*names)).value
    assert found is not None
    return found


def test_what_went_well_is_worth_all() -> None:
    assert value("ok", "ok") == pytest.approx(1.0)


def test_a_guided_refusal_is_strictly_better_than_the_same_unguided() -> None:
    assert value("B") > value("A")
    assert value("ok", "B", "ok") > value("ok", "A", "ok")


def test_a_hint_costs_next_to_nothing() -> None:
    assert value("ok", "B", "ok") > 0.97


def test_a_hint_satisfies_the_recovery_test_of_an_earlier_failure() -> None:
    alone, hinted = score(attempt("A", "A")), score(attempt("A", "B"))
    assert alone.recovery == 0.0
    assert hinted.recovery == 1.0
    assert score(attempt("B")).recovery == 1.0  # and needs none itself


def test_the_same_guided_answer_to_the_same_words_is_charged_once() -> None:
    polled = score(attempt(*["B"] * 35, "ok"))
    assert polled.value == value("B", "ok")
    assert polled.counts["B"] == 35
    others = [call("B", f"count --name {number}") for number in range(35)]
    answers = [call("B", stderr_head=f"nothing new since {number}") for number in range(35)]
    for several in (others, answers):
        found = score(attempt(*several, "ok")).value
        assert found is not None and polled.value is not None and found < polled.value
    assert value("A", "ok") < value(*["B"] * 35, "ok")
    assert value("A", "A", "ok") < value("A", "ok")  # what was left to guess was so each time


def test_what_came_before_a_failure_recovers_nothing() -> None:
    assert score(attempt("ok", "B", "A")).recovery == 0.0


@given(CHARGED, st.integers(0, 5))
def test_one_silent_wrong_outweighs_five_hard_failures_whatever_else_is_there(others: list[str], hard: int) -> None:
    silent = score(attempt("C", *(name for name in others if name not in ("D", "A")))).value
    assert silent is not None
    assert silent < value(*["A"] * hard, *(["ok"] if not hard else []))


@given(CHARGED, st.integers(0, 12))
def test_every_failure_that_is_left_to_guess_lowers_the_score(others: list[str], at: int) -> None:
    for name in "ACD":
        longer = [*others[:at], name, *others[at:]]
        before = score(attempt(*others, "ok")).value
        after = score(attempt(*longer, "ok")).value
        assert before is not None and after is not None and after < before


def test_an_attempt_in_which_the_environment_failed_is_dropped_from_sum_and_number() -> None:
    found = [score(attempt("ok")), score(attempt("ok", "E", "A"))]
    assert found[1].value is None
    assert found[1].why == "call 2: the environment failed (class E)"
    assert found[1].counts["E"] == 1
    told = mean(found)
    assert told == {"mean": 1.0, "scored": 1, "attempts": 2, "dropped": {"the environment failed (class E)": 1}}


def test_what_the_agent_did_is_told_and_not_charged() -> None:
    found = score(attempt("ok", "F", "F"))
    assert found.value == pytest.approx(1.0)
    assert found.counts["F"] == 2


def test_no_call_is_no_zero() -> None:
    assert score(attempt()).value is None
    assert mean([score(attempt())]) == {
        "mean": None, "scored": 0, "attempts": 1, "dropped": {"the program was never called": 1},
    }  # fmt: skip
    assert score(attempt("F")).value is None


def test_a_degenerate_call_costs_by_its_time_and_never_as_much_as_a_silent_wrong_one() -> None:
    quick, long, endless = (scoring.charge(call("D", duration_s=s)) for s in (1.0, 600.0, 1e8))
    assert quick < long < endless == scoring.CHARGE_D_MOST < scoring.CHARGE["C"]
    assert scoring.charge(call("D", duration_s=None)) == scoring.CHARGE["D"]


def test_weights_are_named_and_sum_to_one() -> None:
    assert pytest.approx(1.0) == scoring.W_OUTCOME + scoring.W_RECOVERY + scoring.W_EFFORT
