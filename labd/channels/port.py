"""Opening one tty, and closing it: pyserial's open and configuration, made exclusive, raw, and polite to the board.

The functions here block (an ioctl on a USB adapter takes milliseconds, a close can take seconds), so they are called
in threads only; `labd.channels.opening` does that. Nothing here reads or writes data.

Exclusive means three things, since each alone is passed by somebody: nobody else may have the node open already
(`holders`), flock keeps out those who ask for it, TIOCEXCL those who don't. Root passes the last; the monitor in
`labd.channels.line` tells of that.
"""

import errno
import fcntl
import os
import stat
import termios
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import serial

from labd.channels import access, raw
from labd.errors import Busy, Unreachable
from labd.platform import current, same_adapter

PARITIES = {"none": "N", "even": "E", "odd": "O", "mark": "M", "space": "S"}
DRAIN_S = 1.0
"""How long a close waits for bytes that the kernel accepted and the wire has not seen."""

# Which device numbers this process holds, and for whom: flock in one process can't say who the other is.
_ours: dict[int, str] = {}
_ours_lock = threading.Lock()


@dataclass(frozen=True)
class Settings:
    """How a port is set, in the words of the lab file. `dtr`, `rts`: None leaves the line as the kernel puts it."""

    baud: int = 115200
    bytesize: int = 8
    parity: str = "none"
    stopbits: float = 1
    flow: str = "none"
    dtr: bool | None = None
    rts: bool | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Settings":
        """From an interface's table. A power button's DTR starts released, or opening the port would press it."""
        dtr = config.get("assert_dtr")
        if dtr is None and config.get("power_button"):
            dtr = False
        return cls(
            baud=int(config.get("baud", 115200)),
            bytesize=int(config.get("bytesize", 8)),
            parity=str(config.get("parity", "none")),
            stopbits=float(config.get("stopbits", 1)),
            flow=str(config.get("flow", "none")),
            dtr=dtr,
            rts=config.get("assert_rts"),
        )

    def plain(self) -> dict[str, Any]:
        """For events and answers."""
        return dict(vars(self))


@dataclass
class Port:
    """An open tty. `node` is the real path behind `device`; `notes` are facts that its user should know."""

    device: str
    node: str
    kind: str
    settings: Settings
    handle: "_Serial"
    identity: dict[str, Any] | None
    number: int
    notes: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held by every thread that uses `fd`, so that none uses a number that was closed and given to another port."""
    closed: bool = False

    @property
    def fd(self) -> int:
        """The descriptor, non-blocking."""
        return int(self.handle.fd)


class _Serial(serial.Serial):  # type: ignore[misc]  # pyserial has no types
    """pyserial, with three of its habits changed."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.no_modem_lines = False
        super().__init__()

    def _reset_input_buffer(self) -> None:
        """Keep what the board has said before we came: a flush here loses the first bytes after a replug."""

    def _reconfigure_port(self, force_update: bool = False) -> None:
        super()._reconfigure_port(force_update)  # takes flock first: whoever fails that has touched nothing
        fcntl.ioctl(self.fd, termios.TIOCEXCL)
        try:
            raw.make_raw(self.fd, xonxoff=self.settings.flow == "xonxoff")
        except BaseException:
            fcntl.ioctl(self.fd, termios.TIOCNXCL)
            raise

    def _update_dtr_state(self) -> None:
        if self.settings.dtr is not None:
            self._modem(super()._update_dtr_state)

    def _update_rts_state(self) -> None:
        if self.settings.rts is not None:
            self._modem(super()._update_rts_state)

    def _modem(self, update: Any) -> None:
        try:
            update()
        except OSError as error:
            if error.errno not in (errno.ENOTTY, errno.EINVAL):
                raise
            self.no_modem_lines = True


def open_port(
    device: str,
    settings: Settings,
    *,
    label: str,
    owner: str = "",
    kind: str | None = None,
    expected: Mapping[str, Any] | None = None,
) -> Port:
    """Open `device` (a path) for `label` (whose it will be, for messages), verified raw.

    `owner` is how a second one is told who has it, when that is this process. `kind` "loopback" marks a simulated
    board's cable, whose other holders are its own. `expected` is the identity that the device had before it was
    lost: another adapter under its name is refused, the same one under another name is found. Raises Unreachable
    (missing, not a tty, not permitted, not settable) or Busy (and by whom).
    """
    system = current()
    path = system.callout(_where(device, expected))
    node, number = _node(path, label)
    _free(node, number, label, own_cable=kind == "loopback")
    handle = _Serial(settings)
    try:
        _configure(handle, node, settings, pty=system.is_pty(node))
        handle.open()
    except Exception as error:
        raise access.explain(error, device, node, label, system.holders(node)) from error
    try:
        wrong = raw.faults(handle.fd, xonxoff=settings.flow == "xonxoff")
        if wrong:
            raise Unreachable(f"{label}: {device} would not take raw mode: {', '.join(wrong)} stayed")
        kind = kind or ("pty" if system.is_pty(node) else "tty")
        port = Port(device, node, kind, settings, handle, system.identity(node), number)
        port.notes += _notes(port)
    except Exception as error:
        _quietly(lambda: fcntl.ioctl(handle.fd, termios.TIOCNXCL), handle.close)
        raise access.explain(error, device, node, label, []) from error
    with _ours_lock:
        _ours[number] = owner or label
    return port


