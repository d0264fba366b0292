"""macOS: kqueue with a select(2) thread for what kqueue refuses, libproc for who has a device open.

Importable anywhere, so that its logic is tested with stand-ins for kqueue and libproc. No process is started:
`lsof` would be simpler and is not ours to run. Whatever the system refuses means "unknown", never an exception.
"""

import ctypes
import errno
import os
import re
import select
import stat
import struct
from typing import Any

from labd.platform import OURS
from labd.platform.select_thread import SelectThread

_PTY = re.compile(r"/dev/ttys[0-9a-f]+")
_REFUSED = (errno.EINVAL, errno.ENODEV, errno.EPERM, errno.ENOTSUP)


class KqueuePoller:
    """kqueue for what it takes. EINVAL and its like at `add` mean the select thread.

    Its end-of-file notices for terminals are known to be unreliable, hence `safety_poll_s`. `api` is the `select`
    module or a stand-in with `kqueue`, `kevent` and the `KQ_*` numbers.
    """

    safety_poll_s: float | None = 1.0

    def __init__(self, api: Any = select) -> None:
        self._api = api
        self._kqueue = api.kqueue()
        self._thread: SelectThread | None = None
        self._by_select: set[int] = set()

    def fileno(self) -> int:
        return int(self._kqueue.fileno())

    def add(self, fd: int) -> None:
        try:
            self._change(fd, self._api.KQ_EV_ADD)
        except OSError as error:
            if error.errno not in _REFUSED:
                raise
            self._by_select.add(fd)
            self._fallback().add(fd)

    def remove(self, fd: int) -> None:
        if fd in self._by_select:
            self._by_select.discard(fd)
            self._fallback().remove(fd)
            return
        try:
            self._change(fd, self._api.KQ_EV_DELETE)
        except OSError:
            pass

    def ready(self) -> list[tuple[int, bool]]:
        found: list[tuple[int, bool]] = []
        for event in self._kqueue.control(None, 64, 0):
            if self._thread is not None and event.ident == self._thread.fileno():
                found += [(fd, False) for fd in self._thread.take() if fd in self._by_select]
            else:
                found.append((event.ident, bool(event.flags & self._api.KQ_EV_EOF)))
        return found

    def done(self, fd: int) -> None:
        if fd in self._by_select:
            self._fallback().done(fd)

    def hung_up(self, fd: int) -> bool:
        """With VMIN=1 an empty read has no other meaning here, and poll(2) doesn't serve terminals on macOS."""
        return True

    def close(self) -> None:
        if self._thread is not None:
            self._thread.close()
        self._kqueue.close()

    def _change(self, fd: int, flags: int) -> None:
        event = self._api.kevent(fd, filter=self._api.KQ_FILTER_READ, flags=flags)
        self._kqueue.control([event], 0, 0)

    def _fallback(self) -> SelectThread:
        if self._thread is None:
            self._thread = SelectThread()
            self._change(self._thread.fileno(), self._api.KQ_EV_ADD)
        return self._thread


def new_poller() -> KqueuePoller:
    return KqueuePoller()


def is_pty(path: str) -> bool:
    try:
        real = os.path.realpath(path)
        return stat.S_ISCHR(os.stat(real).st_mode) and _PTY.fullmatch(real) is not None
    except OSError:
        return False


def callout(path: str) -> str:
    other = path.replace("/dev/tty.", "/dev/cu.", 1)
    return other if path.startswith("/dev/tty.") and os.path.exists(other) else path


def boot_id() -> str:
    try:
        libc = ctypes.CDLL(None)
        room = ctypes.create_string_buffer(64)
        size = ctypes.c_size_t(len(room))
        if libc.sysctlbyname(b"kern.bootsessionuuid", room, ctypes.byref(size), None, 0) == 0:
            return room.value.decode("ascii", "replace")
    except (OSError, AttributeError):
        pass
    return "unknown"


def line_errors(fd: int) -> dict[str, int] | None:
    return None  # the BSD tty layer keeps no such counts


def low_latency(fd: int, node: str) -> int | None:
    return None  # Apple's and FTDI's drivers take it from their own property lists


# Who has it open: libproc's structures, as <sys/proc_info.h> lays them out -----------------------------------------

