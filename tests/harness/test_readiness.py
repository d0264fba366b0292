"""Measuring readiness: what is run, what is kept, what bad plans and broken evidence get. The program is atlas."""

import contextlib
import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from harness import cli, readiness, readiness_plan, sabotage, subject
from harness.scenario_schema import ScenarioError
from labd.errors import LabdError

HEAD = """
schema = "labd-readiness-plan/1"
rubric = "4.0.0"
scenario = "A1"
[state.kept]
files = ["{work}/kept"]
[state.asked]
command = "cat {work}/kept"
"""


def plan(tmp_path: Path, text: str) -> readiness_plan.Plan:
    path = tmp_path / "readiness.toml"
    path.write_text(HEAD + text)
    return readiness_plan.read(path, "atlas")


def measured(tmp_path: Path, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The result of a measurement by that plan, by check, and the evidence, by check."""
    place = readiness.measure(plan(tmp_path, text), tmp_path / "runs")
    told = json.loads((place / "result.json").read_text())
    checks = {path.stem: json.loads(path.read_text()) for path in (place / "checks").iterdir()}
    return {one["id"]: one for one in told["checks"]}, checks


def steps(check: str, *given: str, before: str = "echo one > kept") -> str:
    told = "".join(f"[[check.{check}.step]]\n{one}\n" for one in given)
    return f"[check.{check}]\nbefore = [{json.dumps(before)}]\ntarget = ['kept']\n{told}"


def test_the_program_is_run_on_a_sandbox_and_all_that_it_said_is_kept(tmp_path):
    found, kept = measured(tmp_path, steps("help", "role = 'discover'\nrun = 'atlas --help'\nfinds = ['cities']"))
    one = kept["help"]["steps"][0]
    assert found["help"]["verdict"] == "pass" and "usage: atlas" in one["stdout"] and one["code"] == 0
    assert one["state"]["before"] == one["state"]["after"] and one["state"]["before"]["kept"]["files"] == 1


def test_reading_that_writes_is_found_by_digest_and_a_state_that_is_not_there_is_unobserved(tmp_path):
    writes = steps("read-safety", "role = 'read'\nrun = 'echo two > kept'")
    assert measured(tmp_path, writes)[0]["read-safety"]["verdict"] == "fail"
    gone = steps("read-safety", "role = 'read'\nrun = 'true'", before="true")
    found, kept = measured(tmp_path, gone)
    assert found["read-safety"]["verdict"] == "unknown"
    assert kept["read-safety"]["steps"][0]["state"]["before"] == {"kept": None, "asked": None}


def test_a_pager_that_waits_for_a_key_is_ended_and_fails_headless_use(tmp_path):
    hang = "role = 'read'\nrun = 'cp /bin/sleep {work}/less && {work}/less 60'\nlimit_s = 1.5"
    found, kept = measured(tmp_path, steps("clean-streams", hang))
    assert kept["clean-streams"]["steps"][0]["ended_by"] == "time_limit"
    assert "less" in kept["clean-streams"]["steps"][0]["waiting"]
    assert found["clean-streams"]["verdict"] == "fail"
    other = hang.replace("less", "slow")
    assert measured(tmp_path, steps("clean-streams", other))[0]["clean-streams"]["verdict"] == "unknown"


def test_more_output_than_is_kept_is_a_truncated_stream_and_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(readiness, "KEPT", 1000)
    long = "role = 'read'\nrun = 'seq 5000'\nparse = 'lines'\nplanted = ['1']"
    assert measured(tmp_path, steps("structured-output", long))[0]["structured-output"]["verdict"] == "unknown"


def test_pages_are_gone_through_until_nothing_new_comes(tmp_path):
    page = ("role = 'page'\nrun = 'seq 25 | tail -n +$(({seen} + 1)) | head -10'\nparse = 'lines'\n"
            "sequence = { text = '{n}', to = 25 }")  # fmt: skip
    found, kept = measured(tmp_path, steps("pagination", page))
    assert found["pagination"]["verdict"] == "pass" and len(kept["pagination"]["steps"]) == 4
    short = page.replace("to = 25", "to = 26")
    assert measured(tmp_path, steps("pagination", short))[0]["pagination"]["verdict"] == "fail"


def test_a_cursor_that_the_program_gives_is_followed(tmp_path):
    run = "n={next}; n=${n:-0}; echo $((n + 1)); test $n -lt 4 && echo next=$((n + 1)) >&2; true"
    page = (f"role = 'page'\nrun = {json.dumps(run)}\nnext = 'next=(\\d+)'\nparse = 'lines'\n"
            "planted = ['1', '2', '3', '4', '5']")  # fmt: skip
    found, kept = measured(tmp_path, steps("pagination", page))
    assert found["pagination"]["verdict"] == "pass" and len(kept["pagination"]["steps"]) == 5


def test_what_can_not_be_brought_about_blocks_its_check_and_no_other(tmp_path):
    text = steps("help", "role = 'discover'\nrun = 'atlas --help'", before="echo no room >&2; false")
    text += steps("help-completion", "role = 'discover'\nrun = 'atlas --version'")
    found, _ = measured(tmp_path, text)
    assert found["help"]["verdict"] == "blocked" and "no room" in found["help"]["reason"]
    assert found["help-completion"]["verdict"] == "pass"


def test_a_line_that_hangs_is_told_to_have_taken_too_long_and_waited_for_once(tmp_path, monkeypatch):
    monkeypatch.setattr(readiness, "PREPARE_S", 0.5)
    monkeypatch.setattr(readiness, "AT_ONCE", 1)
    line = f"echo x >> {tmp_path}/waited; sleep 300"
    text = steps("help", "role = 'discover'\nrun = 'true'", before=line)
    text += steps("help-completion", "role = 'discover'\nrun = 'true'", before=line)
    text += steps("discovery", "role = 'discover'\nrun = 'true'", before="echo one > kept")
    found, _ = measured(tmp_path, text)
    for name in ("help", "help-completion"):
        assert (found[name]["verdict"], found[name]["reason"]) == (
            "blocked", f"preparing took longer than 0.5 s: {line}")  # fmt: skip
    assert (tmp_path / "waited").read_text() == "x\n" and found["discovery"]["verdict"] == "pass"


def test_a_subject_that_hangs_while_its_scenario_is_laid_out_blocks_all_checks_after_one_wait(
        tmp_path, program, monkeypatch, capsys):  # fmt: skip
    monkeypatch.setattr("harness.subjects.git.LIMIT_S", 0.5)
    hang = program("git", '#!/bin/sh\n[ "$1" = --version ] && exit 1\nsleep 300\n')
    begun = time.monotonic()
    with subject.in_place("git", str(hang)):
        assert cli.main(["readiness", "git", "--out", str(tmp_path / "runs"), "--json"]) == 1
    said = capsys.readouterr()
    found = {(one["verdict"], one["reason"]) for one in json.loads(said.out)["checks"]}
    assert ("blocked", "G1: preparing took longer than 0.5 s: repos/undo.sh") in found
    assert "harness_error" not in {verdict for verdict, _ in found}
    assert "nothing could be measured: G1: preparing took longer" in said.err
    assert time.monotonic() - begun < 20


def test_a_check_that_was_not_asked_for_leaves_no_overall_number(tmp_path):
    text = steps("help", "role = 'discover'\nrun = 'atlas --help'")
    place = readiness.measure(plan(tmp_path, text), tmp_path / "runs", ["help"])
    told = json.loads((place / "result.json").read_text())
    assert told["overall"] is None and "preview" in told["missing"]


def test_nothing_is_left_of_a_measurement_that_could_not_be_finished(tmp_path, monkeypatch):
    monkeypatch.setattr(readiness.grader, "grade", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        readiness.measure(plan(tmp_path, steps("help", "role = 'discover'\nrun = 'true'")), tmp_path / "runs")
    assert os.listdir(tmp_path / "runs") == []


@pytest.mark.parametrize(("wrong", "key"), [
    ("[[check.halp.step]]\nrole = 'discover'\nrun = 'x'", "halp"),
    ("[[check.help.step]]\nrole = 'apply'\nrun = 'x'", "role"),
    ("[[check.help.step]]\nrole = 'discover'\nrun = 'x'\nfind = ['y']", "find"),
    ("[[check.help.step]]\nrole = 'discover'\nrun = 'x'\nfinds = ['(']", "finds"),
    ("[check.help]\nstates = ['keptt']\nstep = []", "keptt"),
    ("[check]\n[not_applicable.help]\nreason = 'none'\nreviewed = '2026'", "every program"),
    ("[not_applicable.preview]\nreason = 'none'\n[[check.preview.step]]\nrole = 'preview'\nrun = 'x'", "exercised"),
    ("[state.both]\nfiles = []\ncommand = 'x'\n[check]", "both"),
])  # fmt: skip
def test_a_plan_that_is_wrong_is_refused_with_the_key(tmp_path, wrong, key):
    with pytest.raises(ScenarioError, match=key):
        plan(tmp_path, wrong)


@pytest.mark.parametrize("name", subject.names())
def test_every_subject_has_a_plan_in_which_each_check_is_exercised_or_reviewed(name):
    found = readiness_plan.load(name)
    exercised = {one.id for one in found.checks}
    assert exercised | set(found.excepted) == set(readiness_plan.RULES)
    assert all(one.get("reviewed") for one in found.excepted.values())


def test_the_rubric_has_17_checks_in_six_domains_each_with_all_that_it_must_say():
    told = readiness_plan.rubric()
    assert len(told["check"]) == 17 and len(told["domain"]) == 6
    assert {one["domain"] for one in told["check"]} == {one["name"] for one in told["domain"]}


def test_a_touched_measurement_is_named_by_its_files_and_a_whole_one_judged_alike(tmp_path, capsys):
    place = readiness.measure(plan(tmp_path, steps("help", "role = 'discover'\nrun = 'atlas --help'\nfinds = ['zz']")),
                              tmp_path / "runs")  # fmt: skip
    assert readiness.touched(place) == [] and cli.main(["readiness", "--grade", str(place), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((place / "result.json").read_text())
    told = (place / "checks" / "help.json").read_text()
    (place / "checks" / "help.json").write_text(told.replace("zz", "usage"))
    assert cli.main(["readiness", "--grade", str(place)]) == 1
    assert "checks/help.json" in capsys.readouterr().err


def test_what_was_measured_once_is_kept_by_its_own_version_and_never_written_over(tmp_path, capsys):
    place = readiness.measure(plan(tmp_path, steps("help", "role = 'discover'\nrun = 'true'")), tmp_path / "runs")
    kept = readiness.keep(place, tmp_path / "history")
    assert readiness.keep(place, tmp_path / "history") == kept
    old = {**json.loads(kept.read_text()), "rubric": {"version": "3.0.0", "sha256": "x"}, "overall": 0.5}
    kept.with_name("atlas-2025.json").write_text(json.dumps({**old, "measured": "2025-01-01T00:00:00Z"}))
    assert cli.main(["readiness", "--history", "atlas", "--out", str(tmp_path / "history")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "3.0.0" in lines[0] and "50.0 %" in lines[0] and "4.0.0" in lines[1] and "not measured" in lines[1]
    (place / "result.json").write_text((place / "result.json").read_text().replace("atlas 1.0", "atlas 1.1"))
    with pytest.raises(LabdError, match="already"):
        readiness.keep(place, tmp_path / "history")


@pytest.mark.parametrize(("words", "told"), [
    (["readiness"], "labd-eval readiness labd"),
    (["readiness", "gti"], "git"),
    (["readiness", "git", "--check", "x"], "x"),
    (["readiness", "--grade", "/nowhere"], "/nowhere"),
])  # fmt: skip
def test_a_slip_of_the_pen_is_answered_with_what_would_work(words, told, capsys):
    assert cli.main(words) in (2, 4)
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(("defect", "failed"), [
    ("mute_refusal", {"invalid-command", "invalid-flag"}),
    ("half", {"structured-output", "clean-streams", "pagination"}),
    ("ignored_place", {"structured-output", "clean-streams"}),
    (None, set()),
])  # fmt: skip
def test_what_is_planted_in_a_copy_of_atlas_fails_the_checks_that_it_breaks_and_no_others(tmp_path, defect, failed):
    with contextlib.ExitStack() as held:
        if defect is not None:
            held.enter_context(subject.in_place("atlas", str(sabotage.plant(defect, tmp_path / "atlas"))))
        place = readiness.measure(readiness_plan.load("atlas"), tmp_path / "runs")
    told = json.loads((place / "result.json").read_text())
    assert {one["id"] for one in told["checks"] if one["verdict"] not in ("pass", "not_applicable")} == failed
    assert told["overall"] is not None and (told["overall"] < 1) == bool(failed)


def test_who_stops_a_measurement_waits_for_no_hanging_command_and_nothing_is_left(tmp_path):
    hang = steps("help", "role = 'discover'\nrun = 'sleep 300'\nlimit_s = 300")
    hang += steps("help-completion", "role = 'discover'\nrun = 'true'")

    def stop(text: str) -> None:
        if text.startswith("help-completion"):
            raise KeyboardInterrupt

    begun = time.monotonic()
    order = plan(tmp_path, hang)
    turned = dataclasses.replace(order, checks=order.checks[::-1])
    with pytest.raises(KeyboardInterrupt):
        readiness.measure(turned, tmp_path / "runs", note=stop)
    assert time.monotonic() - begun < 60 and os.listdir(tmp_path / "runs") == []
