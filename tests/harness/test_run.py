"""Runs: trials that don't touch one another, evidence that is whole or not there, and going on after any end."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from graders import verdict as verdicts
from harness import agents, data, files, grading, report, run
from harness.agents import noop
from harness.scenario import Scenario, Step
from labd.errors import Busy, LabdError
from tests.harness.conftest import ADD_PICO, alive, make_scenario, wait_until

GOOD = make_scenario(ADD_PICO, "labd config show", identity="T1")

HASHES = {"labd": "0" * 64, "loopback": "1" * 64}


@pytest.fixture(autouse=True)
def _code_that_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may be editing labd while its tests run."""
    monkeypatch.setattr(data, "hashes", lambda: HASHES)


def carry(
    held: run.Run, scenarios: list[Scenario], jobs: int = 2, stop: threading.Event | None = None
) -> dict[str, run.Result]:
    results: dict[str, run.Result] = {}
    run.carry_out(held, scenarios, jobs=jobs, stop=stop, on_result=lambda r: results.update({r.order.identity: r}))
    return results


def run_all(
    out: Path, scenarios: list[Scenario], *names: str, jobs: int = 2, trials: int = 1
) -> tuple[Path, dict[str, str]]:
    """A whole run; its directory, and the verdict of each trial."""
    with run.create(out, scenarios, agents.select(list(names or ["reference"])), trials=trials) as held:
        results = carry(held, scenarios, jobs)
    found = {name: r.verdict.verdict if r.verdict else r.problem for name, r in results.items()}
    return held.directory, found


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


# -- verdicts -----------------------------------------------------------------------------------------------------


def test_the_reference_passes_and_every_control_is_caught(subject: Path, tmp_path: Path) -> None:
    directory, found = run_all(tmp_path, [GOOD], "all")
    assert found.pop("T1.cold.reference.1") == "pass"
    assert len(found) == 5
    assert set(found.values()) == {"fail"}
    told = report.write(directory)
    assert told["as_expected"] is True
    overall = told["agents"]["reference"]["conditions"]["cold"]["overall"]
    assert (overall["passed"], overall["attempted"], overall["interval"]) == (1, 1, [0.2065, 1.0])
    assert told["agents"]["hand-edit"]["counts"] == "caught"


def test_a_hand_edit_is_named_as_one(subject: Path, tmp_path: Path) -> None:
    directory, _ = run_all(tmp_path, [GOOD], "hand-edit")
    found = grading.kept(directory / "trials" / "T1.cold.hand-edit.1")
    assert found is not None
    assert "hand edit" in found.reason


def test_a_hang_is_one_failed_trial_and_the_others_go_on(subject: Path, tmp_path: Path) -> None:
    hang = make_scenario("labd sleep 600", identity="T2", timeout_s=0.5)
    directory, found = run_all(tmp_path, [hang, GOOD])
    assert found == {"T2.cold.reference.1": "fail", "T1.cold.reference.1": "pass"}
    kept = grading.kept(directory / "trials" / "T2.cold.reference.1")
    assert kept is not None
    assert "time" in kept.reason


def test_a_trial_that_did_all_before_it_hung_has_still_failed(subject: Path, tmp_path: Path) -> None:
    hang = make_scenario(ADD_PICO, "labd sleep 600", identity="T2", timeout_s=1.0)
    assert run_all(tmp_path, [hang])[1] == {"T2.cold.reference.1": "fail"}


def test_an_agent_that_crashes_is_a_harness_error_with_its_trace_and_touches_nobody(
    subject: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noop, "act", lambda bench: 1 / 0)
    directory, found = run_all(tmp_path, [GOOD], "noop", "reference")
    assert found == {
        "T1.cold.noop.1": "harness_error",
        "T1.cold.noop.2": "harness_error",
        "T1.cold.reference.1": "pass",
    }
    assert "ZeroDivisionError" in (directory / "trials" / "T1.cold.noop.1" / "stderr.txt").read_text()
    told = report.collect(directory)
    overall = told["agents"]["noop"]["conditions"]["cold"]["overall"]
    assert (overall["mean"], overall["valid"], overall["attempted"]) == (None, 0, 2)
    assert told["as_expected"] is False


def test_a_sandbox_that_cannot_be_made_is_a_harness_error(subject: Path, tmp_path: Path) -> None:
    broken = make_scenario(ADD_PICO, identity="T3", seed="labs/no-such.toml")
    from harness.trial import Order, conduct

    directory = conduct(Order("T3", "cold", "noop", 1), broken, agents.find("noop"), tmp_path, facts={})
    assert directory is not None
    assert grading.judge(directory).verdict == "harness_error"


