"""Each check of the readiness rubric, by what it must make of evidence, above all where evidence is missing."""

from typing import Any

import pytest

from graders.readiness_evidence import Evidence, Step
from graders.readiness_rules import RULES

SAME = {"repo": {"sha256": "a"}, "rest": {"sha256": "r"}}
MOVED = {"repo": {"sha256": "b"}, "rest": {"sha256": "r"}}
STRAYED = {"repo": {"sha256": "b"}, "rest": {"sha256": "x"}}
DARK = {"repo": {"sha256": "a"}, "rest": None}


def step(role: str, run: str = "tool do", **given: Any) -> Step:
    base: dict[str, Any] = {"wanted": {}, "ended_by": "exit", "code": 0, "signal": None, "cut": 0, "stdout": "",
                            "stderr": "", "before": SAME, "after": SAME}  # fmt: skip
    return Step(role, run, **{**base, **given})


def judged(check: str, *steps: Step, states: tuple[str, ...] = ("repo", "rest")) -> tuple[str, str]:
    found = RULES[check].judge(Evidence(check, steps, ("repo",), states))
    return found.verdict, found.reason


def timed(role: str, **given: Any) -> Step:
    return step(role, ended_by="time_limit", code=None, signal="SIGTERM", **given)


def error(**given: Any) -> Step:
    return step("mistake", **{"code": 2, "stderr": "no such flag --x", **given})


PLANTED = {"parse": "lines", "planted": ["one", "two"]}


# -- what holds for every check ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", sorted(RULES))
def test_nothing_that_was_exercised_is_unknown_never_a_pass(check):
    assert judged(check)[0] == "unknown"


@pytest.mark.parametrize("check", sorted(RULES))
def test_a_page_of_help_establishes_a_documented_capability_and_nothing_else(check):
    page = step("document", "tool --help", stdout="--dry-run --page --token --repair", wanted={"finds": ["--dry-run"]})
    assert judged(check, page)[0] == "unknown"


@pytest.mark.parametrize("check", sorted(RULES))
def test_a_command_that_was_cut_off_by_time_never_passes(check):
    steps = [timed(role, wanted=PLANTED) for role in RULES[check].roles] + [step("look")]
    assert judged(check, *steps)[0] in ("unknown", "blocked")


# -- discovery and documentation --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ended", [
    {"ended_by": "time_limit", "code": None}, {"code": None, "signal": "SIGSEGV"}, {"code": 139},
    {"code": 3, "wanted": {"refused": [3]}}, {"ended_by": "not_started", "code": None},
])  # fmt: skip
def test_help_that_timed_out_was_refused_or_has_no_exit_code_is_unknown(ended):
    assert judged("help", step("discover", **ended))[0] == "unknown"


def test_help_passes_by_what_it_names_whatever_its_exit_code_is():
    wanted = {"finds": ["usage: tool push"]}
    assert judged("help", step("discover", code=129, stdout="usage: tool push [X]", wanted=wanted))[0] == "pass"
    assert judged("help", step("discover", stdout="welcome", wanted=wanted))[0] == "fail"


def test_missing_help_fails_discovery_only_where_it_was_asked_for():
    assert judged("discovery")[0] == "unknown"
    assert judged("discovery", step("discover", code=1, wanted={"finds": ["user.name"]}))[0] == "fail"


def test_discovery_that_changed_something_fails():
    named = {"stdout": "user.name", "wanted": {"finds": ["user.name"]}}
    assert judged("discovery", step("discover", **named))[0] == "pass"
    assert judged("discovery", step("discover", after=MOVED, **named))[0] == "fail"


# -- output -----------------------------------------------------------------------------------------------------------


def test_a_truncated_stream_is_unknown_also_where_what_is_there_parses():
    whole = {"stdout": "one\ntwo\n", "wanted": PLANTED}
    assert judged("structured-output", step("read", **whole))[0] == "pass"
    assert judged("structured-output", step("read", cut=1, **whole))[0] == "unknown"
    assert judged("structured-output", step("read", ended_by="output_limit", code=None, **whole))[0] == "unknown"


@pytest.mark.parametrize(("form", "text"), [
    ("json", '{"rows": [{"name": "one"}, {"name": "two"}]}'),
    ("jsonl", '{"rows": [{"name": "one"}]}\n{"rows": [{"name": "two"}]}\n'),
])  # fmt: skip
def test_each_planted_record_has_to_be_there_and_each_line_has_to_parse(form, text):
    wanted = {"parse": form, "pick": "rows[].name", "planted": ["one", "two"]}
    assert judged("structured-output", step("read", stdout=text, wanted=wanted))[0] == "pass"
    assert judged("structured-output", step("read", stdout=text.replace("two", "2"), wanted=wanted))[0] == "fail"
    assert judged("structured-output", step("read", stdout=f"{text}trailing", wanted=wanted))[0] == "fail"


def test_a_banner_before_the_data_fails_clean_streams():
    wanted = {"parse": "json", "pick": "[]", "planted": ["one"]}
    assert judged("clean-streams", step("read", stdout='["one"]', wanted=wanted))[0] == "pass"
    assert judged("clean-streams", step("read", stdout='Hello!\n["one"]', wanted=wanted))[0] == "fail"
    noisy = step("read", stdout='["one"]', stderr="Hello!", wanted=wanted)
    assert judged("clean-streams", noisy)[0] == "pass"


