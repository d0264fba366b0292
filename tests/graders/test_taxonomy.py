"""Three axes from what a command left: what is empty, what guides, whose fault it is, and what is taken for none."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graders import contract
from graders.contract import Answer, Call, Probe, Record
from graders.signs import Signs, load
from graders.taxonomy import Facts, classified, classify, guidance

SIGNS = load("""
[[empty]]
having = ["--help"]
never = true
[[empty]]
command = "count"
json = "count"
number = '^(\\d+)(?: rows)?$'
[[empty]]
command = "places"
json = "rows"
rows = "table"
header = 1
[[empty]]
command = "city"
json = "city"
rows = "lines"
head = '^name '
[[empty]]
command = "grep"
exit = [1]
refused = '^tool: '
rows = "lines"
[[empty]]
command = "run"
exit = "any"
refused = '^tool: (?!note)'
never = true
[[empty]]
command = ["add", "commit"]
never = true
[[empty]]
command = "log"
rest = true
stdout = "blank"
[[empty]]
command = "log"
lacking = ["--grep"]
never = true
[[empty]]
json = ""
stdout = "blank"

[hint]
stderr = ['did you mean "(?P<word>[^"]+)"', '; try: (?P<command>tool [^;]+)', '^tool: none of \\d+ lines has ']
stdout = ['^Automatic merge failed; ']
json = ["error.hint", "error.near", "hint"]
text = ['^(?P<command>tool .+)$']
retry = [5]

[words]
json = ["--json"]

[[environment]]
exit = [7]
[[environment]]
stderr = ['^tool: (?:.*: )?cannot reach ', "^tool: .* can't be reached"]
json = ["error.message"]
[[environment]]
exit = [3]
stderr = ['^tool: .*: disk full$']

[degenerate]
silent_s = 10
waste = 10

