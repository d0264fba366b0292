"""What the doctor says of serial lines: on made-up machines, real pseudo-terminals and real processes."""

import os
import select
import subprocess
import sys
import termios
import tomllib
from pathlib import Path

import pytest

from labd import doctor, doctor_serial, inventory, platform
from labd.inventory import Machine
from labd.platform.inventory import Account
from labd.platform.inventory_linux import LinuxInventory
from labd.platform.inventory_macos import MacInventory
from labd.proposal import propose
from tests.inventory.conftest import Examine, serial, statuses
from tests.inventory.machine import FakeMachine


def test_a_device_that_is_not_there_is_missing_and_the_sole_unused_port_is_the_fix(
    examine: Examine, fake: FakeMachine, pty: str
) -> None:
    fake.adapter(pty, by_id="/dev/serial/by-id/usb-FTDI-if00")
    (row,) = examine(serial("/dev/ttyNOPE"))
    assert row["status"] == "missing" and "usb-FTDI-if00" in row["detail"]
    assert row["fix"] == "labd serial set console -t pico --device /dev/serial/by-id/usb-FTDI-if00"
    assert (row["target"], row["channel"], row["interface"], row["device"]) == (
        "pico",
        "serial",
        "console",
        "/dev/ttyNOPE",
    )


def test_with_several_unused_ports_the_fix_is_to_look(examine: Examine, fake: FakeMachine, pty: str) -> None:
    fake.adapter(pty)
    fake.adapter("/dev/null", 1)
    (row,) = examine(serial("/dev/ttyNOPE"))
    assert row["fix"].startswith("plug it in, or name another: labd serial set console -t pico --device DEVICE")


def test_this_machines_own_console_is_never_proposed_and_warned_of(
    examine: Examine, fake: FakeMachine, pty: str
) -> None:
    fake.adapter(pty)
    fake.file("proc/consoles", f"{os.path.basename(pty)}   -W- (EC  a)    4:64\n")
    (row,) = examine(serial("/dev/ttyNOPE"))
    assert row["fix"].startswith("plug it in") and pty not in row["detail"]
    assert "own kernel prints there" in examine(serial(pty))[1]["detail"]
    found = inventory.discover(fake.machine, {})
    assert "loopback:" in propose(found, "pico", None)["block"]


def test_a_link_that_leads_nowhere_says_where_it_led(examine: Examine, tmp_path: Path) -> None:
    link = tmp_path / "usb-FTDI"
    link.symlink_to("../../ttyUSB9")
    (row,) = examine(serial(str(link)))
    assert row["status"] == "missing" and "../../ttyUSB9" in row["detail"]


def test_a_plain_file_is_no_serial_device(examine: Examine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (row,) = examine(serial(str(tmp_path / "file")))
    assert row["status"] == "missing" and "not a serial device" in row["detail"]


def test_a_free_port_is_ok_and_a_pseudo_terminal_is_called_one(examine: Examine, fake: FakeMachine, pty: str) -> None:
    fake.ports.ptys.add(pty)
    (row,) = examine(serial(pty))
    assert row["status"] == "ok" and "pseudo-terminal" in row["detail"]


def test_a_port_that_another_program_has_open_is_busy_and_the_program_is_named(tmp_path: Path, pty: str) -> None:
    held = "import os,sys; os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY); print('open', flush=True); sys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", held, pty], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdin is not None and holder.stdout is not None
    try:
        assert select.select([holder.stdout], [], [], 30)[0], "the other program did not open the port"
        machine = Machine(LinuxInventory(str(tmp_path)), platform.current())
        data = tomllib.loads(serial(pty))
        rows = doctor.examine(doctor.Bench(machine, data, "/", {}), "pico", data["targets"]["pico"]["serial"])
    finally:
        holder.stdin.close()
        holder.wait(30)
        holder.stdout.close()
    assert rows[0]["status"] == "busy" and f"(pid {holder.pid})" in rows[0]["detail"]
    assert rows[0]["fix"] == f"ask its owner, or if it is yours: kill {holder.pid}"


