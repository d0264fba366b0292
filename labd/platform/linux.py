"""Linux: epoll, /proc for who has a device open, sysfs and udev's links for what the device is.

Reads only. Absent or unreadable /proc and /sys mean "unknown", never an exception. `PROC`, `SYS` and `DEV` are
attributes so that tests can point them at a made-up tree.
"""

import errno
import fcntl
import os
import select
import stat
import struct
import threading
import time
from typing import Any

from labd.platform import OURS

PROC = "/proc"
SYS = "/sys"
DEV = "/dev"

_UNIX98_SLAVES = range(136, 144)  # the majors that the kernel gives to /dev/pts/*
_TIOCGICOUNT = 0x545D
_TIOCGSERIAL, _TIOCSSERIAL = 0x541E, 0x541F
_ASYNC_LOW_LATENCY = 1 << 13
_COMMAND_MOST = 200


class EpollPoller:
    """An epoll descriptor is itself pollable: the event loop waits on it, and sees one descriptor for all ports."""

    safety_poll_s: float | None = None

    def __init__(self) -> None:
        self._epoll = select.epoll()

    def fileno(self) -> int:
        return self._epoll.fileno()

    def add(self, fd: int) -> None:
        self._epoll.register(fd, select.EPOLLIN)

    def remove(self, fd: int) -> None:
        try:
            self._epoll.unregister(fd)
        except (OSError, ValueError):
            pass

    def ready(self) -> list[tuple[int, bool]]:
        gone = select.EPOLLHUP | select.EPOLLERR
        return [(fd, bool(events & gone)) for fd, events in self._epoll.poll(0)]

    def done(self, fd: int) -> None:
        pass

    def hung_up(self, fd: int) -> bool:
        one = select.poll()
        one.register(fd, select.POLLRDHUP)  # a socket whose other side has closed its direction
        gone = select.POLLHUP | select.POLLERR | select.POLLNVAL | select.POLLRDHUP
        return any(events & gone for _, events in one.poll(0))

    def close(self) -> None:
        self._epoll.close()


def new_poller() -> EpollPoller:
    return EpollPoller()


def is_pty(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISCHR(found.st_mode) and os.major(found.st_rdev) in _UNIX98_SLAVES


def callout(path: str) -> str:
    return path


def boot_id() -> str:
    return _text(f"{PROC}/sys/kernel/random/boot_id") or "unknown"


def line_errors(fd: int) -> dict[str, int] | None:
    room = bytearray(80)  # struct serial_icounter_struct: 11 counts and 9 reserved integers
    try:
        fcntl.ioctl(fd, _TIOCGICOUNT, room)
    except OSError:
        return None
    counts = struct.unpack_from("11i", room)
    return dict(zip(("frame", "overrun", "parity", "breaks", "buffer_overrun"), counts[6:11], strict=True))


def low_latency(fd: int, node: str) -> int | None:
    """By the driver's flag, which FTDI's takes as a latency timer of 1 ms; by sysfs where that did not do it."""
    room = bytearray(72)  # struct serial_struct; its `flags` are the fifth integer
    try:
        fcntl.ioctl(fd, _TIOCGSERIAL, room)
        flags = struct.unpack_from("i", room, 16)[0]
        if not flags & _ASYNC_LOW_LATENCY:
            struct.pack_into("i", room, 16, flags | _ASYNC_LOW_LATENCY)
            fcntl.ioctl(fd, _TIOCSSERIAL, room)
    except OSError:  # not every driver has it, and nothing depends on it
        pass
    timer = f"{SYS}/class/tty/{os.path.basename(node)}/device/latency_timer"
    if _latency(timer) not in (None, 0, 1):
        try:
            with open(timer, "w", encoding="ascii") as file:
                file.write("1")
        except OSError:  # root's to write: doctor says how
            pass
    return _latency(timer)


def _latency(timer: str) -> int | None:
    text = _text(timer)
    return int(text) if text.isdigit() else None


# Who has it open ------------------------------------------------------------------------------------------------


def holders(path: str, max_age_s: float = 0.0) -> list[dict[str, Any]]:
    try:
        wanted = os.stat(path)
    except OSError:
        return []
    devices, masters = _who_has_what(max_age_s)
    pids = set(devices.get(wanted.st_rdev, ()))
    pids |= set(_lockers(wanted))  # tells of other users' processes too, whose descriptors we may not list
    pids -= {os.getpid(), *OURS}
    far_end = masters.get(os.minor(wanted.st_rdev), set()) if is_pty(path) else set()
    return [{"pid": pid, "command": command(pid), "master": pid in far_end} for pid in sorted(pids)]


def command(pid: int) -> str:
    """The command line of a process, cut at 200 characters; its short name when it has none."""
    try:
        with open(f"{PROC}/{pid}/cmdline", "rb") as file:
            raw = file.read(4096)
    except OSError:
        raw = b""
    text = raw.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    return text[:_COMMAND_MOST] or f"[{_text(f'{PROC}/{pid}/comm') or 'unknown'}]"


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]
    except OSError:
        return []


_Holdings = tuple[dict[int, set[int]], dict[int, set[int]]]
_walk_lock = threading.Lock()
_last_walk: tuple[float, _Holdings] | None = None


