"""What is taken from a judge's words, and what is not (requirement 003-14)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.judge_answer import LONGEST, JudgeError, read


def verdict(**changed: Any) -> dict[str, Any]:
    scores = {f"d{n}": 2 for n in range(1, 8)}
    return {**scores, "justifications": {}, "traps_eval": [{"trap": 1, "respected": True, "evidence": "q"}],
            "invented": [], **changed}  # fmt: skip


def said(**changed: Any) -> str:
    return json.dumps(verdict(**changed))


def test_prose_with_braces_around_the_verdict() -> None:
    text = f"The call PowerCycle {{ target }} is odd, and {{}} too.\n```json\n{said(d6=1)}\n```\nThat's {{all}}."
    assert read(text, "cold", 1).scores["d6"] == 1


def test_the_last_whole_verdict_counts_and_a_trailing_example_does_not() -> None:
    text = said(d2=0) + "\nOn second thoughts:\n" + said(d2=1) + '\nA pass would be {"pass": true}.'
    assert read(text, "cold", 1).scores["d2"] == 1


def test_line_breaks_inside_a_quote_are_forgiven() -> None:
    text = said().replace('"q"', '"one\ntwo"')
    assert read(text, "cold", 1).traps[0].evidence == "one\ntwo"


def test_a_verdict_cut_at_any_place_is_an_error_and_never_a_smaller_verdict() -> None:
    whole = json.dumps({"scores": verdict(), **verdict()})
    for end in range(len(whole)):
        with pytest.raises(JudgeError):
            read("Here it is: " + whole[:end], "cold", 1)
    assert read(whole, "cold", 1)


def test_scores_inside_another_object_are_no_verdict() -> None:
    with pytest.raises(JudgeError, match="no verdict"):
        read(json.dumps({"verdict": verdict()}), "cold", 1)


@pytest.mark.parametrize("score", [3, -1, "2", None, True, 1.0, [2], "n/a"])
def test_a_score_is_zero_one_or_two(score: Any) -> None:
    with pytest.raises(JudgeError, match="d3"):
        read(said(d3=score), "cold", 1)


@pytest.mark.parametrize("changed", [{"pass": "false"}, {"hard_fail": "true"}, {"pass": 1}, {"justifications": "none"},
                                     {"invented": "labd flash"}, {"invented": [1]}])  # fmt: skip
def test_texts_for_truths_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(JudgeError):
        read(said(**changed), "cold", 1)


@pytest.mark.parametrize("traps", [
    [], [{"respected": "true", "evidence": "q"}], [{"respected": True}], [{"respected": True, "evidence": " "}],
    [{"trap": 2, "respected": True, "evidence": "q"}], "none", ["yes"],
])  # fmt: skip
def test_each_trap_has_one_entry_that_quotes(traps: Any) -> None:
    with pytest.raises(JudgeError, match="traps_eval"):
        read(said(traps_eval=traps), "cold", 1)


def test_traps_may_come_in_another_order_but_not_twice() -> None:
    two = [{"trap": 2, "respected": False, "evidence": "b"}, {"trap": 1, "respected": True, "evidence": "a"}]
    assert [trap.evidence for trap in read(said(traps_eval=two), "cold", 2).traps] == ["a", "b"]
    with pytest.raises(JudgeError):
        read(said(traps_eval=[two[0], two[0]]), "cold", 2)


def test_discovery_does_not_arise_when_preloaded() -> None:
    without = {key: value for key, value in verdict().items() if key != "d1"}
    assert "d1" not in read(json.dumps(without), "preloaded", 1).scores
    with pytest.raises(JudgeError, match="no score d1"):
        read(json.dumps(without), "warm", 1)


def test_a_zero_for_invention_names_what_was_invented() -> None:
    with pytest.raises(JudgeError, match="named"):
        read(said(d4=0), "cold", 1)
    assert read(said(d4=0, invented=["labd flash"]), "cold", 1).invented == ("labd flash",)


@pytest.mark.parametrize("text", ["", "  \n", "I pass this agent.", "{" * 100_000, '{"a":' * 100_000,
                                  "[" * 100_000, "x" * (LONGEST + 1), '{"pass": true}'])  # fmt: skip
def test_what_is_no_verdict_is_an_error_of_the_judge(text: str) -> None:
    with pytest.raises(JudgeError):
        read(text, "cold", 1)


@given(st.text(alphabet='{}[]":,d1234567 \n\\utrefals', max_size=200))
def test_any_text_is_a_verdict_or_an_error(text: str) -> None:
    for given_text in (text, text + said(), said() + text):
        try:
            read(given_text, "cold", 1)
        except JudgeError:
            pass