@pytest.mark.parametrize(
    ("command", "fix"),
    [("/usr/sbin/ModemManager", "sudo systemctl stop ModemManager"), ("/bin/brltty -b", "sudo systemctl stop brltty"),
     ("/sbin/agetty -o x ttyUSB0", "sudo systemctl stop serial-getty@")],
)  # fmt: skip
def test_programs_that_are_services_are_stopped_as_services(
    examine: Examine, fake: FakeMachine, pty: str, command: str, fix: str
) -> None:
    fake.ports.held[pty] = [{"pid": 77, "command": command, "master": False}]
    (row,) = examine(serial(pty))
    assert row["status"] == "busy" and row["fix"].startswith(fix)


def test_the_far_end_of_a_pseudo_terminal_does_not_make_it_busy(examine: Examine, fake: FakeMachine, pty: str) -> None:
    fake.ports.held[pty] = [{"pid": 77, "command": "board", "master": True}]
    assert examine(serial(pty))[0]["status"] == "ok"


def test_everything_that_spoils_a_capture_is_a_warning_with_its_command(
    examine: Examine, fake: FakeMachine, pty: str
) -> None:
    fake.adapter(pty, by_id="/dev/serial/by-id/usb-FTDI-if00", latency_ms=16)
    fake.autosuspend()
    fake.runs("ModemManager", 41)
    fake.runs("brltty", 42)
    fake.file("lib/udev/rules.d/85-brltty.rules", 'ENV{PRODUCT}=="403/6001/*"\n')
    first, *rest = examine(serial(pty))
    assert first["status"] == "ok" and "ftdi_sio" in first["detail"]
    assert {row["status"] for row in rest} == {"warning"} and all(row["fix"] for row in rest)
    told = "\n".join(f"{row['detail']} {row['fix']}" for row in rest)
    for part in ("latency timer is 16 ms", "latency_timer", "suspend", "power/control", "ModemManager (pid 41)",
                 'ATTRS{idVendor}=="0403"', "brltty (pid 42)", "--device /dev/serial/by-id/usb-FTDI-if00"):  # fmt: skip
        assert part in told


def test_a_rule_that_keeps_modemmanager_off_silences_the_warning(examine: Examine, fake: FakeMachine, pty: str) -> None:
    fake.adapter(pty)
    fake.runs("ModemManager", 41)
    fake.udev(pty, ID_MM_DEVICE_IGNORE="1")
    assert [row["status"] for row in examine(serial(pty))] == ["ok"]


def test_two_adapters_with_one_by_id_name_are_told_apart_by_path(
    examine: Examine, fake: FakeMachine, pty: str, tmp_path: Path
) -> None:
    link = tmp_path / "by-id"
    link.symlink_to(pty)
    fake.adapter(pty, serial=None, by_id=str(link), by_path="/dev/serial/by-path/pci-1", twins=("/dev/ttyUSB1",))
    rows = examine(serial(str(link)))
    assert rows[1]["status"] == "warning" and "either" in rows[1]["detail"]
    assert rows[1]["fix"] == "labd serial set console -t pico --device /dev/serial/by-path/pci-1"


def test_two_interfaces_on_one_port_are_told(examine: Examine, pty: str) -> None:
    rows = examine(serial(pty) + serial(pty, "bmc"))
    assert [row["interface"] for row in rows if row["status"] == "warning"] == ["console", "bmc"]


