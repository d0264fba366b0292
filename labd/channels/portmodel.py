"""What every open port is to a line, whatever is behind it: one readable descriptor, and acts that block.

A `Port` is a tty (`labd.channels.port`), a TCP socket (`labd.channels.netport`) or the near end of a pair of sockets
whose far end a thread pumps to an RFC 2217 server (`labd.channels.rfc2217`). Its `fd` can be read, written and waited
on like a file; it may be handed to another process. All methods block and are called in threads only.
"""

import errno
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OUTPUTS = ("dtr", "rts")
"""The modem lines that we drive."""

INPUTS = ("cts", "dsr", "dcd", "ri")
"""The modem lines that the other side drives."""

NETWORK = ("rfc2217", "socket")
"""The kinds of ports that are reached over the network; also the schemes of their devices."""


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
    """An open port. `node` is what is really behind `device` (a path, or host:port); `notes` are for its user.

    `kind`: "tty", "pty", "loopback" (a simulated board's PTY), "board" (a virtual board's socket), "rfc2217", "socket".
    `latency_ms`: how long the adapter holds bytes back, where that is known.
    """

    device: str
    node: str
    kind: str
    settings: Settings
    identity: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held by every thread that uses `fd`, so that none uses a number that was closed and given to another port."""
    closed: bool = False
    latency_ms: int | None = None
    adopted: bool = False
    """An earlier daemon opened it; it has been captured ever since."""

    @property
    def fd(self) -> int:
        """The descriptor, non-blocking."""
        raise NotImplementedError

    def shut(self, *, hung_up: bool) -> None:
        """Close for good. Waits at most a second for what is still to be sent; never raises."""
        raise NotImplementedError

    def leave(self) -> None:
        """Close this process's descriptor only: the port stays as it is for who else has it. Never raises."""
        self.shut(hung_up=True)

    def change(self, settings: Settings, *, label: str) -> None:
        """Set the open port anew. Raises Unreachable; the old settings are then what `settings` says."""
        raise NotImplementedError

    def put(self, wire: str, level: bool) -> None:
        """Drive `dtr`, `rts` or `break`. Raises OSError: ENOTTY where there is no such line, EIO when it is down."""
        raise OSError(errno.ENOTTY, "no modem lines")

    def levels(self) -> dict[str, bool | None]:
        """All modem lines now, by name, asserted or not; None for one that nobody knows. Raises OSError as `put`."""
        raise OSError(errno.ENOTTY, "no modem lines")

    def why_gone(self, reason: str) -> str:
        """A better reason for the end than the capture loop's `reason`, if this port knows one. Doesn't block."""
        return reason

    def unsent(self) -> int:
        """Bytes that were taken and are known not to have left. Doesn't block."""
        return 0
