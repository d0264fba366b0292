"""The grader `answer`: right words count only where a recorded command could have given them."""

import pytest

from harness import grading, scenario, subject
from harness.agents import Agent
from harness.scenario import Step
from harness.trial import Order, conduct

A1 = next(one for one in scenario.load_all("atlas") if one.id == "A1")
RIGHT = 'atlas count places --category bus_station --in "Cambridge, Massachusetts"'


@pytest.mark.parametrize(("lines", "says", "verdict", "why"), [
    ([RIGHT], "There are 2.", "pass", "checks held"),
    ([RIGHT], "There are 12.", "fail", "answer [0] matches"),
    ([], "There are 2.", "fail", "ran: what is there was asked for in the right town"),
    (['atlas count places --category bus_station --in "Cambridge, England"'], "2", "fail", "ran:"),
    (['atlas count places --category bus_stop --in "Cambridge, Massachusetts"'], "2", "fail", "ran:"),
    ([RIGHT, "atlas country Norway"], "2", "pass", "checks held"),
])  # fmt: skip
def test_an_answer_is_right_and_asked_for(tmp_path, lines, says, verdict, why):
    def act(bench):
        for line in lines:
            bench.run(Step(line))
        return says

    agent = Agent("t", "t", frozenset({verdict}), act)
    place = conduct(Order("A1", "cold", "t", 1), A1, agent, tmp_path, facts={})
    found = grading.judge(place)
    assert (found.grader, found.verdict) == ("answer", verdict), found.reason
    assert why in found.reason


def test_a_copy_that_is_run_by_its_path_goes_around_the_recorder(tmp_path):
    installed = subject.load("atlas").find()

    def act(bench):
        bench.run(Step(RIGHT.replace("atlas", str(installed), 1)))
        return "2"

    place = conduct(Order("A1", "cold", "t", 1), A1, Agent("t", "t", frozenset(), act), tmp_path, facts={})
    assert grading.judge(place).verdict == "fail"
