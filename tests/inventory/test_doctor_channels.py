"""What the doctor says of network boot, screens and Android devices."""

import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from labd.netboot.link import root_commands
from labd.platform.inventory import Account
from labd.platform.inventory_linux import LinuxInventory
from tests.inventory.adb_server import AdbServer
from tests.inventory.conftest import Examine, serial, statuses
from tests.inventory.machine import FakeMachine

Program = Callable[..., str]

FONTS = "usr/share/consolefonts/Lat15-VGA16.psf.gz"


def test_netboot_checks_the_interface_the_folder_and_the_boot_file(
    examine: Examine, fake: FakeMachine, tmp_path: Path
) -> None:
    fake.nic("enx1")
    fake.nic("eth0", usb=False, default=True)
    fake.nic("enx2", carrier="0")
    (tmp_path / "tftp").mkdir()
    (tmp_path / "tftp/start.elf").write_text("x")

    def netboot(interface: str, extra: str = "") -> list[str]:
        fake.may_serve()
        rows = examine(f'[targets.pico.netboot]\ninterface = "{interface}"\ntftp_root = "~/tftp"\n{extra}')
        return [row["status"] for row in rows if row["interface"] in (None, "tftp_root")]

    assert netboot("enx1") == ["ok", "ok"]
    assert netboot("enx9") == ["missing", "ok"]
    assert netboot("eth0") == ["denied", "ok"]
    assert netboot("enx2") == ["warning", "ok"]
    assert netboot("enx1", 'boot_file = "kernel.img"') == ["ok", "missing"]
    assert netboot("enx1", 'boot_file = "../secret"') == ["ok", "denied"]
    assert netboot("enx1", 'host_ip = "127.0.0.1"') == ["denied", "ok"]
    (tmp_path / "tftp/link").symlink_to("/etc/passwd")
    assert netboot("enx1") == ["ok", "denied"]
    fake.may_serve()
    assert statuses(examine("[targets.pico.netboot]\n"))[:2] == ["incomplete", "incomplete"]


def netboot(root: Path, extra: str = "") -> str:
    (root / "tftp").mkdir(exist_ok=True)
    (root / "tftp/start.elf").write_text("x")
    return f'[targets.pico.netboot]\ninterface = "enx1"\ntftp_root = "{root}/tftp"\n{extra}'


