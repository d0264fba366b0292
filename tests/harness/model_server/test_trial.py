"""The scripted model of a run: `--scripted-model` reaches the agent's program, and its log the bundle."""

import json
import sys
from pathlib import Path

import pytest

from harness import trial
from harness.agents import Agent
from harness.agents._program import RATED, Command, Needs, Options, Ways
from harness.cli import main
from harness.sandbox import Sandbox
from harness.trial import Order
from tests.harness.conftest import ADD_PICO, make_scenario

#: An agent in a few lines: asks the model, runs what it says in a shell, until it only talks.
LOOP = r"""
import json, subprocess, sys, urllib.request
talk = [{"role": "user", "content": sys.stdin.read()}]
while True:
    body = {"tools": [{"name": "Bash"}], "messages": talk}
    ask = urllib.request.Request(sys.argv[1] + "/v1/messages", json.dumps(body).encode())
    said = json.load(urllib.request.urlopen(ask))["content"]
    talk.append({"role": "assistant", "content": said})
    uses = [block for block in said if block["type"] == "tool_use"]
    if not uses:
        print(said[0]["text"])
        break
    results = []
    for use in uses:
        done = subprocess.run(use["input"]["command"], shell=True, capture_output=True, text=True)
        results.append({"type": "tool_result", "tool_use_id": use["id"], "content": done.stdout})
    talk.append({"role": "user", "content": results})
"""


class Looping:
    name = "looping"
    product = "text"
    summary = "asks and runs"
    needs = Needs("python3", "apt install python3")
    ways = Ways()
    expected = RATED
    time_s = None

    def version(self) -> str | None:
        return "1"

    def prepare(self, place: Sandbox, options: Options) -> list[Path]:
        return []

    def command(self, goal: str, place: Sandbox, options: Options) -> Command:
        return Command((sys.executable, "-c", LOOP, str(options.base_url)), stdin=goal.encode())

    def collect(self, place: Sandbox) -> dict[str, Path]:
        return {}


def test_a_reference_script_is_played_through_a_program(subject: Path, tmp_path: Path) -> None:
    agent = Agent("looping", "asks and runs", RATED, None, Looping())
    (tmp_path / "trials").mkdir()
    bundle = trial.conduct(Order("T1", "cold", "looping", 1), make_scenario(ADD_PICO), agent, tmp_path / "trials",
                           facts={}, options=Options(script="reference"))  # fmt: skip
    assert bundle is not None
    record = json.loads((bundle / "trial.json").read_text())
    assert (record["ended_by"], record["scripted_model"]) == ("completed", "reference")
    assert "pico" in (bundle / "lab.after.toml").read_text()
    reached = [json.loads(line) for line in (bundle / "raw" / "requests.jsonl").read_bytes().splitlines()]
    assert [one["turn"] for one in reached] == ["main 1", "main 2"]
    assert reached[0]["body"]["messages"][0]["content"] == "Enter the board pico."
    assert record["files"]["raw/requests.jsonl"]


def test_a_script_that_is_none_starts_no_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["run", "--agent", "claude", "--scenario", "C1", "--out", str(tmp_path / "runs")]
    assert main([*words, "--scripted-model", "/nowhere.toml"]) == 1
    assert "/nowhere.toml: No such file" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
