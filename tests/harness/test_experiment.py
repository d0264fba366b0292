"""Paired experiments: what a definition must say, how numbers become a verdict, and one whole cycle for real."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graders.contract import Call
from harness import (
    agents,
    conditions,
    data,
    experiment,
    experiment_arms,
    experiment_page,
    files,
    gate,
    ledger,
    scenario,
)
from harness.agents._program import Options
from harness.cli import main
from harness.conditions import Realised
from harness.experiment import Arm, Experiment
from harness.experiment_result import MACHINERY, Side, result
from harness.scenario_schema import ScenarioError
from tests.graders.records import PROOF, attempt, call

SILENT = call("C", 'count places --category bus_stop --in "Cambridge"', subtype="c-vocabulary", probes=(PROOF,))

TRIED = Experiment("tried", "Tried", "Does it?", "atlas", ("A1",), "tool", ("c-vocabulary",), Arm(planted="x"), Arm())


def side(*verdicts: str, calls: "list[list[Call]] | None" = None, scripted: bool = False, lost: int = 0) -> Side:
    """An arm of one trial a scenario, with its verdict and its calls; the first `lost` of them are no result."""
    rows: list[dict[str, Any]] = [
        {"id": f"S{n}", "scenario": f"S{n}", "condition": "cold", "agent": "loop", "number": 1, "verdict": verdict,
         "valid": n >= lost, "counted": n >= lost, "bundle": "x", "scripted_model": scripted, "turns": 3}
        for n, verdict in enumerate(verdicts)
    ]  # fmt: skip
    told = calls or [[SILENT]] * len(rows)
    records = {row["id"]: attempt(*some, answer="0") for row, some in zip(rows, told, strict=True)}
    return Side(rows, records, "b" * 64, {"model": "some-model"}, "run")


def judged(before: Side, after: Side, **more: Any) -> tuple[str, str]:
    """The verdict and its reasons."""
    told = result(replace(TRIED, **more), before, after, model=True)
    json.dumps(told)
    return told["verdict"], " | ".join(told["reasons"])


OK = [[call("ok")]]


def test_right_more_often_confirms() -> None:
    verdict, why = judged(side(*["fail"] * 6), side(*["pass"] * 6, calls=OK * 6))
    assert verdict == "confirmed"
    assert "6 of 6 trials → 0 of 6 trials" in why and "+100 points" in why


def test_right_less_often_refutes() -> None:
    assert judged(side(*["pass"] * 6), side(*["fail"] * 6))[0] == "refuted"


def test_a_gain_that_can_be_ruled_out_refutes() -> None:
    verdict, why = judged(side(*["pass"] * 30), side(*["pass"] * 30))
    assert verdict == "refuted" and "can be ruled out" in why


def test_as_often_right_with_fewer_commands_confirms() -> None:
    many = side(*["pass"] * 8, calls=[[SILENT] * 7] * 8)
    verdict, why = judged(many, side(*["pass"] * 8, calls=OK * 8))
    assert verdict == "confirmed" and "7.0 → 1.0" in why and "fewer commands" in why


def test_more_commands_for_the_same_confirm_nothing() -> None:
    many = side(*["pass"] * 8, calls=[[SILENT] * 7] * 8)
    assert judged(side(*["pass"] * 8), many)[0] == "inconclusive"


def test_few_scenarios_can_show_nothing() -> None:
    verdict, why = judged(side(*["fail"] * 5), side(*["pass"] * 5, calls=OK * 5))
    assert verdict == "inconclusive" and "5 scenarios can't show" in why
    told = result(TRIED, side(*["fail"] * 5), side(*["pass"] * 5), model=True)
    assert "no difference could be shown" in told["small_n"]


def test_without_the_failure_there_is_nothing_to_mend() -> None:
    verdict, why = judged(side(*["fail"] * 6, calls=OK * 6), side(*["pass"] * 6, calls=OK * 6))
    assert verdict == "inconclusive" and "nothing to mend" in why
    assert judged(side(*["fail"] * 6), side(*["pass"] * 6), fails_as=("C",))[0] == "confirmed"
    assert judged(side(*["fail"] * 6), side(*["pass"] * 6), fails_as=("A",))[0] == "inconclusive"


def test_too_many_lost_trials_forbid_a_verdict() -> None:
    verdict, why = judged(side(*["fail"] * 12), side(*["pass"] * 12, calls=OK * 12, lost=3))
    assert verdict == "inconclusive" and "lost" in why


def test_a_trial_in_which_the_environment_failed_counts_in_no_arm() -> None:
    before = side(*["fail"] * 12, calls=[[call("E")]] + [[SILENT]] * 11)
    told = result(TRIED, before, side(*["fail"] + ["pass"] * 11, calls=[[call("E")]] + OK * 11), model=True)
    assert (told["right"]["scenarios"], told["right"]["left_out"], told["verdict"]) == (11, 1, "confirmed")
    assert told["arms"]["after"]["right"]["valid"] == 11 and "E" not in told["arms"]["after"]["classes"]


def test_nothing_measured_says_so() -> None:
    assert "no scenario has valid trials" in judged(side("fail", lost=1), side("pass", lost=1))[1]


def test_a_scripted_model_never_confirms_or_refutes() -> None:
    for before, after in (("fail", "pass"), ("pass", "fail")):
        told = result(TRIED, side(*[before] * 6, scripted=True), side(*[after] * 6, scripted=True), model=True)
        assert (told["verdict"], told["scripted"], told["reasons"][0]) == ("inconclusive", True, MACHINERY)
        assert told["numbers_alone"] in ("confirmed", "refuted")
    told = result(TRIED, side(*["fail"] * 6), side(*["pass"] * 6), model=False)  # a scripted agent, without any model
    assert (told["verdict"], told["label"]) == ("inconclusive", MACHINERY)


def test_recovery_classes_and_the_trace_are_told_of_both_arms() -> None:
    mended = [[call("B", exit_code=2), call("ok")]] * 6
    told = result(TRIED, side(*["fail"] * 6), side(*["pass"] * 6, calls=mended), model=True)
    assert told["arms"]["before"]["classes"] == {"C c-vocabulary": 6}
    assert list(told["arms"]["after"]["classes"]) == ["ok", "B"]
    assert [told["arms"][name]["recovered"]["passed"] for name in experiment.ARMS] == [0, 6]
    assert told["traces"]["before"]["calls"][0]["run"] == "atlas count places --category bus_stop --in Cambridge"
    assert (told["traces"]["before"]["answer"], told["traces"]["before"]["right"]) == ("0", False)
    page = experiment_page.page(told)
    assert (
        "class C c-vocabulary" in page
        and "which is **wrong**: 0" in page
        and "| right answers | 0 of 6 | 6 of 6 |" in page
    )
    assert "confirmed" in experiment_page.text(told)


# -- definitions ---------------------------------------------------------------------------------------------------

GOOD = """\
title = "T"
question = "Q?"
subject = "atlas"
scenarios = ["A1"]
lever = "tool"
fails_as = ["C"]
[before]
planted = "silent_zero"
[after]
"""


def problems(tmp_path: Path, old: str, new: str) -> str:
    path = tmp_path / "one.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        experiment.read(path)
    return str(caught.value.message)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('planted = "silent_zero"', "", "the builds have to differ"),
        ("[after]", '[after]\ntext = "x"', "the builds have to differ, and nothing else"),
        ('lever = "tool"', 'lever = "instructions"', "the texts have to differ"),
        ('"atlas"', '"atlos"', "did you mean atlas"),
        ('["A1"]', '["A99"]', "there is no scenario 'A99'"),
        ('["C"]', '["c-vocabular"]', "c-vocabulary"),
        ('title = "T"', 'titel = "T"', "did you mean title"),
        ("[before]", 'script = "none.toml"\n[before]', "there is no scripts/none.toml"),
        ("silent_zero", "silentzero", "before.planted: there is no defect 'silentzero'; did you mean silent_zero"),
        ("silent_zero", "stubborn", "before.planted: there is no defect 'stubborn'"),  # that one is the agent
        ('["A1"]', '["A1", "A1"]', "scenarios: 'A1' is named twice"),
    ],
)
def test_a_definition_that_would_measure_something_else_is_refused(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert told in problems(tmp_path, old, new)


def test_what_comes_along_can_be_read_and_its_entries_name_it() -> None:
    assert {"say-why-zero", "doubt-zero", "name-the-fix"} <= set(experiment.names())
    tried = {change.experiment for entry in ledger.load_all() for change in entry.changes if change.experiment}
    assert tried <= set(experiment.names())
    assert {experiment.load(name).lever for name in tried} == {"tool", "instructions"}


def test_the_runs_own_instructions_stand_between_guide_and_goal() -> None:
    made = Realised("preloaded", before="the guide")
    assert conditions.told(Options(told="mind this"), "goal", made)[1].split("\n---\n\n") == [
        "the guide", "mind this", "goal"]  # fmt: skip
    assert conditions.told(Options(), "goal", Realised("cold"))[1] == "goal"


def test_what_is_found_moves_no_digest_of_what_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ledger").mkdir()
    (tmp_path / "a").write_text("a")
    before = files.tree_digest(tmp_path, without=data.RESULTS)
    (tmp_path / "ledger" / "01.json").write_text("{}")
    assert files.tree_digest(tmp_path, without=data.RESULTS) == before != files.tree_digest(tmp_path)


# -- for real ------------------------------------------------------------------------------------------------------


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the gate had been passed on this build: tests/harness/test_gate.py passes it."""
    monkeypatch.setattr(gate, "passed", lambda: True)