def test_simulated_boards_are_looked_up_and_a_wrong_name_has_the_right_one_beside_it(
    examine: Examine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labd.doctor_boards.simulated", lambda: {"uboot": "a U-Boot", "bmc": "a BMC"})
    (tmp_path / "mine.toml").write_text("")
    assert examine(serial("loopback:uboot"))[0]["status"] == "ok"
    assert examine(serial("loopback:./mine.toml"))[0]["status"] == "ok"
    (row,) = examine(serial("loopback:ubot"))
    assert row["status"] == "missing" and row["fix"].endswith("--device loopback:uboot")
    assert examine(serial("loopback:./other.toml"))[0]["status"] == "missing"


def test_ports_on_the_network_are_named_and_not_contacted(examine: Examine) -> None:
    for device in ("rfc2217://h:1", "socket://h:1"):
        (row,) = examine(serial(device))
        assert row["status"] == "ok" and "h:1" in row["detail"] and "not contacted" in row["detail"]


def test_a_port_that_may_not_be_opened_names_the_group_to_join(
    examine: Examine, fake: FakeMachine, pty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chmod(pty, 0o660)
    group = inventory_group(pty)
    monkeypatch.setattr("labd.doctor_serial.os.access", lambda path, mode: False)
    (row,) = examine(serial(pty))
    assert row["status"] == "denied" and "is not in it" in row["detail"]
    assert row["fix"].startswith(f"sudo usermod -aG {group} ann")
    fake.machine.account = Account("ann", root=False, listed={group}, active=(), known={group})
    (row,) = examine(serial(pty))
    assert "started before that" in row["detail"] and row["fix"].startswith("labd daemons stop")
    os.chmod(pty, 0o600)
    assert "chmod 660" in examine(serial(pty))[0]["fix"]


def inventory_group(path: str) -> str:
    from labd.platform.inventory import group_of

    return group_of(path)


def test_a_flock_of_another_process_makes_a_port_busy(tmp_path: Path, pty: str) -> None:
    """Also one whose descriptors may not be listed: /proc/locks names it."""
    script = (
        "import fcntl, os, sys; fd = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)\n"
        "fcntl.flock(fd, fcntl.LOCK_EX); print('locked', flush=True); sys.stdin.read()"
    )
    with_lock = subprocess.Popen([sys.executable, "-c", script, pty], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert with_lock.stdin is not None and with_lock.stdout is not None
    try:
        assert select.select([with_lock.stdout], [], [], 30)[0], "the other program did not lock the port"
        ports = platform.current()
        assert [holder["pid"] for holder in ports.holders(pty)] == [with_lock.pid]
        data = tomllib.loads(serial(pty))
        machine = Machine(LinuxInventory(str(tmp_path)), ports)
        (row,) = doctor.examine(doctor.Bench(machine, data, "/", {}), "pico", data["targets"]["pico"]["serial"])
    finally:
        with_lock.stdin.close()
        with_lock.wait(30)
        with_lock.stdout.close()
    assert row["status"] == "busy" and f"(pid {with_lock.pid})" in row["detail"]


def test_what_a_process_of_our_own_holds_is_not_somebody_elses(tmp_path: Path, pty: str) -> None:
    with open(pty, "rb") as opened:
        child = subprocess.Popen(["sleep", "60"], stdin=opened)
    try:
        machine = Machine(LinuxInventory(), platform.current())
        assert [holder["pid"] for holder in machine.holders(pty)] == [child.pid] and machine.others(pty) == []
    finally:
        child.kill()
        child.wait()


def test_a_second_opener_of_a_port_that_labd_captures_is_called_a_thief(
    examine: Examine, fake: FakeMachine, pty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.ports.held[pty] = [{"pid": 77, "command": "screen", "master": False}]
    monkeypatch.setattr(fake.machine.facts, "held_by_this_process", lambda node: True)
    (row,) = examine(serial(pty))
    assert row["status"] == "busy" and "each takes bytes from the other" in row["detail"]


def test_hupcl_on_a_port_that_is_ours_is_told(examine: Examine, fake: FakeMachine, pty: str) -> None:
    fake.machine.facts.proc = "/proc"
    fd = os.open(pty, os.O_RDWR | os.O_NOCTTY)
    try:
        modes = termios.tcgetattr(fd)
        modes[2] &= ~termios.HUPCL
        termios.tcsetattr(fd, termios.TCSANOW, modes)
        assert statuses(examine(serial(pty))) == ["ok"]
        modes[2] |= termios.HUPCL
        termios.tcsetattr(fd, termios.TCSANOW, modes)
        ok, hupcl = examine(serial(pty))
    finally:
        os.close(fd)
    assert "captured by labd" in ok["detail"] and "HUPCL" in hupcl["detail"]
    assert hupcl["fix"] == f"stty -F {pty} -hupcl"


def test_that_opening_raises_dtr_is_told_where_that_presses_a_button(
    examine: Examine, fake: FakeMachine, pty: str
) -> None:
    fake.adapter(pty)
    quiet, button = "assert_dtr = false\n", "power_button = true\n"
    assert "power button" in examine(serial(pty, extra=button))[1]["detail"]
    assert "raises DTR" in examine(serial(pty, extra=quiet))[1]["detail"]
    assert statuses(examine(serial(pty))) == ["ok"]
    live = [{"target": "pico", "name": "console", "state": "open", "why": "", "failing": None}]
    assert statuses(examine(serial(pty, extra=button), live=live)) == ["ok"], "it is open already"


def test_uucp_locks_are_heeded_and_stale_ones_told(examine: Examine, fake: FakeMachine, pty: str) -> None:
    lock = fake.file(f"var/lock/LCK..{os.path.basename(pty)}", "       4711\n")
    ok, stale = examine(serial(pty))
    assert ok["status"] == "ok" and "4711, which is gone" in stale["detail"] and stale["fix"] == f"sudo rm {lock}"
    fake.runs("minicom", 4711)
    (busy,) = examine(serial(pty))
    assert busy["status"] == "busy" and "pid 4711 has locked it" in busy["detail"]


def test_what_the_daemon_knows_of_a_line_is_told(examine: Examine, fake: FakeMachine, pty: str) -> None:
    live = {"target": "pico", "name": "console", "state": "lost", "why": "unplugged", "failing": None}
    missing, waits = examine(serial("/dev/ttyNOPE"), live=[live])
    assert missing["status"] == "missing" and "goes on waiting" in waits["detail"] and "unplugged" in waits["detail"]
    full = {**live, "state": "open", "failing": "No space left on device", "journal": "/state/labd/j"}
    ok, failing = examine(serial(pty), live=[full])
    assert ok["status"] == "ok" and failing["status"] == "denied" and "No space left" in failing["detail"]
    assert failing["fix"] == "df -h /state/labd/j"


def test_virtual_boards_are_looked_up_with_what_plays_them(
    examine: Examine, program: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards = {
        "pc": {"title": "A PC", "has": [], "program": "qemu-x", "missing": None, "fix": None},
        "arm": {"title": "An Arm", "has": [], "program": "qemu-y", "missing": "qemu-y", "fix": "sudo apt install q"},
    }
    monkeypatch.setattr("labd.doctor_boards.virtual", lambda env: boards)
    assert statuses(examine(serial("board:pc"))) == ["ok"]
    live = [{"target": "pico", "name": "console", "state": "open", "why": "", "failing": None}]
    assert examine(serial("board:pc"), live=live)[0]["detail"].endswith("; captured by labd")
    (row,) = examine(serial("board:arm"))
    assert row["status"] == "missing" and row["fix"] == "sudo apt install q"
    (row,) = examine(serial("board:p"))
    assert row["status"] == "missing" and row["fix"] == "labd serial set console -t pico --device board:pc"
    assert statuses(examine('[targets.pico.video]\ndevice = "board:pc"\n'), None) == ["ok"]
    (row,) = examine(serial("board:./none.toml"))
    assert row["status"] == "missing" and "no virtual board file" in row["detail"]


def test_the_node_of_a_mac_that_waits_for_a_carrier_is_told(
    fake: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.adapter("/dev/cu.usbserial-1")
    fake.machine.facts = MacInventory(interfaces=[])
    data = tomllib.loads(serial("/dev/tty.usbserial-1"))
    bench = doctor.Bench(fake.machine, data, str(tmp_path), {"HOME": str(tmp_path)})
    line = doctor_serial._Line(bench, "pico", data["targets"]["pico"]["serial"][0])
    (row,) = line._naming()
    assert "waits for a carrier" in row["detail"] and row["fix"].endswith("--device /dev/cu.usbserial-1")
