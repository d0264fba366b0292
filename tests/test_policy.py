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
        ("actuate", ["loopback:uboot", "/dev/ttyUSB0"], "bench"),
        ("actuate", [], "bench"),
    ],
)
def test_every_effect_needs_its_level(effect: str, devices: list[str], level: str):
    assert policy.needed(op(effect), devices) == level


def test_only_serial_lines_can_be_simulated_by_their_device():
    assert policy.needed(op("actuate", "power", "on"), ["loopback:uboot"]) == "bench"


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
