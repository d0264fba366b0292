"""Typing at a real boot loader: by labd, through QEMU's keyboard, answered on the board's serial console."""

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.conftest import BenchInAFolder, a_bench
from tests.helpers.uboot_vm import QEMU, ROM

LAB = """\
[targets.pc.hid]
cmd = "qmp"
[targets.pc.power]
off_cmd = "qmp off"
cycle_cmd = "qmp cycle"
[[targets.pc.serial]]
name = "console"
device = "board:uboot-x86"
"""


@pytest.fixture(scope="module")
def pc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchInAFolder]:
    """A PC at U-Boot's prompt, to which its own keyboard brought it."""
    if not shutil.which(QEMU) or not os.path.exists(ROM):
        pytest.skip(f"needs {QEMU} and {ROM} (Debian: qemu-system-x86 u-boot-qemu)")
    with a_bench(tmp_path_factory.mktemp("pc")) as bench:
        bench.lab.write_text(LAB)
        bench("serial", "watch", "pc")
        bench("serial", "expect", "pc", "Hit any key", "--since", "0")
        bench("hid", "send", "-t", "pc", "key", "space")
        bench("serial", "expect", "pc", "=> ", "--since", "0", "--literal")
        yield bench


def test_a_command_typed_at_the_keyboard_is_answered_on_the_console(pc: BenchInAFolder) -> None:
    last = pc.json("serial", "log", "pc", "--tail", "1")["seq"]
    assert pc.out("hid", "send", "-t", "pc", "type", "echo TyPed-*") == "pc: type 12 characters\n"
    pc("hid", "send", "-t", "pc", "key", "enter")
    pc("serial", "expect", "pc", "\nTyPed-*", "--literal", "--since", str(last))


def test_a_key_held_by_a_kept_helper_is_held_over_sends_and_power_hooks(pc: BenchInAFolder) -> None:
    pc("hid", "serve", "pc")
    pc("hid", "send", "down", "shift")
    pc("hid", "send", "type", "version")
    pc("serial", "expect", "pc", "=> VERSION", "--literal", "--since", "0")
    pc("hid", "stop", "pc")
    pc("hid", "send", "type", "x")
    pc("serial", "expect", "pc", "VERSIONx", "--literal", "--since", "0")
    pc("hid", "send", "key", "ctrl-c")


def test_a_board_that_is_off_takes_no_keys(pc: BenchInAFolder) -> None:
    pc("power", "off", "pc")
    err = pc("hid", "send", "key", "a", check=7).stderr.decode()
    assert "does not run (prelaunch)" in err
    pc("power-cycle", "pc")


def test_a_simulation_needs_only_the_level_for_simulations(pc: BenchInAFolder) -> None:
    pc("hid", "send", "key", "esc", env={"LABD_POLICY": "simulated"})
