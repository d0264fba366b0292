"""What Linux knows about this machine's hardware without opening any of it: sysfs, /proc, udev's database.

Owns no device and changes nothing. Every root is a parameter, so that tests can give a made-up machine; whatever
is not there (no /sys in a container, no udev) makes an answer shorter, never an error.
"""

import ipaddress
import os
import re
import termios
from typing import Any

from labd.platform import sockets_linux, supply_linux
from labd.platform.inventory import Query, no_query

#: Where fonts of text consoles are, and firmware images that have one in them (the reader is `labd.ocr.library`).
FONT_FOLDERS = ("/usr/share/consolefonts", "/usr/share/kbd/consolefonts", "/usr/lib/kbd/consolefonts")
FIRMWARE = (
    "/usr/share/seabios/vgabios-stdvga.bin",
    "/usr/share/qemu/vgabios-stdvga.bin",
    "/usr/lib/u-boot/qemu-x86/u-boot.rom",
)


class LinuxInventory:
    """Read-only look at the machine under `root` (default: the real one); `query` puts a question to a program."""

    name = "linux"

    def __init__(self, root: str = "/", query: Query = no_query) -> None:
        self.root = root
        self.query = query
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

    def drops_lines(self, node: str) -> bool | None:
        """Whether closing the port drops DTR and RTS (HUPCL); None when this process does not have it open.

        Only an open port tells, and opening one raises its lines: so of others' ports nothing is known.
        """
        folder = os.path.join(self.proc, "self", "fd")
        for entry in _listdir(folder):
            if os.path.realpath(os.path.join(folder, entry)) == node:
                try:
                    return bool(termios.tcgetattr(int(entry))[2] & termios.HUPCL)
                except (OSError, ValueError, termios.error):
                    continue
        return None

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
        """Capture nodes: index, device, name, id (its by-id link, else by-path), by_path, topology (of its USB device).

        Nodes that give metadata only are left out.
        """
        found = []
        by_id, by_path = (self._links(os.path.join("v4l", kind)) for kind in ("by-id", "by-path"))
        for entry in _listdir(os.path.join(self.sys, "class", "video4linux")):
            base = os.path.join(self.sys, "class", "video4linux", entry)
            number = entry.removeprefix("video")
            if not number.isdigit() or _read(os.path.join(base, "index")) not in ("", "0"):
                continue
            node = os.path.join(self.dev, entry)
            real = os.path.realpath(node)
            found.append({"index": int(number), "device": node, "name": _read(os.path.join(base, "name")) or entry,
                          "id": by_id.get(real) or by_path.get(real), "by_path": by_path.get(real),
                          "topology": _topology(os.path.join(base, "device"))})  # fmt: skip
        return sorted(found, key=lambda video: int(video["index"]))

    def is_metadata_node(self, node: str) -> bool:
        """Whether a video node gives no pictures, only what its driver says beside them."""
        index = _read(os.path.join(self.sys, "class", "video4linux", os.path.basename(node), "index"))
        return index not in ("", "0")

    def hid_gadgets(self) -> list[str]:
        """The nodes by which this machine is a keyboard or mouse of another (/dev/hidgN)."""
        return [os.path.join(self.dev, name) for name in _listdir(self.dev) if re.fullmatch(r"hidg\d+", name)]

    def can_be_a_gadget(self) -> bool:
        """Whether this machine has a USB port by which it can be another's device."""
        return bool(_listdir(os.path.join(self.sys, "class", "udc")))

    def _links(self, kind: str) -> dict[str, str]:
        """Real node → the stable link to it in this folder of /dev."""
        folder = os.path.join(self.dev, kind)
        return {os.path.realpath(path): path for path in (os.path.join(folder, name) for name in _listdir(folder))}

    # -- what other parts of the system do to a bench ---------------------------------------------------------

    def listeners(self, protocol: str, port: int) -> list[dict[str, Any]] | None:
        """Who takes what comes to a port (`tcp` or `udp`): address, pid, command. None when that can't be known."""
        return sockets_linux.listeners(self.proc, protocol, port)

    def descends(self, pid: int, ancestor: int) -> bool:
        """Whether a process is `ancestor` or one that it started."""
        return sockets_linux.descends(self.proc, pid, ancestor)

    def networks(self) -> list[tuple[str, ipaddress.IPv4Network]]:
        """(interface, IPv4 network) of what is routed, default routes left out."""
        return sockets_linux.networks(self.proc)

    def may_serve(self) -> bool:
        """Whether this process may set up a link and serve DHCP and TFTP on it: root, or the capabilities for it."""
        needed = 1 << 10 | 1 << 12 | 1 << 13  # CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW
        return sockets_linux.capabilities(self.proc) & needed == needed

    def managed_by(self, name: str) -> str | None:
        """The program that sets addresses of this interface by itself, if one does."""
        index = _read(os.path.join(self.sys, "class", "net", name, "ifindex"))
        state = _read(os.path.join(self.run, "NetworkManager", "devices", index or "-"))
        return "NetworkManager" if re.search(r"^managed=true", state, re.MULTILINE) else None

    def power_troubles(self) -> list[tuple[str, str]]:
        """(what, what is wrong) of the machine's supply and its USB hubs."""
        word = None
        if os.path.exists(os.path.join(self.dev, "vcio")):  # a Raspberry Pi: its firmware can be asked
            code, text = self.query(["vcgencmd", "get_throttled"], 3.0)
            found = re.search(rb"throttled=(0x[0-9a-f]+)", text) if code == 0 else None
            word = int(found[1], 16) if found else None
        weak = supply_linux.undervoltage(self.sys, word)
        return ([("supply", weak)] if weak else []) + list(supply_linux.hub_troubles(self.sys))

    def usb_hubs(self) -> list[str]:
        """The nodes of the USB hubs (/dev/bus/usb/BUS/DEVICE), which switching a port's power has to open."""
        base = os.path.join(self.sys, "bus", "usb", "devices")
        numbers = [[_read(os.path.join(base, name, what)) for what in ("busnum", "devnum")] for name in self._hubs()]
        return [os.path.join(self.dev, "bus/usb", *(number.zfill(3) for number in pair)) for pair in numbers
                if all(number.isdigit() for number in pair)]  # fmt: skip

    def hub_locations(self) -> list[str] | None:
        """Where the USB hubs are (`1-1.4`; a root hub by its bus number alone), as uhubctl calls them."""
        return [name.removeprefix("usb") for name in self._hubs()]

    def _hubs(self) -> list[str]:
        base = os.path.join(self.sys, "bus", "usb", "devices")
        return [name for name in _listdir(base) if _read(os.path.join(base, name, "bDeviceClass")) == "09"]

    def lock_file(self, node: str) -> tuple[str, int] | None:
        """(path, pid) of the UUCP lock that minicom, pppd and their like leave for a port."""
        path = os.path.join(self.root, "var/lock", f"LCK..{os.path.basename(node)}")
        number = _read(path).strip()
        return (path, int(number)) if number.isdigit() else None

    def alive(self, pid: int) -> bool:
        """Whether a process with this number runs."""
        return os.path.isdir(os.path.join(self.proc, str(pid)))

    def ends_at_logout(self, user: str, runtime: str) -> bool:
        """Whether the system takes the directory `runtime` away when this user's last session ends."""
        under = os.path.join("/run/user", "")
        return runtime.startswith(under) and not os.path.exists(os.path.join(self.root, "var/lib/systemd/linger", user))

    def console_fonts(self) -> list[str]:
        """What holds a font of text consoles, by which a console's picture is read exactly: folders, and firmware."""
        places = [os.path.join(self.root, place.lstrip("/")) for place in (*FONT_FOLDERS, *FIRMWARE)]
        return [place for place in places if _listdir(place) or os.path.isfile(place)]


def _topology(device: str) -> str | None:
    """The USB device (`1-4.2`) that a sysfs device belongs to."""
    names = os.path.realpath(device).split("/")
    return next((name for name in reversed(names) if re.fullmatch(r"\d+-[\d.]+", name)), None)


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
