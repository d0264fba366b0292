"""Linux facts: who has a device open, from real processes; what a device is, from a made-up sysfs."""

import os
import struct
import sys
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from labd.platform import current, linux, same_adapter
from tests.channels.rig import end, process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

HOLD = "import os,sys; os.open(sys.argv[1], os.O_RDWR|os.O_NOCTTY); print('ready', flush=True); sys.stdin.read()"
LOCK = (
    "import fcntl,os,sys; fd=os.open(sys.argv[1], os.O_RDWR|os.O_NOCTTY); fcntl.flock(fd, fcntl.LOCK_EX);"
    "print('ready', flush=True); sys.stdin.read()"
)


@pytest.fixture
def node() -> Iterator[str]:
    master, slave = os.openpty()
    tty.setraw(slave)
    yield os.ttyname(slave)
    os.close(slave)
    os.close(master)


def test_current_is_linux() -> None:
    assert current() is linux


def test_nobody_but_us_is_nobody(node: str) -> None:
    assert linux.holders(node) == []


def test_a_holder_is_named_by_pid_and_command_line(node: str) -> None:
    child = process(HOLD, node, "my terminal program")
    try:
        [found] = linux.holders(node)
        assert found["pid"] == child.pid
        assert "my terminal program" in found["command"]
        assert found["master"] is False
    finally:
        end(child)
    assert linux.holders(node) == []


def test_a_link_to_the_device_is_the_device(node: str, tmp_path: Path) -> None:
    os.symlink(node, tmp_path / "by-id")
    child = process(HOLD, node)
    try:
        assert [found["pid"] for found in linux.holders(str(tmp_path / "by-id"))] == [child.pid]
    finally:
        end(child)


def test_the_far_end_of_a_pty_is_told_from_a_rival(node: str) -> None:
    code = "import os,sys; m,s=os.openpty(); print('ready\\n' + os.ttyname(s), flush=True); sys.stdin.read()"
    child = process(code)
    try:
        assert child.stdout is not None
        [found] = linux.holders(child.stdout.readline().decode().strip())
        assert (found["pid"], found["master"]) == (child.pid, True)
    finally:
        end(child)


