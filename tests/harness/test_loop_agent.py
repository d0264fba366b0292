"""The smallest agent, for real: its loop against a scripted model, its transcript, every way it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import agents, transcripts
from harness.model_server import ModelServer
from harness.model_server.script import parse

PROGRAM = Path(__file__).parents[2] / "harness" / "arms" / "loop.py"


def played(tmp_path: Path, script: dict[str, Any], *words: str) -> tuple[int, str, transcripts.Transcript]:
    """Exit code, stdout, transcript of one conversation."""
    log = tmp_path / "deep" / "log.json"
    with ModelServer(parse(script, {})) as model:
        env = {**os.environ, "OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "a-secret-key"}
        done = subprocess.run([sys.executable, "-I", PROGRAM, "--log", log, *words], input="How many?", env=env,
                              capture_output=True, text=True, timeout=60, cwd=tmp_path)  # fmt: skip
    return done.returncode, done.stdout, transcripts.parse("atif", {"session/log.json": log.read_bytes()})


def test_it_runs_what_the_model_says_and_prints_its_last_words(tmp_path: Path) -> None:
    code, said, told = played(tmp_path, {"turn": [
        {"text": "I look.", "shell": "echo out; echo err >&2; exit 3"}, {"shell": "true"},
        {"text": "Seven."}]})  # fmt: skip
    assert (code, said, told.answer, told.ended.how) == (0, "Seven.\n", "Seven.", "completed")
    first = told.calls[0]
    assert (first.tool, first.command, first.exit_code) == ("bash", "echo out; echo err >&2; exit 3", 3)
    assert told.calls[0].output == "out\nerr\n"
    assert told.usage.turns == 3 and told.usage.total == 360


def test_no_command_sees_the_key(tmp_path: Path) -> None:
    told = played(tmp_path, {"turn": [{"shell": "env"}, {"text": "done"}]})[2]
    assert "PATH=" in str(told.calls[0].output) and "OPENAI" not in str(told.calls[0].output)


def test_turns_that_run_out_and_a_provider_that_refuses_are_told_apart(tmp_path: Path) -> None:
    code, said, told = played(tmp_path, {"turn": [{"shell": "true", "repeat": True}]}, "--turns", "2")
    assert (code, said, told.ended.how, len(told.calls)) == (3, "", "max_turns", 2)
    code, said, told = played(tmp_path, {"turn": [{"shell": "true"}, {"error": 400, "message": "no credit"}]})
    assert (code, told.ended.how, told.ended.status, len(told.calls)) == (1, "provider_error", 400, 1)
    assert "no credit" in told.ended.detail


def test_an_invented_tool_is_answered_and_not_run(tmp_path: Path) -> None:
    call = {"tool": "flash_board", "input": {"board": "pico"}}
    code, _, told = played(tmp_path, {"turn": [{"calls": [call]}, {"text": "{output}"}]})
    assert code == 0
    assert (told.calls[0].tool, told.calls[0].exit_code) == ("flash_board", None)
    assert "there is no tool 'flash_board'" in str(told.calls[0].output)


def test_long_output_says_what_was_left_out(tmp_path: Path) -> None:
    told = played(tmp_path, {"turn": [{"shell": "seq 1 20000"}, {"text": "done"}]})[2]
    assert "more characters were left out]" in str(told.calls[0].output)


def test_it_needs_to_know_where_the_model_is(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    done = subprocess.run([sys.executable, PROGRAM], input="x", env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "OPENAI_BASE_URL" in done.stderr


def test_it_is_an_agent_that_needs_no_installing() -> None:
    found = agents.find("loop")
    assert found.program is not None and str(agents.version_of(found.program)).startswith("sha256:")
    assert json.dumps(sorted(found.expected)) == '["fail", "pass", "unknown"]'


@pytest.mark.parametrize("script", [{"turn": [{"error": 503, "times": 1, "text": "back"}]}])
def test_a_provider_that_stumbles_is_asked_again(tmp_path: Path, script: dict[str, Any]) -> None:
    code, said, _ = played(tmp_path, script)
    assert (code, said) == (0, "back\n")
