"""Network interfaces: what can be asked of one and done to one, the same on Linux and macOS.

The system's own programs (`ip`, `ifconfig`) do the work. Nothing here starts them: whoever makes one gives a `Run`, and
the words that come before a command which needs root. No rule is here: what may be done to which interface is
`labd.netboot.link`'s.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from labd.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    #: argv → exit code (None: it did not end in time), stdout, stderr. Raises Unreachable when it can't be started.
    Run = Callable[[list[str]], tuple[int | None, str, str]]


@dataclass(frozen=True)
class Link:
    """One interface as it is now. Addresses carry their prefix length: `192.168.99.1/24`."""

    name: str
    index: int
    mac: str | None
    up: bool
    """Whether it is switched on; `carrier` is whether there is somebody at the other end."""
    carrier: bool
    inet: tuple[str, ...]
    inet6: tuple[str, ...]
    master: str | None = None
    """The bridge or bond that it is a port of."""

    def has(self, address: str) -> bool:
        """Whether it carries `address`, whatever its prefix length."""
        return bool(self.cidrs(address))

    def cidrs(self, address: str) -> list[str]:
        """How it carries an address, with or without a prefix length: mostly once, or not at all."""
        wanted = ipaddress.ip_interface(address).ip
        return [cidr for cidr in (*self.inet, *self.inet6) if ipaddress.ip_interface(cidr).ip == wanted]

    def networks(self) -> list[ipaddress.IPv4Network]:
        """The IPv4 networks of its addresses, those that it gave to itself (169.254.x.x) left out."""
        found = [ipaddress.IPv4Interface(cidr) for cidr in self.inet]
        return [interface.network for interface in found if not interface.ip.is_link_local]


class Net(Protocol):
    """What each system's module offers. Whatever changes something raises Unreachable when it could not be done."""

    def links(self) -> dict[str, Link]:
        """Every interface by name."""

    def default_interfaces(self) -> set[str]:
        """The interfaces that a default route leads through, IPv4 or IPv6."""

    def peers(self, name: str) -> list[str]:
        """The addresses of the neighbours that answered on an interface, not of others; ours may be among them."""

    def port_holder(self, kind: str, port: int) -> str | None:
        """Who has a port of this machine open, as `nginx (pid 12)`; `kind` is `udp` or `tcp`. None: can't be told."""

    def pin(self, sock: socket.socket, name: str) -> None:
        """Let a socket send and receive through this interface alone. Raises OSError."""

    def add(self, name: str, cidr: str) -> None:
        """Give an address to an interface."""

    def remove(self, name: str, cidr: str) -> None:
        """Take an address away."""

    def up(self, name: str) -> None:
        """Switch an interface on."""

    def down(self, name: str) -> None:
        """Switch it off."""

    def enable_ipv6(self, name: str) -> None:
        """See to it that the interface may have IPv6 addresses."""

    def wake_off(self, name: str) -> str | None:
        """Switch Wake-on-LAN off, which keeps the line alive. Why that could not be done, None when it was."""


def current(run: Run, root: Sequence[str] = ()) -> Net:
    """The system that we run on. `root` comes before commands that need root (`sudo -n`)."""
    if sys.platform == "darwin":
        from labd.platform.net_macos import MacNet

        return MacNet(run, root)
    from labd.platform.net_linux import LinuxNet

    return LinuxNet(run, root)


def find_program(name: str, env_path: str | None) -> str | None:
    """Where a program of the system is: on PATH, or where system programs are for those who have no such PATH."""
    import shutil

    more = "/usr/local/sbin:/usr/sbin:/sbin:/opt/homebrew/sbin:/opt/homebrew/bin:/usr/local/bin"
    return shutil.which(name, path=f"{env_path or os.defpath}:{more}")


def done(run: Run, argv: list[str]) -> str:
    """Run a command that must succeed; its stdout. Raises Unreachable with what it said."""
    code, out, err = run(argv)
    if code != 0:
        said = (err.strip() or out.strip()).splitlines()
        why = said[-1] if said else "it did not end in time" if code is None else f"exit code {code}"
        raise Unreachable(f"`{' '.join(argv)}` failed: {why}", hint=_way_out(why))
    return out


def _way_out(why: str) -> str | None:
    if "not permitted" in why or "ermission denied" in why:
        return "start the daemon as root, or permit sudo without a password to this user"
    return None
