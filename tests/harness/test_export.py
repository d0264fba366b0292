"""What leaves for other tools says what the run says, and nothing that the run does not know."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graders.verdict import Check, Verdict
from harness import agents, cli, export, export_inspect, plan, run, transcripts
from harness.export_trial import Exported
from harness.transcripts.model import Call, Ended, Message, Thread, Transcript, Usage
from tests.harness.conftest import ADD_PICO, make_scenario, stand_in

SHAPE = json.loads((Path(__file__).parent / "inspect_shape.json").read_text())["models"]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a trial that passed, one that failed, one that the exam lost, and one that nobody began."""
    scenarios = [make_scenario(ADD_PICO, identity=name) for name in ("S2", "S10")]
    root = tmp_path_factory.mktemp("once")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABD_EVAL_SUBJECT", str(stand_in(root / "installed")))
        with run.create(root, scenarios, agents.select(["reference", "noop"])) as held:
            run.carry_out(held, scenarios, jobs=2, on_result=lambda _: None)
            directory = held.directory
    manifest = json.loads((directory / "run.json").read_text())
    manifest["orders"].append({"agent": "noop", "condition": "cold", "number": 2, "scenario": "S2"})
    (directory / "run.json").write_text(json.dumps(manifest))
    (directory / "trials" / "S10.cold.noop.1" / "answer.txt").write_text("forged")
    return directory


@pytest.fixture
def played(once: Path, tmp_path: Path) -> Path:
    """A copy of that run, for a test of its own."""
    return Path(shutil.copytree(once, tmp_path / "runs" / once.name))


def exported(directory: Path, form: str, capsys: pytest.CaptureFixture[str]) -> tuple[Path, dict[str, Any]]:
    """Where an export of the run is, and what the command answered."""
    out = directory.parent.parent / f"out-{form}"
    assert cli.main(["export", str(directory), "--to", form, "--out", str(out), "--json"]) == 0
    return out, json.loads(capsys.readouterr().out)


# --- ATIF -----------------------------------------------------------------------------------------------------------


