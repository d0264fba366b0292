"""`labd doctor` as a verb, and what it says of the machine as a whole."""

import os
import plistlib
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labd import __version__, doctor, doctor_machine
from labd.call import Call
from labd.errors import NotFound
from labd.operations import bench
from labd.operations.model import Answer, Args
from tests.conftest import BenchInAFolder
from tests.inventory.conftest import serial
from tests.inventory.machine import FakeMachine

Calls = Callable[..., Call]
Check = Callable[..., dict[str, dict[str, Any]]]


def test_doctor_exits_1_on_problems_and_its_rows_have_the_promised_keys(call: Calls) -> None:
    answer = bench._doctor(call(serial("/dev/ttyNOPE")), Args({"target": "pico", "host": None}))
    assert isinstance(answer, Answer) and answer.code == 1
    (row,) = [row for row in answer.data["rows"] if row["target"] == "pico"]
    assert set(row) == {"target", "channel", "interface", "device", "status", "detail", "fix", "host"}
    assert answer.text is not None and "1 problem, " in answer.text and "fix: " in answer.text


def test_an_empty_lab_is_never_all_fine(call: Calls) -> None:
    with pytest.raises(NotFound, match="nothing to check"):
        bench._doctor(call(""), Args({"target": None, "host": None}))
    answer = bench._doctor(call("[targets.pico]\n"), Args({"target": None, "host": None}))
    assert answer.code == 1 and answer.data["rows"][0]["status"] == "incomplete"


def test_a_filter_that_leaves_nothing_is_an_error_and_never_all_fine(call: Calls) -> None:
    lab = '[hosts.far]\nssh = "me@far"\n[targets.pico]\nhost = "far"\n' + serial("/dev/ttyUSB0")
    with pytest.raises(NotFound, match="no channel of pico is wired to this machine"):
        bench._doctor(call(lab), Args({"target": None, "host": "local"}))


def test_a_host_that_can_not_be_asked_is_a_problem(call: Calls) -> None:
    lab = '[hosts.far]\nssh = "ssh://me@127.0.0.1:1"\n[targets.pico]\n' + serial("loopback:bmc")
    lab += '[targets.pico.video]\nhost = "far"\ndevice = "0"\n'
    path = os.environ["PATH"]
    answer = bench._doctor(call(lab, PATH=path), Args({"target": "pico", "host": None}))
    assert answer.code == 1
    far = [row for row in answer.data["rows"] if row["host"] == "far"]
    assert [(row["status"], row["interface"]) for row in far] == [("unreachable", "far")] and far[0]["fix"]
    assert "host far" in answer.text


def test_an_unknown_target_has_a_near_match(call: Calls) -> None:
    with pytest.raises(NotFound) as unknown:
        bench._doctor(call("[targets.pico]\n"), Args({"target": "pica", "host": None}))
    assert unknown.value.near == ["pico"]


def test_an_unknown_target_is_exit_4_and_incomplete_counts(labd: BenchInAFolder) -> None:
    labd.lab.write_text("[targets.pico]\n[targets.pico.power]\n")
    assert b"did you mean 'pico'" in labd("doctor", "pica", check=4).stderr
    told = labd("doctor", check=1).stdout.decode()
    assert "incomplete" in told and "1 problem, " in told and "this machine" in told
    for verb in ("doctor", "discover", "configure new"):
        assert b"no host 'nope'" in labd(*verb.split(), "--host", "nope", check=4).stderr
    labd.lab.write_text("")
    assert b"nothing to check" in labd("doctor", check=4).stderr


def test_a_running_daemon_is_told_with_its_capture_and_does_not_hold_its_own_ports(board: BenchInAFolder) -> None:
    board("serial", "watch", "dut")
    rows = {row["interface"]: row for row in board.json("doctor")["rows"]}
    assert rows["daemon"]["status"] == "ok" and f"pid {board.daemon_pid()}" in rows["daemon"]["detail"]
    assert rows["console"]["status"] == "ok" and "capture" not in rows


# -- the machine -------------------------------------------------------------------------------------------------


@pytest.fixture
def check(fake: FakeMachine, tmp_path: Path) -> Check:
    """check(lab text, daemon, capture) → what was looked at → its row."""

    def run(text: str = "", daemon: Any = None, capture: Any = None, keep_mb: int = 1, **env: str) -> Any:
        where = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), "XDG_STATE_HOME": str(tmp_path / "state"), **env}
        b = doctor.Bench(fake.machine, tomllib.loads(text), str(tmp_path), where)
        rows = doctor_machine.check(b, SimpleNamespace(journal={"keep_mb": keep_mb}), daemon, capture)
        return {row["interface"]: row for row in rows}

    return run