[[probe]]
kind = "limit_raise"
command = "places"
flags = ["--top"]
raised = "5000"
size = { rows = "table", header = 1 }
""")
HINT = 'tool: no category "bus_stop"; did you mean "bus_station"?'


def call(
    line: str, code: int | None = 0, stdout: str = "", stderr: str = "", signs: Signs = SIGNS, **more: Any
) -> Call:
    return classify(Facts(tuple(line.split()), code, stdout, stderr, **more), signs)


def what(one: Call) -> tuple[str, str, str, str | None, str | None]:
    return one.outcome, one.blame, one.recovery, one.cls, one.subtype


FINE = ("ok", "tool", "n/a", None, None)
UNKNOWN = ("empty", "tool", "unguided", "C", "c-unknown")
REFUSED = ("error", "tool", "unguided", "A", None)
OUTSIDE = ("error", "environment", "unguided", "E", None)


# -- what is empty ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("line", "stdout"), [
    ("count", "0"), ("count", "0 rows\n"), ("count", '{"count": 0}'), ("count", '{"count": null}'), ("count", ""),
    ("count", " \n"), ("places", '{"rows": []}'), ("places", '{"rows": {}}'), ("places", "name  type\n"),
    ("other", "[]"), ("other", "{}"), ("other", ""), ("other", "null"), ("other", "0"), ("grep x", ""),
])  # fmt: skip
def test_an_empty_answer_is_found_by_its_structure(line: str, stdout: str) -> None:
    assert what(call(line, stdout=stdout)) == UNKNOWN


@pytest.mark.parametrize(("line", "stdout"), [
    ("count", "10"), ("count", "10 rows\n"), ("count", '{"count": 10}'), ("count", "100"),
    ("places", '{"rows": [{"name": ""}]}'), ("places", "name  type\nFoo   bar\n"), ("places", "name\n0 rows\n"),
    ("other", "[0]"), ("other", '{"rows": []}'), ("other", "no rows: []"), ("other", "\u2028"[:0] + "x"),
])  # fmt: skip
def test_an_answer_that_only_looks_like_an_empty_one_is_none(line: str, stdout: str) -> None:
    assert what(call(line, stdout=stdout)) == FINE


@pytest.mark.parametrize(("line", "stdout"), [
    ("count", "0 places"), ("count", "count: 0"), ("count", "0.0"), ("count", "zero"), ("count", '{"count": "0"}'),
    ("count", '{"count": false}'), ("count", "tool: no such place"), ("count", "Traceback (most recent call last):\n"),
    ("count", '{"count": 1'), ("count --json", '{"count": 1'), ("places --json", '{"rows": [{"name": "a"}, {"na'),
    ("places --json", "name  type\nFoo   bar\n"), ("other --json", '{"a": [1,'), ("other", '{"country": null}'),
    ("city", "Traceback (most recent call last):\n  File x\nKeyError: 'a'\n"), ("places", "name  type\n----  ----\n"),
])  # fmt: skip
def test_an_answer_in_which_nothing_can_be_read_is_none(line: str, stdout: str) -> None:
    assert what(call(line, stdout=stdout)) == UNKNOWN


def test_what_cannot_be_read_for_want_of_its_end_is_not_judged() -> None:
    assert what(call("count --json", stdout='{"count": 1', whole=False)) == FINE
    assert what(call("city", stdout="Oslo is", whole=False)) == FINE


def test_json_among_the_notes_of_a_merged_stream_is_an_answer() -> None:
    assert what(call("places --json", stdout='tool: in: Norway\n{"rows": [{"name": "a"}]}\n')) == FINE
    assert what(call("places --json", stdout='tool: in: Norway\n{"rows": []}\n')) == UNKNOWN


def test_prose_about_commands_is_no_hint_but_a_hints_own_text_is_a_command() -> None:
    assert call("count", 2, "", "tool cache refresh is running").cls == "A"
    told = guidance("", '{"error": {"hint": "tool where x"}}', SIGNS.hint, failed=True)
    assert told and told.suggestions == ("tool where x",)


def test_a_verb_that_writes_may_be_silent() -> None:
    assert what(call("add x")) == FINE and what(call("commit -m 0", stdout="[]")) == FINE


def test_the_first_entry_that_fits_decides_by_flags_and_by_what_stands_behind_two_dashes() -> None:
    assert what(call("log")) == FINE
    assert what(call("log -- file")) == UNKNOWN
    assert what(call("log --grep x")) == UNKNOWN


def test_a_flag_with_a_value_before_the_command_hides_no_command() -> None:
    assert what(call("-C count add x", valued=frozenset({"-C"}))) == FINE
    assert what(call("--lab add log --grep x", operation="log", valued=frozenset({"--lab"}))) == UNKNOWN


def test_an_answer_that_is_cut_is_not_taken_for_an_empty_one() -> None:
    assert what(call("places", stdout='{"more": "' + "x" * 500, whole=False)) == FINE
    assert what(call("places", stdout="name type", whole=False)) == FINE


def test_words_on_stderr_do_not_fill_an_empty_answer() -> None:
    """The reference takes any stderr for a sign that all is well, which its own example refutes."""
    assert what(call("count", stdout="0", stderr="[tool] Ambiguous --in: 3 places")) == UNKNOWN


# -- exit codes ------------------------------------------------------------------------------------------------------


def test_an_exit_code_that_nobody_knows_is_not_zero() -> None:
    one = call("places", None, stdout='{"rows": [1]}')
    assert what(one) == REFUSED and one.evidence == "exit code unknown"
    assert what(call("add x", None)) == REFUSED


def test_who_ended_it_from_outside_answers_for_that_and_a_crash_is_the_programs() -> None:
    assert what(call("watch", None, "line", signal="SIGTERM")) == ("error", "agent", "unguided", "F", None)
    assert what(call("watch", None, "line", signal="SIGPIPE"))[3] == "F"
    assert what(call("count", None, signal="SIGSEGV")) == REFUSED
    assert what(call("count", None, signal="SIGKILL")) == REFUSED


def test_a_code_may_be_an_answer_and_then_emptiness_decides() -> None:
    assert what(call("grep x", 1)) == UNKNOWN
    assert what(call("grep x", 1, "found")) == FINE
    assert what(call("grep x", 1, stderr="tool: bad pattern")) == REFUSED
    assert what(call("grep x", 2)) == REFUSED
    assert what(call("run false", 1)) == FINE and what(call("run x", 127, stderr="tool: note")) == FINE
    assert what(call("run x", 5, stderr="tool: not in time")) == REFUSED


def test_a_traceback_is_a_hard_failure_that_quotes_its_last_line() -> None:
    one = call("count", 1, stderr="Traceback (most recent call last):\n  File x\nKeyError: 'a'\n")
    assert what(one) == REFUSED and one.evidence == "exit 1: KeyError: 'a'"


# -- guidance --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "stdout", "stderr"), [
    (2, "", HINT), (0, "0", HINT), (0, '{"count": 0, "hint": "bus_station"}', ""),
    (2, "", '{"error": {"message": "no", "near": ["bus_station"]}}'), (1, "Automatic merge failed; fix it", ""),
    (0, "", "tool: none of 12 lines has 'x'"), (None, "", HINT),
])  # fmt: skip
def test_a_refusal_or_an_empty_answer_that_says_how_to_go_on_is_a_soft_failure(
    code: int | None, stdout: str, stderr: str
) -> None:
    one = call("count", code, stdout, stderr)
    assert one.recovery == "guided" and one.cls == "B" and one.subtype is None


@pytest.mark.parametrize(("code", "stdout", "stderr"), [
    (2, "did you mean \"bus_station\"; try: tool x", "tool: no"),  # what it prints is data, also where it fails
    (2, "", '{"error": {"message": "no", "near": [], "hint": null}}'),
    (2, "", "tool: no\u2028did you mean nothing"),
    (0, "Automatic merge failed; fix it"[:0], ""),
])  # fmt: skip
def test_what_is_no_guidance_is_none(code: int, stdout: str, stderr: str) -> None:
    assert call("count", code, stdout, stderr).recovery == "unguided"


def test_a_help_page_that_names_flags_is_an_answer() -> None:
    assert what(call("count --help", stdout='use --json; did you mean "x"? ; try: tool y')) == FINE


def test_a_log_is_split_at_newlines_alone() -> None:
    text = "tool: data\u2028tool: none of 3 lines has 'x'\x0btool: none of 3 lines has 'x'\u0085"
    assert call("count", 1, "", text).recovery == "unguided"
    assert call("grep x", 1, "", "data\u2028tool: no").outcome == "empty"


def test_suggestions_are_what_the_signs_name_and_no_prose() -> None:
    told = guidance("", HINT + "\ntool: x; try: tool values -t place; or so", SIGNS.hint, failed=True)
    assert told and told.suggestions == ("bus_station", "tool values -t place")
    told = guidance("", '{"error": {"near": ["Malta, Montana", "Malta"], "hint": "x; try: tool where"}}', SIGNS.hint,
                    failed=True)  # fmt: skip
    assert told and told.suggestions == ("tool where", "Malta, Montana", "Malta")
    told = guidance("", "tool: none of 3 lines has 'x'", SIGNS.hint, failed=False)
    assert told and told.suggestions == ()


# -- the environment -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "stderr"), [
    (1, "tool: cannot reach data.example: timed out"), (7, "tool: down"), (None, "tool: cannot reach x"),
    (1, '{"error": {"message": "tool: cannot reach x"}}'),
])  # fmt: skip
def test_what_the_tool_itself_says_of_the_network_is_nobodys_fault(code: int | None, stderr: str) -> None:
    assert what(call("count", code, "", stderr)) == OUTSIDE


@pytest.mark.parametrize(("code", "stdout", "stderr", "expected"), [
    (0, "[  1.2] eth0: connection timed out\ntool: cannot reach x", "", FINE),
    (0, "x", "tool: cannot reach x", FINE),
    (1, "tool: cannot reach x", "tool: no such thing", REFUSED),
    (1, "", "the board said: tool: cannot reach x", REFUSED),
    (0, "", "tool: cannot reach x", UNKNOWN),
])  # fmt: skip
def test_what_a_board_or_data_say_of_the_network_is_data(code: int, stdout: str, stderr: str, expected: Any) -> None:
    assert what(call("other", code, stdout, stderr)) == expected


@pytest.mark.parametrize(("line", "code", "stderr"), [
    (["wait", "x: cannot reach y"], 5, "tool: waiting for 'x: cannot reach y', 1 s more"),
    (["wait", "x: cannot reach y"], 5, "tool: x: cannot reach y did not come"),
    (["wait", "--text=x: cannot reach y"], 5, "tool: x: cannot reach y did not come"),
    (["wait"], 8, "tool: the board died; its last line was \"eth0: cannot reach 10.0.0.1\""),
    (["wait"], 8, "tool: the board died: 'it's eth0: cannot reach 10.0.0.1"),  # cut within the quotes
    (["wait"], 1, '{"error": {"message": "tool: hook said \'x: cannot reach y\'"}}'),
    (["wait"], 1, "tool: hook said x: disk full"),  # no sentence of that code
])  # fmt: skip
def test_what_was_given_or_is_quoted_says_nothing_of_the_environment(line: list[str], code: int, stderr: str) -> None:
    assert what(classify(Facts(tuple(line), code, "", stderr), SIGNS)) == REFUSED


def test_quotes_and_apostrophes_around_the_tools_own_sentence_hide_nothing_of_it() -> None:
    for stderr in ("tool: host 'it' can't be reached ('no route')", "tool: boards' hub can't be reached"):
        assert what(call("run", 1, "", stderr)) == OUTSIDE
    assert what(call("run", 3, "", "tool: /x: disk full")) == OUTSIDE


# -- degenerate ------------------------------------------------------------------------------------------------------


def test_a_right_answer_after_long_silence_is_of_no_use() -> None:
    one = call("count", stdout="5", duration_s=600.0, silent_s=600.0)
    assert (one.outcome, one.cls) == ("degenerate", "D") and one.evidence.startswith("no sign of life for 600.0 s")
    assert what(call("count", stdout="5", duration_s=600.0, silent_s=0.4)) == FINE
    assert what(call("count", stdout="5", duration_s=600.0)) == FINE
    assert call("count", None, signal="SIGTERM", silent_s=30.0).cls == "D"
    assert call("count", 2, stderr="tool: no", silent_s=30.0).cls == "A"


def test_an_answer_many_times_as_large_as_its_limit_is_of_no_use() -> None:
    rows = "name\n" + "x\n" * 40
    one = call("places --top 4", stdout=rows)
    assert (one.cls, one.evidence) == ("D", "asked for 4, got 40")
    assert what(call("places --top 5", stdout=rows)) == FINE and what(call("places", stdout=rows)) == FINE


# -- probes ----------------------------------------------------------------------------------------------------------


def probe(kind: str, *, conclusive: bool = True) -> Probe:
    return Probe(kind, f"tool ask {kind}", "0 vs 86", conclusive)


def test_a_conclusive_probe_names_what_went_wrong_and_is_the_evidence() -> None:
    one = classify(Facts(("count",), 0, "0"), SIGNS, [probe("vocabulary"), probe("column_swap")])
    assert (one.cls, one.subtype, one.evidence, len(one.probes)) == ("C", "c-wrong-column", "0 vs 86", 2)


def test_a_probe_that_found_nothing_leaves_it_unknown_and_is_kept() -> None:
    one = classify(Facts(("count",), 0, "0"), SIGNS, [probe("vocabulary", conclusive=False)])
    assert what(one) == UNKNOWN and len(one.probes) == 1


def test_a_silence_about_values_that_are_all_there_is_an_answer() -> None:
    there = replace(probe("vocabulary", conclusive=False), cleared=True)
    one = classify(Facts(("grep", "x"), 1), SIGNS, [there, there])
    assert what(one) == FINE and one.evidence == "0 vs 86" and contract.validate(record_of(one)) == []
    assert what(classify(Facts(("grep", "x"), 1), SIGNS, [there, probe("vocabulary", conclusive=False)])) == UNKNOWN
    assert classify(Facts(("grep", "x"), 1), SIGNS, [there, probe("argv_echo")]).subtype == "c-dropped-input"
    assert classify(Facts(("grep", "x"), 2), SIGNS, [there]).cls == "A"


def record_of(one: Call) -> object:
    """A record of one call as plain data, which is read as it was written."""
    made = Record("q", 1, (one,), (), {}, 1, Answer(""), {"name": "tool"})
    assert contract.load(contract.write(made)) == made
    return json.loads(contract.write(made))


def test_an_answer_that_came_and_is_proved_to_lack_something_is_silent_wrong() -> None:
    one = classify(Facts(("count",), 0, "200"), SIGNS, [probe("limit_raise")])
    assert what(one) == ("empty", "tool", "unguided", "C", "c-truncated")
    told = classify(Facts(("count",), 0, "200", HINT), SIGNS, [probe("limit_raise")])
    assert (told.cls, told.subtype) == ("B", None)


def test_no_probe_explains_a_refusal_or_what_is_not_the_programs_fault() -> None:
    assert classify(Facts(("count",), 1, "", "tool: no"), SIGNS, [probe("vocabulary")]).cls == "A"
    assert classify(Facts(("count",), 7), SIGNS, [probe("vocabulary")]).cls == "E"


# -- what came before ------------------------------------------------------------------------------------------------


def attempt(*calls: Call, answer: str = "") -> Record:
    made = Record("q", 1, calls, (), {}, len(calls), Answer(answer), {"name": "tool"})
    done = classified(made, SIGNS)
    assert classified(done, SIGNS) == done
    return done


def classes(*calls: Call) -> list[str | None]:
    return [one.cls for one in attempt(*calls).calls]


GUIDED = call("count bus_stop", 2, "", HINT)
BUSY = call("count x", 5, "", 'tool: busy; did you mean "y"?')


def test_the_same_words_straight_after_guidance_against_them_are_the_agents_doing() -> None:
    assert classes(GUIDED, GUIDED) == ["B", "F"]
    assert classes(GUIDED, call("count bus_station", stdout="63")) == ["B", None]
    assert classes(GUIDED, call("values"[:0] + "other", stdout="x"), GUIDED) == ["B", None, "B"]


def test_the_same_mistake_beside_the_hints_own_words_is_the_agents_doing() -> None:
    again = call("count bus_stop --in Cambridge", 2, "", HINT)
    other = call("count tram", 2, "", 'tool: no category; did you mean "tram_stop"?')
    assert classes(GUIDED, again) == ["B", "F"]
    assert classes(GUIDED, other) == ["B", "B"]


def test_what_time_mends_may_be_asked_again() -> None:
    assert classes(BUSY, BUSY) == ["B", "B"]
    nothing_yet = call("grep x", 0, "", "tool: none of 1 lines has 'x'")
    assert classes(nothing_yet, nothing_yet, nothing_yet) == ["B", "B", "B"]


def test_without_guidance_nobody_else_is_blamed() -> None:
    bad = call("count x", 2, "", "tool: no")
    assert classes(bad, bad) == ["A", "A"] and classes(call("count"), call("count")) == ["C", "C"]


def test_advice_that_was_followed_and_led_nowhere_was_none() -> None:
    empty = call("count bus_stop", 0, "0", HINT)
    silent = call("count bus_station", None, signal="SIGTERM", silent_s=600.0)
    done = attempt(empty, call("count bus_station", 0, "0"))
    assert [one.cls for one in done.calls] == ["C", "C"] and done.calls[0].subtype == "c-unknown"
    assert "led nowhere" in done.calls[0].evidence
    assert classes(GUIDED, call("count bus_station", 2, "", HINT)) == ["A", "B"]
    assert classes(GUIDED, silent) == ["A", "D"]


def test_advice_that_leads_to_the_next_advice_or_to_a_dead_network_stays_advice() -> None:
    then = call("count bus_station", 2, "", "tool: where?; try: tool where x")
    assert classes(GUIDED, then) == ["B", "B"]
    assert classes(GUIDED, call("count bus_station", 7)) == ["B", "E"]


def test_a_hint_that_was_not_taken_is_told_and_what_was_in_the_answer_is_not() -> None:
    later = attempt(GUIDED, call("other", stdout="x"), call("count bus_station", stdout="63"))
    assert [(one.at_call, one.suggestions, one.used_at) for one in later.agent_side] == [(0, ("bus_station",), 2)]
    assert attempt(GUIDED, answer="It is a bus_station.").agent_side == ()


def test_probes_come_to_calls_by_their_place_and_explain_what_bad_advice_left() -> None:
    empty = call("count bus_stop", 0, "0")
    made = Record("q", 1, (empty, empty), (), {}, 2, Answer(""), {"name": "tool"})
    done = classified(made, SIGNS, {1: [probe("vocabulary")]})
    assert [one.subtype for one in done.calls] == ["c-unknown", "c-vocabulary"]


# -- anything --------------------------------------------------------------------------------------------------------

TEXTS = st.text(max_size=80) | st.sampled_from(
    ["", "0", "[]", HINT, '{"error": {"hint": "x"}}', "tool: cannot reach x"]
)


@settings(max_examples=200, deadline=None)
@given(
    argv=st.lists(st.text(max_size=8) | st.sampled_from(["count", "places", "--top", "--", "run"]), max_size=5),
    code=st.none() | st.integers(0, 255), stdout=TEXTS, stderr=TEXTS, whole=st.booleans(),
    signal=st.none() | st.sampled_from(["SIGTERM", "SIGSEGV"]), silent=st.none() | st.floats(0, 1000),
    probes=st.lists(st.builds(probe, st.sampled_from(contract.KINDS), conclusive=st.booleans()), max_size=3),
)  # fmt: skip
def test_whatever_a_command_left_it_has_a_class_and_its_record_is_sound(
    argv: list[str], code: int | None, stdout: str, stderr: str, whole: bool, signal: str | None,
    silent: float | None, probes: list[Probe],
) -> None:  # fmt: skip
    import json

    one = classify(
        Facts(tuple(argv), code, stdout, stderr, whole, signal, duration_s=1.0, silent_s=silent), SIGNS, probes
    )
    if code is None:
        assert one.outcome in ("error", "degenerate")
    if one.outcome == "empty" and not probes:
        assert one.cls in ("B", "C")
    made = Record("q", 1, (one, replace(one)), (), {}, 2, Answer(""), {"name": "tool"})
    data = contract.write(classified(made, SIGNS))
    assert contract.validate(json.loads(data)) == [] and contract.write(contract.load(data)) == data