def test_nothing_is_run_before_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gate, "passed", lambda: False)
    assert main(["experiment", "run", "say-why-zero", "--scripted", "-o", str(tmp_path)]) == 3
    assert "labd-eval gate" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_one_whole_cycle_from_the_plan_to_the_ledger(
    passed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "runs")
    assert main(["experiment", "run", "say-why-zero", "--scripted", "-o", out, "--seed", "5", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    directory = experiment.find(Path(out), "latest")
    arms = [files.read_json(directory / name / "run.json") for name in experiment.ARMS]
    assert arms[0]["orders"] == arms[1]["orders"] and arms[0]["seed"] == arms[1]["seed"] == 5
    assert arms[0]["options"] == arms[1]["options"] and arms[0]["hashes"] == arms[1]["hashes"]
    assert told["arms"]["before"]["build"] != told["arms"]["after"]["build"]
    assert [told["arms"][name]["classes"] for name in experiment.ARMS] == [{"C c-vocabulary": 6}, {"ok": 6, "B": 6}]
    assert [told["arms"][name]["right"]["passed"] for name in experiment.ARMS] == [0, 6]
    assert (told["verdict"], told["numbers_alone"], told["label"]) == ("inconclusive", "confirmed", MACHINERY)
    assert MACHINERY in (directory / experiment.PAGE).read_text()
    classified = {path: path.read_bytes() for path in (directory / "before" / "classified").glob("*.json")}
    assert main(["classify", str(directory / "before"), "-q"]) == 0  # asked in its own build, not the installed one
    assert classified and {path: path.read_bytes() for path in classified} == classified
    capsys.readouterr()

    goals = [path.read_text() for path in directory.glob("*/trials/*/raw/requests.jsonl")]
    assert goals and not any("silent_zero" in goal for goal in goals)

    kept = tmp_path / "ledger"
    kept.mkdir()
    source = next(ledger.directory().glob("01-*.toml"))
    (kept / source.name).write_bytes(source.read_bytes())
    monkeypatch.setattr(ledger, "directory", lambda: kept)
    assert main(["ledger", "--take", "latest", "-o", out]) == 0
    (entry,) = ledger.load_all()
    found = {change.experiment: change for change in entry.changes}["say-why-zero"]
    assert found.found is not None and found.found["numbers_alone"] == "confirmed"
    assert (found.real, entry.standing) == (False, "hypothesis")


@pytest.mark.slow
def test_a_text_reaches_the_model_in_its_arm_alone_and_a_stopped_run_goes_on(passed: None, tmp_path: Path) -> None:
    one = replace(experiment.load("doubt-zero"), scenarios=("A1",))
    options = Options(script=one.script)
    directory = experiment_arms.begin(one, tmp_path, agent="loop", options=options, trials=1, seed=1)
    order = files.read_json(directory / experiment.PLAN)["order"]

    def carry(held: Any) -> int:
        from harness import run

        run.carry_out(held, scenario.load_all("atlas"), jobs=1, on_result=lambda _: None)
        return 0

    def stop_at_the_second(held: Any) -> int:
        return 2 if held.directory.name == order[1] else carry(held)

    assert experiment_arms.carry_out(one, directory, stop_at_the_second, lambda _: None) == 2
    assert not (directory / experiment.RESULT).exists()
    told = experiment_arms.carry_out(one, directory, carry, lambda _: None)
    assert isinstance(told, dict)
    assert [told["arms"][name]["met"]["passed"] for name in experiment.ARMS] == [1, 1]
    assert [told["traces"][name]["right"] for name in experiment.ARMS] == [False, True]
    seen = {name: next((directory / name / "trials").glob("*/raw/requests.jsonl")).read_text()
            for name in experiment.ARMS}  # fmt: skip
    assert ["look the word up" in seen[name] for name in experiment.ARMS] == [False, True]
    with pytest.raises(Exception, match="changed since"):
        experiment_arms.carry_out(replace(one, digest="other"), directory, carry, lambda _: None)


def test_another_build_can_be_named_for_an_arm_and_must_be_a_program(
    passed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = experiment.with_builds(TRIED, {"before": str(tmp_path / "none")})
    assert one.before == Arm(program=str(tmp_path / "none"))
    with (
        pytest.raises(Exception, match="no program that can be run"),
        experiment_arms.installed(one, one.before, tmp_path / "b"),
    ):
        pass
    assert main(["experiment", "run", "doubt-zero", "--before", "x", "-o", str(tmp_path)]) == 2
    assert "the lever of doubt-zero is the instructions" in capsys.readouterr().err
    assert main(["experiment", "run", "say-why-zero", "--agent", "controls", "-o", str(tmp_path)]) == 2
    assert main(["experiment", "run", "say-why-zer", "-o", str(tmp_path)]) == 4
    assert "did you mean: say-why-zero" in capsys.readouterr().err
    assert main(["experiment", "show", "latest", "-o", str(tmp_path)]) == 4
    assert agents.find("loop").program is not None
