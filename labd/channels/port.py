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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import serial

from labd.channels import access, raw, wires
from labd.channels.closing import claim, drain, quietly, refuse_own, release
from labd.channels.portmodel import Port as Port
from labd.channels.portmodel import Settings as Settings
from labd.errors import Unreachable
from labd.platform import current, naming, same_adapter

Terminal = tuple[int, int, int, int]
"""A pseudo-terminal's device, inode, time of making (ns) and owner."""

PARITIES = {"none": "N", "even": "E", "odd": "O", "mark": "M", "space": "S"}


@dataclass
class TtyPort(Port):
    """An open tty. `number` is its device number."""

    handle: "_Serial" = field(kw_only=True)
    number: int = field(kw_only=True)

    @property
    def fd(self) -> int:
        return int(self.handle.fd)

    def shut(self, *, hung_up: bool) -> None:
        held = self.lock.acquire(timeout=2.0)
        self.closed = True
        fd = self.fd
        quietly(
            lambda: None if hung_up else drain(fd),
            # On a real port, what could not be sent would hold the close for up to 30 s.
            lambda: None if self.kind != "tty" else termios.tcflush(fd, termios.TCOFLUSH),
            lambda: fcntl.ioctl(fd, termios.TIOCNXCL),  # it would outlive us while anybody has the tty open
            self.handle.close,
        )
        release(self.number)
        if held:
            self.lock.release()

    def leave(self) -> None:
        held = self.lock.acquire(timeout=2.0)
        self.closed = True
        quietly(self.handle.close)
        release(self.number)
        if held:
            self.lock.release()

    def change(self, settings: Settings, *, label: str) -> None:
        with self.lock:
            if self.closed:
                raise Unreachable(f"{label}: the port went down")
            handle = self.handle
            before, handle.settings = handle.settings, settings
            try:
                handle.apply_settings(_words(settings, pty=self.kind != "tty"))
                _set_lines(handle, settings, before)
                raw.make_raw(self.fd, xonxoff=settings.flow == "xonxoff")
            except Exception as error:
                handle.settings = before
                raise access.explain(error, self.device, self.node, label, []) from error
            self.settings = settings
            self.notes[:] = _notes(self)

    def put(self, wire: str, level: bool) -> None:
        with self.lock:
            wires.put(self._live(), wire, level)

    def levels(self) -> dict[str, bool | None]:
        with self.lock:
            return wires.levels(self._live())

    def _live(self) -> int:
        if self.closed:
            raise OSError(errno.EIO, "the port went down")
        if self.kind != "tty":  # a Linux PTY takes a break without a word, and it goes nowhere
            raise OSError(errno.ENOTTY, "a PTY")
        return self.fd


class _Serial(serial.Serial):  # type: ignore[misc]  # pyserial has no types
    """pyserial, with three of its habits changed."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.no_modem_lines = False
        self.no_rate = False
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

    def _set_special_baudrate(self, baudrate: int) -> None:
        """A rate beyond the named ones. A terminal without a line (macOS's PTYs) says ENOTTY; it is used as it is."""
        try:
            super()._set_special_baudrate(baudrate)
        except (OSError, ValueError) as error:  # pyserial wraps some systems' errors
            cause = error if isinstance(error, OSError) and error.errno else error.__context__
            if getattr(cause, "errno", None) != errno.ENOTTY:
                raise
            self.no_rate = True

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
    terminal: Terminal | None = None,
) -> Port:
    """Open `device` (a path) for `label` (whose it will be, for messages), verified raw.

    `owner` is how a second one is told who has it, when that is this process. `kind` "loopback" marks a simulated
    board's cable, whose other holders are its own. `expected` is the identity that the device had before it was
    lost: another adapter under its name is refused, the same one under another name is found. `terminal` is what
    `terminal_of` said of it then: another program's under its name is refused. Raises Unreachable (missing, not a tty,
    not permitted, not settable) or Busy (and by whom).
    """
    system = current()
    path = system.callout(_where(device, expected))
    node, number = _node(path, label)
    if terminal is not None and not os.path.islink(device) and _terminal(os.stat(node)) != terminal:
        raise Unreachable(
            f"{label}: the terminal {device} is another one now, perhaps of another program", hint=_watch_anew(label)
        )
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
        port = TtyPort(device, node, kind, settings, _identity(node), handle=handle, number=number)
        port.notes += _notes(port)
        if kind == "tty":
            port.latency_ms = system.low_latency(handle.fd, node)
    except Exception as error:
        quietly(lambda: fcntl.ioctl(handle.fd, termios.TIOCNXCL), handle.close)
        raise access.explain(error, device, node, label, []) from error
    claim(number, owner or label)
    return port


