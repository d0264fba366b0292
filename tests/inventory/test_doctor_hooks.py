"""What the doctor says of hooks: found as the bench finds them, never run; what they and their helpers need."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from labd import doctor_helpers, helpers
from labd.doctor_sudo import free_of_passwords
from labd.hookwords import Hook
from tests.inventory.conftest import Examine, serial, statuses
from tests.inventory.machine import FakeMachine

Program = Callable[..., str]


def test_hooks_are_understood_with_tilde_sudo_env_and_shell(
    examine: Examine, fake: FakeMachine, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("cycle.sh", "sudo", "env", "sh"):
        (tmp_path / "bin" / name).write_text("")
        (tmp_path / "bin" / name).chmod(0o755)
    allowed = b"    (root) NOPASSWD: ALL\n"
    fake.said = {f"sudo -n -l {tmp_path}/bin/cycle.sh": (0, b""), "sudo -n -l": (0, allowed)}
    rows = examine(
        '[targets.pico.power]\ncycle_cmd = "~/bin/cycle.sh --now"\non_cmd = "sudo -n -u root cycle.sh"\n'
        'off_cmd = "sh -c \'cycle.sh | tee x\'"\nstate_cmd = "env A=1 shellyplug -d 192.0.2.41 state"\n'
    )
    assert [(row["interface"], row["status"]) for row in rows] == [
        ("cycle_cmd", "ok"), ("on_cmd", "ok"), ("off_cmd", "ok"), ("state_cmd", "ok")]  # fmt: skip
    assert "bundled helper" in rows[3]["detail"]
    assert all("not run" in row["detail"] for row in rows)


@pytest.mark.parametrize(
    ("hook", "status", "part"),
    [("nosuch cycle", "missing", "nosuch"), ("shelyplug -d h cycle", "missing", "did you mean shellyplug?"),
     ("sudo nosuch", "missing", "sudo"), ("~/plain.sh", "denied", "executable"), ("A=1 x", "incomplete", "shell"),
     ("x 'y", "incomplete", "quote"), ("x | y", "incomplete", "sh -c"),
     ("shellyplug -d /dev/ttyNOPE cycle", "missing", "/dev/ttyNOPE")],
)  # fmt: skip
def test_hooks_that_cannot_run_say_why(examine: Examine, tmp_path: Path, hook: str, status: str, part: str) -> None:
    (tmp_path / "plain.sh").write_text("")
    (row,) = examine(f"[targets.pico.power]\ncycle_cmd = {json.dumps(hook)}\n")
    assert row["status"] == status and part in row["detail"] and row["fix"]


def test_a_power_channel_without_hooks_and_a_wrong_serial_interface_are_told(examine: Examine) -> None:
    assert statuses(examine("[targets.pico.power]\n")) == ["incomplete"]
    rows = examine('[targets.pico.power]\nserial_interface = "bmc"\n')
    assert [row["status"] for row in rows] == ["missing"]


def test_a_serial_interface_that_neither_senses_nor_switches_is_incomplete(examine: Examine) -> None:
    power = '[targets.pico.power]\nserial_interface = "console"\n'
    assert statuses(examine(power + serial("loopback:uboot")), "serial_interface") == ["incomplete"]
    sensing = power + serial("loopback:uboot", extra='power_sense_signal = "cts"\n')
    assert statuses(examine(sensing), "serial_interface") == ["ok"]


def hook(text: str, channel: str = "power", key: str = "cycle_cmd") -> str:
    return f"[targets.pico.{channel}]\n{key} = {json.dumps(text)}\n"


@pytest.mark.parametrize(
    "text",
    ["sh -c 'cd /tmp && ~/bin/cycle.sh | tee log'", "bash -lc '$HOME/bin/cycle.sh'", "timeout -k 1 30 ~/bin/cycle.sh",
     "env A=1 nice -n 5 ~/bin/cycle.sh", "sh -c 'A=1 exec ~/bin/cycle.sh'", "sh -c 'echo \"a;b\"; ~/bin/cycle.sh'"],
)  # fmt: skip
def test_the_program_is_found_behind_wrappers_and_shells(
    examine: Examine, program: Program, tmp_path: Path, text: str
) -> None:
    for name in ("sh", "bash", "timeout", "env", "nice"):
        program(name)
    (row,) = examine(hook(text))
    assert row["status"] == "missing" and f"{tmp_path}/bin/cycle.sh does not exist" in row["detail"]
    program("cycle.sh")
    (row,) = examine(hook(text))
    assert row["status"] == "ok" and "not run" in row["detail"]


def test_a_script_that_changes_its_directory_finds_its_programs_there(
    examine: Examine, program: Program, tmp_path: Path
) -> None:
    program("sh")
    text = "sh -c 'cd $HOME; cd relay && ./cycle --port=/dev/ttyNOPE'"
    assert f"{tmp_path}/relay/./cycle".replace("/./", "/") in examine(hook(text))[0]["detail"]
    (tmp_path / "relay").mkdir()
    (tmp_path / "relay/cycle").symlink_to(program("x"))
    assert "/dev/ttyNOPE, which is not there" in examine(hook(text))[0]["detail"]


def test_what_only_a_shell_can_tell_is_left_to_it(examine: Examine, program: Program) -> None:
    program("sh")
    for script in (
        "if true; then nosuch; fi",
        "$(which nosuch)",
        "X=$(nosuch) && echo $X",
        "for i in 1; do nosuch; done",
    ):
        (row,) = examine(hook(f"sh -c {json.dumps(script)[1:-1]!r}"))
        assert row["status"] == "ok" and "only the first command" in row["detail"], script


def test_sudo_that_would_ask_for_a_password_is_denied_and_the_rule_is_the_fix(
    examine: Examine, fake: FakeMachine, program: Program
) -> None:
    program("sudo")
    hub = program("uhub")
    line = "sudo -n uhub -a cycle"
    for code, listing, status in (
        (1, b"", "denied"),
        (None, b"", "denied"),
        (0, b"    (ALL : ALL) ALL\n", "denied"),
        (0, f"    (root) NOPASSWD: /bin/other, {hub}\n".encode(), "ok"),
    ):
        fake.said = {f"sudo -n -l {hub} -a cycle": (code, b""), "sudo -n -l": (0, listing)}
        (row,) = examine(hook(line))
        assert row["status"] == status, (code, listing)
        assert status == "ok" or f"ann ALL=(root) NOPASSWD: {hub}" in row["fix"]
    assert not any("cycle" in asked and "-l" not in asked for asked in fake.asked), "the hook must not run"


@pytest.mark.parametrize(
    ("listing", "free"),
    [("    (ALL : ALL) ALL", False), ("    (root) NOPASSWD: ALL", True), ("    (r) NOPASSWD: /a, /usr/bin/x y", True),
     ("    (root) NOPASSWD: /a, PASSWD: /usr/bin/x", False), ("    (root) /a, NOPASSWD: /usr/bin/x", True),
     ("    (ALL) ALL\n    (root) NOPASSWD: /usr/bin/x", True), ("    (root) NOPASSWD: ALL\n    (ALL) ALL", False),
     ("", False)],
)  # fmt: skip
def test_sudos_list_is_read_as_sudo_means_it(listing: str, free: bool) -> None:
    assert free_of_passwords(listing, "/usr/bin/x") is free


def test_what_a_helper_needs_in_its_turn_is_looked_for(
    examine: Examine, fake: FakeMachine, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = examine(hook("usbhub -l 1-2 cycle 3"))
    assert row["status"] == "missing" and "uhubctl" in row["detail"] and "apt install uhubctl" in row["fix"]
    fake.usb("1-2", bDeviceClass="09")
    other = program("my-uhubctl")
    assert statuses(examine(hook(f"usbhub -l 1-2 cycle 3 --uhubctl {other}"))) == ["ok"]
    program("uhubctl")
    assert statuses(examine(hook("usbhub -l 1-2 cycle 3"))) == ["ok"]
    assert "no USB hub 1-4; there is 1-2" in examine(hook("usbhub -l 1-4 cycle 3"))[0]["detail"]
    monkeypatch.setattr("labd.doctor_helpers.importable", lambda module: False)
    assert "labgrid" in examine(hook("pdu -m apc -d x cycle 1"))[0]["detail"]
    monkeypatch.setattr("labd.doctor_helpers.importable", lambda module: True)
    assert statuses(examine(hook("pdu -m apc -d x cycle 1"))) == ["ok"]
    (row,) = examine(hook("qmp cycle"))
    assert row["status"] == "incomplete" and "has none" in row["detail"]
    assert statuses(examine(hook("qmp --socket /x cycle"))) == ["ok"]
    assert statuses(examine(hook("qmp cycle") + '[targets.pico.video]\ndevice = "board:pc"\n'), "cycle_cmd") == ["ok"]


def test_a_usb_hub_that_may_not_be_opened_can_not_be_switched(
    examine: Examine, fake: FakeMachine, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("uhubctl")
    fake.usb("1-1", bDeviceClass="09", busnum="1", devnum="2")
    node = fake.file("dev/bus/usb/001/002")
    assert statuses(examine(hook("usbhub -l 1-1 cycle 1"))) == ["ok"]
    monkeypatch.setattr("labd.doctor_helpers.os.access", lambda path, mode: path != node)
    (row,) = examine(hook("usbhub -l 1-1 cycle 1"))
    assert row["status"] == "denied" and node in row["detail"] and "labd setup --only udev" in row["fix"]


def test_a_helpers_password_and_files_are_looked_for(
    examine: Examine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AMT_PASSWORD", raising=False)
    (row,) = examine(hook("amt -d 192.0.2.9 cycle"))
    assert row["status"] == "incomplete" and "AMT_PASSWORD" in row["detail"]
    assert statuses(examine(hook("amt -d 192.0.2.9 cycle"), AMT_PASSWORD="x")) == ["ok"]
    with_file = hook("amt -d 192.0.2.9 cycle --trust any --password-file ~/secret")
    assert f"{tmp_path}/secret, which is not there" in examine(with_file)[0]["detail"]
    (tmp_path / "secret").write_text("hunter2\n")
    (tmp_path / "secret").chmod(0o644)
    assert examine(with_file)[1]["fix"] == f"chmod 600 {tmp_path}/secret"
    (tmp_path / "secret").chmod(0o600)
    assert statuses(examine(with_file)) == ["ok"]


def test_a_helper_that_is_told_the_wrong_thing_is_told_of(examine: Examine) -> None:
    ok, row = examine(hook("shellyplug -d 192.0.2.9 off"))
    assert (ok["status"], row["status"]) == ("ok", "warning") and "cycle_cmd does not say 'cycle'" in row["detail"]
    assert statuses(examine(hook("shellyplug -d /dev/ttyNOPE off"))) == ["missing", "warning"], "no warning hides it"
    assert statuses(examine(hook("shellyplug -d 192.0.2.9 off", key="off_cmd"))) == ["ok"]
    assert "which device (-d)" in examine(hook("shellyplug cycle"))[0]["detail"]
    assert "which device (-d)" in examine(hook("hidrig", "hid", "cmd"))[0]["detail"]


def test_a_machine_that_is_no_keyboard_yet_types_nothing(
    examine: Examine, fake: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = examine(hook("hidgadget", "hid", "cmd"))
    assert row["status"] == "missing" and row["fix"] == "sudo labd helper hidgadget setup"
    node = fake.file("dev/hidg0")
    assert statuses(examine(hook("hidgadget", "hid", "cmd"))) == ["ok"]
    monkeypatch.setattr("labd.doctor_helpers.os.access", lambda path, mode: path != node)
    assert statuses(examine(hook("hidgadget", "hid", "cmd"))) == ["denied"]


def test_every_helper_that_the_doctor_knows_is_one() -> None:
    known = {*doctor_helpers.PROGRAMS, *doctor_helpers.MODULES, *doctor_helpers.PASSWORDS, *doctor_helpers.ADDRESSED}
    assert known <= set(helpers.bundled())
    for name in doctor_helpers.ADDRESSED:
        assert "-d" in helpers.described(name)[0], name


def test_devices_in_a_hook_are_held_against_the_lab_and_the_machine(
    examine: Examine, fake: FakeMachine, program: Program, pty: str
) -> None:
    program("relay")
    lab = hook(f"relay --port={pty} 1", "hid", "cmd")
    assert statuses(examine(lab)) == ["ok"]
    shared = [row for row in examine(lab + serial(pty)) if row["channel"] == "hid"]
    assert statuses(shared) == ["ok", "warning"] and "pico console" in shared[1]["detail"]


def test_secrets_in_a_hook_do_not_come_out(examine: Examine) -> None:
    (row,) = examine(hook("plug --password hunter2 cycle |"))
    assert "hunter2" not in json.dumps(row)


def test_what_sudo_is_to_run_is_told_apart_from_what_runs_sudo() -> None:
    taken = Hook("timeout 30 sudo -u root env A=1 /usr/sbin/hub on")
    assert taken.programs == ["timeout", "sudo", "env", "/usr/sbin/hub"]
    assert taken.by_sudo == ["env", "A=1", "/usr/sbin/hub", "on"]


def test_an_input_channel_without_a_command_is_incomplete(examine: Examine) -> None:
    (row,) = examine("[targets.pico.hid]\n")
    assert row["status"] == "incomplete" and "hid set -t pico --cmd" in row["fix"]