def _who_has_what(max_age_s: float) -> _Holdings:
    """Device number → pids that have it open, and PTY index → pids that have its master; walks all of /proc."""
    global _last_walk
    with _walk_lock:
        if _last_walk is None or time.monotonic() - _last_walk[0] > max_age_s:
            _last_walk = (time.monotonic(), _walk())
        return _last_walk[1]


def _walk() -> _Holdings:
    devices: dict[int, set[int]] = {}
    masters: dict[int, set[int]] = {}
    for pid in _pids():
        base = f"{PROC}/{pid}/fd"
        try:
            names = os.listdir(base)
        except OSError:
            continue
        for name in names:
            try:
                link = os.readlink(f"{base}/{name}")
                if not link.startswith("/dev/") or link == "/dev/null":
                    continue  # sockets, pipes, files: most of them, and not worth a stat
                if "ptmx" in link:
                    masters.setdefault(_pty_index(pid, name), set()).add(pid)
                    continue
                found = os.stat(f"{base}/{name}")
            except OSError:
                continue
            if stat.S_ISCHR(found.st_mode):
                devices.setdefault(found.st_rdev, set()).add(pid)
    return devices, masters


def _pty_index(pid: int, name: str) -> int:
    for line in _text(f"{PROC}/{pid}/fdinfo/{name}").splitlines():
        key, _, value = line.partition(":")
        if key == "tty-index" and value.strip().isdigit():
            return int(value)
    return -1


def _lockers(wanted: os.stat_result) -> list[int]:
    """Who has flock on that inode, from /proc/locks, which is readable for everybody."""
    place = f"{os.major(wanted.st_dev):02x}:{os.minor(wanted.st_dev):02x}:{wanted.st_ino}"
    pids = []
    for line in _text(f"{PROC}/locks").splitlines():
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK" and words[5] == place and words[4].isdigit():
            pids.append(int(words[4]))
    return [pid for pid in pids if pid > 0]


# What the device is -----------------------------------------------------------------------------------------------


def identity(node: str) -> dict[str, Any] | None:
    """Walks up from the tty in sysfs to its USB interface and device. None for anything that isn't USB."""
    name = os.path.basename(os.path.realpath(node))
    start = os.path.realpath(f"{SYS}/class/tty/{name}/device")
    place, interface = start, None
    root = os.path.realpath(SYS)
    while place.startswith(root + "/"):
        interface = interface or _text(f"{place}/bInterfaceNumber") or None
        vendor = _text(f"{place}/idVendor")
        if vendor:
            return {
                "vid": vendor,
                "pid": _text(f"{place}/idProduct"),
                "serial": _text(f"{place}/serial") or None,
                "manufacturer": _text(f"{place}/manufacturer") or None,
                "product": _text(f"{place}/product") or None,
                "interface": interface,
                "topology": os.path.basename(place),
            }
        place = os.path.dirname(place)
    return None


def find(wanted: dict[str, Any]) -> str | None:
    from labd.platform import same_adapter

    for name in _ttys():
        if same_adapter(wanted, identity(f"{DEV}/{name}")):
            return f"{DEV}/{name}"
    return None


def serial_ports() -> list[dict[str, Any]]:
    by_id, by_path = _links("by-id"), _links("by-path")
    ports = [_port(name, by_id, by_path) for name in _ttys()]
    for port in ports:
        port["twins"] = [o["node"] for o in ports if o is not port and _twins(port, o)]
    return sorted(ports, key=lambda port: str(port["path"]))


def _port(name: str, by_id: dict[str, str], by_path: dict[str, str]) -> dict[str, Any]:
    node = f"{DEV}/{name}"
    who = identity(node) or {}
    latency = _text(f"{SYS}/class/tty/{name}/device/latency_timer")
    driver = os.path.basename(os.path.realpath(f"{SYS}/class/tty/{name}/device/driver"))
    words = " ".join(str(who[key]) for key in ("manufacturer", "product") if who.get(key))
    return {
        "path": by_id.get(name) or by_path.get(name) or node,
        "node": node,
        "by_id": by_id.get(name),
        "by_path": by_path.get(name),
        "description": words or name,
        **{k: who.get(k) for k in ("manufacturer", "product", "vid", "pid", "serial", "interface", "topology")},
        "driver": driver if driver != "driver" else None,
        "latency_ms": int(latency) if latency.isdigit() else None,
    }


def _twins(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Two adapters that udev's by-id can't tell apart: it then points at whichever came last."""
    keys = ("vid", "pid", "serial", "interface")
    return one["vid"] is not None and all(one[key] == other[key] for key in keys)


def _ttys() -> list[str]:
    """The ttys with hardware behind them; ttyS0..31 that exist in name only are left out."""
    try:
        names = sorted(os.listdir(f"{SYS}/class/tty"))
    except OSError:
        return []
    real = [name for name in names if os.path.exists(f"{SYS}/class/tty/{name}/device")]
    return [name for name in real if _text(f"{SYS}/class/tty/{name}/type") != "0" and _is_serial(name)]


def _is_serial(name: str) -> bool:
    return not name.startswith(("hvc", "console", "ptmx")) and os.path.exists(f"{DEV}/{name}")


def _links(kind: str) -> dict[str, str]:
    """tty name → udev's stable link to it."""
    base = f"{DEV}/serial/{kind}"
    try:
        names = sorted(os.listdir(base))
    except OSError:
        return {}
    return {os.path.basename(os.path.realpath(f"{base}/{name}")): f"{base}/{name}" for name in names}


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20).strip()
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise
        return ""
