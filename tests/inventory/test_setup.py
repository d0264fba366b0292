"""`labd setup`: what it would do on made-up machines, and that it does exactly that, once, for real."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labd import inventory
from labd.call import Call
from labd.errors import NotFound, Unreachable
from labd.inventory import Machine
from labd.operations.model import Args
from labd.operations.setup import OPERATIONS, setup
from labd.platform.inventory import Account
from labd.platform.inventory_macos import MacInventory
from labd.setup_plan import PACKAGES, Step, plan
from tests.conftest import BenchInAFolder
from tests.inventory.machine import FakeMachine

Program = Callable[..., str]
Calls = Callable[..., Call]


def on_path_only(name: str, path: str | None) -> str | None:
    return shutil.which(name, path=path)


@pytest.fixture(autouse=True)
def no_programs_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labd.setup_plan.find_program", on_path_only)


def steps(machine: Machine, tmp_path: Path, **how: Any) -> dict[str, Step]:
    env = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), "XDG_RUNTIME_DIR": "/run/user/1000"}
    return {step.name: step for step in plan(machine, env, **how)}


def words(step: Step) -> list[str]:
    return [" ".join(command.argv) for command in step.commands]


# -- the plan ----------------------------------------------------------------------------------------------------


def test_what_is_missing_is_named_with_its_use_and_the_command(
    fake: FakeMachine, tmp_path: Path, program: Program
) -> None:
    program("apt-get")
    for name in PACKAGES:
        program(name)
    (tmp_path / "bin/tesseract").unlink()
    found = steps(fake.machine, tmp_path)["packages"]
    assert found.state == "needed" and "reading text on screens" in found.detail and found.root
    assert words(found)[0] == "apt-get update -q"
    assert [line.split()[-1] for line in words(found)[1:]] == ["tesseract-ocr", "console-setup-linux"]
    program("tesseract")
    fake.file("usr/share/consolefonts/Lat15-VGA16.psf.gz")
    assert steps(fake.machine, tmp_path)["packages"].state == "done"


def test_each_package_manager_has_its_own_names_and_none_is_told(
    fake: FakeMachine, tmp_path: Path, program: Program
) -> None:
    assert steps(fake.machine, tmp_path)["packages"].state == "yours"
    path = program("dnf")
    assert "dnf install -y android-tools" in words(steps(fake.machine, tmp_path)["packages"])
    os.unlink(path)
    program("pacman")
    assert "pacman -S --needed --noconfirm tesseract tesseract-data-eng" in words(
        steps(fake.machine, tmp_path)["packages"]
    )


def test_macos_installs_with_brew_and_has_neither_groups_nor_udev(
    fake: FakeMachine, tmp_path: Path, program: Program
) -> None:
    program("brew")
    mac = Machine(MacInventory(interfaces=[]), fake.ports, account=fake.machine.account)
    found = steps(mac, tmp_path)
    assert "brew install android-platform-tools" in words(found["packages"]) and not found["packages"].root
    assert not {"groups", "udev"} & set(found)


def test_groups_are_those_that_this_system_has_and_that_are_lacked(fake: FakeMachine, tmp_path: Path) -> None:
    found = steps(fake.machine, tmp_path)["groups"]
    assert words(found) == ["usermod -aG dialout,video,plugdev ann"] and "log out" in str(found.after)
    whole = {"uucp", "video"}
    fake.machine.account = Account("ann", root=False, listed=whole, active={"video"}, known=whole)
    assert steps(fake.machine, tmp_path)["groups"].state == "yours", "this session has them not yet"
    fake.machine.account = Account("ann", root=False, listed=whole, active=whole, known=whole)
    assert steps(fake.machine, tmp_path)["groups"].state == "done"
    fake.machine.account = Account("root", root=True, listed=(), active=(), known=whole)
    assert steps(fake.machine, tmp_path)["groups"].state == "done"


def test_udev_rules_are_proposed_whole_and_recognised(fake: FakeMachine, tmp_path: Path) -> None:
    assert steps(fake.machine, tmp_path)["udev"].state == "done", "there is no udev"
    (fake.root / "etc/udev/rules.d").mkdir(parents=True)
    found = steps(fake.machine, tmp_path)["udev"]
    (tee,) = found.commands
    rules = str(tee.stdin)
    for part in (
        'SUBSYSTEM=="hidg"',
        "ID_MM_DEVICE_IGNORE",
        'ATTR{latency_timer}="1"',
        'ATTR{power/control}="on"',
        'GROUP="dialout"',
    ):
        assert part in rules
    assert "{{" not in rules and all(line.count('"') % 2 == 0 for line in rules.splitlines())
    fake.file("run/udev/control")
    assert words(steps(fake.machine, tmp_path)["udev"])[1] == "udevadm control --reload"
    fake.file("etc/udev/rules.d/70-labd.rules", rules)
    assert steps(fake.machine, tmp_path)["udev"].state == "done"


def test_without_root_what_needs_root_is_left_out(fake: FakeMachine, tmp_path: Path, program: Program) -> None:
    program("apt-get")
    (fake.root / "etc/udev/rules.d").mkdir(parents=True)
    assert set(steps(fake.machine, tmp_path, user_only=True)) == {"program", "session"}
    assert words(steps(fake.machine, tmp_path)["session"]) == ["loginctl enable-linger ann"]


def test_a_clone_that_has_other_code_is_installed_from(fake: FakeMachine, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(Path(inventory.__file__).parent, clone / "labd", ignore=shutil.ignore_patterns("__pycache__"))
    assert steps(fake.machine, tmp_path, clone=str(clone))["clone"].state == "done"
    with open(clone / "labd/paths.py", "a") as file:
        file.write("# changed\n")
    found = steps(fake.machine, tmp_path, clone=str(clone), user_only=True)["clone"]
    assert found.state == "needed" and words(found)[0].endswith(f" {clone}") and found.after
    own = Path(inventory.__file__).parents[1]
    assert "clone" not in steps(fake.machine, tmp_path, clone=str(own)), "what runs is the clone"


# -- the verb ----------------------------------------------------------------------------------------------------


@pytest.fixture
def host(fake: FakeMachine, tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A machine whose system programs are scripts that note how they were called and do a little of it."""
    log, groups = tmp_path / "ran", tmp_path / "groups"
    note = f'echo "$(basename "$0") $*" >> {log}\n'
    program("sudo", note + '[ "$1" = -n ] && shift\nexec "$@"')
    for_all = f"for name; do :; done; printf '#!/bin/sh\\n' > {tmp_path}/bin/$name; /bin/chmod +x {tmp_path}/bin/$name"
    program("apt-get", note + f'[ "$1" = update ] && exit 0\n{for_all}')
    program("usermod", note + f"echo $2 > {groups}")
    program("loginctl", note)
    for name in ("tee", "basename", "mkdir", "ln", "cat"):
        real = shutil.which(name)
        assert real
        os.symlink(real, tmp_path / "bin" / name)
    (fake.root / "etc/udev/rules.d").mkdir(parents=True)

    def machine() -> Machine:
        listed = set(groups.read_text().strip().split(",")) if groups.exists() else set()
        known = fake.machine.account.known
        fake.machine.account = Account("ann", root=False, listed=listed, active=(), known=known)
        return fake.machine

    monkeypatch.setattr("labd.inventory.this_machine", machine)
    monkeypatch.setattr("labd.platform.inventory.this_account", lambda: machine().account)
    monkeypatch.setattr("labd.setup_plan.PACKAGES", {"sz": ("transfers", ("sz", "", "", "")), "adb": ("adb", ("adb",))})
    return SimpleNamespace(log=log, ran=lambda: log.read_text().splitlines() if log.exists() else [])


