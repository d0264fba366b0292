"""A made-up machine for the tests of discover and doctor: sysfs, /proc, udev's database and /dev in a folder."""

import os
import socket
import struct
from pathlib import Path
from typing import Any

from labd.inventory import Machine
from labd.platform.inventory import Account
from labd.platform.inventory_linux import LinuxInventory
from labd.platform.net import Link


class Ports:
    """What `labd.platform` would tell of the serial ports."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self.held: dict[str, list[dict[str, Any]]] = {}
        self.ptys: set[str] = set()

    def serial_ports(self) -> list[dict[str, Any]]:
        return self.listed

    def holders(self, node: str, max_age_s: float = 0.0) -> list[dict[str, Any]]:
        return self.held.get(node, [])

    def is_pty(self, path: str) -> bool:
        return path in self.ptys


class Links:
    """What `labd.platform.net` would tell of the interfaces."""

    def __init__(self) -> None:
        self.listed: dict[str, Link] = {}
        self.default: set[str] = set()

    def plug(self, name: str, carrier: bool) -> None:
        """An interface without addresses."""
        self.listed[name] = Link(name, len(self.listed) + 1, "00:e0:4c:68:00:01", True, carrier, (), ())

    def links(self) -> dict[str, Link]:
        return self.listed

    def default_interfaces(self) -> set[str]:
        return self.default


class FakeMachine:
    """`machine` is what the code under test gets; the methods plug things in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ports = Ports()
        self.net = Links()
        self.said: dict[str, tuple[int | None, bytes]] = {}
        """What programs answer: their words → exit code and output; whatever is not here is not installed."""
        self.asked: list[str] = []
        ann = Account("ann", root=False, listed={"ann"}, active={"ann"}, known={"ann", "dialout", "video", "plugdev"})
        self.machine = Machine(LinuxInventory(str(root), self.query), self.ports, adb=("127.0.0.1", 1),
                               query=self.query, account=ann, net=self.net)  # type: ignore[arg-type]  # fmt: skip

    def query(self, argv: list[str], seconds: float) -> tuple[int | None, bytes]:
        self.asked.append(" ".join(argv))
        return self.said.get(" ".join(argv), (None, b""))

    def may_serve(self) -> None:
        """This process has the capabilities that network boot needs."""
        self.file("proc/self/status", "Name:\tx\nCapEff:\t0000000000003400\n")

    def file(self, path: str, text: str = "") -> str:
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)
        return str(full)

    def adapter(self, node: str, number: int = 0, *, vid: str = "0403", pid: str = "6001", serial: str | None = "A1",
                by_id: str | None = None, by_path: str | None = None, latency_ms: int | None = None,
                interface: str | None = None, twins: tuple[str, ...] = ()) -> None:  # fmt: skip
        """A USB adapter whose node (a real character device) is `node`."""
        name, topology = os.path.basename(node), f"1-{number + 1}"
        if latency_ms is not None:
            self.file(f"sys/class/tty/{name}/device/latency_timer", str(latency_ms))
        self.file(f"sys/bus/usb/devices/{topology}/power/control", "on")
        self.ports.listed.append({
            "path": by_id or by_path or node, "node": node, "by_id": by_id, "by_path": by_path,
            "description": "FT232R USB UART", "driver": "ftdi_sio", "vid": vid, "pid": pid, "serial": serial,
            "topology": topology, "interface": interface, "latency_ms": latency_ms, "twins": list(twins),
        })  # fmt: skip

    def autosuspend(self, number: int = 0) -> None:
        self.file(f"sys/bus/usb/devices/1-{number + 1}/power/control", "auto")

    def runs(self, comm: str, pid: int) -> None:
        self.file(f"proc/{pid}/comm", comm)

    def udev(self, node: str, **values: str) -> None:
        device = os.stat(node).st_rdev
        lines = "".join(f"E:{key}={value}\n" for key, value in values.items())
        self.file(f"run/udev/data/c{os.major(device)}:{os.minor(device)}", lines)

    def nic(self, name: str, *, usb: bool = True, carrier: str = "1", default: bool = False) -> None:
        where = "devices/pci0/usb1/1-1" if usb else "devices/pci0/0000:00:03.0"
        (self.root / "sys" / where).mkdir(parents=True, exist_ok=True)
        self.file(f"sys/class/net/{name}/address", "00:e0:4c:68:00:01")
        self.file(f"sys/class/net/{name}/carrier", carrier)
        os.symlink(self.root / "sys" / where, self.root / "sys/class/net" / name / "device")
        self.net.plug(name, carrier == "1")
        if default:
            self.net.default.add(name)
            self.file(
                "proc/net/route", f"Iface\tDestination\n{name}\t00000000\t0102A8C0\t3\t0\t0\t0\t00000000\t0\t0\t0\n"
            )

    def camera(self, index: int, name: str) -> None:
        self.file(f"sys/class/video4linux/video{index}/name", name)
        self.file(f"sys/class/video4linux/video{index}/index", "0")
        self.file(f"dev/video{index}")

    def usb(self, device: str, **attributes: str) -> None:
        """A USB device (`1-1.2`) with these files in sysfs."""
        for name, value in attributes.items():
            self.file(f"sys/bus/usb/devices/{device}/{name}", value)

    def listens(self, protocol: str, port: int, pid: int | None, command: str, *, address: str = "0.0.0.0") -> None:
        """A socket that takes what comes to a port; with `pid` None, another user's."""
        state, inode = {"udp": "07", "tcp": "0A"}[protocol], 100000 + port
        words = struct.unpack("=I", socket.inet_aton(address))[0]
        head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        line = (
            f"   0: {words:08X}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 2\n"
        )
        path = self.root / f"proc/net/{protocol}"
        before = path.read_text() if path.exists() else head
        self.file(f"proc/net/{protocol}", before + (line if line not in before else ""))
        if pid is not None:
            self.file(f"proc/{pid}/cmdline", command.replace(" ", "\0"))
            folder = self.root / f"proc/{pid}/fd"
            folder.mkdir(exist_ok=True)
            (folder / "3").unlink(missing_ok=True)
            os.symlink(f"socket:[{inode}]", folder / "3")
