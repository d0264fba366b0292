"""Agreement between people and graders, against values that can be worked out by hand."""

import pytest

from harness.agreement import Confusion, confusion, corrected, weighted_kappa


def test_kappa_of_a_textbook_table() -> None:
    assert Confusion(20, 5, 10, 15).kappa == pytest.approx(0.4)  # agreed 0.7, by chance 0.5


def test_raw_agreement_flatters_and_kappa_does_not() -> None:
    lazy = Confusion(18, 0, 2, 0)  # passes everything
    assert (lazy.agreed, lazy.kappa) == (18, 0)


def test_kappa_is_not_defined_where_all_is_one_outcome() -> None:
    assert Confusion(9, 0, 0, 0).kappa is None and Confusion().kappa is None


def test_pairs_are_counted_by_who_said_what() -> None:
    assert confusion([(True, False), (False, True), (False, True), (True, True)]) == Confusion(1, 1, 2, 0)


def test_a_lenient_grader_is_corrected_downwards() -> None:
    table = Confusion(10, 0, 4, 6)  # passes 4 of 10 that people fail
    told = corrected(14, 20, table)
    assert told is not None
    assert told.rate == pytest.approx((0.7 + 0.6 - 1) / 0.6)
    assert told.low < told.rate < told.high
    assert told.high - told.low > 0.4, "few sessions bound little"


@pytest.mark.parametrize("table", [Confusion(5, 5, 5, 5), Confusion(5, 0, 0, 0), Confusion(0, 0, 0, 5)])
def test_no_correction_where_the_grader_tells_nothing(table: Confusion) -> None:
    assert corrected(3, 4, table) is None


def test_weighted_kappa_counts_far_misses_more() -> None:
    near, far = [(2, 1), (2, 2), (0, 0), (0, 1)], [(2, 0), (2, 2), (0, 0), (0, 2)]
    assert weighted_kappa(near) > weighted_kappa(far)  # type: ignore[operator]
    assert weighted_kappa([(2, 2)]) is None
