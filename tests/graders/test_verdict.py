"""The vocabulary and what follows from checks."""

import pytest

from graders.verdict import MEANING, RATED, Check, Verdict, conclude, from_dict

YES, NO, OPEN = Check("yes", True), Check("no", False, "because"), Check("open", None, "nobody knows")


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [([YES], "pass"), ([YES, OPEN], "unknown"), ([YES, OPEN, NO], "fail"), ([NO], "fail"), ([], "unknown")],
)
def test_one_failed_check_fails_all_and_one_open_check_leaves_it_unknown(checks, verdict):
    assert conclude("g", checks).verdict == verdict


def test_the_reason_names_the_first_check_that_failed_and_how_many_more_did():
    assert conclude("g", [YES, NO, Check("again", False)]).reason == "no: because (and 1 more)"
    assert conclude("g", [OPEN, YES]).reason == "open: nobody knows"


def test_traps_are_kept_but_do_not_decide():
    verdict = conclude("g", [YES], [Check("trap", False)])
    assert verdict.verdict == "pass"
    assert verdict.traps == (Check("trap", False),)


def test_a_word_outside_the_vocabulary_is_refused():
    with pytest.raises(ValueError, match="passed"):
        Verdict("g", "passed", "")  # type: ignore[arg-type]


def test_only_pass_and_fail_enter_a_rate():
    assert {word for word in MEANING if Verdict("g", word, "").rated} == RATED == {"pass", "fail"}  # type: ignore[arg-type]


def test_a_verdict_survives_json_byte_for_byte():
    verdict = conclude("g", [YES, NO, OPEN, Check("ü\udc80\u2028", True)], [OPEN])
    import json

    assert from_dict(json.loads(verdict.dumps())) == verdict
    assert from_dict(json.loads(verdict.dumps())).dumps() == verdict.dumps()
    assert verdict.dumps().isascii()


def test_another_schema_is_refused():
    with pytest.raises(ValueError, match="labd-verdict/1"):
        from_dict({"schema": "other"})