def test_a_lock_alone_names_its_holder_even_if_its_descriptors_may_not_be_listed(
    node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = process(LOCK, node)
    try:
        monkeypatch.setattr(linux, "_walk", lambda: ({}, {}))
        assert [found["pid"] for found in linux.holders(node)] == [child.pid]
    finally:
        end(child)


def test_many_askers_share_one_walk(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    walks = []
    monkeypatch.setattr(linux, "_walk", lambda: walks.append(1) or ({}, {}))
    monkeypatch.setattr(linux, "_last_walk", None)
    for _ in range(5):
        linux.holders(node, max_age_s=60)
    assert len(walks) == 1
    linux.holders(node)
    assert len(walks) == 2


def test_without_proc_nothing_is_known_and_nothing_raised(
    node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linux, "PROC", str(tmp_path / "no-proc"))
    assert linux.holders(node) == []
    assert linux.boot_id() == "unknown"
    assert linux.command(1) == "[unknown]"


def test_a_missing_device_has_no_holders() -> None:
    assert linux.holders("/dev/ttyUSB-not-there") == []


def test_a_pty_is_known_from_other_devices(node: str, tmp_path: Path) -> None:
    assert linux.is_pty(node)
    assert not linux.is_pty("/dev/null")
    assert not linux.is_pty(str(tmp_path / "missing"))


def test_a_pty_counts_no_errors(node: str) -> None:
    fd = os.open(node, os.O_RDWR | os.O_NOCTTY)
    assert linux.line_errors(fd) is None
    os.close(fd)


# A made-up sysfs --------------------------------------------------------------------------------------------------


def _adapter(
    root: Path, name: str, socket: str, *, serial: str | None, interface: str = "00", driver: str = ""
) -> None:
    """A USB serial adapter as the kernel shows one: device, interface, port, and the links of /dev/serial."""
    device = root / "sys/devices/usb1" / socket
    port = device / f"{socket}:1.{int(interface)}" / name
    port.mkdir(parents=True)
    for key, value in {"idVendor": "0403", "idProduct": "6001", "product": "FT232R", "manufacturer": "FTDI"}.items():
        (device / key).write_text(value + "\n")
    if serial:
        (device / "serial").write_text(serial + "\n")
    (port.parent / "bInterfaceNumber").write_text(interface + "\n")
    (port / "latency_timer").write_text("16\n")
    if driver:
        (root / "sys/bus/drivers" / driver).mkdir(parents=True, exist_ok=True)
        (port / "driver").symlink_to(root / "sys/bus/drivers" / driver)
    (root / "sys/class/tty" / name).mkdir(parents=True)
    (root / "sys/class/tty" / name / "device").symlink_to(port)
    (root / "dev/serial/by-id").mkdir(parents=True, exist_ok=True)
    (root / "dev/serial/by-path").mkdir(parents=True, exist_ok=True)
    (root / "dev" / name).touch()
    if serial:
        link = root / f"dev/serial/by-id/usb-FTDI_FT232R_{serial}-if{interface}-port0"
        link.unlink(missing_ok=True)  # udev's links go to whoever came last
        link.symlink_to(root / "dev" / name)
    (root / f"dev/serial/by-path/pci-usb-0:{socket}:1.{int(interface)}-port0").symlink_to(root / "dev" / name)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(linux, "SYS", str(tmp_path / "sys"))
    monkeypatch.setattr(linux, "DEV", str(tmp_path / "dev"))
    (tmp_path / "sys/class/tty/ttyS7").mkdir(parents=True)  # a name without hardware
    return tmp_path


def test_ports_are_listed_by_their_most_stable_name(tree: Path) -> None:
    _adapter(tree, "ttyUSB0", "1-1", serial="A1", driver="ftdi_sio")
    _adapter(tree, "ttyUSB1", "1-2", serial=None)
    ports = {port["node"]: port for port in linux.serial_ports()}
    named, bare = ports[f"{tree}/dev/ttyUSB0"], ports[f"{tree}/dev/ttyUSB1"]
    assert named["path"].endswith("by-id/usb-FTDI_FT232R_A1-if00-port0")
    assert bare["path"].endswith("by-path/pci-usb-0:1-2:1.0-port0")
    assert (named["serial"], named["driver"], named["latency_ms"]) == ("A1", "ftdi_sio", 16)
    assert named["description"] == "FTDI FT232R"
    assert len(ports) == 2


def test_adapters_that_can_not_be_told_apart_know_of_each_other(tree: Path) -> None:
    _adapter(tree, "ttyUSB0", "1-1", serial=None)
    _adapter(tree, "ttyUSB1", "1-2", serial=None)
    _adapter(tree, "ttyUSB2", "1-3", serial="C3")
    twins = {os.path.basename(port["node"]): len(port["twins"]) for port in linux.serial_ports()}
    assert twins == {"ttyUSB0": 1, "ttyUSB1": 1, "ttyUSB2": 0}


def test_an_adapter_is_found_again_by_its_serial_number_in_another_socket(tree: Path) -> None:
    _adapter(tree, "ttyUSB0", "1-1", serial="A1")
    before = linux.identity(f"{tree}/dev/ttyUSB0")
    assert before is not None
    _adapter(tree, "ttyUSB3", "2-4", serial="A1")
    (tree / "sys/class/tty/ttyUSB0/device").unlink()
    assert linux.find(before) == f"{tree}/dev/ttyUSB3"


def test_an_adapter_without_a_serial_number_is_known_by_its_socket(tree: Path) -> None:
    _adapter(tree, "ttyUSB0", "1-1", serial=None)
    _adapter(tree, "ttyUSB1", "1-2", serial=None)
    second = linux.identity(f"{tree}/dev/ttyUSB1")
    assert second is not None and second["topology"] == "1-2"
    assert linux.find(second) == f"{tree}/dev/ttyUSB1"
    assert linux.find({**second, "topology": "9-9"}) is None


def test_the_interfaces_of_one_adapter_are_different_ports(tree: Path) -> None:
    _adapter(tree, "ttyUSB0", "1-1", serial="A1", interface="00")
    one = linux.identity(f"{tree}/dev/ttyUSB0")
    assert one is not None
    assert not same_adapter(one, {**one, "interface": "01"})
    assert not same_adapter(one, None)


def test_what_is_no_usb_device_has_no_identity(tree: Path) -> None:
    assert linux.identity("/dev/pts/0") is None
    assert linux.identity("/dev/null") is None


def test_without_sysfs_there_are_no_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "SYS", str(tmp_path / "nothing"))
    assert linux.serial_ports() == []
    assert linux.find({"vid": "0403"}) is None


def test_the_real_machine_can_be_listed() -> None:
    for port in linux.serial_ports():
        assert {"path", "node", "by_id", "by_path", "description", "serial", "twins", "driver"} <= set(port)


def test_an_adapters_latency_timer_is_turned_down_and_what_it_is_then_is_told(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer = tree / "sys/class/tty/ttyUSB0/device/latency_timer"
    flags: list[int] = []

    def ioctl(fd: int, request: int, room: bytearray) -> int:
        if request == linux._TIOCSSERIAL:
            flags.append(int.from_bytes(room[16:20], sys.byteorder))
        return 0

    monkeypatch.setattr(linux.fcntl, "ioctl", ioctl)
    timer.parent.mkdir(parents=True, exist_ok=True)
    timer.write_text("16\n")
    assert linux.low_latency(3, "/dev/ttyUSB0") == 1
    assert flags == [1 << 13]

    def no_such_driver(fd: int, request: int, room: bytearray) -> int:
        raise OSError(25, "Inappropriate ioctl for device")

    monkeypatch.setattr(linux.fcntl, "ioctl", no_such_driver)
    timer.unlink()
    assert linux.low_latency(3, "/dev/ttyUSB0") is None


def test_our_own_helpers_are_no_holders(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    child = process(HOLD, node)
    try:
        monkeypatch.setattr(linux, "OURS", {child.pid})
        assert linux.holders(node) == []
    finally:
        end(child)


def test_the_ports_counts_come_from_the_kernels_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    def ioctl(fd: int, request: int, room: bytearray) -> int:
        assert request == 0x545D and len(room) == 80
        struct.pack_into("11i", room, 0, *range(1, 12))  # cts dsr rng dcd rx tx frame overrun parity brk buf_overrun
        return 0

    monkeypatch.setattr(linux.fcntl, "ioctl", ioctl)
    assert linux.line_errors(3) == {"frame": 7, "overrun": 8, "parity": 9, "breaks": 10, "buffer_overrun": 11}


def test_two_adapters_with_one_serial_number_are_told_apart_by_their_sockets() -> None:
    one = {"vid": "1", "pid": "2", "interface": "00", "serial": "0001", "topology": "1-1"}
    other = {**one, "topology": "1-2"}
    assert same_adapter(one, other)
    assert not same_adapter({**one, "twins": True}, other)
    assert same_adapter({**one, "twins": True}, dict(one))