def test_without_the_program_under_test_a_trial_is_blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABD_EVAL_SUBJECT", str(tmp_path / "nowhere"))
    assert run_all(tmp_path, [GOOD])[1] == {"T1.cold.reference.1": "blocked"}


def test_what_a_trial_left_running_is_ended_and_named(subject: Path, tmp_path: Path) -> None:
    scenario = make_scenario(ADD_PICO, "labd fork", identity="T4")
    directory, _ = run_all(tmp_path, [scenario])
    bundle = directory / "trials" / "T4.cold.reference.1"
    trial = files.read_json(bundle / "trial.json")
    assert trial["left_running"] == ["/bin/sleep 600"]
    assert not alive(int((bundle / "answer.txt").read_text()))
    assert not Path(trial["lab"]).parents[3].exists()


# -- bundles ------------------------------------------------------------------------------------------------------


def test_a_bundle_holds_all_that_a_grader_needs(subject: Path, tmp_path: Path) -> None:
    scenario = make_scenario(ADD_PICO, Step("printf '\\377'", shell=True), "labd target", identity="T5")
    directory, _ = run_all(tmp_path, [scenario])
    bundle = directory / "trials" / "T5.cold.reference.1"
    trial = files.read_json(bundle / "trial.json")
    calls = [json.loads(line) for line in (bundle / "calls.jsonl").read_text().splitlines()]
    assert trial["schema"] == "labd-trial/1"
    assert trial["ended_by"] == "completed"
    assert trial["route"]["installed"] == [str(subject)]
    assert trial["route"]["program"] == [str(Path(trial["lab"]).parents[3] / "bin" / "labd")]
    assert [call["code"] for call in calls] == [0, 0, 2]
    assert (calls[1]["stdout"], calls[1]["stdout_b64"]) == ("\ufffd", "/w==")
    assert (bundle / "lab.after.toml").read_text() == "[targets.pico]\n"
    assert not (bundle / "lab.before.toml").exists()
    assert "no command" in (bundle / "stderr.txt").read_text()
    assert (bundle / "goal.txt").read_text() == scenario.goal
    assert set(trial["files"]) == set(contents(bundle)) - {"trial.json", "grades/t1_config.json"}
    assert trial["hashes"]["labd"]


def test_grading_again_gives_the_same_bytes(subject: Path, tmp_path: Path) -> None:
    directory, _ = run_all(tmp_path, [GOOD], "all")
    before = contents(directory / "trials")
    for bundle in sorted((directory / "trials").iterdir()):
        assert grading.grade(bundle)[1] is False
    assert contents(directory / "trials") == before


def test_a_verdict_that_changes_is_put_beside_the_old_one(subject: Path, tmp_path: Path) -> None:
    directory, _ = run_all(tmp_path, [GOOD])
    bundle = directory / "trials" / "T1.cold.reference.1"
    old = verdicts.Verdict("t1_config", "unknown", "by an earlier grader").dumps()
    (bundle / "grades" / "t1_config.json").write_text(old)
    found, changed = grading.grade(bundle)
    assert (found.verdict, changed) == ("pass", True)
    assert (bundle / "grades" / "superseded" / "t1_config.1.json").read_text() == old
    assert grading.kept(bundle) == found


@pytest.mark.parametrize("name", ["lab.after.toml", "argv.jsonl", "answer.txt", "scenario.json"])
def test_evidence_that_was_changed_afterwards_gives_no_verdict_on_the_agent(
    subject: Path, tmp_path: Path, name: str
) -> None:
    directory, _ = run_all(tmp_path, [GOOD], "noop")
    bundle = directory / "trials" / "T1.cold.noop.1"
    path = bundle / name
    path.write_text("[targets.pico]\n")
    found = grading.judge(bundle)
    assert (found.verdict, name in found.reason) == ("harness_error", True)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda trial: trial.pop("files"), "no hashes"),
        (lambda trial: trial.update(files=[]), "no hashes"),
        (lambda trial: trial["files"].pop("answer.txt"), "no hash of answer.txt"),
        (lambda trial: trial["files"].pop("lab.after.toml"), "lab.after.toml is not of the trial"),
        (lambda trial: trial.update(ended_by="completed", detail="x"), "the run's log"),
        (lambda trial: trial.update(schema="labd-trial/0"), "schema"),
        (lambda trial: trial.update(id="T1.cold.reference.2"), "another trial"),
    ],
)
def test_a_trial_record_that_was_changed_is_a_harness_error_everywhere(
    subject: Path, tmp_path: Path, change: Any, says: str
) -> None:
    directory, _ = run_all(tmp_path, [GOOD])
    bundle = directory / "trials" / "T1.cold.reference.1"
    trial = files.read_json(bundle / "trial.json")
    change(trial)
    files.write_json(bundle / "trial.json", trial)
    _is_worth_nothing(directory, bundle, says)


