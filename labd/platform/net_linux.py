"""Network interfaces on Linux: iproute2's `ip` with its JSON, /proc for who holds a port. See `labd.platform.net`."""

from __future__ import annotations

import json
import os
import shlex
import socket
from typing import TYPE_CHECKING, Any

from labd.errors import Unreachable
from labd.platform.net import Link, done, find_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from labd.platform.net import Run

#: The states of a neighbour that has answered (ip-neighbour(8)).
ANSWERED = {"REACHABLE", "STALE", "DELAY", "PROBE", "PERMANENT"}


class LinuxNet:
    """The interfaces of this process's network namespace. `proc` can be a made-up one."""

    def __init__(self, run: Run, root: Sequence[str] = (), proc: str = "/proc") -> None:
        self.run = run
        self.root = list(root)
        self.proc = proc

    def links(self) -> dict[str, Link]:
        """Every interface by name."""
        found = {}
        for row in self._ask("addr", "show"):
            flags = row.get("flags", ())
            addresses = [(a["family"], f"{a['local']}/{a['prefixlen']}") for a in row["addr_info"] if "local" in a]
            found[row["ifname"]] = Link(
                name=row["ifname"],
                index=row["ifindex"],
                mac=row.get("address"),
                up="UP" in flags,
                carrier="LOWER_UP" in flags and "NO-CARRIER" not in flags,
                inet=tuple(cidr for family, cidr in addresses if family == "inet"),
                inet6=tuple(cidr for family, cidr in addresses if family == "inet6"),
                master=row.get("master"),
            )
        return found

    def default_interfaces(self) -> set[str]:
        """The interfaces that a default route of any table leads through."""
        rows = [row for family in ("-4", "-6") for row in self._ask(family, "route", "show", "table", "all", "default")]
        devices = {hop.get("dev") for row in rows for hop in (row, *row.get("nexthops", ()))}
        return {device for device in devices if device and device != "lo"}

    def peers(self, name: str) -> list[str]:
        """The neighbours that answered."""
        rows = self._ask("neigh", "show", "dev", name)
        return [row["dst"] for row in rows if "lladdr" in row and ANSWERED & set(row.get("state", ()))]

    def port_holder(self, kind: str, port: int) -> str | None:
        """Who has a port open; those of other users are seen by root alone."""
        sockets = {f"socket:[{inode}]" for inode in self._inodes(kind, port)}
        for pid in filter(str.isdigit, os.listdir(self.proc) if sockets else ()):
            folder = os.path.join(self.proc, pid, "fd")
            try:
                links = [os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder)]
                if sockets.isdisjoint(links):
                    continue
                with open(os.path.join(self.proc, pid, "comm"), encoding="utf-8", errors="replace") as file:
                    return f"{file.read().strip()} (pid {pid})"
            except OSError:
                continue  # it ended meanwhile, or is somebody else's
        return None

    def _inodes(self, kind: str, port: int) -> Iterator[str]:
        """The inodes of the sockets that have a port open: listening ones, of tcp."""
        for name in (kind, kind + "6"):
            try:
                with open(os.path.join(self.proc, "net", name), encoding="ascii") as file:
                    rows = [line.split() for line in file.readlines()[1:]]
            except OSError:
                continue
            for row in rows:
                if int(row[1].rpartition(":")[2], 16) == port and (kind == "udp" or row[3] == "0A"):
                    yield row[9]

    def pin(self, sock: socket.socket, name: str) -> None:
        """SO_BINDTODEVICE."""
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name.encode() + b"\0")

    def add(self, name: str, cidr: str) -> None:
        """Give an address to an interface, at once usable (an IPv6 one without the search for a double)."""
        self._do("addr", "replace", cidr, "dev", name, *(("nodad",) if ":" in cidr else ("brd", "+")))

    def remove(self, name: str, cidr: str) -> None:
        """Take an address away."""
        self._do("addr", "del", cidr, "dev", name)

    def up(self, name: str) -> None:
        """Switch an interface on."""
        self._do("link", "set", name, "up")

    def down(self, name: str) -> None:
        """Switch it off."""
        self._do("link", "set", name, "down")

    def enable_ipv6(self, name: str) -> None:
        """Clear its `disable_ipv6`, where it is set."""
        path = os.path.join(self.proc, "sys/net/ipv6/conf", name, "disable_ipv6")
        try:
            with open(path, encoding="ascii") as file:
                disabled = file.read().strip() == "1"
        except OSError:
            raise Unreachable("this system has no IPv6", hint="labd netif mode link  # needs none") from None
        if disabled:
            key = "net/ipv6/conf/" + name + "/disable_ipv6"  # with slashes, since a name may hold dots
            done(self.run, [*self.root, self._program("sysctl", "procps"), "-q", "-w", f"{key}=0"])

    def wake_off(self, name: str) -> str | None:
        """By ethtool; an interface that knows no Wake-on-LAN is done with."""
        program = find_program("ethtool", os.environ.get("PATH"))
        if program is None:
            return "Wake-on-LAN is as it was, for want of ethtool (sudo apt-get install ethtool)"
        code, _, err = self.run([*self.root, program, "-s", name, "wol", "d"])
        unknown = "not supported" in err.lower()
        return None if code == 0 or unknown else f"Wake-on-LAN is as it was: {err.strip() or 'ethtool failed'}"

    def _ask(self, *words: str) -> list[dict[str, Any]]:
        text = done(self.run, [self._program("ip", "iproute2"), "-j", *words])
        try:
            rows: list[dict[str, Any]] = json.loads(text or "[]")
        except ValueError:
            raise Unreachable("`ip -j` answered no JSON", hint="sudo apt-get install iproute2") from None
        return [row for row in rows if row]  # some versions leave empty objects

    def _do(self, *words: str) -> None:
        done(self.run, [*self.root, self._program("ip", "iproute2"), *words])

    def _program(self, name: str, package: str) -> str:
        found = find_program(name, os.environ.get("PATH"))
        if found is None:
            raise Unreachable(f"there is no program {name!r}", hint=f"sudo apt-get install {shlex.quote(package)}")
        return found
