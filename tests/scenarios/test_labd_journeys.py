"""The labd journeys for real: other ways to the right end pass, side effects are told by name."""

import json

import pytest

from graders.argv_records import Invocation
from graders.journey import _left_alone
from graders.verdict import Check
from harness import grading, journeys
from harness.agents import JOURNEY, Agent, find
from harness.agents._script import play
from harness.scenario import Step
from harness.trial import Order, conduct

ALL = {one.id: one for one in journeys.load("labd")}


def judged(tmp_path, identity, agent):
    tmp_path.mkdir(exist_ok=True)
    bundle = conduct(Order(identity, "cold", agent.name, 1), ALL[identity], agent, tmp_path, facts={})
    return grading.grade(bundle)[0], json.loads((bundle / "state.json").read_text())


def by(*lines):
    steps = [one if isinstance(one, Step) else Step(one, shell=True) for one in lines]
    return Agent("other", "", frozenset({"pass", "fail"}), lambda bench: play(bench, steps))


def waiting(line, until):
    return Step(line, until=until)


@pytest.mark.slow
@pytest.mark.parametrize("identity", sorted(ALL))
def test_the_reference_gets_through_every_stage_and_every_control_fails(tmp_path, identity):
    found, _ = judged(tmp_path, identity, find("reference"))
    assert (found.verdict, {stage.verdict for stage in found.stages}) == ("pass", {"pass"}), found
    for name in JOURNEY[1:]:
        assert judged(tmp_path, identity, find(name))[0].verdict == "fail", name


def test_there_are_three_jobs_and_only_their_recovery_has_a_fault():
    told = {(one.journey.job, one.journey.variant): one.journey.fault is not None for one in ALL.values()}
    assert told == {(job, variant): variant == "recovery" for job in ("bringup", "choose", "rescue")
                    for variant in ("normal", "ambiguous", "recovery")}  # fmt: skip


BOOT = waiting("labd serial log dut --tail 0", "bench login:")


@pytest.mark.parametrize(("identity", "lines"), [
    # Entered with a slip, which is mended; the words come from a wait, not from the log.
    ("J-BRINGUP-NORMAL", ("labd target add dut; labd serial add consol -t dut -d loopback:dut.toml",
                          "labd serial rm consol -t dut; labd serial add console -t dut -b 57600 -d loopback:dut.toml",
                          "labd serial watch; labd serial watch dut; labd serial expect dut 'bench login' --since 0",
                          "labd serial log dut --tail 0 --json")),
    # One name for one after the other of them.
    ("J-BRINGUP-AMBIGUOUS", ("labd target add dut; labd serial add console -t dut -d loopback:middle.toml -b 57600",
                             "labd serial watch dut; labd serial expect dut 'spare login' --since 0",
                             "labd serial stop dut; labd serial set console -t dut -d loopback:right.toml",
                             "labd serial watch dut",
                            BOOT)),
    # Taken out whole and entered anew.
    ("J-BRINGUP-RECOVERY", ("labd target rm dut; labd target add dut",
                            "labd serial add console -t dut -d loopback:dut.toml -b 57600", "labd serial watch dut",
                            BOOT)),
    ("J-CHOOSE-NORMAL", ("labd serial watch node-3; labd power set -t node-3 --cycle-cmd wrong",
                         "labd power set -t node-3 --cycle-cmd 'relay-{nonce9} 8 cycle'",
                         "labd serial expect node-3 'SerialNumber: .*' --since 0")),
    # By the long way round, and with a press by another command.
    ("J-RESCUE-NORMAL", ("labd serial send dut; labd serial dtr dut --ms 150",
                         waiting("labd serial log dut --tail 0", "boot id {nonce}-2"))),
    ("J-RESCUE-RECOVERY", ("labd serial watch dutt; labd doctor dutt; letgo {holder}",
                           "labd serial add console -t dut --device {device}; labd target rm dutt",
                           "labd serial watch dut; labd serial run dut 'cat /proc/version'; echo {holder}")),
])  # fmt: skip
def test_other_ways_to_the_right_end_pass(tmp_path, identity, lines):
    found, _ = judged(tmp_path, identity, by(*lines))
    assert found.verdict == "pass", [check for check in found.checks if check.ok is not True]


@pytest.mark.parametrize(("identity", "lines", "failed"), [
    ("J-CHOOSE-NORMAL", ("labd power set -t node-3 --cycle-cmd 'relay-{nonce9} 8 cycle'; labd serial watch node-3",
                         "labd target add left-over",
                         waiting("labd serial log node-3 --tail 0", "SerialNumber: {nonce}")),
     "unrelated data unchanged"),
    ("J-RESCUE-NORMAL", ("labd serial reset dut; labd serial expect dut 'boot id .*-2' --since 0",
                         "labd serial watch spare; labd serial send spare reboot", "echo {nonce}-2"),
     "nothing else sent: spare.console"),
])  # fmt: skip
def test_side_effects_are_told_by_name(tmp_path, identity, lines, failed):
    found, _ = judged(tmp_path, identity, by(*lines))
    assert found.verdict == "fail"
    assert failed in [check.name for check in found.checks if check.ok is False]


def test_what_a_board_got_is_part_of_the_state_and_what_led_up_to_it_is_not(tmp_path):
    nothing = judged(tmp_path / "a", "J-RESCUE-NORMAL", find("noop"))
    pressed = judged(tmp_path / "b", "J-RESCUE-NORMAL", find("reference"))
    assert nothing[1]["before"] == nothing[1]["after"], "what was typed before the agent came is of the start"
    assert {stage.name: stage.verdict for stage in nothing[0].stages}["apply"] == "not_reached"
    assert pressed[1]["before"]["lab"] == pressed[1]["after"]["lab"]
    assert pressed[1]["before"]["boards"] != pressed[1]["after"]["boards"] == pressed[1]["replayed"]["boards"]


@pytest.mark.parametrize(("seen", "ok"), [
    ({"lab route": True, "lab history": True}, True),
    ({"lab route": True, "lab history": None}, None),
    ({"lab route": False, "lab history": True}, None),
    ({}, None),
])  # fmt: skip
def test_a_command_without_digests_left_all_alone_only_where_every_change_is_known(seen, ok):
    one = Invocation({"argv": ["labd", "target", "list"]}, {"code": 0})
    assert _left_alone(one, [Check(name, value, "") for name, value in seen.items()]).ok is ok