@pytest.mark.parametrize("garbage", ["", "{", "[]", "7", None])
def test_a_trial_record_that_is_garbage_or_gone_leaves_no_pass_beside_it(
    subject: Path, tmp_path: Path, garbage: str | None
) -> None:
    directory, found = run_all(tmp_path, [GOOD])
    assert set(found.values()) == {"pass"}
    bundle = directory / "trials" / "T1.cold.reference.1"
    (bundle / "trial.json").unlink()
    if garbage is not None:
        (bundle / "trial.json").write_text(garbage)
    _is_worth_nothing(directory, bundle, "")


def _is_worth_nothing(directory: Path, bundle: Path, says: str) -> None:
    (row,) = report.collect(directory)["trials"]  # before anybody grades again
    assert (row["verdict"], row["valid"], says in row["reason"]) == ("harness_error", False, True)
    found, changed = grading.grade(bundle)
    assert (found.verdict, changed) == ("harness_error", True)
    assert says in found.reason
    kept = [json.loads(path.read_text())["verdict"] for path in (bundle / "grades").glob("*.json")]
    assert kept == ["harness_error"]
    assert report.collect(directory)["counts"] == {"harness_error": 1}
    with run.resume(directory, [GOOD]) as held:
        assert carry(held, [GOOD]) == {}


def test_a_bundle_that_the_runs_log_does_not_know_is_not_of_the_run(subject: Path, tmp_path: Path) -> None:
    directory, _ = run_all(tmp_path, [GOOD])
    (directory / "log.jsonl").write_text("")
    assert "log does not know it" in grading.judge(directory / "trials" / "T1.cold.reference.1").reason


def test_a_log_that_a_crash_left_in_the_middle_of_a_line_is_gone_on_with(subject: Path, tmp_path: Path) -> None:
    with run.create(tmp_path, [GOOD], agents.select(["noop"])) as held:
        (held.directory / "log.jsonl").write_text('{"event": "sealed", "id": "T1.co')
    with run.resume(held.directory, [GOOD]) as again:
        assert carry(again, [GOOD])["T1.cold.noop.1"].verdict is not None
    assert report.collect(held.directory)["counts"] == {"fail": 1}


# -- runs ---------------------------------------------------------------------------------------------------------


def test_runs_never_share_a_directory(subject: Path, tmp_path: Path) -> None:
    made = [run.create(tmp_path, [GOOD], agents.select(["noop"])) for _ in range(5)]
    for held in made:
        held.close()
    assert len({held.directory for held in made}) == 5
    assert all("-noop-" in held.directory.name for held in made)


def test_trials_run_side_by_side(subject: Path, tmp_path: Path) -> None:
    scenarios = [make_scenario("labd sleep 1", ADD_PICO, identity=f"T{n}") for n in range(4)]
    directory, found = run_all(tmp_path, scenarios, jobs=4)
    assert set(found.values()) == {"pass"}
    told = [files.read_json(path) for path in directory.glob("trials/*/trial.json")]
    first, second = sorted((trial["started"], trial["ended"]) for trial in told)[:2]
    assert second[0] < first[1], "the second began only after the first had ended"


def test_several_trials_of_one_cell_are_numbered(subject: Path, tmp_path: Path) -> None:
    directory, found = run_all(tmp_path, [GOOD], trials=3)
    assert sorted(found) == [f"T1.cold.reference.{n}" for n in (1, 2, 3)]
    assert report.collect(directory)["agents"]["reference"]["conditions"]["cold"]["by_scenario"]["T1"] == {
        "passed": 3, "valid": 3, "attempted": 3, "interval": [0.4385, 1.0]}  # fmt: skip


def test_a_condition_that_a_scenario_does_not_know_leaves_it_out(subject: Path, tmp_path: Path) -> None:
    only_warm = make_scenario(ADD_PICO, identity="T6", conditions=("warm",))
    with pytest.raises(LabdError, match="nothing to run"):
        run.create(tmp_path, [only_warm], agents.select(["noop"]))


