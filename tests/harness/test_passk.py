"""pass@k and pass^k by the unbiased estimators, with hand-worked values."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import passk
from harness.stats import Rate


@pytest.mark.parametrize(
    ("passed", "valid", "k", "one", "every"),
    [
        (2, 3, 1, 2 / 3, 2 / 3),
        (2, 3, 2, 1, 1 / 3),
        (2, 3, 3, 1, 0),
        (0, 3, 3, 0, 0),
        (3, 3, 3, 1, 1),
        (1, 4, 2, 0.5, 0),
    ],
)
def test_both_have_their_hand_worked_values(passed: int, valid: int, k: int, one: float, every: float) -> None:
    assert passk.one_of(passed, valid, k) == pytest.approx(one)
    assert passk.all_of(passed, valid, k) == pytest.approx(every)


@given(st.integers(1, 7), st.data())
def test_they_are_what_drawing_every_subset_gives(valid: int, data: st.DataObject) -> None:
    passed, k = data.draw(st.integers(0, valid)), data.draw(st.integers(1, valid))
    draws = list(combinations([True] * passed + [False] * (valid - passed), k))
    assert passk.one_of(passed, valid, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert passk.all_of(passed, valid, k) == pytest.approx(sum(map(all, draws)) / len(draws))


@pytest.mark.parametrize(("passed", "valid", "k"), [(2, 3, 4), (2, 3, 0), (4, 3, 1), (0, 0, 1)])
def test_more_than_was_drawn_is_refused(passed: int, valid: int, k: int) -> None:
    with pytest.raises(ValueError, match="can't be drawn"):
        passk.all_of(passed, valid, k)


def test_scenarios_are_averaged_each_the_same_however_many_trials_it_had() -> None:
    told = passk.over([Rate(2, 3, 3), Rate(6, 6, 6)])
    assert told.all_of == pytest.approx(((2 / 3 + 1) / 2, (1 / 3 + 1) / 2, 0.5))
    assert told.one_of == pytest.approx(((2 / 3 + 1) / 2, 1, 1))


def test_k_ends_where_a_scenario_has_no_more_valid_trials_and_that_is_said() -> None:
    told = passk.over([Rate(2, 2, 3), Rate(3, 3, 3), Rate(0, 0, 3)])
    assert (told.most, told.scenarios) == (2, 2)
    assert "1 of 3 scenarios have no valid trial" in told.note
    assert "only up to k = 2" in told.note
    assert passk.over([Rate(3, 3, 3)]).note == ""
    assert passk.over([]).data()["k"] == []
