"""Every scenario for real: its reference passes, and each of its five controls is caught.

A scenario whose control passes is broken: it would let a lie, or a way around the tool, count as work.
"""

import json
import subprocess
import sys

import pytest

from harness import capability
from harness.agents import CONTROLS, find
from harness.scenario import load_all

#: Mostly waiting for boards: more trials at once than there are processors.
JOBS = "6"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    program = [sys.executable, "-m", "harness.cli", "run", "--all", "--json", "--jobs", JOBS, "--out", str(out)]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)
    assert ran.stdout, ran.stderr
    (directory,) = (path for path in out.iterdir() if path.is_dir() and not path.is_symlink())
    return directory, ran


def verdicts(directory):
    found = {}
    for path in directory.glob("trials/*/grades/*.json"):
        scenario, _, agent, _ = path.parent.parent.name.split(".")
        found[scenario, agent] = json.loads(path.read_text())
    return found


@pytest.mark.slow
def test_every_reference_passes_and_every_control_is_caught(report):
    directory, ran = report
    found = verdicts(directory)
    wanted = {(one.id, "reference"): "pass" for one in load_all()}
    wanted |= {(one.id, name): "fail" for one in load_all() for name in CONTROLS if find(name).plays(one)}
    lacking = {one.id for one in load_all() if capability.missing(one)}
    wanted |= {key: "blocked" for key in wanted if key[0] in lacking}
    wrong = {key: (verdict["verdict"], verdict["reason"]) for key, verdict in found.items()
             if verdict["verdict"] != wanted[key]}  # fmt: skip
    assert wrong == {}
    assert set(found) == set(wanted)
    assert ran.returncode == 0


@pytest.mark.slow
def test_the_bench_passes_every_task_and_nobody_sees_what_was_printed_before_they_looked(tmp_path):
    program = [sys.executable, "-m", "harness.cli", "versus", "--json", "--jobs", JOBS, "--out", str(tmp_path)]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)
    found = {(row["scenario"], row["agent"]): row["verdict"] for row in json.loads(ran.stdout)["trials"]}
    tasks = [one.id for one in load_all() if one.task is not None]
    assert {task: found[task, "labd"] for task in tasks} == dict.fromkeys(tasks, "pass")
    assert found["T-PRE", "raw"] == "fail"
    assert found["T-PRE", "socat-log"] in ("fail", "blocked")
    assert len(found) == 3 * len(tasks)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
def test_the_ways_around_the_door_are_caught_each_by_its_name(report):
    found = verdicts(report[0])
    reasons = {name: found[name, "hand-edit"]["reason"] for name in ("C2", "C3", "C5", "C6", "C7", "S1")}
    for name, words in {"C2": "hand edit", "C3": "copied binary", "C5": "absolute path", "C6": "hand edit",
                        "C7": "hand edit", "S1": "hand edit"}.items():  # fmt: skip
        assert words in reasons[name]
    past = [check["name"] for check in found["S4", "hand-edit"]["checks"] if check["ok"] is False]
    assert "sent through the bench: dut.console" in past


@pytest.mark.slow
def test_a_right_end_reached_by_hand_differs_from_the_right_one_by_its_way_alone(report):
    """For these scenarios the hand edit ends in the very state that is asserted; nothing but the route tells."""
    found = verdicts(report[0])
    for name in ("C2", "C3", "C5", "C6", "C7", "S1"):
        bad = {check["name"] for check in found[name, "hand-edit"]["checks"] if check["ok"] is False}
        assert bad, name
        assert bad <= {"lab route", "program", "lab history", "processes", "the bench's own record"}, name


@pytest.mark.slow
def test_a_read_that_gets_the_facts_elsewhere_is_caught_by_the_missing_record(report):
    found = verdicts(report[0])
    for name in ("C4", "C8", "S3"):
        checks = found[name, "hand-edit"]["checks"]
        bad = [check["name"] for check in checks if check["ok"] is False and not check["name"].startswith("central")]
        assert len(bad) == 1
        assert bad[0].startswith("ran: ")
