"""What may be done to which interface, and the modes of a link: netboot, link, ffx, off, and down hard.

One guard stands before everything that touches an interface: it must exist, must not carry this machine's way to the
world, must not be in use for another network, and nobody else may be serving it. Modes are seen from the interface,
never stored. Blocks: it runs in the thread of a call, or in the keeper.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import sys
from typing import TYPE_CHECKING, Any

from labd import shim
from labd.errors import Busy, NotFound, Refused, Unreachable, nearest
from labd.netboot.plan import ula_of
from labd.netboot.undo import Undo
from labd.platform import net

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labd.call import Call
    from labd.platform.net import Link, Net

#: Our address in mode ffx: ffx finds a device by its link-local address on a link that has one of ours.
FFX_ADDRESS = "fe80::1/64"

#: Seconds that a system program gets to read or change an interface.
TOOL_SECONDS = 10.0


def tool_run(argv: list[str]) -> tuple[int | None, str, str]:
    """Run a program of the system through the shim. Raises Unreachable when it can't be started."""
    ended = shim.run_hook(argv, cwd="/", env=dict(os.environ), timeout_s=TOOL_SECONDS)
    said = ended.err.decode("utf-8", "replace")
    if ended.code and asks_password(said):
        raise no_root("sudo asks for a password")
    return ended.code, ended.out.decode("utf-8", "replace"), said


def asks_password(said: str) -> bool:
    """Whether that is sudo saying that it would have to ask."""
    return said.startswith("sudo:") and "password" in said


def root_words() -> list[str]:
    """What comes before a command that needs root: nothing when we are it, else sudo. Raises Unreachable."""
    if os.geteuid() == 0:
        return []
    sudo = net.find_program("sudo", os.environ.get("PATH"))
    if sudo is None:
        raise no_root("there is no sudo")
    return [sudo, "-n", "--"]


def root_commands() -> list[list[str]]:
    """The commands that are run as root, by sudo where the daemon is not; `*` stands for any words."""
    names = ("ifconfig",) if sys.platform == "darwin" else ("ip", "sysctl", "ethtool")
    tools = [net.find_program(name, os.environ.get("PATH")) for name in names]
    return [[sys.executable, "-m", "labd.netboot.keeper", "*"], *([tool] for tool in tools if tool)]


def no_root(why: str) -> Unreachable:
    """The error of who may not do it, with the rule for sudo that would permit it."""
    rule = ", ".join(" ".join(command) for command in root_commands())
    return Unreachable(
        f"serving a board and changing a network interface need root, and {why}; nothing was done",
        hint=f'echo "$USER ALL=(root) NOPASSWD: {rule}" | sudo tee /etc/sudoers.d/labd-netboot',
    )


def links_of(call: Call, *, changing: bool = False) -> Links:
    """The interfaces for a call, to look at or to change. Raises Unreachable when they may not be changed."""
    return Links(net.current(tool_run, root_words() if changing else ()), call.lab_words())


class Links:
    """The interfaces of this machine as netboot and netif see them; `words` is what hints must name of a lab."""

    def __init__(self, system: Net, words: str = "") -> None:
        self.net = system
        self.words = words

    def find(self, name: str, target: str) -> Link:
        """The interface `name` of `target`. Raises NotFound with near matches."""
        links = self.net.links()
        if name in links:
            return links[name]
        near = nearest(name, [other for other in links if other != "lo"])
        better = f"labd {self.words}netboot set -t {target} --interface {near[0]}" if near else "labd netboot devices"
        raise NotFound(f"{target}: there is no network interface {name!r} on this machine", near=near, hint=better)

    def guard(
        self, name: str, target: str, address: ipaddress.IPv4Address, *, gains: bool, ours: Sequence[str] = ()
    ) -> Link:
        """The interface, if it may be touched. `gains` says that our address is to be on it, `ours` which else may be.

        Raises NotFound (unknown), Refused (this machine's way to the world), Busy (used for something else).
        """
        link = self.find(name, target)
        other = f"labd {self.words}netboot set -t {target} --interface OTHER  # labd netboot devices lists them"
        if name in self.net.default_interfaces():
            raise Refused(
                f"{name} carries this machine's default route: it leads to the world, not to {target}; "
                "nothing was done",
                hint=other,
            )
        if any(cidr.startswith("127.") for cidr in link.inet):
            raise Refused(f"{name} is this machine's loopback and leads to no board; nothing was done", hint=other)
        if link.master:
            raise Busy(f"{name} is a port of {link.master}; nothing was done",
                       hint=f"labd {self.words}netboot set -t {target} --interface {link.master}")  # fmt: skip
        known = [address, *map(ipaddress.IPv4Address, ours)]
        strange = [cidr for cidr in link.inet if not ipaddress.IPv4Interface(cidr).ip.is_link_local
                   and ipaddress.IPv4Interface(cidr).ip not in known]  # fmt: skip
        if strange:
            raise Busy(
                f"{name} is in use for another network ({', '.join(strange)}); nothing was done",
                hint=f"{other}; or, if that is the link: labd {self.words}netboot set -t {target} "
                f"--host-ip {strange[0].partition('/')[0]}",
            )
        if gains:
            self._no_overlap(link, target, ipaddress.IPv4Network((address, 24), strict=False))
        return link

    def _no_overlap(self, link: Link, target: str, ours: ipaddress.IPv4Network) -> None:
        for rival in self.net.links().values():
            if rival.name != link.name and any(ours.overlaps(network) for network in rival.networks()):
                raise Busy(
                    f"the network {ours} of {target}'s link is on {rival.name} too, and what is sent there would not "
                    "reach the board; nothing was done",
                    hint=f"labd {self.words}netboot set -t {target} --host-ip {_free_address(self.net)}",
                )

    # --- modes -------------------------------------------------------------------------------------------------------

    def set_mode(self, mode: str, name: str, address: ipaddress.IPv4Address) -> None:
        """Make an interface that has been guarded, and is not being served, what `link`, `ffx` or `off` say."""
        cidr = f"{address}/24"
        if mode == "ffx":
            self.net.up(name)
            self.net.enable_ipv6(name)
            self._have(name, FFX_ADDRESS)
            return
        self._lack(name, FFX_ADDRESS)
        self._lack(name, ula_of(address))  # of a keeper that was killed with its daemon
        if mode == "link":
            self.net.up(name)
            self._have(name, cidr)
        else:
            self._lack(name, cidr)

    def down_hard(self, name: str, address: ipaddress.IPv4Address) -> str | None:
        """`off`, then no Wake-on-LAN, then the interface off, so that the carrier goes; what could not be done."""
        self.set_mode("off", name, address)
        lacks = self.net.wake_off(name)
        self.net.down(name)
        return lacks

    def status(self, name: str, target: str, address: ipaddress.IPv4Address, *, served: bool) -> dict[str, Any]:
        """What an interface is now: mode, switched on, carrier, addresses, neighbours that answered."""
        link = self.find(name, target)
        mode = (
            "netboot" if served
            else "ffx" if link.has(FFX_ADDRESS)
            else "link" if link.has(str(address))
            else "off"
        )  # fmt: skip
        if mode == "ffx" and link.carrier:
            _greet_all(link)
        peers = [peer for peer in self.net.peers(name) if not link.has(peer)] if link.up else []
        return {
            "target": target, "interface": name, "mode": mode, "up": link.up, "carrier": link.carrier,
            "inet": list(link.inet), "inet6": list(link.inet6), "peers": peers,
        }  # fmt: skip

    def _have(self, name: str, cidr: str) -> None:
        if not self.net.links()[name].has(cidr):
            self.net.add(name, cidr)

    def _lack(self, name: str, cidr: str) -> None:
        for found in self.net.links()[name].cidrs(cidr):
            self.net.remove(name, found)


def _free_address(system: Net) -> str:
    """An address for us whose /24 no interface of this machine has."""
    taken = [network for link in system.links().values() for network in link.networks()]
    hosts = (ipaddress.IPv4Address(f"192.168.{third}.1") for third in range(99, 0, -1))
    free = (host for host in hosts if not any(host in network for network in taken))
    return str(next(free, "10.99.0.1"))


def _greet_all(link: Link) -> None:
    """Ping all nodes of a link (ff02::1) and wait a moment: those that answer become known neighbours.

    Needs root for the raw socket; without it, only those show that have spoken to us.
    """
    import socket
    import time

    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as sock:
            sock.sendto(b"\x80\0\0\0labd\0\0\0\1", ("ff02::1", 0, 0, link.index))
            time.sleep(0.2)
    except OSError:
        pass


def put_back(name: str, directory: str, who: str) -> None:
    """Undo what a keeper of `directory` that was killed did to the addresses of `name`. Raises LabdError."""
    path = os.path.join(directory, "undo")
    if not os.path.exists(path):
        return
    undo = Undo(net.current(tool_run, root_words()), name, path)
    lock = InterfaceLock(name, who)
    try:
        undo.all()
    finally:
        lock.close()


class InterfaceLock:
    """Held by whoever serves or changes an interface, on the whole machine. Raises Busy naming the holder.

    A lock file of root's that is never unlinked; a user without root can only see it held. Network namespaces of one
    machine may have interfaces of one name.
    """

    def __init__(self, name: str, who: str) -> None:
        path = f"/var/run/labd-netboot-{_namespace()}{name}.lock"
        self.fd: int | None = None
        writable = True
        try:
            self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except PermissionError:
            writable = False
            try:
                self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return  # nobody ever took it
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self.fd, 500, 0).decode("utf-8", "replace").strip() or "another program"
            self.close()
            raise Busy(f"{name} is already being served, for {holder}; nothing was done",
                       hint="labd daemons  # names each daemon of this machine, how to end it") from None  # fmt: skip
        if writable:
            os.ftruncate(self.fd, 0)
            os.pwrite(self.fd, who.encode()[:500], 0)

    def close(self) -> None:
        """Give it back."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


def _namespace() -> str:
    """What tells this network namespace from others; empty where there are none."""
    try:
        return f"{os.stat('/proc/self/ns/net').st_ino}-"
    except OSError:
        return ""
