"""Virtual boards on the bench: one QEMU a target, that all its channels share."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import BenchInAFolder, a_bench, until
from tests.loopback.test_machine import alive, machinefile

LAB = """
[targets.pc]
[[targets.pc.serial]]
name = "console"
device = "board:uboot-x86"
prompt = "=> $"
[targets.pc.video]
device = "board:uboot-x86"
[targets.pc.power]
cycle_cmd = "qmp cycle --delay-ms 50"
on_cmd = "qmp on"
off_cmd = "qmp off"
state_cmd = "qmp state"

[targets.arm]
[[targets.arm.serial]]
name = "console"
device = "board:uboot-arm64"
[targets.arm.video]
device = "board:uboot-arm64"

[targets.two]
[[targets.two.serial]]
name = "console"
device = "board:uboot-x86"
[[targets.two.serial]]
name = "other"
device = "board:uboot-arm64"

[targets.none]
[[targets.none.serial]]
name = "console"
device = "board:uboot-x68"

[targets.mine]
[[targets.mine.serial]]
name = "console"
device = "board:./mine.toml"
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchInAFolder]:
    for name in ("uboot-x86", "uboot-arm64"):
        if machinefile.find(name).missing():
            pytest.skip(f"a virtual board can't be played: {machinefile.find(name).missing()}")
    with a_bench(tmp_path_factory.mktemp("machines")) as bench:
        bench.lab.write_text(LAB)
        yield bench


@pytest.fixture
def labd(shared: BenchInAFolder) -> Iterator[BenchInAFolder]:
    """The bench of this module; each test leaves it without a board."""
    yield shared
    shared("daemons", "stop", check=None)
    shutil.rmtree(shared.root / "state", ignore_errors=True)


def board_of(labd: BenchInAFolder, target: str = "pc") -> dict[str, Any]:
    found = [board for board in labd.json("daemons")["boards"] if board["name"] == f"{target}.board"]
    assert len(found) == 1, found
    return found[0]


def console(labd: BenchInAFolder) -> dict[str, Any]:
    """What pc's console is doing."""
    (found,) = labd.json("daemons")["channels"]
    return dict(found)


def booted(labd: BenchInAFolder, since: int = 0) -> None:
    """Wait for a boot's last words behind byte `since`."""
    labd("serial", "expect", "pc", "Hit any key", "--from-offset", str(since), "--timeout", "30")


def at_the_prompt(labd: BenchInAFolder) -> None:
    labd("serial", "watch", "pc")
    booted(labd)
    labd("serial", "send", "pc", " ")
    labd("serial", "expect", "pc", "=> $", "--from-offset", "0", "--timeout", "30")


def test_a_board_is_powered_on_watched_from_its_first_word_and_run_at_its_prompt(labd: BenchInAFolder):
    at_the_prompt(labd)
    (rx,) = labd.root.glob("state/labd/journal/*/pc/console/rx/*.raw")
    assert rx.read_bytes().lstrip().startswith(b"U-Boot 20"), "nothing of the beginning is lost"
    assert "GNU ld" in labd.out("serial", "run", "pc", "version")
    assert labd.out("serial", "run", "pc", "setenv a 'x y'; echo $a; false", check=1) == "x y\n", (
        "in U-Boot's own shell"
    )
    assert board_of(labd)["restarts"] == 0


def test_a_power_cycle_by_its_hook_boots_it_while_the_port_stays_open(labd: BenchInAFolder):
    at_the_prompt(labd)
    before = console(labd)
    qemu = board_of(labd)["qemu"]
    labd("power", "cycle", "pc")
    booted(labd, before["rx"])
    after = console(labd)
    assert after["reopened"] == before["reopened"] == 0 and after["rx"] > before["rx"]
    assert board_of(labd)["qemu"] == qemu
    assert "U-Boot 20" in labd.out("serial", "log", "pc", "--since-boot")


def test_a_hook_starts_the_board_that_it_switches(labd: BenchInAFolder):
    assert labd.json("daemons")["boards"] == []
    assert labd.json("power", "state", "pc")["power"] == "on"
    assert Path(board_of(labd)["directory"], "qmp").is_socket()
    labd("power", "off", "pc")
    assert labd.json("power", "state", "pc")["power"] == "off"


