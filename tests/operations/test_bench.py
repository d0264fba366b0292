"""discover, doctor and configure against made-up machines, real pseudo-terminals and real processes."""

import json
import os
import plistlib
import select
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labd import doctor, doctor_serial, inventory, platform
from labd.call import Call
from labd.errors import LabdError, NotFound, Unreachable
from labd.inventory import Machine
from labd.operations import bench
from labd.operations.model import Answer, Args
from labd.platform.inventory_linux import LinuxInventory
from labd.platform.inventory_macos import MacInventory
from tests.operations.machine import FakeMachine

Rows = list[dict[str, Any]]


@pytest.fixture
def fake(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path / "machine")


@pytest.fixture
def pty() -> Iterator[str]:
    master, slave = os.openpty()
    name = os.ttyname(slave)
    os.close(slave)
    yield name
    os.close(master)


@pytest.fixture
def examine(tmp_path: Path, fake: FakeMachine) -> Callable[..., Rows]:
    """examine(lab text, target) → rows, on the made-up machine."""

    def run(text: str, target: str = "pico", **env: str) -> Rows:
        data = tomllib.loads(text)
        b = doctor.Bench(
            fake.machine, data, str(tmp_path), {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), **env}
        )
        return doctor.examine(b, target, data["targets"][target].get("serial", []))

    return run


def call(tmp_path: Path, lab: str | None, **env: str) -> Call:
    path = tmp_path / "lab.toml"
    if lab is not None:
        path.write_text(lab)
    home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": "/nowhere"}
    return Call(face="test", argv=[], cwd=str(tmp_path), env={**home, "LABD_LAB": str(path), **env},
                out=lambda _: None, err=lambda _: None, columns=200)  # fmt: skip


def serial(device: str, name: str = "console", target: str = "pico") -> str:
    return f'[[targets.{target}.serial]]\nname = "{name}"\ndevice = "{device}"\n'


# -- doctor: serial ----------------------------------------------------------------------------------------------


