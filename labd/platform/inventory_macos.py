"""What macOS tells about this machine's hardware without opening a device.

The same questions as `inventory_linux`, fewer answers: there is no sysfs, no udev, no ModemManager and no brltty.
Network ports and cameras are known only to system programs; `query` runs one (the shim's `run_captured`, which this
module does not import), and without it, or when the program is missing, the answer is shorter or None.
"""

import os
import re
import socket
from typing import Any

from labd.platform.inventory import Query, no_query
from labd.platform.processes import lives


class MacInventory:
    """Read-only look at the machine; `query` and `interfaces` can be given by tests."""

    name = "macos"

    def __init__(self, query: Query = no_query, interfaces: list[str] | None = None) -> None:
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

    def drops_lines(self, node: str) -> bool | None:
        """Not told: which of our descriptors is a port's is not to be seen by its name here."""
        return None

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
                 "id": str(camera["spcamera_unique-id"]), "by_path": None, "topology": None}
                for index, camera in enumerate(listed)
            ]  # fmt: skip
        except (ValueError, KeyError, TypeError):
            return None

    def is_metadata_node(self, node: str) -> bool:
        """There are none."""
        return False

    def hid_gadgets(self) -> list[str]:
        """A Mac can't be another machine's keyboard."""
        return []

    def can_be_a_gadget(self) -> bool:
        """It can't."""
        return False

    def listeners(self, protocol: str, port: int) -> list[dict[str, Any]] | None:
        """Who takes what comes to a port (`tcp` or `udp`): address, pid, command. None when that can't be known.

        lsof tells of this user's programs only, or, as root, of all.
        """
        state = ["-sTCP:LISTEN"] if protocol == "tcp" else []
        code, text = self.query(["lsof", "-nP", f"-i{protocol.upper()}:{port}", *state, "-Fpcn"], 10.0)
        if code is None:
            return None
        found: list[dict[str, Any]] = []
        pid, command = None, None
        for line in text.decode("utf-8", "replace").splitlines():
            key, value = line[:1], line[1:]
            if key == "p":
                pid = int(value)
            elif key == "c":
                command = value
            elif key == "n" and "->" not in value:
                address = value.rpartition(":")[0].strip("[]")
                found.append({"address": "0.0.0.0" if address == "*" else address, "pid": pid, "command": command})
        return found

    def descends(self, pid: int, ancestor: int) -> bool:
        """Whether a process is `ancestor` or one that it started."""
        _, text = self.query(["ps", "-axo", "pid=,ppid="], 5.0)
        pairs = (line.split() for line in text.decode("ascii", "replace").splitlines())
        parents = {int(words[0]): int(words[1]) for words in pairs if len(words) == 2}
        for _ in range(64):
            if pid == ancestor:
                return True
            pid = parents.get(pid, 0)
        return False

    def networks(self) -> list[tuple[str, Any]]:
        """Not asked for: what is routed is not told in a form that lasts."""
        return []

    def may_serve(self) -> bool:
        """Whether this process may set up a link and serve DHCP and TFTP on it: root's alone."""
        return os.geteuid() == 0

    def managed_by(self, name: str) -> str | None:
        """configd keeps what was set until the service is changed; nothing to warn of."""
        return None

    def power_troubles(self) -> list[tuple[str, str]]:
        """Nothing here tells."""
        return []

    def usb_hubs(self) -> list[str]:
        """Hubs have no nodes here: whoever may run the program may switch them."""
        return []

    def hub_locations(self) -> list[str] | None:
        """Not told."""
        return None

    def lock_file(self, node: str) -> tuple[str, int] | None:
        """(path, pid) of the UUCP lock that cu and its like leave for a port."""
        path = os.path.join("/var/spool/lock", f"LCK..{os.path.basename(node)}")
        try:
            with open(path, encoding="ascii", errors="replace") as file:
                number = file.read(32).strip()
        except OSError:
            return None
        return (path, int(number)) if number.isdigit() else None

    def alive(self, pid: int) -> bool:
        """Whether a process with this number runs."""
        return lives(pid)

    def ends_at_logout(self, user: str, runtime: str) -> bool:
        """No directory is taken away at log-out."""
        return False

    def console_fonts(self) -> list[str]:
        """What holds a font of text consoles: none come with the system, QEMU's firmware has one."""
        places = ("/opt/homebrew/share/qemu/vgabios-stdvga.bin", "/usr/local/share/qemu/vgabios-stdvga.bin")
        return [place for place in places if os.path.isfile(place)]

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
