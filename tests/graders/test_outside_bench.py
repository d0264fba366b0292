"""What happened outside the bench: pulses, power, boots, the holder, and that nothing else was driven."""

import pytest

from graders import outside_bench, task
from tests.graders.bundles import loopback

PULSES = [{"kind": "dtr", "ms": 201.5}, {"kind": "dtr", "ms": 3010.0}]
OFF = [{"kind": "power", "on": True}, {"kind": "state", "boots": 1}, *PULSES, {"kind": "power", "on": False}]


def checks(tmp_path, expect, records, *, outside=None, events=(), **trial):
    maker = loopback()
    maker.trial = {**maker.trial, "outside": outside or {"device": "rfc2217://127.0.0.1:7000", "holder": None}, **trial}
    maker.scenario["loopback"]["expect"] = expect
    maker.dut["dut.console"] = list(records)
    maker.journal["dut.console"] = (b"", list(events))
    return {check.name: check.ok for check in outside_bench.check(maker.write(tmp_path))}


PRESSED = [{"kind": "reset"}, {"kind": "reset"}]
MEASURED = "DTR pulses that the board measured"


@pytest.mark.parametrize(
    ("bounds", "ok"),
    [
        ([[20, 500], [2950, 9000]], True),
        ([[20, 500]], False),
        ([], False),
        ([[2950, 9000], [20, 500]], False),
        ([[20, 500], [3011, 9000]], False),
    ],
)
def test_pulses_are_all_of_them_in_order_within_bounds(tmp_path, bounds, ok):
    assert checks(tmp_path, {"pulses": bounds}, OFF, events=PRESSED)[MEASURED] is ok


def test_a_pulse_that_the_bench_does_not_tell_of_is_a_bypass(tmp_path):
    expect = {"pulses": [[20, 500], [2950, 9000]]}
    assert checks(tmp_path, expect, OFF, events=PRESSED)["pulses through the bench"] is True
    assert checks(tmp_path, expect, OFF, events=PRESSED[:1])["pulses through the bench"] is False


def test_none_expected_and_none_measured(tmp_path):
    assert checks(tmp_path, {"pulses": []}, OFF[:2])[MEASURED] is True


@pytest.mark.parametrize(
    ("records", "off"),
    [
        ([*OFF, {"kind": "client"}, {"kind": "exit"}], True),
        ([*OFF[:2], {"kind": "power", "on": False}, {"kind": "exit"}], False),  # the player's own end
        ([], False),
    ],
)
def test_the_power_at_the_end_is_not_that_after_the_end(tmp_path, records, off):
    assert checks(tmp_path, {"power": "off"}, records)["the board's power is off"] is off


def test_boots_are_counted_by_the_board(tmp_path):
    records = [{"kind": "state", "boots": 1}, {"kind": "state", "boots": 2}]
    assert checks(tmp_path, {"boots": 2}, records)["boots"] is True
    assert checks(tmp_path, {"boots": 1}, records)["boots"] is False


@pytest.mark.parametrize(("end", "ok"), [("let go", True), ("ended by somebody (code -15)", False), (None, None)])
def test_the_holder_has_let_go_by_itself(tmp_path, end, ok):
    outside = {"device": "/dev/ttyUSB0", "holder": {"pid": 1, "end": end} if end else None}
    assert checks(tmp_path, {"holder": "let go"}, OFF, outside=outside)["the holder: let go"] is ok


def test_a_port_that_is_not_the_boards_was_opened(tmp_path):
    mine, other = ({"kind": "open", "device": name} for name in ("rfc2217://127.0.0.1:7000", "/dev/ttyUSB7"))
    name = "only the board's own port"
    assert checks(tmp_path, {}, OFF, events=[mine, {"kind": "open", "device": "loopback:spare.toml"}])[name] is True
    assert checks(tmp_path, {}, OFF, events=[mine, other])[name] is False


def test_something_else_was_driven(tmp_path):
    maker = loopback()
    maker.trial = {**maker.trial, "outside": {"device": "/dev/ttyUSB0"}}
    maker.run("power-cycle dut", effect="actuate", operation="power-cycle")
    found = {check.name: check for check in outside_bench.check(maker.write(tmp_path))}
    assert found["nothing else driven"].ok is False
    assert "power-cycle" in found["nothing else driven"].detail


def test_without_anything_outside_nothing_is_asked(tmp_path):
    assert outside_bench.check(loopback().write(tmp_path)) == []


@pytest.mark.parametrize(
    ("answer", "look_for", "verdict"),
    [("fact-99", r"fact-(\d+)", "pass"), ("no idea", r"fact-(\d+)", "fail"), ("fact-99", "never said", "fail")],
)
def test_an_arm_is_graded_by_its_answer_and_by_nothing_of_the_bench(tmp_path, answer, look_for, verdict):
    maker = loopback()
    maker.records, maker.journal, maker.answer = None, {}, answer
    maker.scenario["task"] = {"look_for": look_for}
    assert task.grade(maker.write(tmp_path)).verdict == verdict


@pytest.mark.parametrize(
    ("opened", "ok"), [(["/dev/ttyUSB0"], True), (["/dev/ttyUSB0", "/dev/ttyUSB1"], False), ([], True)]
)
def test_where_a_real_board_is_driven_only_ports_of_the_lab_at_the_start_are_opened(tmp_path, opened, ok):
    maker = loopback()
    maker.scenario["boards"] = ["pico"]
    maker.before = b'[targets.dut]\n[[targets.dut.serial]]\nname = "console"\ndevice = "/dev/ttyUSB0"\n'
    maker.journal["dut.console"] = (b"", [{"kind": "open", "device": name} for name in opened])
    (check,) = outside_bench.check(maker.write(tmp_path))
    assert (check.ok, "ttyUSB1" in check.detail) == (ok, not ok)


def test_without_a_readable_lab_nobody_knows_which_ports_were_meant(tmp_path):
    maker = loopback()
    maker.scenario["boards"] = ["pico"]
    maker.before = b"[["
    assert [check.ok for check in outside_bench.check(maker.write(tmp_path))] == [None]