def test_a_device_that_is_not_there_is_missing_and_the_sole_unused_port_is_the_fix(
    examine: Callable[..., Rows], fake: FakeMachine, pty: str
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


def test_with_several_unused_ports_the_fix_is_to_look(
    examine: Callable[..., Rows], fake: FakeMachine, pty: str
) -> None:
    fake.adapter(pty)
    fake.adapter("/dev/null", 1)
    (row,) = examine(serial("/dev/ttyNOPE"))
    assert row["fix"].startswith("plug it in, or name another: labd serial set console -t pico --device DEVICE")


def test_this_machines_own_console_is_never_proposed_and_warned_of(
    examine: Callable[..., Rows], fake: FakeMachine, pty: str
) -> None:
    fake.adapter(pty)
    fake.file("proc/consoles", f"{os.path.basename(pty)}   -W- (EC  a)    4:64\n")
    (row,) = examine(serial("/dev/ttyNOPE"))
    assert row["fix"].startswith("plug it in") and pty not in row["detail"]
    assert "own kernel prints there" in examine(serial(pty))[1]["detail"]
    found = inventory.discover(fake.machine, {})
    assert "loopback:" in bench.inventory_proposal(found, "pico", None)["block"]


def test_a_link_that_leads_nowhere_says_where_it_led(examine: Callable[..., Rows], tmp_path: Path) -> None:
    link = tmp_path / "usb-FTDI"
    link.symlink_to("../../ttyUSB9")
    (row,) = examine(serial(str(link)))
    assert row["status"] == "missing" and "../../ttyUSB9" in row["detail"]


def test_a_plain_file_is_no_serial_device(examine: Callable[..., Rows], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (row,) = examine(serial(str(tmp_path / "file")))
    assert row["status"] == "missing" and "not a serial device" in row["detail"]


def test_a_free_port_is_ok_and_a_pseudo_terminal_is_called_one(
    examine: Callable[..., Rows], fake: FakeMachine, pty: str
) -> None:
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
    examine: Callable[..., Rows], fake: FakeMachine, pty: str, command: str, fix: str
) -> None:
    fake.ports.held[pty] = [{"pid": 77, "command": command, "master": False}]
    (row,) = examine(serial(pty))
    assert row["status"] == "busy" and row["fix"].startswith(fix)


def test_the_far_end_of_a_pseudo_terminal_does_not_make_it_busy(
    examine: Callable[..., Rows], fake: FakeMachine, pty: str
) -> None:
    fake.ports.held[pty] = [{"pid": 77, "command": "board", "master": True}]
    assert examine(serial(pty))[0]["status"] == "ok"


def test_a_port_that_may_not_be_opened_names_the_group_to_join(
    examine: Callable[..., Rows], pty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chmod(pty, 0o660)
    monkeypatch.setattr(doctor_serial.os, "access", lambda path, mode: False)
    monkeypatch.setattr("labd.platform.inventory_linux.listed_in_group", lambda group: False)
    (row,) = examine(serial(pty))
    assert row["status"] == "denied" and "is not in it" in row["detail"] and row["fix"].startswith("sudo usermod -aG ")
    monkeypatch.setattr("labd.platform.inventory_linux.listed_in_group", lambda group: True)
    (row,) = examine(serial(pty))
    assert "started before that" in row["detail"] and row["fix"].startswith("labd daemons stop")


def test_everything_that_spoils_a_capture_is_a_warning_with_its_command(
    examine: Callable[..., Rows], fake: FakeMachine, pty: str
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


def test_a_rule_that_keeps_modemmanager_off_silences_the_warning(
    examine: Callable[..., Rows], fake: FakeMachine, pty: str
) -> None:
    fake.adapter(pty)
    fake.runs("ModemManager", 41)
    fake.udev(pty, ID_MM_DEVICE_IGNORE="1")
    assert [row["status"] for row in examine(serial(pty))] == ["ok"]


def test_two_adapters_with_one_by_id_name_are_told_apart_by_path(
    examine: Callable[..., Rows], fake: FakeMachine, pty: str, tmp_path: Path
) -> None:
    link = tmp_path / "by-id"
    link.symlink_to(pty)
    fake.adapter(pty, serial=None, by_id=str(link), by_path="/dev/serial/by-path/pci-1", twins=("/dev/ttyUSB1",))
    rows = examine(serial(str(link)))
    assert rows[1]["status"] == "warning" and "either" in rows[1]["detail"]
    assert rows[1]["fix"] == "labd serial set console -t pico --device /dev/serial/by-path/pci-1"


def test_two_interfaces_on_one_port_are_told(examine: Callable[..., Rows], pty: str) -> None:
    rows = examine(serial(pty) + serial(pty, "bmc"))
    assert [row["interface"] for row in rows if row["status"] == "warning"] == ["console", "bmc"]


def test_simulated_boards_are_looked_up_and_a_wrong_name_has_the_right_one_beside_it(
    examine: Callable[..., Rows], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "simulated", lambda: {"uboot": "a U-Boot", "bmc": "a BMC"})
    (tmp_path / "mine.toml").write_text("")
    assert examine(serial("loopback:uboot"))[0]["status"] == "ok"
    assert examine(serial("loopback:./mine.toml"))[0]["status"] == "ok"
    (row,) = examine(serial("loopback:ubot"))
    assert row["status"] == "missing" and row["fix"].endswith("--device loopback:uboot")
    assert examine(serial("loopback:./other.toml"))[0]["status"] == "missing"


def test_devices_that_this_version_cannot_open_are_incomplete(examine: Callable[..., Rows]) -> None:
    assert examine(serial("board:pc"))[0]["status"] == "incomplete"


def test_ports_on_the_network_are_named_and_not_contacted(examine: Callable[..., Rows]) -> None:
    for device in ("rfc2217://h:1", "socket://h:1"):
        (row,) = examine(serial(device))
        assert row["status"] == "ok" and "h:1" in row["detail"] and "not contacted" in row["detail"]


# -- doctor: other channels --------------------------------------------------------------------------------------


def test_hooks_are_understood_with_tilde_sudo_env_and_shell(examine: Callable[..., Rows], tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("cycle.sh", "sudo", "env", "sh"):
        (tmp_path / "bin" / name).write_text("")
        (tmp_path / "bin" / name).chmod(0o755)
    rows = examine(
        '[targets.pico.power]\ncycle_cmd = "~/bin/cycle.sh --now"\non_cmd = "sudo -n -u root cycle.sh"\n'
        'off_cmd = "sh -c \'cycle.sh | tee x\'"\nstate_cmd = "env A=1 shellyplug -d 192.0.2.41 state"\n'
    )
    assert [(row["interface"], row["status"]) for row in rows] == [
        ("cycle_cmd", "ok"), ("on_cmd", "ok"), ("off_cmd", "ok"), ("state_cmd", "ok")]  # fmt: skip
    assert "bundled helper" in rows[3]["detail"] and "sudo would ask" in rows[1]["detail"]
    assert all("not run" in row["detail"] for row in rows)


@pytest.mark.parametrize(
    ("hook", "status", "part"),
    [("nosuch cycle", "missing", "nosuch"), ("sudo nosuch", "missing", "sudo"), ("~/plain.sh", "denied", "executable"),
     ("A=1 x", "incomplete", "shell"), ("x 'y", "incomplete", "quote"), ("x | y", "incomplete", "sh -c"),
     ("shellyplug -d /dev/ttyNOPE", "missing", "/dev/ttyNOPE")],
)  # fmt: skip
def test_hooks_that_cannot_run_say_why(
    examine: Callable[..., Rows], tmp_path: Path, hook: str, status: str, part: str
) -> None:
    (tmp_path / "plain.sh").write_text("")
    (row,) = examine(f"[targets.pico.power]\ncycle_cmd = {json.dumps(hook)}\n")
    assert row["status"] == status and part in row["detail"] and row["fix"]


def test_a_power_channel_without_hooks_and_a_wrong_serial_interface_are_told(examine: Callable[..., Rows]) -> None:
    rows = examine('[targets.pico.power]\nserial_interface = "bmc"\n')
    assert [row["status"] for row in rows] == ["incomplete", "missing"]


def test_netboot_checks_the_interface_the_folder_and_the_boot_file(
    examine: Callable[..., Rows], fake: FakeMachine, tmp_path: Path
) -> None:
    fake.nic("enx1")
    fake.nic("eth0", usb=False, default=True)
    fake.nic("enx2", carrier="0")
    (tmp_path / "tftp").mkdir()

    def netboot(interface: str, extra: str = "") -> list[str]:
        rows = examine(f'[targets.pico.netboot]\ninterface = "{interface}"\ntftp_root = "~/tftp"\n{extra}')
        return [row["status"] for row in rows]

    assert netboot("enx1") == ["ok", "ok"]
    assert netboot("enx9") == ["missing", "ok"]
    assert netboot("eth0") == ["warning", "ok"]
    assert netboot("enx2") == ["warning", "ok"]
    assert netboot("enx1", 'boot_file = "kernel.img"') == ["ok", "missing"]
    assert [row["status"] for row in examine("[targets.pico.netboot]\n")] == ["incomplete", "incomplete"]


def test_video_is_matched_by_index_unique_name_or_path(
    examine: Callable[..., Rows], fake: FakeMachine, tmp_path: Path
) -> None:
    fake.camera(0, "USB Video: A")
    fake.camera(2, "USB Video: B")

    def video(device: str) -> str:
        return str(examine(f'[targets.pico.video]\ndevice = "{device}"\n')[0]["status"])

    assert [video(d) for d in ("2", "video: b", "auto", "http://x/y")] == ["ok", "ok", "ok", "warning"]
    assert [video(d) for d in ("USB Video", "webcam", "/dev/video9")] == ["incomplete", "missing", "missing"]


def test_adb_asks_the_running_server_and_starts_none(
    examine: Callable[..., Rows], fake: FakeMachine, tmp_path: Path
) -> None:
    lab = '[targets.pico.adb]\nserial = "ABC123"\n'
    assert examine(lab)[0]["status"] == "missing"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "adb").write_text("")
    (tmp_path / "bin" / "adb").chmod(0o755)
    assert examine(lab)[0]["status"] == "warning"
    listed = {"ABC123 device product:x model:Pixel": "ok", "ABC123 unauthorized": "denied", "OTHER device": "missing"}
    for line, status in listed.items():
        with AdbServer(line) as address:
            fake.machine.adb = address
            assert examine(lab)[0]["status"] == status


def test_a_channel_on_another_host_is_not_checked_and_says_so(examine: Callable[..., Rows]) -> None:
    (row,) = examine('[hosts.far]\nssh = "me@far"\n[targets.pico]\nhost = "far"\n' + serial("/dev/ttyUSB0"))
    assert row["status"] == "warning" and "not checked" in row["detail"] and "ssh me@far" in row["fix"]


# -- doctor: the verb --------------------------------------------------------------------------------------------


def test_doctor_exits_1_on_problems_and_its_rows_have_the_promised_keys(tmp_path: Path) -> None:
    answer = bench._doctor(call(tmp_path, serial("/dev/ttyNOPE")), Args({"target": "pico", "host": None}))
    assert isinstance(answer, Answer) and answer.code == 1
    (row,) = answer.data["rows"]
    assert set(row) == {"target", "channel", "interface", "device", "status", "detail", "fix"}
    assert answer.text is not None and "1 problem," in answer.text and "fix: " in answer.text


def test_an_empty_lab_is_never_all_fine(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nothing to check"):
        bench._doctor(call(tmp_path, ""), Args({"target": None, "host": None}))
    answer = bench._doctor(call(tmp_path, "[targets.pico]\n"), Args({"target": None, "host": None}))
    assert answer.code == 1 and answer.data["rows"][0]["status"] == "incomplete"


def test_an_unknown_target_has_a_near_match_and_a_remote_host_is_exit_7(tmp_path: Path) -> None:
    lab = '[hosts.far]\nssh = "me@far"\n[targets.pico]\n'
    with pytest.raises(NotFound) as unknown:
        bench._doctor(call(tmp_path, lab), Args({"target": "pica", "host": None}))
    assert unknown.value.near == ["pico"]
    for handler, target in ((bench._doctor, "pico"), (bench._configure, "new")):
        with pytest.raises(Unreachable):
            handler(call(tmp_path, lab), Args({"target": target, "host": "far"}))
        with pytest.raises(NotFound):
            handler(call(tmp_path, lab), Args({"target": target, "host": "nope"}))


# -- discover and configure --------------------------------------------------------------------------------------


def test_discover_lists_what_is_plugged_in_and_who_holds_it(fake: FakeMachine, pty: str, tmp_path: Path) -> None:
    fake.adapter(pty, by_id="/dev/serial/by-id/usb-FTDI-if00")
    fake.ports.held[pty] = [{"pid": 7, "command": "tio", "master": False}]
    fake.nic("enx1")
    fake.nic("eth0", usb=False, default=True)
    fake.camera(0, "USB Video")
    with AdbServer("ABC123 device model:Pixel") as address:
        fake.machine.adb = address
        found = inventory.discover(fake.machine, {})
    assert found["serial"][0]["device"] == "/dev/serial/by-id/usb-FTDI-if00"
    assert [nic["device"] for nic in found["ethernet"]] == ["enx1", "eth0"]
    assert found["video"][0]["name"] == "USB Video"
    assert found["adb"] == [{"serial": "ABC123", "state": "device", "model": "Pixel"}]
    assert found["notes"] == []
    text = bench._discover_text(found, call(tmp_path, None))
    assert "held by tio (pid 7)" in text and "default route: not for netboot" in text
    json.dumps(found)


def test_a_machine_with_nothing_says_where_was_looked(fake: FakeMachine) -> None:
    found = inventory.discover(fake.machine, {"PATH": "/nowhere"})
    assert [note.split(":")[0] for note in found["notes"]] == ["serial", "ethernet", "video", "adb"]


def test_this_machine_can_be_looked_at(tmp_path: Path) -> None:
    found = bench._discover(call(tmp_path, None), Args({}))
    json.dumps(found)
    assert bench._discover_text(found, call(tmp_path, None)).count("\n") > 5


def test_macos_is_read_from_what_its_programs_say(tmp_path: Path, fake: FakeMachine) -> None:
    said = {
        "networksetup": b"\nHardware Port: USB 10/100/1000 LAN\nDevice: en7\nEthernet Address: 00:e0:4c:68:00:01\n"
        b"\nHardware Port: Wi-Fi\nDevice: en0\nEthernet Address: 00:11:22:33:44:55\n",
        "route": b"   route to: default\n  interface: en0\n",
        "ifconfig": b"en7: flags\n\tstatus: active\n",
        "system_profiler": b'{"SPCameraDataType": [{"_name": "USB Video", "spcamera_unique-id": "0x11"}]}',
    }
    mac = MacInventory(lambda argv, seconds: (0, said[argv[0]]), ["en0", "en7", "lo0"])
    found = inventory.discover(Machine(mac, fake.ports, adb=("127.0.0.1", 1)), {})
    assert [(nic["device"], nic["active"]) for nic in found["ethernet"]] == [("en7", True)]
    assert found["video"][0]["device"] == "0x11"


def test_macos_without_its_programs_has_fewer_answers_and_no_error(fake: FakeMachine, tmp_path: Path) -> None:
    machine = Machine(MacInventory(interfaces=["en0", "lo0"]), fake.ports, adb=("127.0.0.1", 1))
    found = inventory.discover(machine, {})
    assert found["ethernet"][0]["active"] is None and any("did not tell its cameras" in note for note in found["notes"])
    bench._discover_text(found, call(tmp_path, None))
    data = tomllib.loads('[targets.pico.netboot]\ninterface = "en0"\n[targets.pico.video]\ndevice = "USB"\n')
    rows = doctor.examine(doctor.Bench(machine, data, "/", {}), "pico", [])
    assert [row["status"] for row in rows] == ["ok", "incomplete", "warning"]


def test_configure_proposes_unused_hardware_and_writes_nothing(fake: FakeMachine, pty: str, tmp_path: Path) -> None:
    fake.adapter(pty, by_id="/dev/serial/by-id/usb-A")
    fake.adapter("/dev/null", 1, by_id="/dev/serial/by-id/usb-B")
    fake.nic("enx1")
    fake.camera(0, "USB Video")
    caller = call(tmp_path, serial("/dev/serial/by-id/usb-A", target="old"))
    before = (tmp_path / "lab.toml").read_bytes()
    found = inventory.discover(fake.machine, {})
    proposal = bench.inventory_proposal(found, "pico", caller.lab())
    block = tomllib.loads(proposal["block"])["targets"]["pico"]
    assert block["serial"][0]["device"] == "/dev/serial/by-id/usb-B"
    assert block["netboot"]["interface"] == "enx1" and block["video"]["device"].endswith("video0")
    assert proposal["commands"][0] == "labd target add pico"
    assert "nothing was written" in bench._configure_text(proposal, caller)
    assert tomllib.loads(bench._configure_text(proposal, caller))["targets"]["pico"] == block
    assert (tmp_path / "lab.toml").read_bytes() == before


def test_configure_without_hardware_proposes_a_simulated_board(fake: FakeMachine) -> None:
    proposal = bench.inventory_proposal(inventory.discover(fake.machine, {}), "pico", None)
    assert 'device = "loopback:linux-login"' in proposal["block"] and "simulated" in proposal["notes"][0]
    with pytest.raises(LabdError, match="can't be a target's name"):
        bench.inventory_proposal(inventory.discover(fake.machine, {}), "../x", None)


def test_the_unit_files_start_the_daemon_in_the_foreground() -> None:
    folder = Path(__file__).parents[2] / "packaging"
    unit = (folder / "labd.service").read_text()
    assert "Type=notify\n" in unit and "labd daemon\n" in unit and "WantedBy=default.target" in unit
    agent = plistlib.loads((folder / "labd.plist").read_bytes())
    assert agent["ProgramArguments"][-1].endswith('/labd" daemon') and agent["KeepAlive"] == {"SuccessfulExit": False}


class AdbServer:
    """An adb server that lists one device, on a port of its own, for any number of questions."""

    def __init__(self, line: str) -> None:
        self.text = f"{line}\n".encode()

    def __enter__(self) -> tuple[str, int]:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()
        return ("127.0.0.1", self.listener.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                assert client.recv(64) == b"000ehost:devices-l"
                client.sendall(b"OKAY%04x" % len(self.text) + self.text)
