"""Ports that are reached over the network: `socket://host:port` here, `rfc2217://host:port` in its own module.

A `socket://` device is a plain TCP stream of bytes: the capture loop reads its descriptor as it reads a tty's. There
is no line rate and no modem line. Everything that waits has a limit, and a server that vanished without a word is
found out by keep-alives within KEEPALIVE_S. Functions here block; they are called in threads.
"""

import errno
import os
import socket
import sys
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

from labd.channels.closing import claim, drain, quietly, refuse_own, release
from labd.channels.portmodel import Port, Settings
from labd.errors import LabdError, Unreachable

CONNECT_S = 5.0
"""How long one address of a server may take to answer."""

KEEPALIVE_S = 30
"""A machine that answers nothing, not even the network's own questions, is given up after about so many seconds. Linux
counts a server that takes nothing for so long as one: a board that holds its line for longer costs a reconnect."""


def open_net(device: str, settings: Settings, *, label: str, owner: str = "") -> Port:
    """Open a device of the schemes `socket` or `rfc2217`. Raises Unreachable with the reason, or Busy."""
    host, number = place(device)
    key = f"{host}:{number}"
    refuse_own(key, device, label)
    if device.startswith("rfc2217:"):
        from labd.channels.rfc2217 import connect_rfc2217

        port: Port = connect_rfc2217(device, settings, key, label=label)
    else:
        line = dial(host, number, label=label)
        line.setblocking(False)
        port = SocketPort(device, peer_of(line, key), "socket", settings, line=line, key=key)
        port.notes.append("a plain TCP stream: no line rate, no modem lines, no break")
    claim(key, owner or label)
    return port


def open_board(path: str, device: str, settings: Settings, *, label: str, owner: str = "") -> Port:
    """The serial port of a virtual board, whose player has made the socket `path`. Raises Unreachable, or Busy."""
    refuse_own(path, device, label)
    line = socket.socket(socket.AF_UNIX)
    try:
        line.settimeout(CONNECT_S)
        line.connect(path)
    except OSError as error:
        line.close()
        raise Unreachable(f"{label}: the virtual board {device} can't be reached ({error.strerror or error})") from None
    line.setblocking(False)
    port = SocketPort(device, path, "board", settings, line=line, key=path)
    port.notes.append("a virtual board's serial port: no line rate, no modem lines, no break")
    claim(path, owner or label)
    return port


def place(device: str) -> tuple[str, int]:
    """Host and port of a network device; the lab's schema has seen to it that both are there."""
    parts = urlsplit(device)
    return parts.hostname or "", parts.port or 0


def dial(host: str, number: int, *, label: str) -> socket.socket:
    """A TCP connection, tuned. Raises Unreachable in words."""
    try:
        line = socket.create_connection((host, number), timeout=CONNECT_S)
    except (OSError, UnicodeError) as error:
        raise cannot_reach(error, host, number, label) from error
    tune(line)
    return line


def cannot_reach(error: Exception, host: str, number: int, label: str) -> LabdError:
    """Why no connection came about, and what to look at."""
    where = f"{host}:{number}"
    if isinstance(error, socket.gaierror | UnicodeError):
        why = error.strerror if isinstance(error, socket.gaierror) else "no name of a host"
        return Unreachable(
            f"{label}: the host {host} is not known ({why})", hint="look at the network, or labd config edit"
        )
    if isinstance(error, ConnectionRefusedError):
        return Unreachable(
            f"{label}: {where} refused the connection: no server listens there", hint=f"start the server on {host}"
        )
    if isinstance(error, TimeoutError):
        return Unreachable(f"{label}: {where} does not answer within {CONNECT_S:g} s", hint=f"ping {host}")
    return Unreachable(f"{label}: {where} can't be reached ({getattr(error, 'strerror', None) or error})")


def tune(line: socket.socket) -> None:
    """Send at once, and find out when the other machine is gone."""
    idle = "TCP_KEEPALIVE" if sys.platform == "darwin" else "TCP_KEEPIDLE"
    wanted = (("TCP_NODELAY", 1), (idle, 5), ("TCP_KEEPINTVL", 3), ("TCP_KEEPCNT", 3))
    quietly(lambda: line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1))
    for name, value in (*wanted, ("TCP_USER_TIMEOUT", KEEPALIVE_S * 1000)):
        option = getattr(socket, name, None)
        if option is not None:
            quietly(partial(line.setsockopt, socket.IPPROTO_TCP, option, value))


def peer_of(line: socket.socket, key: str) -> str:
    """The address that a name led to, for status: `10.0.0.5:4000`."""
    try:
        address = line.getpeername()
    except OSError:
        return key
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"


@dataclass
class SocketPort(Port):
    """A plain TCP stream. `key` is host:port as the lab names it."""

    line: socket.socket = field(kw_only=True)
    key: str = field(kw_only=True)

    @property
    def fd(self) -> int:
        return self.line.fileno()

    def shut(self, *, hung_up: bool) -> None:
        held = self.lock.acquire(timeout=2.0)
        self.closed = True
        quietly(
            lambda: None if hung_up else drain(self.line.fileno()),
            # Another process may hold the same socket: closing ours alone would end nothing.
            lambda: self.line.shutdown(socket.SHUT_RDWR),
            self.line.close,
        )
        release(self.key)
        if held:
            self.lock.release()

    def leave(self) -> None:
        held = self.lock.acquire(timeout=2.0)
        self.closed = True
        quietly(self.line.close)
        release(self.key)
        if held:
            self.lock.release()

    def change(self, settings: Settings, *, label: str) -> None:
        if self.closed:
            raise Unreachable(f"{label}: the port went down")
        self.settings = settings

    def put(self, wire: str, level: bool) -> None:
        raise OSError(errno.ENOTTY, "a plain TCP stream")

    def levels(self) -> dict[str, bool | None]:
        raise OSError(errno.ENOTTY, "a plain TCP stream")

    def why_gone(self, reason: str) -> str:
        return broke(reason, self.device if self.kind == "board" else self.key)


def broke(reason: str, where: str) -> str:
    """The capture loop's reason for an end, in words that fit a connection."""
    inner = reason.removeprefix("hang-up (").removesuffix(")") if reason.startswith("hang-up (") else ""
    if inner in {os.strerror(number) for number in (errno.ECONNRESET, errno.ETIMEDOUT, errno.EHOSTUNREACH)}:
        return f"the connection to {where} broke ({inner})"
    if inner or reason.startswith("reads nothing"):
        return f"{where} closed the connection"
    return reason
