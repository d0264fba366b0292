"""Plays lines on a scenario as an agent would, and has the trial graded."""

import pytest

from harness import grading
from harness.agents import Agent
from harness.agents._script import play
from harness.scenario import Step, load_all
from harness.trial import Order, conduct

SCENARIOS = {one.id: one for one in load_all()}


@pytest.fixture
def caught(tmp_path):
    """The verdict on these lines, and the checks that failed or stayed open."""

    def judge(identity, *lines):
        steps = [Step(line) if isinstance(line, str) else line for line in lines]
        agent = Agent("cheat", "", frozenset({"fail"}), lambda bench: play(bench, steps))
        bundle = conduct(Order(identity, "cold", "cheat", 1), SCENARIOS[identity], agent, tmp_path, facts={})
        verdict = grading.grade(bundle)[0]
        return verdict.verdict, {check.name: check.detail for check in verdict.checks if not check.ok}

    return judge
