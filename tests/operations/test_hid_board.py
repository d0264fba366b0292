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
[targets.pc.video]
device = "board:uboot-x86"
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


def test_the_guides_loop_look_act_settle_verify(pc: BenchInAFolder) -> None:
    console = ("--region", "0,0,800,768")  # without the logo at the right
    pc("video", "watch", "pc")
    before = pc.json("video", "read", "pc", "--stable", *console, "--timeout", "20000")
    assert before["engine"] == "console" and before["text"].rstrip().endswith("=>")
    pc("hid", "send", "-t", "pc", "type", "echo seen=$?")
    shot = ("video", "shot", "pc", "-o", "after.png", "--timeout", "20000")
    after = pc.json(*shot, "--changed-since", before["hash"], "--stable")
    assert after["hash"] != before["hash"] and (pc.root / "after.png").read_bytes()[:4] == b"\x89PNG"
    pc("hid", "send", "-t", "pc", "key", "enter")
    pc("video", "wait", "pc", "seen=0", *console)
    news = [line[1:].strip() for line in pc.out("video", "text", "pc", "--diff", "--since", before["hash"], *console)
            .splitlines() if line.startswith("+")]  # fmt: skip
    assert any(line.startswith("seen=0") for line in news), news
    pc("video", "stop", "pc")


def test_a_board_that_is_off_takes_no_keys(pc: BenchInAFolder) -> None:
    pc("power", "off", "pc")
    err = pc("hid", "send", "key", "a", check=7).stderr.decode()
    assert "does not run (prelaunch)" in err
    pc("power-cycle", "pc")


def test_a_simulation_needs_only_the_level_for_simulations(pc: BenchInAFolder) -> None:
    pc("hid", "send", "key", "esc", env={"LABD_POLICY": "simulated"})