def test_a_pager_that_hangs_fails_and_any_other_end_by_time_is_unknown():
    verdict, reason = judged("clean-streams", timed("read", waiting=("git", "less"), wanted=PLANTED))
    assert verdict == "fail" and "less" in reason
    assert judged("clean-streams", timed("read", waiting=("git",), wanted=PLANTED))[0] == "unknown"
    assert judged("structured-output", timed("read", waiting=("less",), wanted=PLANTED))[0] == "unknown"


def test_pages_count_where_somebody_went_through_them_and_all_that_was_planted_came():
    one, two = (step("page", stdout=f"{name}\n", wanted=PLANTED) for name in ("one", "two"))
    assert judged("pagination", one, two)[0] == "pass"
    assert judged("pagination", one, one)[0] == "fail"
    both = step("page", stdout="one\ntwo\n", wanted=PLANTED)
    assert judged("pagination", both)[0] == "unknown", "one page is no traversal"
    empty = step("page", wanted=PLANTED)
    assert judged("pagination", both, empty)[0] == "unknown"


# -- headless ---------------------------------------------------------------------------------------------------------


def test_any_exit_code_completes_and_none_is_unknown():
    assert judged("help-completion", step("discover", code=1), step("discover", code=129))[0] == "pass"
    assert judged("help-completion", step("discover"), step("discover", code=None))[0] == "unknown"
    assert judged("help-completion", step("discover"), timed("discover"))[0] == "unknown"


@pytest.mark.parametrize(("ended", "verdict"), [
    ({"code": None, "signal": "SIGKILL"}, "harness_error"), ({"code": 137}, "harness_error"),
    ({"ended_by": "time_limit", "code": None}, "blocked"), ({"ended_by": "not_started", "code": None}, "harness_error"),
    ({"code": None}, "unknown"), ({"code": 1}, "fail"),
])  # fmt: skip
def test_memory_and_time_are_no_verdict_on_the_work_and_never_a_pass(ended, verdict):
    assert judged("task-completion", step("apply", **ended), step("look"))[0] == verdict


def test_work_that_ended_well_passes_only_if_the_harness_finds_the_change():
    look = step("look", stdout="made", wanted={"finds": ["^made$"]})
    assert judged("task-completion", step("apply"), look)[0] == "pass"
    assert judged("task-completion", step("apply"), step("look", wanted={"finds": ["^made$"]}))[0] == "fail"
    assert judged("task-completion", step("apply"))[0] == "unknown", "an exit code 0 is nobody's look"
    assert judged("task-completion", look, step("apply"))[0] == "unknown", "a look before the change sees nothing of it"


# -- state ------------------------------------------------------------------------------------------------------------


def test_reading_that_moves_any_declared_state_fails_also_an_unrelated_one():
    assert judged("read-safety", step("read"))[0] == "pass"
    assert judged("read-safety", step("read", after=MOVED))[0] == "fail"
    strayed = {"repo": SAME["repo"], "rest": {"sha256": "x"}}
    assert judged("read-safety", step("read", after=strayed))[0] == "fail"


def test_a_state_that_nobody_observed_is_unknown():
    assert judged("read-safety", step("read", after=DARK))[0] == "unknown"
    assert judged("read-safety", step("read", before={}, after={}))[0] == "unknown"
    assert judged("read-safety", step("read"), states=())[0] == "unknown"


def test_reading_that_went_wrong_shows_nothing_of_how_safe_it_is():
    assert judged("read-safety", step("read", code=1))[0] == "unknown"


def preview(**given: Any) -> Step:
    return step(
        "preview", "tool do --dry-run", **{"stdout": "would do x", "wanted": {"finds": ["would do x"]}, **given}
    )


def test_a_flag_in_a_help_page_is_no_preview():
    flag = step("document", "tool --help", stdout="--dry-run", wanted={"finds": ["--dry-run"]})
    assert judged("preview", flag)[0] == "unknown"
    assert judged("preview", flag, step("apply", after=MOVED))[0] == "unknown"


def test_a_preview_tells_the_change_moves_nothing_and_what_it_told_comes_about():
    apply = step("apply", after=MOVED)
    assert judged("preview", preview(), apply)[0] == "pass"
    assert judged("preview", preview(after=MOVED), apply)[0] == "fail", "it did it"
    assert judged("preview", preview(stdout=""), apply)[0] == "fail", "it told nothing"
    assert judged("preview", preview(after=DARK), apply)[0] == "unknown"
    assert judged("preview", preview())[0] == "unknown", "never applied, nothing says what it showed"
    assert judged("preview", preview(), step("apply"))[0] == "unknown", "what changes nothing is no change"
    assert judged("preview", preview(), step("apply", after=STRAYED))[0] == "fail"