def test_room_for_the_journals_is_held_against_what_they_may_grow_to(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = serial("/dev/ttyUSB0") + serial("/dev/ttyUSB1", "bmc")
    assert check(lab)["room"]["status"] == "ok"
    few = check(lab, keep_mb=10**9)["room"]
    assert few["status"] == "warning" and "2 interfaces" in few["detail"] and "keep_mb" in few["fix"]
    real = os.statvfs(tmp_path)
    full = os.statvfs_result((*real[:4], 0, *real[5:]))
    monkeypatch.setattr("labd.doctor_machine.os.statvfs", lambda path: full)
    assert check(lab)["room"]["status"] == "missing" and "0 MiB free" in check(lab)["room"]["detail"]
    monkeypatch.setattr("labd.doctor_machine.os.access", lambda path, mode: False)
    assert check(lab)["room"]["status"] == "denied"


def test_an_old_daemon_and_a_lost_capture_process_are_told(check: Check) -> None:
    daemon = {"pid": 7, "version": __version__, "level": "bench", "started": 0}
    capture = {"pid": 8, "version": __version__, "ports": 2}
    assert check(daemon=daemon, capture=capture)["daemon"]["status"] == "ok"
    assert check(daemon={**daemon, "version": "0.0.1"}, capture=capture)["daemon"]["fix"].startswith("labd daemons res")
    assert check(daemon=daemon)["capture"]["status"] == "missing"
    assert check(daemon=daemon, capture={**capture, "version": "0.0.1"})["capture"]["status"] == "warning"
    assert "keeps 2 ports" in check(capture=capture)["daemon"]["detail"]


def test_a_supply_that_sags_is_told_by_whatever_knows_of_it(check: Check, fake: FakeMachine) -> None:
    assert "power" not in check()
    fake.file("sys/class/hwmon/hwmon2/name", "rpi_volt\n")
    alarm = fake.file("sys/class/hwmon/hwmon2/in0_lcrit_alarm", "1\n")
    assert alarm in check()["power"]["detail"]
    Path(alarm).write_text("0\n")
    fake.file("dev/vcio")
    fake.said = {"vcgencmd get_throttled": (0, b"throttled=0x50005\n")}
    assert "is too low now (throttled=0x50005)" in check()["power"]["detail"]
    fake.said = {"vcgencmd get_throttled": (0, b"throttled=0x50000\n")}
    assert "has been too low since" in check()["power"]["detail"]
    fake.said = {"vcgencmd get_throttled": (0, b"throttled=0x0\n")}
    assert "power" not in check()


def test_hubs_that_give_too_little_are_told(check: Check, fake: FakeMachine) -> None:
    fake.usb("1-1", bDeviceClass="09", bmAttributes="a0", product="Cheap Hub")
    for port in (1, 2, 3):
        fake.usb(f"1-1.{port}", bDeviceClass="00", bMaxPower="150mA")
    fake.usb("1-1.3.1", bMaxPower="500mA")
    row = check()["power"]
    assert row["device"] == "1-1" and "3 devices may draw 450 mA" in row["detail"] and "Cheap Hub" in row["detail"]
    fake.usb("1-1", bmAttributes="e0")
    assert "power" not in check(), "it has a supply of its own"
    fake.file("sys/bus/usb/devices/1-0:1.0/usb1-port2/over_current_count", "3\n")
    assert "usb1-port2 cut the power 3 times" in check()["power"]["detail"]


def test_a_directory_that_goes_at_logout_is_told_unless_the_user_lingers(check: Check, fake: FakeMachine) -> None:
    assert check(XDG_RUNTIME_DIR="/run/user/1000")["session"]["fix"] == "loginctl enable-linger ann"
    fake.file("var/lib/systemd/linger/ann")
    assert "session" not in check(XDG_RUNTIME_DIR="/run/user/1000")


def test_programs_are_missed_only_where_the_lab_has_a_use_for_them(check: Check) -> None:
    assert "tools" not in check("[targets.pico]\n")
    assert "sz is not on PATH" in check(serial("/dev/x"))["tools"]["detail"]
    assert "ssh" in check('[hosts.far]\nssh = "x"\n')["tools"]["detail"]


def test_the_unit_files_start_the_daemon_in_the_foreground() -> None:
    folder = Path(__file__).parents[2] / "packaging"
    unit = (folder / "labd.service").read_text()
    assert "Type=notify\n" in unit and "labd daemon\n" in unit and "WantedBy=default.target" in unit
    agent = plistlib.loads((folder / "labd.plist").read_bytes())
    assert agent["ProgramArguments"][-1].endswith('/labd" daemon') and agent["KeepAlive"] == {"SuccessfulExit": False}
