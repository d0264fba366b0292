"""Classes in the report: numbers, calls behind them, marks in timelines; nothing where a run was never classified."""

import json
from pathlib import Path
from typing import Any

from graders import contract
from graders.contract import AgentSide, Call, Record
from harness import agents, files, report, run
from harness.report import classes, histogram, html, markdown, model, table, timeline
from tests.graders.records import attempt, call
from tests.harness.conftest import ADD_PICO, make_scenario
from tests.harness.test_report import EVIL, REAL, manifest, row

SIDE = AgentSide("ignored_hint", 0, "hint offered bus_station; call 2 did not use it; nothing did later")


def projected(records: dict[str, Record], rows: list[dict[str, Any]]) -> dict[str, Any]:
    return model.project(manifest(real=REAL), rows, classes.Records(records, {}))


def two_trials(**more: Any) -> dict[str, Any]:
    rows = [row("S1", "pass"), row("S2", "fail"), row("S3", "provider_error")]
    lost = call("C", subtype="c-truncated", probes=(contract.Probe("limit_raise", "atlas count -n 99", "9 > 5", True),))
    records = {
        rows[0]["id"]: attempt("ok", "B", "ok", agent_side=(SIDE,)),
        rows[1]["id"]: attempt("A", "C", lost),
        rows[2]["id"]: attempt("C", "C"),
    }
    return projected(records | more, rows)


def test_calls_and_trials_are_counted_by_class_and_lost_trials_are_not() -> None:
    (told,) = two_trials()["classes"]["columns"]
    assert (told["attempts"], told["calls"]) == (2, 6)
    assert told["counts"] == {"ok": 2, "A": 1, "B": 1, "C": 2, "D": 0, "E": 0, "F": 0}
    assert told["attempts_with"]["C"] == {"attempts": 1, "of": 2, "interval": [0.0945, 0.9055]}
    assert told["subtypes"] == {"c-truncated": 1, "c-unknown": 1}
    assert told["by_scenario"]["S2"]["counts"]["C"] == 2
    assert told["by_scenario"]["S1"]["counts"]["C"] == 0
    assert told["hints_ignored"] == {"hints": 1, "attempts": 1, "of": 2}
    assert told["score"]["scored"] == 2


def test_the_calls_behind_a_bar_are_those_of_the_bar() -> None:
    (told,) = two_trials()["classes"]["columns"]
    assert [(one["trial"], one["call"], one["subtype"], one["command"]) for one in told["behind"]["C"]] == [
        ("S2.cold.real.1", 2, "c-unknown", "atlas count"),
        ("S2.cold.real.1", 3, "c-truncated", "atlas count"),
    ]
    assert all(len(told["behind"][name]) == told["counts"][name] for name in contract.CLASSES)


def test_a_trial_says_its_own_classes_and_score() -> None:
    first, second, _ = two_trials()["trials"]
    assert first["classes"] == {"ok": 2, "B": 1}
    assert first["hints_ignored"] == 1
    assert first["score"] > second["score"]


def test_each_condition_has_a_bar_of_its_own() -> None:
    rows = [row("S1", "pass"), row("S1", "pass", condition="warm")]
    told = projected({rows[0]["id"]: attempt("A"), rows[1]["id"]: attempt("ok")}, rows)
    assert [(one["condition"], one["counts"]["A"]) for one in told["classes"]["columns"]] == [("cold", 1), ("warm", 0)]
    shown = histogram.render(told)
    assert "\nreal, cold: 1 call in 1 trial\n" in shown
    assert "\nreal, warm: 1 call in 1 trial\n" in shown


def test_a_run_that_was_never_classified_says_nothing_of_it() -> None:
    told = model.project(manifest(real=REAL), [row("S1", "pass")])
    assert told["classes"] is None
    assert (told["trials"][0]["classes"], told["trials"][0]["score"]) == (None, None)
    assert "What went wrong" not in markdown.render(told)
    assert "score" not in table.render(told)


def test_every_form_tells_it() -> None:
    told = two_trials()
    assert json.loads(files.canonical(told))["classes"]["columns"][0]["counts"]["C"] == 2
    assert "C 2 in 1/2 trials" in table.render(told)
    text = markdown.render(told)
    assert "## What went wrong" in text
    assert "| real | C | c-truncated | S2.cold.real.1 | 3 | atlas count |" in text
    assert '"C":"2/6 calls, 1/2 trials (9' in html.render(told, {})
    shown = histogram.render(told)
    assert "  C  2/6  ██████████  1/2 trials (9–91 %); c-truncated 1, c-unknown 1" in shown
    assert "       S2.cold.real.1 call 2: atlas count  [c-unknown]" in shown


