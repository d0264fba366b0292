"""The rules of permission, as values."""

import pytest

from labd import policy
from labd.errors import Refused, Usage
from labd.operations.model import Operation


def op(effect: str, *path: str) -> Operation:
    return Operation(path or ("serial", "send"), "x", effect=effect, missing="x")


def test_the_strictest_of_all_that_speak_is_in_force():
    assert policy.in_force([("a", "bench"), ("b", "observe"), ("c", "simulated")]) == ("observe", "b")


def test_nobody_speaking_means_bench():
    assert policy.in_force([])[0] == "bench"


def test_an_unknown_level_is_an_error_with_near_matches_never_a_default():
    with pytest.raises(Usage) as caught:
        policy.in_force([("LABD_POLICY", "observ")])
    assert caught.value.near == ["observe"]


@pytest.mark.parametrize(
    ("effect", "devices", "level"),
    [
        ("help", [], "help"),
        ("observe", [], "observe"),
        ("config", [], "config"),
        ("admin", [], "simulated"),
        ("actuate", ["loopback:uboot"], "simulated"),
        ("actuate", ["loopback:uboot", "board:x"], "simulated"),
        ("actuate", ["board:x", "shellyplug -d 192.0.2.41 on"], "bench"),
        ("actuate", ["loopback:uboot", "/dev/ttyUSB0"], "bench"),
        ("actuate", [], "bench"),
    ],
)
def test_every_effect_needs_its_level(effect: str, devices: list[str], level: str):
    assert policy.needed(op(effect), devices) == level


LINES = [{"device": "/dev/ttyUSB0", "power_sense_signal": None}, {"device": "board:x", "power_sense_signal": "cts"}]


@pytest.mark.parametrize(
    ("noun", "table", "acts_on"),
    [
        ("serial", {}, ["/dev/ttyUSB0", "board:x"]),
        ("video", {"video": {"device": "board:x"}}, ["board:x"]),
        ("video", {}, []),
        ("netboot", {"netboot": {"interface": "eth1"}}, []),
        ("hid", {"hid": {"cmd": "qmp"}, "video": {"device": "board:x"}}, ["board:x"]),
        ("hid", {"hid": {"cmd": "hidrig -d /dev/ttyACM0"}, "video": {"device": "board:x"}}, ["hidrig -d /dev/ttyACM0"]),
    ],
)
def test_a_call_acts_on_the_devices_and_hooks_of_its_own_channel(noun: str, table: dict, acts_on: list[str]):
    assert policy.addressed(noun, table, LINES) == acts_on


@pytest.mark.parametrize(
    ("command", "own"),
    [
        ("qmp cycle", True),
        ("qmp cycle --delay-ms 900", True),
        ("qmp --socket /run/vm/qmp cycle", False),  # any machine of this host
        ("qmp --sock=/run/vm/qmp cycle", False),
        ("/usr/local/bin/qmp cycle", False),  # not the bundled helper
        ("sh -c 'qmp cycle'", False),
        ("LABD_QMP=/run/vm/qmp qmp cycle", False),
        ("qmp cycle; shutdown now", False),
        ("'qmp", False),
    ],
)
def test_a_hook_is_simulated_where_it_can_reach_nothing_but_the_targets_own_virtual_board(command: str, own: bool):
    table = {"power": {"cycle_cmd": command, "timeout_s": 3}, "serial": [{"device": "board:x"}]}
    assert policy.addressed("power-cycle", table, []) == ["board:x" if own else command]
    assert policy.addressed("power-cycle", {"power": table["power"]}, []) == [command], "no virtual board here"


def test_the_power_of_a_virtual_board_that_a_real_line_tells_is_no_simulation():
    table = {"power": {"on_cmd": "qmp on"}, "serial": [{"device": "board:x"}]}
    lines = [{"device": "/dev/ttyUSB0", "power_sense_signal": "cts"}]
    assert policy.addressed("power", table, lines) == ["board:x", "/dev/ttyUSB0"]


@pytest.mark.parametrize("level", policy.LEVELS)
@pytest.mark.parametrize("need", policy.LEVELS)
def test_a_need_above_the_level_is_refused_and_says_what_would_permit_it(level: str, need: str):
    allowed = policy.LEVELS.index(need) <= policy.LEVELS.index(level)
    for who in ("LABD_POLICY", "the running daemon", "[policy]"):
        if allowed:
            policy.check(op("observe"), level, who, need)
        else:
            with pytest.raises(Refused) as caught:
                policy.check(op("observe"), level, who, need)
            assert need in (caught.value.hint or "") and "nothing ran" in caught.value.message