def test_going_on_runs_what_is_missing_and_nothing_else(subject: Path, tmp_path: Path) -> None:
    directory, _ = run_all(tmp_path, [GOOD], "reference", "noop")
    before = contents(directory / "trials")
    lost = directory / "trials" / "T1.cold.noop.1"
    for path in sorted(lost.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    lost.rmdir()
    with run.resume(directory, [GOOD]) as held:
        assert list(carry(held, [GOOD])) == ["T1.cold.noop.1"]
    kept = {name: data for name, data in before.items() if "reference" in name}
    assert {name: data for name, data in contents(directory / "trials").items() if "reference" in name} == kept
    with run.resume(directory, [GOOD]) as held:
        assert carry(held, [GOOD]) == {}


def test_a_run_is_not_gone_on_with_once_its_scenario_has_changed(subject: Path, tmp_path: Path) -> None:
    directory, _ = run_all(tmp_path, [GOOD])
    with pytest.raises(LabdError, match="T1 changed"):
        run.resume(directory, [make_scenario("labd target add other", identity="T1")])


def test_two_processes_cannot_carry_out_one_run(subject: Path, tmp_path: Path) -> None:
    with run.create(tmp_path, [GOOD], agents.select(["noop"])) as held, pytest.raises(Busy):
        run.resume(held.directory, [GOOD])


def test_a_run_that_is_told_to_stop_keeps_what_is_finished_and_nothing_half(subject: Path, tmp_path: Path) -> None:
    slow = make_scenario("labd sleep 600", ADD_PICO, identity="T7", timeout_s=600)
    stop = threading.Event()
    results: dict[str, Any] = {}

    def on_result(result: run.Result) -> None:
        results[result.order.identity] = result
        stop.set()

    with run.create(tmp_path, [GOOD, slow], agents.select(["reference"])) as held:
        run.carry_out(held, [GOOD, slow], jobs=2, on_result=on_result, stop=stop)
        names = [path.name for path in held.trials.iterdir()]
    assert names == ["T1.cold.reference.1"]
    assert results["T7.cold.reference.1"].problem == "interrupted"
    told = report.write(held.directory)
    assert told["counts"] == {"not_run": 1, "pass": 1}
    assert told["as_expected"] is False


def test_a_run_that_was_killed_can_be_gone_on_with(subject: Path, tmp_path: Path) -> None:
    script = (
        "from tests.harness.test_run import *\nimport sys\nrun.data.hashes = lambda: HASHES\n"
        "slow = make_scenario(ADD_PICO, 'labd sleep 2', identity='T8')\n"
        "with run.create(Path(sys.argv[1]), [GOOD, slow], agents.select(['reference'])) as held:\n"
        "    carry(held, [GOOD, slow], jobs=1)\n"
    )
    out = tmp_path / "runs"
    child = subprocess.Popen([sys.executable, "-c", script, str(out)], cwd=Path(__file__).parents[2])
    wait_until("the first bundle", lambda: list(out.glob("*/trials/T1*/grades/*.json")))
    child.send_signal(signal.SIGKILL)
    child.wait()
    (directory,) = out.iterdir()
    before = contents(directory / "trials" / "T1.cold.reference.1")
    (directory / "trials" / ".partial-x").mkdir()

    quick = make_scenario(ADD_PICO, "labd sleep 2", identity="T8")
    with run.resume(directory, [GOOD, quick]) as held:
        assert list(carry(held, [GOOD, quick])) == ["T8.cold.reference.1"]
    assert contents(directory / "trials" / "T1.cold.reference.1") == before
    assert sorted(path.name for path in held.trials.iterdir()) == ["T1.cold.reference.1", "T8.cold.reference.1"]


def test_a_bundle_that_cannot_be_written_is_told_and_leaves_nothing(
    subject: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run.create(tmp_path, [GOOD], agents.select(["noop"])) as held:
        monkeypatch.setattr("harness.bundle.Bundle.finish", _no_space)
        results = carry(held, [GOOD])
    assert "bundle_failed" in results["T1.cold.noop.1"].problem
    assert list(held.trials.iterdir()) == []


def _no_space(*_: object) -> None:
    raise OSError(5, "Input/output error")


def test_a_trial_costs_little_beyond_its_commands(subject: Path, tmp_path: Path) -> None:
    directory, _ = run_all(tmp_path, [GOOD], jobs=1, trials=5)
    rows = report.collect(directory)["trials"]
    over = [row["duration_s"] - row["commands_s"] - row["stop_s"] for row in rows]
    assert min(over) < 0.15, over  # the least disturbed of five: the machine may be busy


def test_a_finished_bundle_is_never_written_over(subject: Path, tmp_path: Path) -> None:
    from harness.trial import Order, conduct

    order, agent = Order("T1", "cold", "noop", 1), agents.find("noop")
    directory = conduct(order, GOOD, agent, tmp_path, facts={})
    assert directory is not None
    before = contents(tmp_path)
    with pytest.raises(FileExistsError):
        conduct(order, GOOD, agent, tmp_path, facts={})
    assert contents(tmp_path) == before
    assert os.listdir(tmp_path / "T1.cold.noop.1")


@pytest.mark.parametrize(
    "text", ["[]", "5", "null", '"x"', '{"schema": "labd-run/2"}', '{"schema": "labd-run/2", "id": 1}']
)
def test_a_manifest_of_another_shape_is_told_as_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(LabdError, match=r"run\.json"):
        run.load(tmp_path)