def test_what_the_score_is_of_is_said_and_whether_the_agent_was_right_stands_beside_it() -> None:
    told = projected({"S1.cold.real.1": attempt("ok")}, [row("S1", "fail")])
    (column,) = told["classes"]["columns"]
    assert column["verdicts"] == {"passed": 0, "of": 1}
    for text in (histogram.render(told), table.render(told)):
        assert "score of the program's answers 1.00 (1/1 trials); the agent was right in 0/1 trials" in text
    assert "| score of its answers | agent right |" in markdown.render(told)
    assert '"right":"the agent was right in 0/1 trials"' in html.render(told, {})


def test_an_environment_that_failed_is_told_as_dropped() -> None:
    told = projected({"S1.cold.real.1": attempt("ok", "E")}, [row("S1", "pass")])
    assert "no score (0/1 trials; 1 dropped: the environment failed (class E))" in histogram.render(told)


def test_a_trial_without_a_record_is_named_and_no_zero() -> None:
    told = projected({"S1.cold.real.1": attempt("ok")}, [row("S1", "pass"), row("S2", "pass")])
    assert told["classes"]["without_record"] == ["S2.cold.real.1"]
    assert told["classes"]["columns"][0]["attempts"] == 1
    assert "no record: S2.cold.real.1" in histogram.render(told)
    assert "Not in it: no record: S2.cold.real.1." in "\n".join(markdown.classes(told))


def test_a_question_that_could_not_be_put_is_told_as_open(tmp_path: Path) -> None:
    place = classes.path_of(tmp_path, "T1")
    place.parent.mkdir()
    classes.log_of(place).write_bytes(b"")
    for ran, expected in (("count --limit 0", []), ("", ["T1"])):
        probe = contract.Probe("limit_raise", ran, "not asked: another build is installed", False)
        place.write_bytes(contract.write(attempt(call("C", probes=(probe,)))))
        found = classes.read(tmp_path)
        assert found is not None and found.not_asked == expected


def test_nothing_that_was_said_breaks_a_form() -> None:
    evil = Call((EVIL,), 1, EVIL, EVIL, 1.0, "error", "tool", "unguided", None, EVIL)
    plain, told = (projected({"S1.cold.real.1": attempt(one)}, [row("S1", "pass")]) for one in (call("A"), evil))
    for render in (markdown.render, histogram.render, table.render):
        assert "\x1b" not in render(told)
        assert len(render(told).splitlines()) == len(render(plain).splitlines())
    assert "<script>" not in markdown.render(told)
    assert "<script> `x`" not in html.render(told, {})


def test_the_timeline_marks_the_runs_that_went_wrong(subject: Path, tmp_path: Path) -> None:
    scenario = make_scenario(ADD_PICO, "labd config show")
    with run.create(tmp_path, [scenario], agents.select(["reference"])) as held:
        run.carry_out(held, [scenario], jobs=1, on_result=lambda _: None)
    bundle = held.trials / "T1.cold.reference.1"
    assert not any("marks" in entry for entry in timeline.read(bundle)["entries"])
    record = attempt("ok", call("C", "config show"), agent_side=(SIDE,), subject={"name": "labd"})
    path = classes.path_of(held.directory, bundle.name)
    path.parent.mkdir()
    path.write_bytes(contract.write(record))
    told = timeline.read(bundle)
    marks = {entry["text"]: entry.get("marks") for entry in told["entries"]}
    assert marks["labd target add pico"] is None
    (mark,) = marks["labd config show"]
    assert (mark["class"], mark["kind"], mark["call"]) == ("C", "c-unknown", 2)
    assert "the agent ran: labd config show" in mark["about"]
    assert told["agent_side"] == ["AGENT (ignored_hint), not charged\n  Call 1: " + SIDE.detail + "."]
    found = report.write(held.directory)
    assert found["trials"][0]["classes"] == {"ok": 1, "C": 1}
    page = (held.directory / "report.html").read_text()
    assert "the agent ran: labd config show" in page

    path.write_bytes(b"{")  # a record that can't be read is told, and marks nothing
    assert report.collect(held.directory)["classes"]["unreadable"].keys() == {bundle.name}
    assert not any("marks" in entry for entry in timeline.read(bundle)["entries"])
