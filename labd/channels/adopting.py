"""Going on with a port that an earlier daemon opened: its descriptor came back from the capture process.

Nothing here touches the device: it is open, configured and being read. What a port must be known by to be taken up
again is `facts`, plain data that the capture process keeps for us. A port that hangs on the old daemon itself (RFC
2217, whose protocol a thread of it spoke) can't be taken up; it is lost with that daemon and opened anew.
"""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labd.channels.closing import claim
from labd.channels.netport import SocketPort, broke, place
from labd.channels.port import Terminal, TtyPort, _configure, _Serial
from labd.channels.portmodel import Port, Settings


@dataclass(frozen=True)
class Adopted:
    """A port to go on with. `opens`: how often it had been opened; `terminal`: what tells a PTY from a later one.

    One that was lost meanwhile has no `port`; `ended` says why and when, if that is known.
    """

    port: Port | None
    opens: int
    ended: Mapping[str, Any] | None = None
    terminal: Terminal | None = None


def facts(port: Port) -> dict[str, Any] | None:
    """What `adopt` needs; None for a port that can't be taken up."""
    if not isinstance(port, TtyPort | SocketPort):
        return None
    known: dict[str, Any] = {
        "device": port.device,
        "node": port.node,
        "kind": port.kind,
        "settings": port.settings.plain(),
        "identity": port.identity,
        "notes": port.notes,
        "latency_ms": port.latency_ms,
    }
    return {**known, "number": port.number} if isinstance(port, TtyPort) else {**known, "key": port.key}


def adopt(fd: int, known: Mapping[str, Any], *, owner: str) -> Port:
    """The port behind `fd`, which is its own from now on. Raises OSError, KeyError, TypeError for what is none."""
    port = _adopt_socket(fd, known) if "key" in known else _adopt_tty(fd, known)
    claim(port.number if isinstance(port, TtyPort) else port.key, owner)
    return port


def why_ended(device: str, reason: str) -> str:
    """What became of a port while no daemon was there, in words; `reason` is the capture loop's."""
    if device.startswith("rfc2217:"):
        return "the daemon that held its connection ended"
    if device.startswith("board:"):
        return broke(reason, device)
    if device.startswith("socket:"):
        host, number = place(device)
        return broke(reason, f"{host}:{number}")
    return reason


def _adopt_tty(fd: int, known: Mapping[str, Any]) -> TtyPort:
    settings = Settings(**known["settings"])
    if os.fstat(fd).st_rdev != known["number"]:
        raise OSError("the descriptor is another device's")
    handle = _Serial(settings)
    _configure(handle, known["node"], settings, pty=known["kind"] != "tty")
    handle.fd = fd
    handle.pipe_abort_read_r, handle.pipe_abort_read_w = os.pipe()
    handle.pipe_abort_write_r, handle.pipe_abort_write_w = os.pipe()
    handle.is_open = True
    return TtyPort(**_common(known), handle=handle, number=known["number"])


def _adopt_socket(fd: int, known: Mapping[str, Any]) -> SocketPort:
    facts = _common(known)
    return SocketPort(**facts, line=socket.socket(fileno=fd), key=known["key"])


def _common(known: Mapping[str, Any]) -> dict[str, Any]:
    same = {name: known[name] for name in ("device", "node", "kind", "identity", "latency_ms")}
    return {**same, "settings": Settings(**known["settings"]), "notes": list(known["notes"]), "adopted": True}