def close_port(port: Port, *, hung_up: bool) -> None:
    """Close for good. Waits at most a second for what is still to be sent; never raises. Blocks as the driver does."""
    held = port.lock.acquire(timeout=2.0)
    port.closed = True
    fd = port.fd
    _quietly(
        lambda: None if hung_up else _drain(fd),
        # On a real port, what could not be sent would hold the close for up to 30 s.
        lambda: None if port.kind != "tty" else termios.tcflush(fd, termios.TCOFLUSH),
        lambda: fcntl.ioctl(fd, termios.TIOCNXCL),  # it would outlive us while anybody has the tty open
        port.handle.close,
    )
    with _ours_lock:
        _ours.pop(port.number, None)
    if held:
        port.lock.release()


def _quietly(*acts: Callable[[], object]) -> None:
    """All of them, whatever each says: a port that is going down refuses some."""
    for act in acts:
        try:
            act()
        except (OSError, termios.error):
            pass


def change_settings(port: Port, settings: Settings, *, label: str) -> None:
    """Set an open port anew, without closing it. Raises Unreachable."""
    with port.lock:
        if port.closed:
            raise Unreachable(f"{label}: the port went down")
        handle = port.handle
        before, handle.settings = handle.settings, settings
        try:
            handle.apply_settings(_words(settings, pty=port.kind != "tty"))
            _set_lines(handle, settings, before)
            raw.make_raw(port.fd, xonxoff=settings.flow == "xonxoff")
        except Exception as error:
            handle.settings = before
            raise access.explain(error, port.device, port.node, label, []) from error
        port.settings = settings
        port.notes[:] = _notes(port)


def _where(device: str, expected: Mapping[str, Any] | None) -> str:
    """The path to open. A link (udev's by-id, by-path) carries the identity itself and is followed as it is."""
    if expected is None or os.path.islink(device):
        return device
    if os.path.exists(device) and same_adapter(dict(expected), current().identity(device)):
        return device
    found = current().find(dict(expected))
    if found is None and os.path.exists(device):
        raise Unreachable(f"{device} is another adapter now; {_name(expected)} has not come back")
    return found or device


def _name(identity: Mapping[str, Any]) -> str:
    words = [identity.get("product") or f"USB {identity.get('vid')}:{identity.get('pid')}"]
    words += [f"serial {identity['serial']}"] if identity.get("serial") else [f"at {identity.get('topology')}"]
    return " ".join(str(word) for word in words)


def _node(path: str, label: str) -> tuple[str, int]:
    """The real node and its device number."""
    try:
        node = os.path.realpath(path, strict=True)
        found = os.stat(node)
    except OSError as error:
        raise access.explain(error, path, path, label, []) from error
    if not stat.S_ISCHR(found.st_mode):
        raise Unreachable(f"{label}: {path} is not a serial port", hint="labd serial devices")
    return node, found.st_rdev


def _free(node: str, number: int, label: str, *, own_cable: bool) -> None:
    """Raise Busy if somebody has it open: checked before we open, since opening alone can reset a board."""
    with _ours_lock:
        owner = _ours.get(number)
    if owner is not None:
        raise Busy(f"{label}: {node} is in use by {owner}, in this daemon", hint="labd serial stop, for the other one")
    if own_cable:
        return
    others = [holder for holder in current().holders(node) if not holder["master"]]
    if others:
        raise access.busy(node, label, others)


def _configure(handle: _Serial, node: str, settings: Settings, *, pty: bool) -> None:
    handle.port = node
    handle.exclusive = True
    handle.timeout = 0
    handle.write_timeout = 0
    handle.apply_settings(_words(settings, pty=pty))
    _set_lines(handle, settings, Settings())


def _set_lines(handle: _Serial, settings: Settings, before: Settings) -> None:
    """DTR and RTS as the settings say: before the open they are applied by it, on an open port at once."""
    if settings.dtr is not None and settings.dtr != before.dtr:
        handle.dtr = settings.dtr
    if settings.rts is not None and settings.rts != before.rts:
        handle.rts = settings.rts


def _words(settings: Settings, *, pty: bool) -> dict[str, Any]:
    """Our settings in pyserial's words. A PTY has no rate; a custom one (ENOTTY on macOS) is not even tried."""
    named = hasattr(termios, f"B{settings.baud}")
    return {
        "baudrate": settings.baud if named or not pty else 38400,
        "bytesize": settings.bytesize,
        "parity": PARITIES[settings.parity],
        "stopbits": settings.stopbits if settings.stopbits == 1.5 else int(settings.stopbits),
        "xonxoff": settings.flow == "xonxoff",
        "rtscts": settings.flow == "rtscts" and not pty,
        "dsrdtr": False,
    }


def _notes(port: Port) -> list[str]:
    """What the user of this port should know."""
    instead = current().callout(port.device)
    if instead != port.device:
        return [f"opened as {instead}: {port.device} would wait for a carrier", *_tty_notes(port)]
    return _tty_notes(port)


def _tty_notes(port: Port) -> list[str]:
    if port.kind != "tty":
        return ["a PTY, not a UART: no line rate, no modem lines"]
    notes = ["no modem lines (DTR, RTS) on this port"] if port.handle.no_modem_lines else []
    got = raw.speed(port.fd)
    if got is not None and got != port.settings.baud and hasattr(termios, f"B{port.settings.baud}"):
        notes.append(f"the driver set {got} baud instead of {port.settings.baud}")
    try:
        port.handle.set_low_latency_mode(True)
    except Exception:  # not every driver has it, and nothing depends on it
        pass
    return notes


def _drain(fd: int) -> None:
    """Wait until the kernel has nothing left to send, at most DRAIN_S."""
    until = time.monotonic() + DRAIN_S
    while time.monotonic() < until:
        left = fcntl.ioctl(fd, termios.TIOCOUTQ, b"\0\0\0\0")
        if not any(left):
            return
        time.sleep(0.005)