def test_netboot_needs_its_programs_and_the_right_to_use_them(
    examine: Examine, fake: FakeMachine, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.nic("enx1")
    monkeypatch.setattr("labd.doctor_netboot.find_program", lambda name, path: None)
    rows = examine(netboot(tmp_path))
    assert statuses(rows, "dnsmasq") == statuses(rows, "ip") == ["missing"]
    monkeypatch.setattr("labd.doctor_netboot.find_program", lambda name, path: f"/usr/sbin/{name}")
    (rights,) = [row for row in examine(netboot(tmp_path)) if row["interface"] == "rights"]
    assert rights["status"] == "denied" and "ann ALL=(root) NOPASSWD: " in rights["fix"]
    assert "labd.netboot.keeper *" in rights["fix"], "the rule is the one that netboot itself asks for"
    may = b"    (root) NOPASSWD: ALL\n"
    asked = (" ".join(words).replace("*", str(tmp_path)) for words in root_commands())
    fake.said = {f"sudo -n -l {words}": (0, may) for words in asked} | {"sudo -n -l": (0, may)}
    assert statuses(examine(netboot(tmp_path))) == ["ok", "ok"]


def test_root_without_the_rights_of_root_is_told(examine: Examine, fake: FakeMachine, tmp_path: Path) -> None:
    fake.nic("enx1")
    fake.machine.account = Account("root", root=True, listed=(), active=(), known=())
    assert "container" in next(row for row in examine(netboot(tmp_path)) if row["interface"] == "rights")["detail"]
    fake.may_serve()
    assert statuses(examine(netboot(tmp_path)), "rights") == []


def test_a_port_of_network_boot_that_another_program_has_is_busy(
    examine: Examine, fake: FakeMachine, tmp_path: Path
) -> None:
    fake.nic("enx1")
    fake.may_serve()
    fake.listens("udp", 67, 4711, "/usr/sbin/dhcpd -f")
    fake.listens("udp", 69, None, "")
    fake.listens("tcp", 8080, 4712, "nginx", address="127.0.0.1")
    fake.listens("tcp", 80, 4713, "apache2")
    rows = examine(netboot(tmp_path, 'host_ip = "192.168.99.1"\nhttp_port = 8080\n'))
    dhcp, tftp = [row for row in rows if row["interface"] in ("DHCP", "TFTP", "HTTP")]
    assert dhcp["status"] == "busy" and "/usr/sbin/dhcpd -f (pid 4711)" in dhcp["detail"]
    assert tftp["status"] == "busy" and "another user" in tftp["detail"]
    assert statuses(examine(netboot(tmp_path)), "HTTP") == ["busy"], "port 80, where the lab names none"
    fake.listens("tcp", 80, 4713, "python3 -c import socket\ns = socket.socket()\n" + "x = 1\n" * 50)
    (http,) = [row for row in examine(netboot(tmp_path)) if row["interface"] == "HTTP"]
    assert "taken by python3 -c import socket s = socket.socket() x = 1" in http["detail"]
    assert "… (pid 4713)" in http["detail"] and "\n" not in http["detail"] and len(http["detail"]) < 150
    fake.listens("udp", 67, 4711, "/usr/sbin/dnsmasq --interface=virbr0")
    assert statuses(examine(netboot(tmp_path)), "DHCP") == ["warning"], "it may keep to another interface"


def test_a_real_listener_is_found_with_its_process_and_our_own_child_is_told_apart() -> None:
    script = (
        "import socket, sys; u = socket.socket(type=socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0))\n"
        "t = socket.create_server(('127.0.0.1', 0)); print(u.getsockname()[1], t.getsockname()[1], flush=True)\n"
        "sys.stdin.read()"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    try:
        assert select.select([child.stdout], [], [], 30)[0], "the listener did not start"
        udp, tcp = map(int, child.stdout.readline().split())
        facts = LinuxInventory()
        for protocol, port in (("udp", udp), ("tcp", tcp)):
            found = facts.listeners(protocol, port)
            assert [(row["address"], row["pid"]) for row in found] == [("127.0.0.1", child.pid)]
            assert found[0]["command"].startswith(sys.executable)
        assert facts.descends(child.pid, os.getpid()) and not facts.descends(os.getpid(), child.pid)
    finally:
        child.stdin.close()
        child.wait(30)
        child.stdout.close()


def test_a_manager_of_the_link_and_a_network_that_is_used_already_are_warned_of(
    examine: Examine, fake: FakeMachine, tmp_path: Path
) -> None:
    fake.nic("enx1")
    fake.may_serve()
    fake.file("sys/class/net/enx1/ifindex", "7")
    state = fake.file("run/NetworkManager/devices/7", "[device]\nmanaged=true\n")
    fake.file("proc/net/route", "Iface Destination Gateway\neth0 0063A8C0 0 1 0 0 0 00FFFFFF 0 0 0\n")
    lab = netboot(tmp_path, 'host_ip = "192.168.99.1"\n')
    managed, taken = [row for row in examine(lab) if row["interface"] == "link"]
    assert managed["fix"] == "nmcli device set enx1 managed no"
    assert "192.168.99.0/24" in taken["detail"] and "eth0" in taken["detail"] and "--host-ip" in taken["fix"]
    Path(state).write_text("[device]\nmanaged=false\n")
    assert statuses(examine(netboot(tmp_path, 'host_ip = "10.77.0.1"\n')), "link") == []


def test_an_empty_folder_serves_nothing(examine: Examine, fake: FakeMachine, tmp_path: Path) -> None:
    fake.nic("enx1")
    lab = netboot(tmp_path)
    (tmp_path / "tftp/start.elf").unlink()
    assert statuses(examine(lab), "tftp_root") == ["warning"]


def test_video_is_matched_by_index_unique_name_or_path(examine: Examine, fake: FakeMachine, tmp_path: Path) -> None:
    fake.camera(0, "USB Video: A")
    fake.camera(2, "USB Video: B")

    def video(device: str) -> str:
        return str(examine(f'[targets.pico.video]\ndevice = "{device}"\n')[0]["status"])

    assert [video(d) for d in ("2", "video: b", "USB Video: A", "http://x/y")] == ["ok", "ok", "ok", "ok"]
    assert [video(d) for d in ("USB Video", "webcam", "/dev/video9")] == ["incomplete", "missing", "missing"]


def video(rows: list[dict[str, object]], what: str | None = None) -> dict[str, object]:
    return next(row for row in rows if row["interface"] == what)


def test_a_camera_held_by_another_program_or_group_or_without_pictures_is_told(
    examine: Examine, fake: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.camera(0, "USB Video")
    node = fake.file("dev/video0")
    lab = '[targets.pico.video]\ndevice = "USB Video"\n'
    fake.ports.held[node] = [{"pid": 77, "command": "obs", "master": False}]
    row = video(examine(lab))
    assert row["status"] == "busy" and "held by obs (pid 77)" in str(row["detail"])
    fake.ports.held.clear()
    assert video(examine(lab))["status"] == "ok"
    os.chmod(node, 0o660)
    monkeypatch.setattr("labd.doctor_video.os.access", lambda path, mode: False)
    assert video(examine(lab))["status"] == "denied" and "usermod -aG" in str(video(examine(lab))["fix"])
    monkeypatch.undo()
    fake.file("sys/class/video4linux/video1/index", "1")
    meta = str(fake.root / "dev/video1")
    os.mkfifo(meta)  # no file, which would be a film
    row = video(examine(f'[targets.pico.video]\ndevice = "{meta}"\n'))
    assert row["status"] == "missing" and "gives no pictures" in str(row["detail"])


def test_pictures_and_films_in_files_are_devices_too(examine: Examine, tmp_path: Path) -> None:
    (tmp_path / "boot.png").write_bytes(b"x")
    assert "a picture in a file" in str(video(examine('[targets.pico.video]\ndevice = "~/boot.png"\n'))["detail"])
    assert video(examine('[targets.pico.video]\ndevice = "./none.png"\n'))["status"] == "missing"


def test_a_screen_without_a_signal_is_told(examine: Examine, fake: FakeMachine) -> None:
    fake.camera(0, "USB Video")
    lab = '[targets.pico.video]\ndevice = "0"\n'
    screen = {"target": "pico", "device": "0", "signal": "none"}
    row = video(examine(lab, screens=[screen]), "signal")
    assert row["status"] == "warning" and "signal is none" in str(row["detail"])
    assert statuses(examine(lab, screens=[{**screen, "signal": "ok"}]), "signal") == []


def test_what_reading_a_screen_needs_is_looked_for(
    examine: Examine, fake: FakeMachine, program: Program, tmp_path: Path
) -> None:
    lab = '[targets.pico.video]\ndevice = "http://user:hunter2@x/y"\n'
    rows = examine(lab)
    assert "hunter2" not in str(rows)
    assert statuses(rows, "text") == ["warning", "warning"] and "tesseract-ocr" in rows[1]["fix"]
    path = program("tesseract")
    fake.file(FONTS)
    fake.said = {f"{path} --list-langs": (0, b"List of available languages in /x (1):\nosd\n")}
    (row,) = [row for row in examine(lab) if row["interface"] == "text"]
    assert "knows no English" in row["detail"] and "tesseract-ocr-eng" in row["fix"]
    fake.said = {f"{path} --list-langs": (0, b"List of available languages in /x (2):\neng\nosd\n")}
    assert statuses(examine(lab)) == ["ok"]


def test_adb_asks_the_running_server_and_starts_none(examine: Examine, fake: FakeMachine, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("line", "part", "fix"),
    [("X no permissions (user in plugdev group); see [http://x]", "USB node", "usermod -aG plugdev ann"),
     ("X offline", "lost", "adb reconnect"), ("X bootloader", "boot loader", "fastboot"),
     ("X strange", "adb says strange", "adb devices")],
)  # fmt: skip
def test_each_state_of_an_android_device_has_its_own_remedy(
    examine: Examine, fake: FakeMachine, program: Program, line: str, part: str, fix: str
) -> None:
    program("adb")
    with AdbServer(line) as address:
        fake.machine.adb = address
        (row,) = examine("[targets.pico.adb]\n")
    assert row["status"] == "denied" and part in row["detail"] and fix in row["fix"]


def test_a_channel_of_another_machine_is_not_looked_for_on_this_one(examine: Examine) -> None:
    far = '[hosts.far]\nssh = "me@far"\n[targets.pico]\nhost = "far"\n'
    assert examine(far + serial("/dev/ttyUSB0") + "[targets.pico.power]\n") == []
    assert statuses(examine(far + serial("/dev/ttyUSB0") + '[targets.pico.power]\nhost = "local"\n')) == ["incomplete"]
