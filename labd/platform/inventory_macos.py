"""What macOS tells about this machine's hardware without opening a device.

The same questions as `inventory_linux`, fewer answers: there is no sysfs, no udev, no ModemManager and no brltty.
Network ports and cameras are known only to system programs; `query` runs one (the shim's `run_captured`, which this
module does not import), and without it, or when the program is missing, the answer is shorter or None.
"""

import os
import re
import socket
from collections.abc import Callable
from typing import Any

#: argv and a limit in seconds → exit code (None: no such program, or too slow) and stdout.
Query = Callable[[list[str], float], tuple[int | None, bytes]]


def _no_query(argv: list[str], seconds: float) -> tuple[int | None, bytes]:
    return None, b""


class MacInventory:
    """Read-only look at the machine; `query` and `interfaces` can be given by tests."""

    name = "macos"

    def __init__(self, query: Query = _no_query, interfaces: list[str] | None = None) -> None:
        self.query = query
        self._interfaces = interfaces

    def port_facts(self, node: str, topology: str | None) -> dict[str, Any]:
        """Nothing beyond what listing the ports tells."""
        return {}

    def held_by_this_process(self, node: str) -> bool:
        """Whether this very process has the node open: it is the daemon then, and captures from it."""
        try:
            wanted = os.stat(node).st_rdev
        except OSError:
            return False
        for name in _listdir("/dev/fd"):
            try:
                if os.fstat(int(name)).st_rdev == wanted:
                    return True
            except (OSError, ValueError):
                continue
        return False

    def running(self, names: set[str]) -> dict[str, int]:
        """None of the programs that take ports on Linux exist here."""
        return {}

    def brltty_claims(self, vid: str, pid: str) -> str | None:
        """There is no brltty."""
        return None

    def sees_everybody(self) -> bool:
        """Whether files that other users' processes hold open can be seen: root only."""
        return os.geteuid() == 0

    def network_interfaces(self) -> list[dict[str, Any]]:
        """The `en*` interfaces: name, mac, port (as System Settings calls it), usb, wireless, carrier, default_route.

        Facts that the system did not tell are None.
        """
        ports = self._hardware_ports()
        default = self._word(["route", "-n", "get", "default"], r"interface:\s*(\S+)")
        found = []
        for name in sorted({name for name in self.all_interfaces() if name.startswith("en")} | set(ports)):
            port, mac = ports.get(name, (None, None))
            status = self._word(["ifconfig", name], r"status:\s*(\w+)")
            found.append({
                "name": name, "mac": mac, "driver": None, "port": port,
                "usb": None if port is None else "USB" in port or "LAN" in port,
                "wireless": port in ("Wi-Fi", "AirPort") if port else None,
                "carrier": None if status is None else status == "active",
                "default_route": None if default is None else name == default,
            })  # fmt: skip
        return found

    def all_interfaces(self) -> list[str]:
        """The names of all network interfaces."""
        if self._interfaces is not None:
            return sorted(self._interfaces)
        try:
            return sorted(name for _, name in socket.if_nameindex())
        except OSError:
            return []

    def video_devices(self) -> list[dict[str, Any]] | None:
        """Cameras and capture devices: index, device (its id), name, id; None when the system did not tell."""
        import json

        code, text = self.query(["system_profiler", "SPCameraDataType", "-json"], 15.0)
        if code != 0:
            return None
        try:
            listed = json.loads(text)["SPCameraDataType"]
            return [
                {"index": index, "device": str(camera["spcamera_unique-id"]), "name": str(camera["_name"]),
                 "id": str(camera["spcamera_unique-id"])}
                for index, camera in enumerate(listed)
            ]  # fmt: skip
        except (ValueError, KeyError, TypeError):
            return None

    def _hardware_ports(self) -> dict[str, tuple[str, str]]:
        _, text = self.query(["networksetup", "-listallhardwareports"], 5.0)
        pattern = r"Hardware Port: (.+)\nDevice: (en\d+)\nEthernet Address: (\S+)"
        return {device: (port, mac) for port, device, mac in re.findall(pattern, text.decode("utf-8", "replace"))}

    def _word(self, argv: list[str], pattern: str) -> str | None:
        code, text = self.query(argv, 5.0)
        found = re.search(pattern, text.decode("utf-8", "replace")) if code == 0 else None
        return found.group(1) if found else None


def _listdir(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
