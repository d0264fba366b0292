"""`rfc2217://host:port`: a serial port on another machine, with its line rate, modem lines and break.

The capture loop reads one end of a pair of sockets; `labd.channels.rfc2217_client` pumps the other. Everything here
blocks and is called in threads.
"""

import errno
import socket
import threading
from dataclasses import dataclass, field
from typing import Any

from labd.channels import netport
from labd.channels.closing import quietly, release
from labd.channels.port import PARITIES
from labd.channels.portmodel import OUTPUTS, Port, Settings
from labd.channels.rfc2217_client import Client
from labd.errors import LabdError, Unreachable

_TX_ROOM, _RX_ROOM = 8 << 10, 1 << 20


def connect_rfc2217(device: str, settings: Settings, key: str, *, label: str) -> "Rfc2217Port":
    """Connect and negotiate. Raises Unreachable with the reason."""
    near, far = socket.socketpair()
    quietly(
        lambda: near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _TX_ROOM),
        lambda: far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _RX_ROOM),
    )
    near.setblocking(False)
    client = Client(settings, far)
    try:
        client.apply_settings(_words(settings))
        for wire in OUTPUTS:
            if getattr(settings, wire) is not None:  # now, as the open drives them: True would press a button
                setattr(client, wire, getattr(settings, wire))
        client.port = device
        client.open()
        client.begin_sending()
    except Exception as error:
        said = _said(near)
        quietly(client.close, near.close, far.close)
        raise _explain(error, device, label, client, said) from error
    port = Rfc2217Port(device, client.peer or key, "rfc2217", settings, client=client, near=near, key=key)
    port.notes += _notes(client)
    return port


@dataclass
class Rfc2217Port(Port):
    """The near end of the pair, and the client behind it. `key` is host:port as the lab names it."""

    client: Client = field(kw_only=True)
    near: socket.socket = field(kw_only=True)
    key: str = field(kw_only=True)

    @property
    def fd(self) -> int:
        return self.near.fileno()

    def shut(self, *, hung_up: bool) -> None:
        held = self.lock.acquire(timeout=2.0)
        self.closed = True
        quietly(lambda: None if hung_up else self._drain(), self.client.close, self.near.close)
        release(self.key)
        if held:
            self.lock.release()

    def change(self, settings: Settings, *, label: str) -> None:
        with self.lock:
            if self.closed:
                raise Unreachable(f"{label}: the port went down")
            client = self.client
            before, client.settings = client.settings, settings
            try:
                client.apply_settings(_words(settings))
                for wire in OUTPUTS:
                    wanted = getattr(settings, wire)
                    if wanted is not None and wanted != getattr(before, wire):
                        client.put(wire, wanted)
            except Exception as error:
                client.settings = before
                raise _explain(error, self.device, label, client, "") from error
            self.settings = settings

    def put(self, wire: str, level: bool) -> None:
        with self.lock:
            self._live().put(wire, level)

    def levels(self) -> dict[str, bool | None]:
        with self.lock:
            return self._live().levels()

    def why_gone(self, reason: str) -> str:
        if not reason.startswith(("hang-up", "reads nothing")):
            return reason
        return f"{self.key} {self.client.ended or 'closed the connection'}"

    def unsent(self) -> int:
        return self.client.unsent()

    def _live(self) -> Client:
        if self.closed or self.client.ended:
            raise OSError(errno.EIO, f"the server {self.client.ended}" if self.client.ended else "the port went down")
        return self.client

    def _drain(self) -> None:
        """Give the sender a second for what it has and what waits in the pair."""
        client = self.client
        for _ in range(200):
            if client.over or not client.unsent():
                return
            threading.Event().wait(0.005)


def _words(settings: Settings) -> dict[str, Any]:
    return {
        "baudrate": settings.baud,
        "bytesize": settings.bytesize,
        "parity": PARITIES[settings.parity],
        "stopbits": settings.stopbits if settings.stopbits == 1.5 else int(settings.stopbits),
        "xonxoff": settings.flow == "xonxoff",
        "rtscts": settings.flow == "rtscts",
        "dsrdtr": False,
    }


def _notes(client: Client) -> list[str]:
    return ["the server does not control modem lines (DTR, RTS, break)"] if client.no_lines else []


def _said(near: socket.socket) -> str:
    """What a server said in place of negotiating: many name their trouble in plain text."""
    try:
        data = near.recv(200)
    except OSError:
        return ""
    return " ".join(data.decode("utf-8", "replace").split())


def _explain(error: Exception, device: str, label: str, client: Client, said: str) -> LabdError:
    if isinstance(error, LabdError):
        return error
    host, number = netport.place(device)
    cause = error if isinstance(error, OSError) and error.errno else error.__context__
    if str(error).startswith("Could not open port") and isinstance(cause, OSError | UnicodeError):
        return netport.cannot_reach(cause, host, number, label)
    where = f"{label}: {host}:{number}"
    if said:
        return Unreachable(f"{where} said {said!r} and did not negotiate RFC 2217", hint=f"socket://{host}:{number}")
    if client.ended or isinstance(error, ConnectionError):
        ended = client.ended or "closed the connection"
        return Unreachable(f"{where} {ended} during negotiation; somebody else may have the port there")
    if "seem to support" in str(error):
        return Unreachable(f"{where} does not speak RFC 2217", hint=f"for its bytes alone: socket://{host}:{number}")
    if isinstance(error, ValueError) or "parameter change" in str(error):
        return Unreachable(f"{where} refused the line's settings ({error})")
    return Unreachable(f"{where}: {getattr(error, 'strerror', None) or error}")