@pytest.mark.parametrize("worse", [{"stdout": ""}, {"code": 1}])
def test_a_preview_that_did_the_work_is_told_to_have_done_it_before_all_else(worse):
    verdict, reason = judged("preview", preview(after=MOVED, **worse), step("apply", after=MOVED))
    assert verdict == "fail" and "it changed" in reason


ONCE = {"wanted": {"counts": {"^x$": 1}}}


def test_made_twice_it_must_be_there_once():
    first, again = step("apply", after=MOVED), step("again", before=MOVED, after=MOVED)
    assert judged("replay", first, again, step("look", stdout="x", **ONCE))[0] == "pass"
    assert judged("replay", first, again, step("look", stdout="x\nx", **ONCE))[0] == "fail"
    refused = step("again", code=1, before=MOVED, after=MOVED)
    assert judged("replay", first, refused, step("look", stdout="x", **ONCE))[0] == "pass", "refusing is no damage"
    strayed = step("again", before=MOVED, after=STRAYED)
    assert judged("replay", first, strayed, step("look", stdout="x", **ONCE))[0] == "fail"


def test_a_command_that_only_reads_is_no_replay():
    look = step("look", stdout="x", **ONCE)
    assert judged("replay", step("apply"), step("again"), look)[0] == "unknown"
    assert judged("replay", step("apply", after=MOVED), step("again", "tool show"), look)[0] == "unknown"
    assert judged("replay", step("apply", after=MOVED), look)[0] == "unknown", "made once"
    assert judged("replay", step("apply", after=MOVED), step("again"))[0] == "unknown", "nobody looked"


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", ["invalid-command", "invalid-flag"])
def test_an_error_has_to_come_about_with_words_and_no_error_is_unmeasured_never_a_pass(check):
    assert judged(check, error())[0] == "pass"
    assert judged(check, error(code=0))[0] == "unknown"
    assert judged(check, error(stderr=""))[0] == "fail"
    assert judged(check, error(after=MOVED))[0] == "fail"
    assert judged(check, error(code=None))[0] == "unknown"
    assert judged(check, error(code=139, stderr="Segmentation fault"))[0] == "unknown"


def test_commands_that_went_well_say_nothing_about_invalid_flags():
    assert judged("invalid-flag", step("read"), step("apply", after=MOVED), step("look"))[0] == "unknown"


FAULT = step("fault", before=SAME, after=MOVED)


def test_mending_that_was_never_tried_is_not_reached():
    assert judged("recovery", FAULT, step("look"))[0] == "not_reached"
    never = step("repair", ended_by="not_started", code=None)
    assert judged("recovery", FAULT, step("look"), never, step("look"))[0] == "not_reached"


def test_a_fault_that_did_not_take_leaves_recovery_unknown():
    assert judged("recovery")[0] == "unknown"
    assert judged("recovery", step("fault", code=1), step("repair"), step("look"))[0] == "unknown"
    missed = step("look", wanted={"finds": ["broken"]})
    assert judged("recovery", FAULT, missed, step("repair"), step("look"))[0] == "unknown"


def test_recovery_needs_the_fault_gone_the_state_there_and_the_rest_as_it_was():
    good = step("look", stdout="whole", wanted={"finds": ["whole"], "lacks": ["broken"]})
    bad = step("look", stdout="whole broken", wanted={"finds": ["whole"], "lacks": ["broken"]})
    assert judged("recovery", FAULT, step("repair", after=SAME), good)[0] == "pass"
    assert judged("recovery", FAULT, step("repair"), bad)[0] == "fail"
    assert judged("recovery", FAULT, step("repair", after=STRAYED), good)[0] == "fail"
    assert judged("recovery", FAULT, step("repair", after=DARK), good)[0] == "unknown"
    assert judged("recovery", FAULT, step("repair"))[0] == "unknown"


# -- authentication ---------------------------------------------------------------------------------------------------


def denied(**given: Any) -> Step:
    return step("denied", **{"code": 128, "stderr": "denied", **given})


@pytest.mark.parametrize("check", ["missing-auth", "invalid-auth"])
def test_denied_means_another_exit_code_and_nothing_changed(check):
    assert judged(check, denied())[0] == "pass"
    assert judged(check, denied(code=0))[0] == "fail"
    assert judged(check, denied(after=MOVED))[0] == "fail"
    assert judged(check, denied(after=DARK))[0] == "unknown"
    assert judged(check, denied(code=None))[0] == "unknown"
    assert judged(check)[0] == "unknown"


def test_a_login_without_an_operation_is_incomplete():
    login = step("login", stdout="Welcome, operator!")
    verdict, reason = judged("valid-auth", login)
    assert verdict == "unknown" and "login" in reason
    assert judged("valid-auth", login, step("permitted"), step("look"))[0] == "pass"
    assert judged("valid-auth", login, step("permitted", code=1), step("look"))[0] == "fail"


def test_a_limited_credential_has_to_be_good_for_something_or_its_denial_says_nothing():
    assert judged("scope-auth", step("permitted"), denied())[0] == "pass"
    assert judged("scope-auth", denied())[0] == "unknown"
    assert judged("scope-auth", step("permitted", code=1), denied())[0] != "pass"
    assert judged("scope-auth", step("permitted"), denied(after=STRAYED))[0] == "fail"
