"""The guest, from outside: started, told bash scripts, its USB adapter unplugged and plugged in, ended."""

from __future__ import annotations

import base64
import ctypes
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.conftest import LABD
from tests.labvm import kernel

BOOT_S = 120.0
SCRIPT_S = 120.0

#: The guest's own bench: files under /run, in its memory.
ENV = {
    "HOME": "/run/bench", "LABD_LAB": "/run/bench/lab.toml", "XDG_RUNTIME_DIR": "/run/bench/run",
    "XDG_STATE_HOME": "/run/bench/state", "PATH": f"{Path(LABD).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
    "OPENCV_LOG_LEVEL": "ERROR",
}  # fmt: skip


class Done:
    """How a script ended: `code`, and `out`, all that it wrote."""

    def __init__(self, code: int, out: bytes) -> None:
        self.code = code
        self.out = out.decode(errors="replace")
        self.raw = out


class LabVm:
    """One guest."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="labvm-", dir="/tmp")
        self.place = Path(self._place.name)
        self._process = subprocess.Popen(self._argv(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                         preexec_fn=_die_with_us)  # fmt: skip
        try:
            self._shell = self._connect("shell")
            self._answers = self._shell.makefile("rb")
            self._qmp = self._connect("qmp").makefile("rwb")
            self._qmp.readline()
            self.qmp("qmp_capabilities")
            self._shell.settimeout(BOOT_S)
            if self._answers.readline().strip() != b"ready":
                raise RuntimeError(f"the guest did not boot: {(self.place / 'console').read_text()[-2000:]}")
        except BaseException:
            self.close()
            raise

    def _argv(self) -> list[str]:
        place, tree = self.place, kernel.TREE
        return [
            *("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-accel", "tcg"),
            *("-M", "q35", "-cpu", "max", "-smp", "2", "-m", "1536", "-no-reboot"),
            *("-kernel", str(tree / "boot" / f"vmlinuz-{kernel.version()}"), "-initrd", str(kernel.INITRD)),
            *("-append", f"console=ttyS0 quiet panic=-1 labvm.tree={tree}"),
            *("-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"),
            *("-device", "virtio-rng-pci", "-device", "qemu-xhci,id=usb"),
            *("-serial", f"file:{place}/console"),
            *("-chardev", f"socket,id=shell,path={place}/shell,server=on,wait=off", "-serial", "chardev:shell"),
            *("-chardev", f"socket,id=dut,path={place}/dut,server=on,wait=off"),
            *("-qmp", f"unix:{place}/qmp,server=on,wait=off"),
        ]

    def _connect(self, name: str) -> socket.socket:
        until = time.monotonic() + 10
        while True:
            line = socket.socket(socket.AF_UNIX)
            try:
                line.connect(str(self.place / name))
            except OSError:
                line.close()
                if time.monotonic() > until or self._process.poll() is not None:
                    assert self._process.stderr is not None
                    self._process.kill()
                    raise RuntimeError(f"no lab VM: {self._process.stderr.read().decode()[-500:]}") from None
                time.sleep(0.02)
            else:
                line.settimeout(30)
                return line

    def qmp(self, command: str, **arguments: Any) -> Any:
        """What QEMU returns."""
        request = {"execute": command, "arguments": arguments}
        self._qmp.write(json.dumps(request).encode() + b"\n")
        self._qmp.flush()
        while True:
            said = json.loads(self._qmp.readline())
            if "error" in said:
                raise RuntimeError(f"{command}: {said['error']['desc']}")
            if "return" in said:
                return said["return"]

    def sh(self, script: str, check: bool = True, timeout: float = SCRIPT_S) -> Done:
        """Run a bash script in the guest, as root."""
        self._shell.settimeout(timeout)
        self._shell.sendall(base64.b64encode(script.encode()) + b"\n")
        try:
            done = Done(int(self._answers.readline()), base64.b64decode(self._answers.readline()))
        except TimeoutError:
            raise RuntimeError(f"not done after {timeout:.0f} s in the guest: {script}") from None
        assert not check or not done.code, (script, done.code, done.out)
        return done

    def labd(self, *argv: str, check: int | None = 0, timeout: float = SCRIPT_S) -> Done:
        """Run labd in the guest, with the guest's own bench."""
        env = " ".join(f"{name}={shlex.quote(value)}" for name, value in ENV.items())
        done = self.sh(f"cd /run/bench && {env} {shlex.join([LABD, *argv])}", check=False, timeout=timeout)
        assert check is None or done.code == check, (argv, done.code, done.out)
        return done

    def json(self, *argv: str) -> Any:
        """Its answer under --json, notes left out."""
        return json.loads(self.labd(*argv, "--json", "-q").out)

    def lab(self, text: str) -> None:
        """Write the guest's lab file; its folders too."""
        self.sh(f"mkdir -p -m 700 /run/bench/run && cat >/run/bench/lab.toml <<'LAB'\n{text}\nLAB")

    def daemon(self) -> None:
        """Start the guest's labd; under emulation that takes longer than a first verb waits."""
        env = " ".join(f"{name}={shlex.quote(value)}" for name, value in ENV.items())
        self.sh(f"cd /run/bench && {env} setsid {LABD} daemon >daemon.log 2>&1 & for _ in $(seq 600); do "
                "[ -S /run/bench/run/labd/daemon.sock ] && exit 0; sleep 0.3; done; cat /run/bench/daemon.log; exit 1",
                timeout=200)  # fmt: skip

    def load(self, *modules: str) -> None:
        """Load drivers."""
        self.sh("\n".join(f"busybox modprobe {name} || exit 1" for name in modules))

    def cable(self) -> socket.socket:
        """The far end of the cable of the USB serial adapter: the board's."""
        return self._connect("dut")

    def plug_in(self) -> None:
        """Plug the adapter (FTDI) in; it shows up at the USB host when its cable has a far end."""
        self.qmp("device_add", driver="usb-serial", id="ftdi", chardev="dut", serial="LABVM001")

    def pull_out(self) -> None:
        """Pull the adapter out."""
        self.qmp("device_del", id="ftdi")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._place.cleanup()


def _die_with_us() -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(1, ctypes.c_ulong(signal.SIGKILL), *[ctypes.c_ulong(0)] * 3)
        if os.getppid() == 1:
            os._exit(1)
