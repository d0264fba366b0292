"""One guest for the lane, with one bench in it, and a picture of a real console to show it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest

from labd.helpers._qmp import Qmp
from loopback import machinefile
from tests.labvm import kernel
from tests.labvm.vm import LabVm

LAB = """
[targets.pc]
[[targets.pc.serial]]
name = "console"
device = "/dev/serial/by-id/usb-QEMU_QEMU_USB_SERIAL_LABVM001-if00-port0"
[targets.pc.video]
device = "vivid-000-vid-cap"
[targets.pc.hid]
cmd = "hidgadget"
"""

#: What the HDMI cable carries: 80 columns and 30 rows of a board's console.
WIDTH, HEIGHT = 640, 480


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.vm)


@pytest.fixture(scope="session")
def vm() -> Iterator[LabVm]:
    """The guest: its drivers loaded, its daemon up, udev naming what is plugged in."""
    why = kernel.cannot_run() or kernel.prepare()
    if why:
        pytest.skip(why)
    guest = LabVm()
    try:
        guest.load("xhci_pci", "ftdi_sio", "vivid", "dummy_hcd", "usb_f_hid", "usbhid", "hid_generic", "evdev")
        guest.sh("mount -t configfs c /sys/kernel/config; export SYSTEMD_IGNORE_CHROOT=1; "
                 "/usr/lib/systemd/systemd-udevd --daemon; udevadm trigger; udevadm settle", check=False)  # fmt: skip
        guest.lab(LAB)
        guest.daemon()
        yield guest
    finally:
        guest.close()


@dataclass(frozen=True)
class Screen:
    """A console's picture as raw YUYV in a file, and lines of which each stands on it."""

    file: Path
    lines: list[str]


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Screen:
    """The screen of a virtual board (U-Boot's own font), and what the board said meanwhile on its serial port."""
    board = machinefile.find("uboot-x86")
    if board.missing():
        pytest.skip(f"a virtual board can't be played: {board.missing()}")
    folder = tmp_path_factory.mktemp("board")
    command = [sys.executable, "-m", "loopback.machine", board.name, "--dir", str(folder), "--wait", "20"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as player:
        assert player.stdin and player.stdout and json.loads(player.stdout.readline())["ready"]
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(30)
            line.connect(str(folder / "serial"))
            _until(line, b"Hit any key")
            line.sendall(b" ")
            _until(line, b"=> ")
            line.sendall(b"version\r")
            said = _until(line, b"=> ")
        with Qmp(str(folder / "qmp")) as qmp:
            qmp("screendump", filename=str(folder / "screen.ppm"))
        player.stdin.close()
    picture = cv2.imread(str(folder / "screen.ppm"))
    assert picture is not None
    yuyv = cv2.cvtColor(np.ascontiguousarray(picture[:HEIGHT, :WIDTH]), cv2.COLOR_BGR2YUV_YUYV)
    (folder / "screen.yuyv").write_bytes(yuyv.tobytes())
    return Screen(folder / "screen.yuyv", [text for text in said.decode().split("\r\n")[1:-1] if text])


def _until(line: socket.socket, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        seen += line.recv(65536)
    return seen


def soon(what: str, check: object, seconds: float = 60.0) -> object:
    """The first true answer of `check()`, asked twice a second: each question costs the guest one."""
    assert callable(check)
    deadline = time.monotonic() + seconds
    while not (found := check()):
        if time.monotonic() > deadline:
            pytest.fail(f"after {seconds:.0f} s still missing: {what}")
        time.sleep(0.5)
    return found
