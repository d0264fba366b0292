"""The arithmetic on a judge's scores, by requirements 003-10 to 003-12."""

import pytest

from graders import rubric

PERFECT = dict.fromkeys(rubric.KEYS, 2)


def test_a_perfect_answer_has_fourteen_points_and_twelve_when_preloaded() -> None:
    assert (rubric.weigh(PERFECT, "cold").weighted, rubric.weigh(PERFECT, "cold").most) == (14, 14)
    told = rubric.weigh(PERFECT | {"d1": 0}, "preloaded")
    assert (told.weighted, told.most, told.bar) == (12, 12, 9)


@pytest.mark.parametrize(("scores", "passes"), [
    ({"d1": 0, "d5": 1}, True),            # 11
    ({"d1": 0, "d5": 0}, False),           # 10: under 10.5
    ({"d2": 1, "d3": 1, "d6": 1}, True),   # 11
    ({"d7": 0}, True),                     # never counted
])  # fmt: skip
def test_the_bar_is_three_quarters(scores: dict[str, int], passes: bool) -> None:
    assert rubric.weigh(PERFECT | scores, "cold").passed is passes


@pytest.mark.parametrize("key", ["d2", "d3", "d4", "d6"])
def test_a_zero_where_one_is_the_least_fails_whatever_the_sum(key: str) -> None:
    told = rubric.weigh(PERFECT | {key: 0}, "preloaded")
    assert not told.passed
    assert told.short[0].startswith(key.upper())


def test_a_central_trap_fails_whatever_the_sum() -> None:
    told = rubric.weigh(PERFECT, "cold", central=True)
    assert told.short == ("a central trap was walked into",)


def test_a_missing_score_is_no_zero() -> None:
    with pytest.raises(KeyError):
        rubric.weigh({key: 2 for key in rubric.KEYS if key != "d6"}, "cold")


def test_other_words_around_the_rubric_are_another_measure() -> None:
    assert rubric.digest("a") != rubric.digest("b") != rubric.digest()
