"""A real QEMU with U-Boot: screen, PS/2 keyboard, a tablet, and its serial console in a file. TCG; sub-second."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.conftest import until

QEMU, ROM = "qemu-system-x86_64", "/usr/lib/u-boot/qemu-x86/u-boot.rom"


class UbootVm:
    """`qmp` is the path of its QMP socket, `home` a short folder of its own."""

    def __init__(self) -> None:
        if not shutil.which(QEMU) or not os.path.exists(ROM):
            pytest.skip(f"needs {QEMU} and {ROM} (Debian: qemu-system-x86 u-boot-qemu)")
        self.home = Path(tempfile.mkdtemp(prefix="vm-", dir="/tmp"))
        self.qmp = str(self.home / "qmp")
        self._serial = self.home / "serial"
        argv = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-accel", "tcg", "-M", "pc", "-m", "128",
                "-vga", "std", "-bios", ROM, "-device", "qemu-xhci", "-device", "usb-tablet",
                "-qmp", f"unix:{self.qmp},server=on,wait=off", "-serial", f"file:{self._serial}"]  # fmt: skip
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            until("QEMU's QMP socket", lambda: os.path.exists(self.qmp) or self.process.poll() is not None)
            assert self.process.poll() is None, self.process.stderr.read()
        except BaseException:
            self.close()
            raise

    def console(self) -> str:
        """All that the serial console has said."""
        data = self._serial.read_bytes() if self._serial.exists() else b""
        return data.decode("utf-8", "replace").replace("\r", "")

    def wait(self, text: str, since: int = 0) -> str:
        """What the console said from `since` on, once `text` is in it."""
        return until(
            f"{text!r} on the console", lambda: self.console()[since:] if text in self.console()[since:] else ""
        )

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.home)
