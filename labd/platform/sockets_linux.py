"""Who listens on a network port of this Linux machine, and where its packets go: /proc alone, no socket is opened.

Owns nothing and changes nothing. The root is a parameter, so that tests can give a made-up machine; what is not there
makes an answer shorter, never an error.
"""

import ipaddress
import os
import struct
from typing import Any

#: The state of a socket that listens (TCP) or is bound to no peer (UDP), as /proc/net prints it.
_LISTENS = {"tcp": "0A", "udp": "07"}


def listeners(proc: str, protocol: str, port: int) -> list[dict[str, Any]]:
    """The sockets that take what comes to `port` over `protocol` (tcp, udp): address, pid, command.

    pid and command are None for a program of another user, whose descriptors may not be listed.
    """
    found = []
    for name in (protocol, protocol + "6"):
        for line in _lines(os.path.join(proc, "net", name))[1:]:
            words = line.split()
            if len(words) < 10 or words[3] != _LISTENS[protocol]:
                continue
            address, _, number = words[1].partition(":")
            if number == f"{port:04X}":
                found.append((_address(address), words[9]))
    owners = _owners(proc, {inode for _, inode in found}) if found else {}
    return [{"address": address, **owners.get(inode, {"pid": None, "command": None})} for address, inode in found]


def networks(proc: str) -> list[tuple[str, ipaddress.IPv4Network]]:
    """(interface, network) of every IPv4 route but the default ones."""
    found = []
    for line in _lines(os.path.join(proc, "net", "route"))[1:]:
        words = line.split()
        if len(words) > 7 and words[7] != "00000000" and all(len(words[at]) == 8 for at in (1, 7)):
            address, mask = (_address(words[at]) for at in (1, 7))
            found.append((words[0], ipaddress.IPv4Network(f"{address}/{mask}", strict=False)))
    return found


def descends(proc: str, pid: int, ancestor: int) -> bool:
    """Whether process `pid` is `ancestor` or was started by it, over any number of steps."""
    for _ in range(64):
        if pid == ancestor:
            return True
        words = " ".join(_lines(os.path.join(proc, str(pid), "stat"))).rpartition(")")[2].split()
        if len(words) < 2 or not words[1].isdigit() or words[1] == "0":
            return False
        pid = int(words[1])
    return False


def capabilities(proc: str) -> int:
    """The capabilities in force of this process, as the bits of linux/capability.h."""
    for line in _lines(os.path.join(proc, "self", "status")):
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _owners(proc: str, inodes: set[str]) -> dict[str, dict[str, Any]]:
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    owners: dict[str, dict[str, Any]] = {}
    for entry in _entries(proc):
        folder = os.path.join(proc, entry, "fd")
        for name in _entries(folder) if entry.isdigit() else ():
            try:
                inode = wanted.get(os.readlink(os.path.join(folder, name)))
            except OSError:
                continue
            if inode is not None:
                owners.setdefault(inode, {"pid": int(entry), "command": _command(proc, entry)})
    return owners


def _command(proc: str, pid: str) -> str:
    words = "\n".join(_lines(os.path.join(proc, pid, "cmdline"))).split("\0")
    return " ".join(words).strip()[:200] or (_lines(os.path.join(proc, pid, "comm")) or ["unknown"])[0]


def _address(text: str) -> str:
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    return str(ipaddress.ip_address(packed))


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 22).splitlines()
    except OSError:
        return []


def _entries(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
