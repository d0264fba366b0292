"""dnsmasq's command line for a plan, its script, and what its log lines say. Starts nothing.

All settings are on the command line: no configuration file of the system is read. dnsmasq 2.82 or newer.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labd.netboot.plan import Plan

#: DHCP option 93 (RFC 4578, and its registry at IANA) → the kind of client.
ARCHITECTURES = {0: "bios", 7: "efi64", 9: "efi64", 11: "efiarm64", 16: "http64", 19: "httparm64"}

#: The first bytes of a Raspberry Pi's Ethernet address. Its ROM says that it is a PC BIOS.
PI_MACS = ("28:cd:c1", "2c:cf:67", "88:a2:9e", "b8:27:eb", "d8:3a:dd", "dc:a6:32", "e4:5f:01")

#: Seconds that a lease lasts.
LEASE_SECONDS = 12 * 3600


def argv(plan: Plan, program: str, directory: str, user: str, group: str, *, advertise: bool) -> list[str]:
    """The whole command. `directory` holds its leases and `told`, its script; it gives up root and becomes `user`.

    `advertise` sends IPv6 router advertisements (for no route), without which iPXE waits 15 s for one.
    """
    return [
        program, "--keep-in-foreground", "--conf-file=/dev/null", "--log-facility=-", "--log-dhcp", "--pid-file",
        f"--user={user}", f"--group={group}",
        f"--interface={plan.interface}", "--except-interface=lo", "--bind-interfaces",
        "--port=0", "--no-resolv", "--no-hosts",
        f"--dhcp-range={plan.first},{plan.last},255.255.255.0,{LEASE_SECONDS}",
        "--dhcp-authoritative", "--no-ping", "--dhcp-sequential-ip",
        "--dhcp-ignore-clid",  # firmware, iPXE and the system name themselves differently: one address for all three
        f"--dhcp-leasefile={leases_path(directory)}",
        f"--dhcp-script={script_path(directory)}", f"--dhcp-scriptuser={user}", "--script-on-renewal",
        "--dhcp-option=option:router", "--dhcp-option=option:dns-server",  # the link leads nowhere else
        "--enable-tftp", f"--tftp-root={plan.tftp_root}",
        *_kinds(), *_boots(plan),
        *(_advertising(plan) if advertise else ()),
    ]  # fmt: skip


def leases_path(directory: str) -> str:
    """Where dnsmasq keeps its leases. On its command line, so it tells whose dnsmasq one is."""
    return os.path.join(directory, "leases")


def script_path(directory: str) -> str:
    """The program that dnsmasq calls with each event."""
    return os.path.join(directory, "told")


#: What dnsmasq runs for each event of a lease (`add|old|del MAC IP [NAME]`): a line into the keeper's FIFO, and gone.
#: It is run for a file that was sent too, but up to 0.3 s late and so in the wrong order: the log tells that at once.
#: What a board calls itself is its own choice, so a word that holds anything but printable ASCII is left out.
#: `<>`: a FIFO that nobody reads any more must not hold the script up.
SCRIPT = r"""#!/bin/sh
LC_ALL=C
plain() { case $1 in *[!\ -~]*) ;; *) printf '%s' "$1" ;; esac; }
case $1 in
add | old | del) line="$1	$2	$3	$(plain "$4")	$(plain "$DNSMASQ_VENDOR_CLASS")	$DNSMASQ_TAGS" ;;
*) exit 0 ;;
esac
printf '%s\n' "$line" 1<>FIFO
"""


def script(fifo: str) -> str:
    """The text of the script that writes into `fifo`."""
    return SCRIPT.replace("FIFO", shlex.quote(fifo))


def client(tags: str) -> str:
    """Which kind of client the tags that it was given mean; empty: none of those that we know."""
    known = ("ipxe", "pi", *dict.fromkeys(ARCHITECTURES.values()), "httpclient")
    return next((word for word in known if word in tags.split()), "")


def _kinds() -> list[str]:
    """Options that give a client the tags of what it is."""
    return [
        "--dhcp-userclass=set:ipxe,iPXE",
        "--dhcp-vendorclass=set:httpclient,HTTPClient",
        *(f"--dhcp-match=set:{kind},option:client-arch,{number}" for number, kind in ARCHITECTURES.items()),
        *(f"--dhcp-mac=set:pi,{mac}:*:*:*" for mac in PI_MACS),
    ]


def _boots(plan: Plan) -> list[str]:
    """Options that give each kind of client its file, and what else its firmware insists on."""
    found = [
        "--dhcp-option-force=encap:175,176,1b",  # iPXE: do not wait for a proxy DHCP server
        "--dhcp-option-force=tag:httpclient,60,HTTPClient",
        # A Pi looks for these words, and wants to be told the TFTP server in this option too.
        "--dhcp-option-force=tag:pi,60,PXEClient", "--dhcp-option-force=tag:pi,43,Raspberry Pi Boot",
        f"--dhcp-option-force=tag:pi,66,{plan.host_ip}",
    ]  # fmt: skip
    files = dict(plan.boots)
    anything = files.pop("", None)
    if anything:
        found.append(f"--dhcp-boot={anything}")
    if "ipxe" in files:
        found.append(f"--dhcp-boot=tag:ipxe,{files.pop('ipxe')}")
    found += [f"--dhcp-boot=tag:{kind},tag:!ipxe,tag:!pi,{file}" for kind, file in files.items()]
    for kind, same in (("http64", "efi64"), ("httparm64", "efiarm64")):
        file = anything or files.get(same)
        if file:
            found.append(f"--dhcp-boot=tag:{kind},tag:!ipxe,{plan.url}/{file}")
    return found


def _advertising(plan: Plan) -> list[str]:
    """Router advertisements every 10 s, of a router for no time: nothing is to be sent through us."""
    prefix = plan.ula.removesuffix("1/64")
    return ["--enable-ra", f"--dhcp-range={prefix},ra-only,64", f"--ra-param={plan.interface},10,0"]


#: Lines of --log-dhcp that only say what any answer holds.
_NOISE = re.compile(r"sent size:|requested options:|available DHCP range:|broadcast response| tags: [^,]*$")


def worth_keeping(line: str) -> bool:
    """Whether a line says something of this board, this boot: not every option of every answer."""
    return bool(line) and ("bootfile-name" in line or not _NOISE.search(line))


_SENT = re.compile(r"dnsmasq-tftp(?:\[\d+\])?: sent (.+) to ([0-9a-f.:]+)$")
_NOT_FOUND = re.compile(r"dnsmasq-tftp(?:\[\d+\])?: (?:file|cannot access) (.+?)(?: not found)? for ([0-9a-f.:]+)")
_FAILED = re.compile(r"dnsmasq-tftp(?:\[\d+\])?: failed sending (.+) to ([0-9a-f.:]+)")


def event_in(line: str, root: str) -> dict[str, Any] | None:
    """What a line of the log says of TFTP: a file that was sent and its size, one that isn't there, one that failed."""
    for kind, pattern in (("transfer", _SENT), ("missing", _NOT_FOUND), ("failed", _FAILED)):
        found = pattern.search(line)
        if found:
            event = {"event": kind, "proto": "tftp", "file": below(found[1], root), "ip": found[2]}
            return event | ({"bytes": _size(found[1])} if kind == "transfer" else {})
    return None


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0  # it went meanwhile


def below(path: str, root: str) -> str:
    """A served file's path as a board asks for it: without the directory that is served."""
    return path[len(root) :].lstrip("/") if path.startswith(root.rstrip("/") + "/") else path