def run(call: Call, **how: Any) -> Any:
    return setup(call, Args({"yes": False, "only": None, "host": None, "user_only": False} | how))


def test_it_shows_and_does_nothing_until_told(host: SimpleNamespace, call: Calls, tmp_path: Path) -> None:
    answer = run(call(None, PATH=str(tmp_path / "bin")))
    states = {row["name"]: row["state"] for row in answer.data["steps"]}
    assert states == {"program": "needed", "packages": "needed", "groups": "needed", "udev": "needed",
                      "session": "done", "boards": "optional"}  # fmt: skip
    assert answer.code == 0 and host.ran() == [] and "nothing was done; labd setup --yes" in answer.text
    assert "sudo -n apt-get install -y --no-install-recommends adb" in answer.text
    assert not (tmp_path / ".local").exists() and os.listdir(tmp_path / "machine/etc/udev/rules.d") == []


def test_told_to_it_does_what_it_showed_and_the_second_time_nothing(
    host: SimpleNamespace, call: Calls, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    caller = call(None, PATH=str(tmp_path / "bin"))
    shown = run(caller)
    answer = run(caller, yes=True)
    assert answer.code == 0, answer.text
    states = {row["name"]: row["state"] for row in answer.data["steps"]}
    assert states == {"program": "yours", "packages": "done", "groups": "yours", "udev": "done",
                      "session": "done", "boards": "optional"}  # fmt: skip
    needed = [" ".join(command["argv"]) for row in shown.data["steps"] if row["state"] == "needed" and row["root"]
              for command in row["commands"]]  # fmt: skip
    assert [line for line in host.ran() if line.startswith("sudo")] == needed
    assert (tmp_path / "machine/etc/udev/rules.d/70-labd.rules").read_text().startswith("# Written by `labd setup`")
    assert (tmp_path / ".local/bin/labd").exists() and "log out and in again" in answer.text
    assert capfd.readouterr().out == "", "what the programs say is not the answer"
    before = host.ran()
    again = run(caller, yes=True)
    assert again.code == 0 and host.ran() == before


def test_a_package_that_fails_keeps_no_other_away_and_is_exit_1(
    host: SimpleNamespace, call: Calls, tmp_path: Path, program: Program
) -> None:
    good = (tmp_path / "bin/apt-get").read_text()
    program("apt-get", '[ "$4" = sz ] && exit 100\n' + good)
    answer = run(call(None, PATH=str(tmp_path / "bin")), yes=True, only=["packages"])
    (row,) = answer.data["steps"]
    assert answer.code == 1 and row["state"] == "failed" and "exit code 100" in row["detail"]
    assert (tmp_path / "bin/adb").exists() and not (tmp_path / "bin/sz").exists()


def test_commands_that_end_well_and_change_nothing_are_no_success(
    host: SimpleNamespace, call: Calls, tmp_path: Path, program: Program
) -> None:
    program("usermod", "exit 0")
    answer = run(call(None, PATH=str(tmp_path / "bin")), yes=True, only=["groups"])
    assert answer.code == 1 and "still not done" in answer.data["steps"][0]["detail"]


def test_without_sudo_it_says_so(host: SimpleNamespace, call: Calls, tmp_path: Path) -> None:
    (tmp_path / "bin/sudo").unlink()
    answer = run(call(None, PATH=str(tmp_path / "bin")), yes=True, only=["groups"])
    assert answer.code == 1 and "no program 'sudo'" in answer.data["steps"][0]["detail"]


def test_an_optional_step_is_done_only_where_it_is_named(host: SimpleNamespace, call: Calls, tmp_path: Path) -> None:
    caller = call(None, PATH=str(tmp_path / "bin"))
    run(caller, yes=True)
    assert not any("qemu" in line for line in host.ran())
    run(caller, yes=True, only=["boards"])
    assert any("qemu-system-x86" in line for line in host.ran())


def test_unknown_steps_and_hosts_are_exit_4_and_a_host_elsewhere_exit_7(
    host: SimpleNamespace, call: Calls, tmp_path: Path
) -> None:
    with pytest.raises(NotFound) as unknown:
        run(call(None), only=["udeb"])
    assert unknown.value.near == ["udev"]
    lab = '[hosts.far]\nssh = "me@far"\n'
    with pytest.raises(NotFound):
        run(call(lab), host="nope")
    with pytest.raises(Unreachable):
        run(call(lab), host="far")


def test_looking_needs_the_level_of_looking_and_doing_that_of_an_administrator() -> None:
    (operation,) = OPERATIONS
    assert (
        operation.effect_of(Args({"yes": False})) == "observe" and operation.effect_of(Args({"yes": True})) == "admin"
    )


def test_the_program_shows_this_machine_and_is_refused_to_change_it(labd: BenchInAFolder) -> None:
    rows = labd.json("setup", env={"LABD_POLICY": "observe"})["steps"]
    assert {"program", "packages"} <= {row["name"] for row in rows}
    refused = labd("setup", "--yes", "--only", "program", env={"LABD_POLICY": "observe"}, check=3)
    assert b"refused" in refused.stderr
