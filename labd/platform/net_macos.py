"""Network interfaces on macOS: ifconfig, route, ndp, arp and lsof, all part of the system. See `labd.platform.net`."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from labd.platform.net import Link, done

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from labd.platform.net import Run

#: From netinet/in.h, which Python's socket module does not have: pins a socket to an interface by its index.
IP_BOUND_IF = 25


class MacNet:
    """The interfaces of this machine."""

    def __init__(self, run: Run, root: Sequence[str] = ()) -> None:
        self.run = run
        self.root = list(root)

    def links(self) -> dict[str, Link]:
        """Every interface by name."""
        text = done(self.run, ["/sbin/ifconfig", "-a", "-v"])
        blocks = list(re.finditer(r"^(\S+): flags=\w+<([^>]*)>(.*(?:\n\s.*)*)", text, re.MULTILINE))
        members = {name: bridge[1] for bridge in blocks for name in re.findall(r"\n\s+member: (\S+)", bridge[3])}
        return {block[1]: _link(block[1], block[2].split(","), block[3], members.get(block[1])) for block in blocks}

    def default_interfaces(self) -> set[str]:
        """The interfaces that a default route leads through."""
        found = set()
        for family in ("-inet", "-inet6"):
            code, out, _ = self.run(["/sbin/route", "-n", "get", family, "default"])
            named = re.search(r"interface: (\S+)", out)
            if code == 0 and named and not named[1].startswith("utun"):  # the system keeps IPv6 defaults on tunnels
                found.add(named[1])
        return found

    def peers(self, name: str) -> list[str]:
        """The neighbours that answered: not `(incomplete)`, and not our own addresses, which are `permanent`."""
        found = []
        _, out, _ = self.run(["/usr/sbin/ndp", "-an"])
        for words in map(str.split, out.splitlines()[1:]):
            if len(words) > 3 and words[2] == name and ":" in words[1] and words[3] != "permanent":
                found.append(words[0].partition("%")[0])
        _, out, _ = self.run(["/usr/sbin/arp", "-an", "-i", name])
        for address, mac, rest in re.findall(r"\((\S+)\) at (\S+)(.*)", out):
            if ":" in mac and "permanent" not in rest and not mac.startswith(("ff:ff", "1:0:5e")):
                found.append(address)
        return found

    def port_holder(self, kind: str, port: int) -> str | None:
        """Who has a port open, by lsof; those of other users are seen by root alone."""
        only = ["-sTCP:LISTEN"] if kind == "tcp" else []
        _, out, _ = self.run(["/usr/sbin/lsof", "-nP", f"-i{kind.upper()}:{port}", *only, "-Fpc"])
        found = re.search(r"^p(\d+)\nc(.*)$", out, re.MULTILINE)
        return f"{found[2]} (pid {found[1]})" if found else None

    def pin(self, sock: socket.socket, name: str) -> None:
        """IP_BOUND_IF."""
        import socket as sockets

        sock.setsockopt(sockets.IPPROTO_IP, IP_BOUND_IF, sockets.if_nametoindex(name))

    def add(self, name: str, cidr: str) -> None:
        """Give an address to an interface, beside those that it has."""
        address, _, length = cidr.partition("/")
        if ":" in cidr:
            self._ifconfig(name, "inet6", address, "prefixlen", length, "alias")
        else:
            mask = str(ipaddress.IPv4Interface(cidr).netmask)
            self._ifconfig(name, "inet", address, "netmask", mask, "alias")

    def remove(self, name: str, cidr: str) -> None:
        """Take an address away."""
        address = cidr.partition("/")[0]
        self._ifconfig(name, "inet6" if ":" in cidr else "inet", address, "-alias")

    def up(self, name: str) -> None:
        """Switch an interface on."""
        self._ifconfig(name, "up")

    def down(self, name: str) -> None:
        """Switch it off."""
        self._ifconfig(name, "down")

    def enable_ipv6(self, name: str) -> None:
        """An interface has IPv6 here unless its service was set up without; an address of its own brings it back."""

    def wake_off(self, name: str) -> str | None:
        """One setting wakes this whole machine; it is not ours to change."""
        return "Wake-on-LAN is as it was: macOS has one setting for the whole machine (sudo pmset -a womp 0)"

    def _ifconfig(self, *words: str) -> None:
        done(self.run, [*self.root, "/sbin/ifconfig", *words])


def _link(name: str, flags: list[str], body: str, master: str | None) -> Link:
    """An interface from its block of `ifconfig -a -v`."""
    index = re.search(r"\bindex (\d+)", body)
    status = re.search(r"\n\s+status: (\w+)", body)
    mac = re.search(r"\n\s+ether (\S+)", body)
    inet = re.findall(r"\n\s+inet (\S+)(?: --> \S+)? netmask 0x([0-9a-f]{8})", body)
    inet6 = re.findall(r"\n\s+inet6 ([^\s%]+)(?:%\S+)? prefixlen (\d+)", body)
    return Link(
        name=name,
        index=int(index[1]) if index else 0,
        mac=mac[1] if mac else None,
        up="UP" in flags,
        carrier=status[1] == "active" if status else "RUNNING" in flags,
        inet=tuple(f"{address}/{int(mask, 16).bit_count()}" for address, mask in inet),
        inet6=tuple(f"{address}/{length}" for address, length in inet6),
        master=master,
    )