def terminal_of(port: Port) -> Terminal | None:
    """What tells a pseudo-terminal from a later one of the same name; None for other ports. Never raises.

    The kernel gives the number of one that was closed to whoever asks next, and the name with it.
    """
    if port.kind != "pty" or not isinstance(port, TtyPort):
        return None
    try:
        return _terminal(os.fstat(port.fd))
    except (OSError, TypeError):  # closed meanwhile
        return None


def _terminal(found: os.stat_result) -> Terminal:
    return (found.st_dev, found.st_ino, found.st_ctime_ns, found.st_uid)


def _watch_anew(label: str) -> str:
    return f"labd serial watch {label.partition('.')[0]}  # to take it"


def close_port(port: Port, *, hung_up: bool) -> None:
    """Close for good. Waits at most a second for what is still to be sent; never raises. Blocks as the driver does."""
    port.shut(hung_up=hung_up)


def change_settings(port: Port, settings: Settings, *, label: str) -> None:
    """Set an open port anew, without closing it. Raises Unreachable."""
    port.change(settings, label=label)


def _where(device: str, expected: Mapping[str, Any] | None) -> str:
    """The path to open: where the adapter is that was there before.

    A link (udev's by-id, by-path, somebody's own) carries the identity itself and is followed as it is; but not a
    by-id link that leads to whichever of two like adapters came last.
    """
    if expected is None:
        return device
    if os.path.islink(device) and ("/by-path/" in device or not expected.get("twins")):
        return device
    if os.path.exists(device) and same_adapter(dict(expected), current().identity(device)):
        return device
    found = current().find(dict(expected))
    if found is None and os.path.exists(device):
        raise Unreachable(f"{device} is another adapter now; {_name(expected)} has not come back")
    return found or device


def _identity(node: str) -> dict[str, Any] | None:
    """What the platform knows of the adapter, and `twins`: whether another has the same ids."""
    found = current().identity(node)
    if found is None:
        return None
    twins = [port for port in current().serial_ports() if port["node"] == node and port["twins"]]
    return {**found, "twins": True} if twins else found


def _name(identity: Mapping[str, Any]) -> str:
    words = [identity.get("product") or f"USB {identity.get('vid')}:{identity.get('pid')}"]
    told_by_serial = identity.get("serial") and not identity.get("twins")
    words += [f"serial {identity['serial']}"] if told_by_serial else [f"at {identity.get('topology')}"]
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
    refuse_own(number, node, label)
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


def _notes(port: TtyPort) -> list[str]:
    """What the user of this port should know."""
    instead = current().callout(port.device)
    if instead != port.device:
        return [f"opened as {instead}: {port.device} would wait for a carrier", *_tty_notes(port)]
    return _tty_notes(port)


def _tty_notes(port: TtyPort) -> list[str]:
    if port.kind != "tty":
        return ["a PTY, not a UART: no line rate, no modem lines"]
    notes = ["no modem lines (DTR, RTS) on this port"] if port.handle.no_modem_lines else []
    got = raw.speed(port.fd)
    if port.handle.no_rate:
        notes.append(f"this port has no line rate: {port.settings.baud} baud was not set")
    elif got is not None and got != port.settings.baud and hasattr(termios, f"B{port.settings.baud}"):
        notes.append(f"the driver set {got} baud instead of {port.settings.baud}")
    advice = naming.advice(port.device) if port.identity else None
    return notes + ([advice] if advice else [])
