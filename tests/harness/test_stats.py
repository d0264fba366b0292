"""Rates and causes: the closed tables of the harness."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.verdict import MEANING, RATED
from harness.causes import CAUSES, Rerun, Verdict, policy_of
from harness.stats import Overall, Rate, noise, spread, wilson


@pytest.mark.parametrize(
    ("passed", "valid", "low", "high"),
    [
        (0, 3, 0, 0.561),
        (1, 3, 0.061, 0.792),
        (2, 3, 0.208, 0.939),
        (3, 3, 0.439, 1),
        (5, 5, 0.566, 1),
        (10, 10, 0.722, 1),
    ],
)
def test_the_interval_is_wilsons(passed: int, valid: int, low: float, high: float) -> None:
    assert wilson(passed, valid) == pytest.approx((low, high), abs=5e-4)


@given(st.integers(0, 500), st.integers(0, 500))
def test_the_interval_holds_the_fraction_and_stays_within_bounds(one: int, other: int) -> None:
    passed, valid = min(one, other), max(one, other)
    bounds = wilson(passed, valid)
    if valid == 0:
        assert bounds is None
    else:
        assert bounds is not None
        assert 0 <= bounds[0] <= passed / valid <= bounds[1] <= 1


@pytest.mark.parametrize(("passed", "valid"), [(-1, 3), (4, 3)])
def test_what_is_no_count_is_refused(passed: int, valid: int) -> None:
    with pytest.raises(ValueError, match="no count"):
        wilson(passed, valid)


def test_nothing_measured_is_said_and_never_a_zero() -> None:
    assert str(Rate(0, 0, 4)) == "not measured (0 valid of 4 attempted)"
    assert str(Rate(2, 3, 3)) == "2/3 (21–94 %)"
    assert str(Rate(2, 3, 5)) == "2/3 (21–94 %), 3 valid of 5 attempted"


def test_scenarios_are_the_unit_of_an_overall_rate_and_not_trials() -> None:
    told = Overall((Rate(3, 3, 3), Rate(0, 3, 3), Rate(0, 0, 3)))
    assert told.mean == 0.5
    assert told.interval == wilson(1, 2), "two scenarios, though there are six trials"
    data = told.data()
    assert (data["scenarios"], data["of_scenarios"]) == (2, 3)
    assert (data["passed"], data["valid"], data["attempted"]) == (3, 6, 9)


def test_a_scenario_of_more_trials_does_not_weigh_more() -> None:
    assert Overall((Rate(1, 1, 1), Rate(0, 9, 9))).mean == 0.5
    assert Overall((Rate(0, 0, 2),)).mean is None
    assert Overall(()).interval is None


def test_noise_is_never_none_at_all_and_shrinks_with_scenarios() -> None:
    # (k + 1/2)/(n + 1) = 7/8; its variance 7/64 over 3 trials; two arms, ten scenarios: sqrt(2·10·7/192)/10.
    ten = noise([Rate(3, 3, 3)] * 10)
    assert ten is not None
    assert ten.floor == pytest.approx(1.95996 * (2 * 10 * 7 / 192) ** 0.5 / 10, abs=1e-5)
    assert ten.visible == pytest.approx(ten.floor * (1.95996 + 0.84162) / 1.95996, abs=1e-5)
    assert ten.headroom == 0
    forty = noise([Rate(3, 3, 3)] * 40)
    assert forty is not None
    assert forty.floor == pytest.approx(ten.floor / 2)
    assert noise([Rate(0, 0, 3)]) is None


def test_costs_are_told_by_their_median_and_range() -> None:
    told = spread([1, 2, 3, 4, 100])
    assert told is not None
    assert (told.low, told.lower, told.median, told.upper, told.high) == (1, 2, 3, 4, 100)
    assert spread([7.5]).data()["median"] == 7.5  # type: ignore[union-attr]
    assert spread([]) is None


def test_the_causes_speak_the_graders_words() -> None:
    assert set(get_args(Verdict)) == set(MEANING)
    for policy in CAUSES.values():
        assert policy.verdict is None or policy.verdict in MEANING
        assert policy.rerun in get_args(Rerun)
        assert policy.meaning
        # A failure that counts is never run again: that would lift the rate.
        assert not (policy.valid and policy.rerun != "never")
        assert policy.verdict not in RATED - {"fail"}


def test_a_cause_from_a_newer_version_is_never_a_pass() -> None:
    assert policy_of("eaten by a dog").verdict == "harness_error"
    assert policy_of("eaten by a dog").valid is False