_LIST_FDS, _VNODE_PATH, _VNODE = 1, 2, 1
_VNODE_SIZE, _VNODE_PATH_AT = 1200, 176


def holders(path: str, max_age_s: float = 0.0) -> list[dict[str, Any]]:
    try:
        libproc = ctypes.CDLL("/usr/lib/libproc.dylib")
    except OSError:
        return []
    return _holders(os.path.realpath(path), libproc)


def _holders(real: str, libproc: Any) -> list[dict[str, Any]]:
    # A serial port has two nodes, cu.X and tty.X; whoever has one keeps us out of the other.
    names = {real, real.replace("/dev/cu.", "/dev/tty."), real.replace("/dev/tty.", "/dev/cu.")}
    found = [pid for pid in _pids(libproc) if pid not in {os.getpid(), *OURS} and names & _open_paths(libproc, pid)]
    return [{"pid": pid, "command": _command(libproc, pid), "master": False} for pid in sorted(found)]


def _pids(libproc: Any) -> list[int]:
    size = libproc.proc_listallpids(None, 0)
    room = (ctypes.c_int * (max(size, 0) + 64))()
    count = libproc.proc_listallpids(room, ctypes.sizeof(room))
    return [pid for pid in room[: max(count, 0)] if pid > 0]


def _open_paths(libproc: Any, pid: int) -> set[str]:
    size = libproc.proc_pidinfo(pid, _LIST_FDS, ctypes.c_uint64(0), None, 0)
    if size <= 0:
        return set()  # another user's process: not ours to see
    room = ctypes.create_string_buffer(size + 256)
    size = libproc.proc_pidinfo(pid, _LIST_FDS, ctypes.c_uint64(0), room, len(room))
    paths = set()
    for fd, kind in struct.iter_unpack("iI", room.raw[: max(size, 0) // 8 * 8]):
        if kind == _VNODE:
            info = ctypes.create_string_buffer(_VNODE_SIZE)
            if libproc.proc_pidfdinfo(pid, fd, _VNODE_PATH, info, _VNODE_SIZE) > 0:
                paths.add(info.raw[_VNODE_PATH_AT:].split(b"\0", 1)[0].decode("utf-8", "replace"))
    return paths


def _command(libproc: Any, pid: int) -> str:
    room = ctypes.create_string_buffer(4096)
    if libproc.proc_pidpath(pid, room, len(room)) > 0:
        return room.value.decode("utf-8", "replace")
    return "[unknown]"


# What the device is -----------------------------------------------------------------------------------------------


def serial_ports() -> list[dict[str, Any]]:
    from serial.tools import list_ports

    ports = [_port(found) for found in list_ports.comports()]
    for port in ports:
        keys = ("vid", "pid", "serial")
        port["twins"] = [
            other["node"]
            for other in ports
            if other is not port and port["vid"] and all(port[key] == other[key] for key in keys)
        ]
    return sorted(ports, key=lambda port: str(port["path"]))


def _port(found: Any) -> dict[str, Any]:
    """pyserial's facts in our words. `cu.*` is the node to open: `tty.*` waits for a carrier."""
    node = str(found.device).replace("/dev/tty.", "/dev/cu.")
    return {
        "path": node,
        "node": node,
        "by_id": None,
        "by_path": None,
        "description": found.description,
        "manufacturer": found.manufacturer,
        "product": found.product,
        "vid": None if found.vid is None else f"{found.vid:04x}",
        "pid": None if found.pid is None else f"{found.pid:04x}",
        "serial": found.serial_number,
        "interface": found.interface,
        "topology": found.location,
        "driver": None,
        "latency_ms": None,
    }


def identity(node: str) -> dict[str, Any] | None:
    real = os.path.realpath(node).replace("/dev/tty.", "/dev/cu.")
    if _PTY.fullmatch(real):
        return None
    for port in serial_ports():
        if port["node"] == real and port["vid"]:
            keys = ("vid", "pid", "serial", "manufacturer", "product", "interface", "topology")
            return {key: port[key] for key in keys}
    return None


def find(wanted: dict[str, Any]) -> str | None:
    from labd.platform import same_adapter

    for port in serial_ports():
        if same_adapter(wanted, port):
            return str(port["node"])
    return None
