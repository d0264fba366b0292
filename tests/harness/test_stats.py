"""Rates and causes: the closed tables of the harness."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.verdict import MEANING, RATED
from harness.causes import CAUSES, Rerun, Verdict, policy_of
from harness.stats import Rate, wilson


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
