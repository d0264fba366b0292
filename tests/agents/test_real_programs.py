"""The four real programs through the whole exam, with a model that plays from a script.

Each run goes through `labd-eval run`, the sandbox, the recorder, the transcript's parser and the graders that everybody
gets. What passes here says that those work with these programs, and nothing about any model.
"""

import json
from typing import Any

import pytest

from tests.agents.conftest import PROGRAMS, Run, Trial

pytestmark = [pytest.mark.agents, pytest.mark.slow]

each = pytest.mark.parametrize("name", PROGRAMS)
CONDITIONS = ("cold", "warm", "preloaded")


@each
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_reference_passes_and_its_condition_is_what_reached_the_model(run: Run, name: str, condition: str) -> None:
    trial = run(f"C1 {condition}", "reference", "--condition", condition)[name]
    assert (trial.record["ended_by"], trial.verdict) == ("completed", "pass"), trial.why()
    told = trial.read("condition.json")
    checks = {check["name"]: check["ok"] for check in told["checks"]}
    reached = [ok for check, ok in checks.items() if "reached the model" in check]
    assert told["condition"] == condition and reached and all(reached), checks
    sent = json.dumps(trial.requests[0]["body"])
    marks = {what: mark in sent for what, mark in told["canaries"].items()}
    assert marks == {"cold": {}, "warm": {"description": True, "guide": False},
                     "preloaded": {"description": True, "guide": True}}[condition]  # fmt: skip


@each
@pytest.mark.parametrize("scenario", ["C1", "S4"])
def test_the_reference_passes_through_the_mcp_server_alone(run: Run, name: str, scenario: str) -> None:
    """Its edits of the lab, and its work at a simulated board."""
    trial = run(f"{scenario} mcp", "reference", "--condition", "mcp", scenario=scenario)[name]
    assert (trial.record["ended_by"], trial.verdict) == ("completed", "pass"), trial.why()
    checks = {check["name"]: check["ok"] for check in trial.read("condition.json")["checks"]}
    assert checks["tools reached the model"] and checks["server started"], checks
    starts = [json.loads(line) for line in (trial.directory / "argv.jsonl").read_bytes().splitlines()]
    faces = {one["face"] for one in starts if one["rec"] == "start" and one["operation"] != "mcp"}
    assert faces == {"mcp"}
    assert not [one for one in trial.calls if one["kind"] == "shell"]


@each
def test_a_scenario_with_a_simulated_board_passes(run: Run, name: str) -> None:
    trial = run("S4 cold", "reference", scenario="S4")[name]
    assert (trial.record["ended_by"], trial.verdict) == ("completed", "pass"), trial.why()


@each
def test_what_ran_and_what_was_said_are_told_apart_from_the_same_evidence(run: Run, name: str) -> None:
    trial = run("C1 cold", "reference", "--condition", "cold")[name]
    said = [call["command"] for call in trial.calls if call["kind"] == "shell"]
    ran = [json.loads(line) for line in (trial.directory / "argv.jsonl").read_bytes().splitlines()]
    assert len(said) == 5 and "labd config show" in said[-1]
    assert len({json.dumps(one.get("argv", one), sort_keys=True) for one in ran}) >= 5
    assert trial.read("transcript.json")["usage"]["total"], "the tokens that the script told"


@each
def test_an_invented_command_and_an_invented_tool_are_seen_and_fail(run: Run, name: str) -> None:
    trial = run("invented", "invented")[name]
    assert (trial.record["ended_by"], trial.verdict) == ("completed", "fail"), trial.why()
    kinds = [call["kind"] for call in trial.calls]
    assert kinds == ["shell", "invented"], trial.why()
    assert "labd flash" in trial.calls[0]["command"] and trial.calls[1]["tool"] == "flash_board"
    assert b"flash" in (trial.directory / "argv.jsonl").read_bytes()


@each
def test_turns_without_end_are_ended_by_their_limit(run: Run, name: str) -> None:
    trial = run("turns", "endless", "--turns", "3")[name]
    assert (trial.record["ended_by"], trial.verdict) == ("turn_limit", "fail"), trial.why()
    assert 3 <= len(trial.requests) <= 8, "what came after the limit is what was under way"


@each
def test_a_stream_that_stalls_is_ended_by_the_time(run: Run, name: str) -> None:
    trial = run("time", "stalled", "--time-limit", "25")[name]
    assert (trial.record["ended_by"], trial.verdict) == ("time_limit", "fail"), trial.why()


@each
@pytest.mark.parametrize("status", [401, 429, 500, 529])
def test_a_provider_that_fails_is_no_result_of_the_agents(run: Run, name: str, status: int) -> None:
    trial = run(str(status), f"error-{status}")[name]
    assert (trial.record["ended_by"], trial.verdict) == ("provider_failed", "provider_error"), trial.why()
    assert trial.read("transcript.json")["ended"]["status"] in (status, None), "some products hide it in kind words"
    assert {request["status"] for request in trial.requests} == {status}


@each
def test_a_provider_that_recovers_leaves_no_trace_in_the_verdict(run: Run, name: str) -> None:
    trial = run("500, then well", "recovers")[name]
    assert trial.record["ended_by"] == "completed", trial.why()
    assert [request["status"] for request in trial.requests] == [500, 200, 200]
    assert trial.read("transcript.json")["answer"].strip() == "It went well at last."


def test_a_subagent_is_a_thread_of_its_own(run: Run) -> None:
    trial = run("subagent", "subagent", programs=("claude",))["claude"]
    assert trial.record["ended_by"] == "completed", trial.why()
    told: Any = trial.read("transcript.json")
    (main, other) = told["threads"]
    assert (main["parent"], other["parent"]) == (None, main["id"])
    by_thread = [(call["thread"], call["kind"]) for call in told["calls"]]
    assert by_thread == [(main["id"], "shell"), (main["id"], "agent"), (other["id"], "shell")]
    assert [request["turn"] for request in trial.requests] == ["main 1", "main 2", *(["SUBTASK 1", "SUBTASK 2"]),
                                                               "main 3"]  # fmt: skip


def test_a_background_task_is_marked_and_waited_for(run: Run) -> None:
    trial: Trial = run("background", "background", programs=("claude",))["claude"]
    assert trial.record["ended_by"] == "completed", trial.why()
    assert [(call["background"], call["state"]) for call in trial.calls] == [(True, "done"), (False, "done")]
    assert not trial.record["left_running"]