def test_at_level_simulated_a_virtual_board_may_be_switched_and_nothing_else(labd: BenchInAFolder):
    env = {"LABD_POLICY": "simulated"}
    labd("power", "cycle", "pc", env=env)
    labd.lab.write_text(LAB.replace('cycle_cmd = "qmp cycle', 'cycle_cmd = "qmp --socket /nowhere/qmp cycle'))
    try:
        refused = labd("power", "cycle", "pc", env=env, check=3)
        assert b"refused" in refused.stderr
    finally:
        labd.lab.write_text(LAB)


def test_a_board_whose_qemu_dies_comes_back_as_one_that_lost_power(labd: BenchInAFolder):
    at_the_prompt(labd)
    before = console(labd)["rx"]
    os.kill(board_of(labd)["qemu"], signal.SIGKILL)
    booted(labd, before)
    assert board_of(labd)["restarts"] == 1
    assert (console(labd)["state"], console(labd)["reopened"]) == ("open", 1)


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs PDEATHSIG and /proc")
def test_a_restarted_daemon_goes_on_with_it_and_a_killed_one_leaves_no_qemu(labd: BenchInAFolder):
    at_the_prompt(labd)
    board = board_of(labd)
    labd("daemons", "restart")
    again = board_of(labd)
    assert (again["pid"], again["qemu"]) == (board["pid"], board["qemu"])
    assert "GNU ld" in labd.out("serial", "run", "pc", "version"), "its console was captured all the while"
    pid = labd.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until("the end of the board", lambda: not alive(board["qemu"]) and not alive(board["pid"]))
    assert not Path(board["directory"], "qmp").exists()
    labd("serial", "watch", "pc")  # and the next daemon starts it anew
    assert board_of(labd)["qemu"] != board["qemu"]


def test_it_ends_with_the_last_channel_that_uses_it_or_by_name_with_all_that_watch_it(labd: BenchInAFolder):
    labd("serial", "watch", "pc")
    qemu = board_of(labd)["qemu"]
    labd("video", "watch", "pc")
    labd("serial", "stop", "pc")
    assert board_of(labd)["qemu"] == qemu, "its screen is watched"
    labd("video", "stop", "pc")
    assert labd.json("daemons")["boards"] == [] and not alive(qemu)

    labd("serial", "watch", "pc")
    labd("video", "watch", "pc")
    done = labd("daemons", "stop", "pc.board")
    assert b"pc.board" in done.stdout and b"ended with it: pc's screen, pc.console" in done.stderr
    listed = labd.json("daemons")
    assert (listed["boards"], listed["channels"]) == ([], []), "nothing starts it again"
    assert "not captured" in labd.out("video", "show", "pc")


def test_a_part_that_the_board_has_not_is_told_with_those_that_it_has(labd: BenchInAFolder):
    refused = labd("video", "watch", "arm", check=7).stderr.decode()
    assert "board:uboot-arm64 has no video; it has serial, nic" in refused
    assert labd.json("daemons")["boards"] == []


def test_what_is_no_board_is_told_with_what_was_meant(labd: BenchInAFolder):
    refused = labd("serial", "watch", "none", check=4).stderr.decode()
    assert "did you mean uboot-x86?" in refused


def test_a_board_file_of_ones_own_is_found_beside_the_lab(labd: BenchInAFolder):
    text = (machinefile.BOARDS / "uboot-x86.toml").read_text()
    (labd.root / "mine.toml").write_text(text)
    labd("serial", "watch", "mine")
    labd("serial", "expect", "mine", "U-Boot 20", "--from-offset", "0", "--timeout", "30")
    (labd.root / "mine.toml").write_text(text.replace("has =", "hsa ="))
    labd("serial", "stop", "mine")
    assert "did you mean has?" in labd("serial", "watch", "mine", check=4).stderr.decode()


def test_one_target_is_one_board(labd: BenchInAFolder):
    labd("serial", "watch", "two", "-i", "console")
    busy = labd("serial", "watch", "two", "-i", "other", check=6).stderr.decode()
    assert "its virtual board is board:uboot-x86" in busy


def test_a_missing_qemu_is_told_with_its_package(labd: BenchInAFolder, tmp_path: Path):
    labd("daemons", "stop", check=None)
    bare = {"PATH": f"{Path(labd.env['PATH'].split(':')[0])}"}
    refused = labd("serial", "watch", "pc", env=bare, check=7).stderr.decode()
    assert "qemu-system-x86_64 is not on PATH" in refused and "apt-get install qemu-system-x86" in refused
