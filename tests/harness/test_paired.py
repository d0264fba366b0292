"""Two arms over the same scenarios: exact tests with hand-worked values; no "better" that few trials cannot carry."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.paired import compare, fisher, holm, mcnemar, sign_flip
from harness.stats import Rate


def cells(*counts: tuple[int, int]) -> dict[str, Rate]:
    return {f"S{number}": Rate(passed, valid, valid) for number, (passed, valid) in enumerate(counts)}


@pytest.mark.parametrize(
    ("better", "worse", "p"), [(6, 0, 0.03125), (5, 0, 0.0625), (8, 1, 0.0390625), (0, 0, 1), (3, 3, 1)]
)
def test_mcnemars_exact_test_gives_the_values_of_the_table(better: int, worse: int, p: float) -> None:
    assert mcnemar(better, worse) == p
    assert mcnemar(worse, better) == p
    ones = [Fraction(1)] * better + [Fraction(-1)] * worse + [Fraction(0)] * 4
    assert sign_flip(ones) == p, "one trial a cell: flips of signs are McNemar's test"


@given(st.lists(st.fractions(-1, 1, max_denominator=6), max_size=9))
def test_the_permutation_is_the_one_that_counting_all_flips_gives(differences: list[Fraction]) -> None:
    seen = abs(sum(differences))
    flips = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
             for signs in product((1, -1), repeat=len(differences))]  # fmt: skip
    assert sign_flip(differences) == pytest.approx(sum(one >= seen for one in flips) / len(flips))


def test_many_scenarios_are_still_exact_and_quick() -> None:
    assert sign_flip([Fraction(1, 3)] * 200) == pytest.approx(2.0**-199)


def test_two_cells_of_three_trials_can_never_show_a_difference() -> None:
    assert fisher(Rate(3, 3, 3), Rate(0, 3, 3)) == pytest.approx(0.1)
    told = compare(cells((0, 3)), cells((3, 3)))
    assert told.finding == "cannot show"
    assert "better" not in told.sentence
    assert told.sentence.startswith("cannot show: +100 points over 1 scenarios")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=5))
def test_fewer_than_six_scenarios_never_show_one(pairs: list[tuple[int, int]]) -> None:
    told = compare(cells(*((a, 3) for a, _ in pairs)), cells(*((b, 3) for _, b in pairs)))
    assert told.finding == "cannot show"


def test_six_scenarios_all_one_way_are_enough_and_five_of_six_are_not() -> None:
    told = compare(cells(*[(0, 1)] * 6), cells(*[(1, 1)] * 6))
    assert (told.finding, told.p, told.test) == ("better", 0.03125, "exact McNemar")
    assert compare(cells(*[(1, 1)] * 6), cells(*[(0, 1)] * 6)).finding == "worse"
    five = compare(cells(*[(0, 1)] * 6), cells(*[(1, 1)] * 5, (0, 1)))
    assert (five.finding, five.p) == ("no difference shown", 0.0625)


def test_the_same_difference_in_more_trials_is_tested_by_scenarios() -> None:
    told = compare(cells(*[(1, 3)] * 7), cells(*[(2, 3)] * 7))
    assert told.test == "exact permutation of signs"
    assert (told.difference, told.p) == (pytest.approx(1 / 3), 2 / 2**7)
    assert told.interval is not None
    assert told.interval[0] < 0.05 < told.interval[1], "the interval gives no credit for pairing"


def test_what_only_one_side_has_is_left_out_and_counted() -> None:
    told = compare(cells((1, 1), (0, 0), (1, 1)), cells((1, 1), (1, 1)))
    assert (told.scenarios, told.left_out) == (1, 2)
    assert compare({}, cells((1, 1))).finding == "not measured"
    assert compare({}, cells((1, 1))).difference is None


def test_trials_lost_on_one_side_make_it_unsafe_and_bound_it() -> None:
    first = {f"S{n}": Rate(3, 3, 3) for n in range(6)}
    second = {f"S{n}": Rate(2, 2, 3) for n in range(6)}
    told = compare(first, second)
    assert told.unsafe == "0% of the first arm's trials and 33% of the second's are not valid"
    assert told.bounds == pytest.approx((-1 / 3, 0))
    assert "unsafe" in told.sentence
    assert compare(first, first).unsafe == ""


@pytest.mark.parametrize(
    ("values", "adjusted"),
    [([], []), ([0.04], [0.04]), ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]), ([0.9, 0.8], [1.0, 1.0])],
)
def test_several_tests_are_held_to_the_level_by_holms_method(values: list[float], adjusted: list[float]) -> None:
    assert holm(values) == pytest.approx(adjusted)
