"""`labd discover` and `labd configure`: what a made-up machine has, and what is proposed of it."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labd import doctor, inventory
from labd.call import Call
from labd.errors import LabdError
from labd.inventory import Machine
from labd.operations import bench
from labd.operations.benchtext import discover_text
from labd.operations.model import Args
from labd.platform.inventory_macos import MacInventory
from labd.proposal import propose
from tests.inventory.adb_server import AdbServer
from tests.inventory.conftest import serial
from tests.inventory.machine import FakeMachine

Calls = Callable[..., Call]


def test_discover_lists_what_is_plugged_in_and_who_holds_it(fake: FakeMachine, pty: str) -> None:
    by_path = "/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0-port0"
    fake.adapter(pty, by_id="/dev/serial/by-id/usb-FTDI-if00", by_path=by_path)
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
    text = discover_text(found, 200)
    assert "held by tio (pid 7)" in text and "default route: not for netboot" in text
    assert by_path in text and found["serial"][0]["by_path"] == by_path
    json.dumps(found)


def test_a_machine_with_nothing_says_where_was_looked(fake: FakeMachine) -> None:
    found = inventory.discover(fake.machine, {"PATH": "/nowhere"})
    assert [note.split(":")[0] for note in found["notes"]] == ["serial", "ethernet", "video", "adb"]


def test_this_machine_can_be_looked_at(call: Calls) -> None:
    found = bench._discover(call(None), Args({"host": None}))
    json.dumps(found)
    assert discover_text(found, 80).count("\n") > 5


def test_input_injectors_are_told_by_their_ids_and_names(fake: FakeMachine) -> None:
    fake.adapter("/dev/null", 0, vid="239a", pid="8106", by_id="/dev/serial/by-id/usb-kb-if00", interface="00")
    fake.adapter("/dev/zero", 0, vid="239a", pid="8106", by_id="/dev/serial/by-id/usb-kb-if02", interface="02")
    fake.adapter("/dev/full", 1, vid="1a86", pid="7523", serial=None)
    gadget = fake.file("dev/hidg0")
    rows = inventory.discover(fake.machine, {})["hid"]
    assert [(row["device"], row["cmd"], row["sure"]) for row in rows] == [
        ("/dev/serial/by-id/usb-kb-if02", "hidrig -d /dev/serial/by-id/usb-kb-if02", True),
        (gadget, "hidgadget", True),
        ("/dev/full", "ch9329 -d /dev/full", False),
    ]


def test_a_machine_that_could_be_a_keyboard_is_told_how(fake: FakeMachine) -> None:
    fake.file("sys/class/udc/fe980000.usb/state")
    assert any("hidgadget setup" in note for note in inventory.discover(fake.machine, {})["notes"])
    fake.file("dev/hidg0")
    assert not any("hidgadget setup" in note for note in inventory.discover(fake.machine, {})["notes"])


def test_virtual_boards_say_what_is_missing_to_play_them(fake: FakeMachine) -> None:
    boards = {board["device"]: board for board in inventory.discover(fake.machine, {"PATH": "/nowhere"})["boards"]}
    assert len(boards) >= 1 and all(board["missing"] for board in boards.values())
    pc = boards["board:uboot-x86"]
    assert "qemu-system-x86_64" in pc["missing"] and pc["fix"].split()[-2 if "u-boot" in pc["fix"] else -1]
    assert pc["missing"] in discover_text(inventory.discover(fake.machine, {"PATH": "/nowhere"}), 400)


def test_macos_is_read_from_what_its_programs_say(fake: FakeMachine) -> None:
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


def test_macos_without_its_programs_has_fewer_answers_and_no_error(fake: FakeMachine) -> None:
    fake.net.plug("en0", carrier=True)
    machine = Machine(MacInventory(interfaces=["en0", "lo0"]), fake.ports, adb=("127.0.0.1", 1), net=fake.net)  # type: ignore[arg-type]
    found = inventory.discover(machine, {})
    assert found["ethernet"][0]["active"] is None and any("did not tell its cameras" in note for note in found["notes"])
    discover_text(found, 80)
    data = tomllib.loads('[targets.pico.netboot]\ninterface = "en0"\n[targets.pico.video]\ndevice = "USB"\n')
    rows = doctor.examine(doctor.Bench(machine, data, "/", {}), "pico", [])
    assert [row["status"] for row in rows if row["interface"] in (None, "tftp_root")] == ["ok", "incomplete", "warning"]


def test_macos_tells_who_listens_and_who_descends_from_whom() -> None:
    said = {
        "lsof -nP -iUDP:67 -Fpcn": (0, b"p501\ncbootpd\nn*:67\n"),
        "lsof -nP -iTCP:80 -sTCP:LISTEN -Fpcn": (1, b""),
        "ps -axo pid=,ppid=": (0, b"  501   1\n  600 501\n"),
    }
    mac = MacInventory(lambda argv, seconds: said.get(" ".join(argv), (None, b"")))
    assert mac.listeners("udp", 67) == [{"address": "0.0.0.0", "pid": 501, "command": "bootpd"}]
    assert mac.listeners("tcp", 80) == [] and mac.listeners("udp", 69) is None
    assert mac.descends(600, 501) and not mac.descends(501, 600)


def test_configure_proposes_unused_hardware_and_writes_nothing(
    fake: FakeMachine, pty: str, tmp_path: Path, call: Calls
) -> None:
    fake.adapter(pty, by_id="/dev/serial/by-id/usb-A")
    fake.adapter("/dev/null", 1, by_id="/dev/serial/by-id/usb-B")
    fake.nic("enx1")
    fake.camera(0, "USB Video")
    caller = call(serial("/dev/serial/by-id/usb-A", target="old"))
    before = (tmp_path / "lab.toml").read_bytes()
    found = inventory.discover(fake.machine, {})
    proposal = propose(found, "pico", caller.lab())
    block = tomllib.loads(proposal["block"])["targets"]["pico"]
    assert block["serial"][0]["device"] == "/dev/serial/by-id/usb-B"
    assert block["netboot"]["interface"] == "enx1" and block["video"]["device"].endswith("video0")
    assert proposal["commands"][0] == "labd target add pico"
    assert "nothing was written" in bench._configure_text(proposal, caller)
    assert tomllib.loads(bench._configure_text(proposal, caller))["targets"]["pico"] == block
    assert (tmp_path / "lab.toml").read_bytes() == before


def test_configure_without_hardware_proposes_a_simulated_board(fake: FakeMachine) -> None:
    proposal = propose(inventory.discover(fake.machine, {}), "pico", None)
    assert 'device = "loopback:linux-login"' in proposal["block"] and "simulated" in proposal["notes"][0]
    with pytest.raises(LabdError, match="can't be a target's name"):
        propose(inventory.discover(fake.machine, {}), "../x", None)


def test_configure_proposes_every_kind_that_is_there(fake: FakeMachine, pty: str, call: Calls) -> None:
    fake.adapter(pty, 0, by_id="/dev/serial/by-id/usb-FTDI")
    fake.adapter("/dev/null", 1, vid="239a", pid="8105", by_id="/dev/serial/by-id/usb-KB2040")
    fake.adapter("/dev/full", 2, vid="1a86", pid="7523", serial=None)
    fake.nic("enx1")
    fake.camera(0, "USB Video")
    fake.usb("1-1.4", bDeviceClass="09")
    with AdbServer("ABC123 device model:Pixel") as address:
        fake.machine.adb = address
        found = inventory.discover(fake.machine, {})
    proposal = propose(found, "pi.5", None, host="bench1")
    block = tomllib.loads(proposal["block"])["targets"]["pi.5"]
    assert set(block) == {"host", "netboot", "serial", "video", "hid", "adb"} and block["host"] == "bench1"
    assert block["serial"][0]["device"] == "/dev/serial/by-id/usb-FTDI", "an injector is no console"
    assert block["hid"]["cmd"] == "hidrig -d /dev/serial/by-id/usb-KB2040" and block["adb"]["serial"] == "ABC123"
    notes = "\n".join(proposal["notes"])
    assert (
        "labd helper ch9329 -d /dev/full version" in notes
        and "shellyplug" in notes
        and "--sense cts" in notes
        and "1-1.4" in notes
    )


def test_what_configure_proposes_can_be_typed_and_makes_the_same_lab(fake: FakeMachine, pty: str, labd: Any) -> None:
    fake.adapter(pty, by_id="/dev/serial/by-id/usb-a b")
    fake.camera(0, "USB Video")
    proposal = propose(inventory.discover(fake.machine, {}), "pico", None)
    import shlex

    for command in proposal["commands"]:
        labd(*shlex.split(command)[1:])
    assert tomllib.loads(labd.lab.read_text()) == tomllib.loads(proposal["block"])


def test_configure_proposes_to_a_target_of_the_lab_only_what_it_lacks(fake: FakeMachine, pty: str, call: Calls) -> None:
    fake.adapter(pty)
    fake.camera(0, "USB Video")
    caller = call(serial("loopback:uboot"))
    proposal = propose(inventory.discover(fake.machine, {}), "pico", caller.lab())
    assert set(tomllib.loads(proposal["block"])["targets"]["pico"]) == {"video"}
    assert len(proposal["commands"]) == 1 and "in the lab already" in proposal["notes"][0]
    nothing = propose(inventory.discover(FakeMachine(fake.root / "bare").machine, {}), "pico", caller.lab())
    assert nothing["block"] == "" and "every channel" in nothing["notes"][-1]
    tomllib.loads(bench._configure_text(nothing, caller))


def test_what_a_hook_of_the_lab_opens_is_in_use(fake: FakeMachine, call: Calls) -> None:
    fake.adapter("/dev/full", vid="239a", pid="8105")
    lab = call('[targets.old.hid]\ncmd = "sudo hidrig -d /dev/full"\n').lab()
    assert "hid" not in propose(inventory.discover(fake.machine, {}), "pico", lab)["block"]
