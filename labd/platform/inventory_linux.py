"""What Linux knows about this machine's hardware without opening any of it: sysfs, /proc, udev's database.

Owns no device and changes nothing. Every root is a parameter, so that tests can give a made-up machine; whatever
is not there (no /sys in a container, no udev) makes an answer shorter, never an error.
"""

import grp
import os
import pwd
import re
from typing import Any


class LinuxInventory:
    """Read-only look at the machine under `root` (default: the real one)."""

    name = "linux"

    def __init__(self, root: str = "/") -> None:
        self.root = root
        self.sys, self.proc = os.path.join(root, "sys"), os.path.join(root, "proc")
        self.dev, self.run = os.path.join(root, "dev"), os.path.join(root, "run")

    # -- serial ports ---------------------------------------------------------------------------------------

    def port_facts(self, node: str, topology: str | None) -> dict[str, Any]:
        """What may spoil a capture on a tty node whose USB device is `topology` (`1-4.2`); only what is known.

        Keys: latency_file (where its latency timer is set), autosuspend_file (when the kernel may suspend the
        adapter), mm_ignore (whether udev tells ModemManager to keep off), system_console (this machine's own kernel
        prints there).
        """
        facts: dict[str, Any] = {}
        consoles = [line.split()[0] for line in _read(os.path.join(self.proc, "consoles")).splitlines() if line.split()]
        if os.path.basename(node) in consoles:
            facts["system_console"] = True
        latency = os.path.join(self.sys, "class", "tty", os.path.basename(node), "device", "latency_timer")
        if os.path.exists(latency):
            facts["latency_file"] = latency
        control = os.path.join(self.sys, "bus", "usb", "devices", topology or "-", "power", "control")
        if _read(control) == "auto":
            facts["autosuspend_file"] = control
        udev = self._udev(node)
        if udev:
            facts["mm_ignore"] = any(udev.get(f"ID_MM_{what}_IGNORE") == "1" for what in ("DEVICE", "PORT", "TTY"))
        return facts

    def held_by_this_process(self, node: str) -> bool:
        """Whether this very process has the node open: it is the daemon then, and captures from it."""
        folder = os.path.join(self.proc, "self", "fd")
        return any(os.path.realpath(os.path.join(folder, entry)) == node for entry in _listdir(folder))

    def _udev(self, node: str) -> dict[str, str]:
        try:
            number = os.stat(node).st_rdev
        except OSError:
            return {}
        text = _read(os.path.join(self.run, "udev", "data", f"c{os.major(number)}:{os.minor(number)}"))
        pairs = (line[2:].partition("=") for line in text.splitlines() if line.startswith("E:"))
        return {key: value for key, _, value in pairs}

    # -- programs and rules that meddle with ports ----------------------------------------------------------

    def running(self, names: set[str]) -> dict[str, int]:
        """Those of `names` (as in /proc/PID/comm, 15 characters) that run now, with one pid each."""
        short = {name[:15]: name for name in names}
        found: dict[str, int] = {}
        for entry in _listdir(self.proc):
            if entry.isdigit() and (comm := _read(os.path.join(self.proc, entry, "comm"))) in short:
                found.setdefault(short[comm], int(entry))
        return found

    def brltty_claims(self, vid: str, pid: str) -> str | None:
        """The udev rules file by which brltty (Braille displays) takes adapters with this USB id, or None."""
        product = re.compile(rf"(?<![0-9a-f])0*{vid.lstrip('0')}/0*{pid.lstrip('0')}/", re.IGNORECASE)
        for folder in ("etc/udev/rules.d", "run/udev/rules.d", "lib/udev/rules.d", "usr/lib/udev/rules.d"):
            for entry in _listdir(os.path.join(self.root, folder)):
                if "brltty" not in entry:
                    continue
                path = os.path.join(self.root, folder, entry)
                for line in _read(path).splitlines():
                    if not line.lstrip().startswith("#") and product.search(line):
                        return path
        return None

    def sees_everybody(self) -> bool:
        """Whether files that other users' processes hold open can be seen: root only."""
        return os.geteuid() == 0

    # -- network and video ----------------------------------------------------------------------------------

    def network_interfaces(self) -> list[dict[str, Any]]:
        """Interfaces with hardware behind them: name, mac, driver, usb, carrier (None: down), default_route."""
        default = self._default_routes()
        found = []
        for name in _listdir(os.path.join(self.sys, "class", "net")):
            base = os.path.join(self.sys, "class", "net", name)
            device = os.path.join(base, "device")
            if not os.path.exists(device):
                continue
            carrier = _read(os.path.join(base, "carrier"))
            driver = os.path.join(device, "driver")
            found.append({
                "name": name,
                "mac": _read(os.path.join(base, "address")),
                "driver": os.path.basename(os.path.realpath(driver)) if os.path.exists(driver) else None,
                "usb": "/usb" in os.path.realpath(device),
                "wireless": os.path.exists(os.path.join(base, "wireless")),
                "carrier": {"1": True, "0": False}.get(carrier),
                "default_route": name in default,
            })  # fmt: skip
        return found

    def all_interfaces(self) -> list[str]:
        """The names of all network interfaces, also of virtual ones."""
        return _listdir(os.path.join(self.sys, "class", "net"))

    def _default_routes(self) -> set[str]:
        lines = [line.split() for line in _read(os.path.join(self.proc, "net", "route")).splitlines()[1:]]
        names = {words[0] for words in lines if len(words) > 7 and words[1] == words[7] == "00000000"}
        for line in _read(os.path.join(self.proc, "net", "ipv6_route")).splitlines():
            words = line.split()
            if len(words) == 10 and words[1] == "00" and set(words[0]) == {"0"} and words[9] != "lo":
                names.add(words[9])
        return names

    def video_devices(self) -> list[dict[str, Any]]:
        """Capture nodes: index, device, name, id (its by-id link), driver; metadata-only nodes are left out."""
        found = []
        links: dict[str, str] = {}
        for kind in ("by-path", "by-id"):
            folder = os.path.join(self.dev, "v4l", kind)
            for entry in _listdir(folder):
                links[os.path.realpath(os.path.join(folder, entry))] = os.path.join(folder, entry)
        for entry in _listdir(os.path.join(self.sys, "class", "video4linux")):
            base = os.path.join(self.sys, "class", "video4linux", entry)
            number = entry.removeprefix("video")
            if not number.isdigit() or _read(os.path.join(base, "index")) not in ("", "0"):
                continue
            node = os.path.join(self.dev, entry)
            found.append({"index": int(number), "device": node, "name": _read(os.path.join(base, "name")) or entry,
                          "id": links.get(os.path.realpath(node))})  # fmt: skip
        return sorted(found, key=lambda video: int(video["index"]))


def group_of(path: str) -> str:
    """The name of the group that a node belongs to (its number, where it has no name)."""
    gid = os.stat(path).st_gid
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def user_name() -> str:
    """Who this process runs as."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def listed_in_group(group: str) -> bool:
    """Whether the user database has us in the group, whatever this process was given at log-in."""
    try:
        entry = grp.getgrnam(group)
        return user_name() in entry.gr_mem or pwd.getpwuid(os.getuid()).pw_gid == entry.gr_gid
    except KeyError:
        return False


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20).strip()
    except OSError:
        return ""


def _listdir(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []
