"""Asking a link whether DHCP and TFTP really answer: the questions that a board would ask, from our side.

A DHCPDISCOVER that we broadcast comes back to this machine's own servers too, so our own answer and that of any other
server on the link can be seen. Nothing is leased: an offer that is not taken lapses.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labd.platform.net import Net

#: The address that we ask by: a locally administered one (its first byte says so) that spells `labd`.
MAC = bytes.fromhex("026c61626400")
MAC_TEXT = "02:6c:61:62:64:00"

#: The numbers of the questions that were asked, as dnsmasq's log has them.
XIDS: set[str] = set()

_COOKIE = b"\x63\x82\x53\x63"


def discover(xid: int) -> bytes:
    """A DHCPDISCOVER (RFC 2131) that asks for a broadcast answer."""
    head = struct.pack("!BBBBIHH4x4x4x4x", 1, 1, 6, 0, xid, 0, 0x8000)
    return head + MAC + bytes(10 + 64 + 128) + _COOKIE + b"\x35\x01\x01" + b"\xff" + bytes(60)


def offer(data: bytes, xids: set[int]) -> str | None:
    """Who offers, if `data` is a DHCPOFFER for one of these questions: the server's address."""
    if len(data) < 240 or data[0] != 2 or int.from_bytes(data[4:8], "big") not in xids or data[236:240] != _COOKIE:
        return None
    options = {}
    at = 240
    while at + 1 < len(data) and data[at] != 255:
        if data[at] == 0:
            at += 1
            continue
        options[data[at]] = data[at + 2 : at + 2 + data[at + 1]]
        at += 2 + data[at + 1]
    server = options.get(54, b"")
    return socket.inet_ntoa(server) if options.get(53) == b"\x02" and len(server) == 4 else None


class Asker:
    """A socket on a client's port of one interface. Raises OSError when it can't be had."""

    def __init__(self, net: Net, interface: str) -> None:
        self.xids: set[int] = set()
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            for option in (socket.SO_REUSEADDR, socket.SO_BROADCAST):
                self.sock.setsockopt(socket.SOL_SOCKET, option, 1)
            net.pin(self.sock, interface)
            self.sock.bind(("", 68))
        except OSError:
            self.sock.close()
            raise

    def servers(self, seconds: float, *, first: bool) -> set[str]:
        """Ask, and hear which DHCP servers answer within `seconds`; with `first`, only until one has."""
        self.ask()
        found: set[str] = set()
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not (first and found):
            server = self.hear(left)
            found |= {server} if server else set()
        return found

    def ask(self) -> None:
        """Send one question."""
        xid = int.from_bytes(os.urandom(4), "big")
        self.xids.add(xid)
        XIDS.add(f" {xid} ")
        try:
            self.sock.sendto(discover(xid), ("255.255.255.255", 67))
        except OSError:
            pass  # the interface went down just now: nobody answers

    def hear(self, seconds: float) -> str | None:
        """The next server that answers any of the questions; None when what came was nothing like it, or nothing."""
        self.sock.settimeout(seconds)
        try:
            return offer(self.sock.recv(2048), self.xids)
        except TimeoutError:
            return None
        except OSError:  # the same
            time.sleep(min(seconds, 0.1))
            return None

    def close(self) -> None:
        """Free the port."""
        self.sock.close()


def tftp_answers(host_ip: str, seconds: float) -> bool:
    """Whether a TFTP server answers at an address: with an error, since we ask for a file that nobody has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(seconds)
        try:
            sock.sendto(b"\0\x01" + NO_FILE.encode() + b"\0octet\0", (host_ip, 69))
            return sock.recv(600)[:1] == b"\0"
        except OSError:
            return False


#: What we ask TFTP for; nobody is told of it.
NO_FILE = ".labd-does-it-answer"