def test_a_trajectory_is_read_back_as_what_was_said_and_done(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, told = exported(played, "atif", capsys)
    path = out / "S2.cold.reference.1.atif.json"
    back = transcripts.parse("atif", {"stdout": path.read_bytes()})
    was = export.transcript(played / "trials" / "S2.cold.reference.1")
    assert was is not None and [call.command for call in back.calls] == [call.command for call in was.calls]
    assert [(call.exit_code, call.state, call.output) for call in back.calls] == \
        [(call.exit_code, call.state, call.output) for call in was.calls]  # fmt: skip
    assert back.answer == was.answer and back.calls[0].exit_code == 0
    facts = json.loads(path.read_text())["extra"]["labd"]
    assert (facts["verdict"], facts["valid"], facts["lost"], facts["usage"]["total"]) == ("pass", True, None, None)
    assert json.loads((out / "index.json").read_text())["trials"] == told["trials"]


def test_a_trial_without_a_trajectory_has_no_file_and_the_index_says_why(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, told = exported(played, "atif", capsys)
    by_id = {entry["id"]: entry for entry in told["trials"]}
    assert by_id["S2.cold.noop.2"]["file"] is None and by_id["S2.cold.noop.2"]["verdict"] == "not_run"
    damaged = by_id["S10.cold.noop.1"]
    assert damaged["file"] is None and "answer.txt has changed" in damaged["lost"] and damaged["usage"] is None
    assert damaged["no_file"] == damaged["lost"]
    assert by_id["S2.cold.noop.2"]["no_file"] == "no bundle: it has not been run to its end"
    silent = by_id["S2.cold.noop.1"]
    assert silent["file"] is None and silent["lost"] is None
    assert silent["no_file"] == "no transcript: a scripted agent, which said and ran nothing"
    assert all((entry["file"] is None) == (entry["no_file"] is not None) for entry in told["trials"])
    files = {path.name for path in out.iterdir()}
    assert files == {entry["file"] for entry in told["trials"]} - {None} | {"index.json"}


def test_the_trials_that_are_lost_are_named_beside_the_answer(
    played: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for form in ("atif", "inspect"):
        assert cli.main(["export", str(played), "--to", form, "--out", str(tmp_path / form)]) == 0
        assert "lost: 1 trial, no result of an agent: S10.cold.noop.1\n" in capsys.readouterr().err


def test_a_record_that_the_agent_spoiled_costs_its_exit_codes_their_proof_and_no_more(played: Path) -> None:
    bundle = played / "trials" / "S2.cold.reference.1"
    told = export.transcript(bundle)
    assert told is not None and told.calls[0].exit_source == "recorder"
    for spoiled in (b"\xff\n", b"[" * 100_000, b'{"rec": "start"}\n'):
        (bundle / "argv.jsonl").write_bytes(spoiled)
        (bundle / "witness.jsonl").write_bytes(spoiled)
        again = export.transcript(bundle)
        assert again is not None and [call.command for call in again.calls] == [call.command for call in told.calls]


def test_threads_and_all_counts_of_use_survive_the_round_trip() -> None:
    one = made()
    back = transcripts.parse("atif", {"stdout": export.encoded(export.trajectory(one))})
    assert {(call.thread != "main", call.command) for call in back.calls} == {(False, "labd doctor"), (True, "ls")}
    assert (back.usage.output, back.usage.cost_usd, back.ended.how) == (7, 0.25, "max_turns")
    assert export.trajectory(one)["extra"]["labd"]["usage"]["cache_write"] == 3


# --- Inspect --------------------------------------------------------------------------------------------------------


def made(cause: str = "turn_limit", verdict: str | None = "fail", **row: Any) -> Exported:
    """A trial of a program with two threads, that a limit ended."""
    told = Transcript(
        "claude", "stream", model="m-1", answer="It is on.", ended=Ended("max_turns"),
        threads=[Thread("main"), Thread("t1", "main", "c1", "helper")],
        messages=[Message(1, "main", "user", "look"), Message(2, "main", "reasoning", "hm", id="a"),
                  Message(3, "main", "assistant", "I look", id="a"), Message(6, "main", "assistant", "It is on.")],
        calls=[Call(4, "c1", "main", "Bash", "shell", "a", "labd doctor", input={"command": "labd doctor"}, t=5.0,
                    state="failed", output="bad \udcff", exit_code=3, exit_source="recorder"),
               Call(5, "c2", "t1", "Bash", "shell", None, "ls", input={"command": "ls"}, state="denied", output="no")],
        usage=Usage(10, 7, 5, 3, None, 25, 0.25, 2, "result", True),
    )  # fmt: skip
    trial = {"ended_by": cause, "detail": "", "program": {}, "started": "2026-11-30T10:00:00.000000Z",
             "ended": "2026-11-30T10:00:09.000000Z", "duration_s": 9.5, "agent_s": 9.0, "limits": {"time_s": 300.0},
             "options": {"turns": 40, "time_s": 60.0}}  # fmt: skip
    plain = {"id": "R1.cold.claude.1", "scenario": "R1", "condition": "cold", "agent": "claude", "number": 1,
             "lane": "stated", "verdict": verdict or "not_run", "valid": verdict in ("pass", "fail"), "cause": cause,
             "reason": "why so", "replaced_by": None, "isolation": "home", "scripted_model": False,
             "bundle": "trials/R1.cold.claude.1", "counted": True}  # fmt: skip
    manifest = {"id": "r", "created": "2026-11-30T09:59:00Z", "trials": 1, "seed": 1, "hashes": {}, "versions": {},
                "scenarios": {"R1": {"title": "T", "lane": "stated", "sha256": "0"}}, "subject": "labd",
                "agents": {"claude": {"expected": ["pass", "fail"]}}, "options": {"model": None}}  # fmt: skip
    found = Verdict("outcome", verdict, "why so", (Check("on", False),)) if verdict else None  # type: ignore[arg-type]
    return Exported(plain | row, manifest, trial, found, told, "Is it on?")


def log_of(*trials: Exported) -> dict[str, Any]:
    log: dict[str, Any] = export_inspect.log(trials[0].manifest, trials)
    checked_shape(log)
    return log


def checked_shape(log: dict[str, Any]) -> None:
    """Every object has what Inspect's model of it requires, and no key that it would drop silently."""
    for model, value in shapes(log):
        keys = set(value)
        assert set(SHAPE[model]["required"]) <= keys <= set(SHAPE[model]["known"]), (model, keys)


def shapes(log: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from (("EvalLog", log), ("EvalSpec", log["eval"]), ("EvalDataset", log["eval"]["dataset"]))
    yield from (("EvalConfig", log["eval"]["config"]), ("EvalPlan", log["plan"]), ("EvalStats", log["stats"]))
    yield "EvalResults", log["results"]
    for score in log["results"]["scores"]:
        yield "EvalScore", score
        yield from (("EvalMetric", metric) for metric in score["metrics"].values())
    for sample in log["samples"]:
        yield "EvalSample", sample
        yield "ModelOutput", sample["output"]
        yield from (("EvalSampleLimit", sample["limit"]),) if sample["limit"] else ()
        yield from (("EvalError", sample["error"]),) if sample["error"] else ()
        yield from (("Score", score) for score in (sample["scores"] or {}).values())
        yield from (("ModelUsage", usage) for usage in sample["model_usage"].values())
        for message in sample["messages"]:
            yield f"ChatMessage{message['role'].capitalize()}", message
            yield from (("ToolCall", call) for call in message.get("tool_calls", ()))
            yield from (("ToolCallError", message["error"]),) if message.get("error") else ()


def test_a_verdict_is_a_score_only_where_it_counts() -> None:
    (failed,) = log_of(made())["samples"]
    assert failed["scores"]["verdict"]["value"] == "I" and failed["error"] is None
    assert log_of(made("completed", "pass"))["samples"][0]["scores"]["verdict"]["value"] == "C"
    for verdict in ("unknown", "not_reached", "not_applicable", "judge_error"):
        log = log_of(made("completed", verdict))
        assert log["samples"][0]["scores"] is None and log["samples"][0]["error"] is None
        assert log["samples"][0]["metadata"]["verdict"] == verdict
        assert log["results"]["scores"][0]["metrics"] == {}  # a rate of nothing is none, not 0
        assert log["results"]["scores"][0]["unscored_samples"] == 1


@pytest.mark.parametrize("cause", ["provider_failed", "agent_missing", "sandbox_failed", "capability_missing"])
def test_a_trial_that_the_exam_lost_is_an_error_and_no_failure(cause: str) -> None:
    lost, kept = replace(made(cause, None, valid=False), verdict=None), made("completed", "pass", number=2)
    log = log_of(lost, kept)
    assert log["samples"][0]["scores"] is None and "why so" in log["samples"][0]["error"]["message"]
    assert (log["results"]["total_samples"], log["results"]["completed_samples"]) == (2, 1)
    assert log["results"]["scores"][0]["metrics"]["pass_rate"]["value"] == 1.0


def test_limits_are_told_with_their_amounts_where_those_are_known() -> None:
    assert log_of(made())["samples"][0]["limit"] == {"type": "turn", "limit": 40, "reason": "turn_limit"}
    assert log_of(made("time_limit"))["samples"][0]["limit"]["limit"] == 60.0
    token = log_of(made("token_limit"))["samples"][0]
    assert token["limit"] is None and token["metadata"]["cause"] == "token_limit"


def test_usage_that_is_not_whole_is_left_out_since_a_reader_would_take_it_for_nothing() -> None:
    log = log_of(made())
    assert (
        log["samples"][0]["model_usage"]["m-1"]["total_tokens"]
        == 25
        == log["stats"]["model_usage"]["m-1"]["total_tokens"]
    )
    one = made()
    assert one.transcript is not None
    one.transcript.usage.complete = False
    log = log_of(one, made(number=2))
    assert log["samples"][0]["model_usage"] == {} == log["stats"]["model_usage"]
    assert log["samples"][0]["metadata"]["usage"]["output"] == 7


def test_the_conversation_is_that_of_the_agent_that_was_asked() -> None:
    sample = log_of(made())["samples"][0]
    user, assistant, tool, last = sample["messages"]
    assert (user["role"], last["content"], sample["output"]["choices"][0]["message"]["content"]) == \
        ("user", "It is on.", "It is on.")  # fmt: skip
    assert [part["type"] for part in assistant["content"]] == ["reasoning", "text"]
    assert assistant["tool_calls"][0]["arguments"] == {"command": "labd doctor"}
    assert tool["metadata"]["exit_code"] == 3 and "error" not in tool
    assert sample["metadata"]["threads_left_out"] == 1


def test_the_model_is_the_one_that_is_told_and_none_where_there_is_none() -> None:
    assert log_of(made())["eval"]["model"] == "m-1"
    assert log_of(made(scripted_model=True))["eval"]["model"] == "scripted/none"
    one = made()
    assert one.transcript is not None
    one.transcript.model = None
    assert log_of(one)["eval"]["model"] == "unknown"


def test_what_was_not_run_is_no_sample_and_the_log_says_that_it_is_not_whole(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, told = exported(played, "inspect", capsys)
    logs = {path.name: json.loads(path.read_text()) for path in out.glob("2*.json")}
    by_agent = {log["eval"]["solver"]: log for log in logs.values()}
    for log in logs.values():
        checked_shape(log)
    assert by_agent["reference"]["status"] == "success" and by_agent["noop"]["status"] == "cancelled"
    assert [(s["id"], s["epoch"], bool(s["error"])) for s in by_agent["noop"]["samples"]] == \
        [("S2", 1, False), ("S10", 1, True)]  # fmt: skip
    assert by_agent["reference"]["eval"]["model"] == "none/none"
    assert {entry["file"] for entry in told["trials"]} - {None} == set(logs)


def test_inspect_itself_reads_the_logs(played: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    python = os.environ.get("INSPECT_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import inspect_ai"], capture_output=True).returncode:
        pytest.skip("no inspect_ai here; name a Python that has it: INSPECT_PYTHON=…")
    out, _ = exported(played, "inspect", capsys)
    log = log_of(made(), made("provider_failed", None, valid=False, number=2))
    (out / "2026-11-30T09-59-00+00-00_made.json").write_bytes(export.encoded(log))
    code = (
        "import json, sys; from inspect_ai.log import list_eval_logs, read_eval_log\n"
        "logs = [read_eval_log(found) for found in list_eval_logs(sys.argv[1])]\n"
        "told = lambda s: [s.id, s.epoch, s.scores and s.scores['verdict'].value, s.error and s.error.message,"
        " s.limit and s.limit.type, len(s.messages)]\n"
        "print(json.dumps([[log.eval.solver, log.status, [told(s) for s in log.samples]] for log in logs]))"
    )
    done = subprocess.run([python, "-c", code, str(out)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {solver: (status, samples) for solver, status, samples in json.loads(done.stdout)}
    assert found["reference"][0] == "success" and [s[2] for s in found["reference"][1]] == ["C", "C"]
    assert found["noop"][1][0][2] == "I" and "damaged" in found["noop"][1][1][3]
    assert found["claude"][1][0][2:] == ["I", None, "turn", 4] and found["claude"][1][1][2] is None


# --- where it goes --------------------------------------------------------------------------------------------------


def test_the_same_run_gives_the_same_bytes_and_nothing_is_written_over(
    played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("atif", "inspect"):
        for name in ("a", "b"):
            assert cli.main(["export", str(played), "--to", form, "--out", str(tmp_path / form / name)]) == 0
        first, second = ({path.name: path.read_bytes() for path in (tmp_path / form / name).iterdir()} for name in "ab")
        assert first == second and len(first) > 1
    assert cli.main(["export", str(played), "--to", "atif", "--out", str(tmp_path / "atif" / "a")]) == 3
    assert "is there already" in capsys.readouterr().err
    assert (
        cli.main(["export", str(played), "--to", "atif", "--out", str(tmp_path / "atif" / "a" / "index.json" / "x")])
        != 0
    )


def test_a_run_that_can_not_be_read_leaves_nothing(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "trajectory", lambda one: 1 / 0)
    place = tmp_path / "there"
    with pytest.raises(ZeroDivisionError):
        cli.main(["export", str(played), "--to", "atif", "--out", str(place / "out")])
    assert list(place.iterdir()) == []


def test_lost_trials_of_the_plan_are_lost_here_too() -> None:
    for cause in ("provider_failed", "condition_broken", "transcript_unreadable"):
        assert plan.is_lost(cause) and made(cause, None).lost is not None
