"""Limits of turns, tokens and money, watched from outside on real processes that print a product's own records."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness import agents, files, grading, limits, transcripts
from harness.agents import Agent
from harness.agents._program import RATED, Command, Needs, Options, Program, Ways
from harness.sandbox import Sandbox
from harness.trial import Order, conduct
from tests.harness.conftest import ADD_PICO, make_scenario

ENDLESS = """
import json, time
for n in range(1000):
    print(json.dumps(EVENT(n)), flush=True)
    if LOG:
        import os
        with open(os.environ["HOME"] + "/log.jsonl", "a") as log:
            log.write(json.dumps(LOG(n)) + "\\n")
    time.sleep(0.05)
"""

#: One answer a record, in the form of opencode, which tells tokens and money with each.
STEP = """
def EVENT(n):
    used = {"total": 100, "input": 80, "output": 20, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    part = {"id": f"prt_{n}", "messageID": f"msg_{n}", "sessionID": "ses_1", "type": "step-finish",
            "reason": "tool-calls", "tokens": used, "cost": 0.25}
    return {"type": "step_finish", "timestamp": 1795997396480 + n, "sessionID": "ses_1", "part": part}
LOG = None
"""

#: The same in the form of Claude Code: no tokens before the end, but in its log.
ANSWER = """
def EVENT(n):
    said = {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": "x"}], "usage": {"input_tokens": 80, "output_tokens": 20}}
    return {"type": "assistant", "message": said, "parent_tool_use_id": None, "session_id": "s", "uuid": f"u{n}"}
def LOG(n):
    return {**EVENT(n), "sessionId": "s", "timestamp": "2026-11-30T07:00:00.000Z", "isSidechain": False, "version": "2",
            "parentUuid": None, "cwd": "/"}
"""


class Talker:
    """A program that answers without end in a product's form."""

    name = "talker"
    summary = "answers without end"
    needs = Needs(sys.executable, "make setup")
    ways = Ways()
    expected = RATED
    time_s: float | None = 20.0

    def __init__(self, product: str, text: str) -> None:
        self.product = product
        self.text = text

    def version(self) -> str | None:
        return "1"

    def prepare(self, place: Sandbox, options: Options) -> list[Path]:
        return []

    def command(self, goal: str, place: Sandbox, options: Options) -> Command:
        return Command((sys.executable, "-IS", "-c", self.text))

    def collect(self, place: Sandbox) -> dict[str, Path]:
        path = place.home / "log.jsonl"
        return {"session/log.jsonl": path} if path.is_file() else {}


def played(tmp_path: Path, product: str, text: str, **most: Any) -> tuple[str, Mapping[str, Any]]:
    program: Program = Talker(product, text)
    agent = Agent("talker", "", RATED, None, program)
    bundle = conduct(Order("T1", "cold", "talker", 1), make_scenario(ADD_PICO), agent, tmp_path, facts={},
                     options=Options(**most))  # fmt: skip
    assert bundle is not None
    return grading.grade(bundle)[0].verdict, files.read_json(bundle / "trial.json")


@pytest.mark.parametrize(
    ("product", "text", "most", "cause"),
    [
        ("opencode", STEP, {"tokens": 350}, "token_limit"),
        ("opencode", STEP, {"money_usd": 0.6}, "money_limit"),
        ("claude", ANSWER, {"turns": 3}, "turn_limit"),
        ("claude", ANSWER, {"tokens": 350}, "token_limit"),
    ],
)
def test_a_program_that_goes_beyond_its_limit_is_stopped(
    subject: Path, tmp_path: Path, product: str, text: str, most: dict[str, Any], cause: str
) -> None:
    begun = time.monotonic()
    verdict, trial = played(tmp_path, product, text + ENDLESS, **most)
    assert (verdict, trial["ended_by"]) == ("fail", cause)
    assert time.monotonic() - begun < 15


def test_what_is_told_only_at_the_end_counts_too(subject: Path, tmp_path: Path) -> None:
    text = STEP + "import json\nfor n in range(4):\n    print(json.dumps(EVENT(n)))\n"
    assert played(tmp_path, "opencode", text, tokens=399)[1]["ended_by"] == "token_limit"


def test_what_stays_within_its_limits_is_not_touched(subject: Path, tmp_path: Path) -> None:
    text = STEP + "import json\nfor n in range(4):\n    print(json.dumps(EVENT(n)))\n"
    assert played(tmp_path, "opencode", text, tokens=400, money_usd=1.0)[1]["ended_by"] == "completed"


def test_records_that_make_no_sense_are_no_result(subject: Path, tmp_path: Path) -> None:
    verdict, trial = played(tmp_path, "claude", "print('no records at all')")
    assert (verdict, trial["ended_by"]) == ("harness_error", "transcript_unreadable")
    assert "no records at all" in trial["detail"]


@pytest.mark.parametrize(
    ("name", "product", "turns"),
    [("claude-maxturns", "claude", 3), ("opencode-basic", "opencode", 3)],
)
def test_turns_are_counted_alike(name: str, product: str, turns: int) -> None:
    path = Path(__file__).parents[2] / "fixtures" / "transcripts" / f"{name}.jsonl"
    assert limits.used(transcripts.parse(product, {"stdout": path.read_bytes()}))[0] == turns


def test_a_transcript_is_not_read_more_often_than_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    watch = limits.Limits(Options(turns=1), lambda stdout: looks.append(len(stdout)) or [])  # type: ignore[func-returns-value]
    stdout = bytearray()
    for _ in range(1000):
        stdout += json.dumps({"x": 1}).encode() + b"\n"
        watch(stdout)
    assert len(looks) == 1
    assert limits.Limits(Options(), lambda _: pytest.fail("nothing to watch"))(stdout) is None
    assert agents.find("noise").program is not None
