"""What is to be served to a target, worked out from its netboot channel: pure but for looking which files exist.

Addresses follow `host_ip`: its /24 is the link's network, and boards get theirs from it. A `Plan` is plain data, so
that it can be handed to the keeper, and compared to see whether the lab has changed since.
"""

from __future__ import annotations

import ipaddress
import os
import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from labd import paths
from labd.errors import NotFound, Usage
from labd.netboot.tree import check_names

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Our address and the HTTP port where the lab names none.
HOST_IP = "192.168.99.1"
HTTP_PORT = 80

#: What the last byte of a board's address may be, where that of `host_ip` is not among them; else the second choice.
POOLS = ((100, 199), (10, 99))

#: The kinds of clients → the file that each loads from firmware, the first of these that exists.
LOADERS = {
    "bios": ("undionly.kpxe", "ipxe.pxe", "pxelinux.0"),
    "efi64": ("snponly.efi", "ipxe.efi", "bootx64.efi", "grubx64.efi"),
    "efiarm64": ("snponly-arm64.efi", "ipxe-arm64.efi", "bootaa64.efi", "grubaa64.efi"),
    "ipxe": ("boot.ipxe",),
}


@dataclass(frozen=True)
class Plan:
    """What to serve on which interface. `boots` has the file for each kind of client that gets one, `""`: any other."""

    interface: str
    host_ip: str
    first: str
    last: str
    tftp_root: str
    http_port: int
    content_type: str
    boots: dict[str, str]

    @property
    def cidr(self) -> str:
        """Our address with its prefix length."""
        return f"{self.host_ip}/24"

    @property
    def ula(self) -> str:
        """Our IPv6 address for the link."""
        return ula_of(ipaddress.IPv4Address(self.host_ip))

    @property
    def url(self) -> str:
        """Where HTTP serves, without a slash at the end."""
        return f"http://{self.host_ip}" + ("" if self.http_port == HTTP_PORT else f":{self.http_port}")

    def as_data(self) -> dict[str, Any]:
        """For the keeper: `Plan(**data)` is the same again."""
        return asdict(self)


def ula_of(address: ipaddress.IPv4Address) -> str:
    """A private IPv6 address for the link, made of our IPv4 one: who looks for IPv6 there need not wait for long."""
    a, b, c, _ = address.packed
    return f"{ipaddress.IPv6Address(f'fd6c:6162:64{a:02x}:{b:02x}{c:02x}::1')}/64"


def interface_of(target: str, channel: Mapping[str, Any], words: str = "") -> str:
    """The interface of a netboot channel. Raises NotFound when none is set."""
    if not channel.get("interface"):
        raise NotFound(f"{target}.netboot has no interface", hint=f"labd {words}netboot set -t {target} --interface IF")
    return str(channel["interface"])


def address_of(target: str, channel: Mapping[str, Any], words: str = "") -> ipaddress.IPv4Address:
    """Our address on the link. Raises Usage when it can't be one that boards in its /24 reach us by."""
    text = str(channel.get("host_ip", HOST_IP))
    found = ipaddress.ip_address(text)
    mend = f"labd {words}netboot set -t {target} --host-ip {HOST_IP}"
    if not isinstance(found, ipaddress.IPv4Address):
        raise Usage(f"{target}.netboot: host_ip {text} must be an IPv4 address, since DHCP speaks IPv4", hint=mend)
    what = (
        "a loopback address" if found.is_loopback
        else "an address that machines give themselves" if found.is_link_local
        else "no address of one machine" if found.is_multicast or found.is_reserved or found.is_unspecified
        else f"the address of its network, {text}/24, itself" if found.packed[3] == 0
        else "the broadcast address of its network" if found.packed[3] == 255
        else ""
    )  # fmt: skip
    if what:
        raise Usage(f"{target}.netboot: host_ip {text} is {what}", hint=mend)
    return found


def plan(target: str, channel: Mapping[str, Any], env: Mapping[str, str], folder: str, words: str = "") -> Plan:
    """What `channel` of a lab in `folder` asks for. `words` go into the hints, as `call.lab_words()` gives them.

    Raises NotFound for what the lab does not say and where there is no such directory, Usage for a bad address or
    name.
    """
    interface = interface_of(target, channel, words)
    address = address_of(target, channel, words)
    root = _root(target, channel, env, folder, words)
    network = ipaddress.IPv4Network((address, 24), strict=False)
    low, high = next(pool for pool in POOLS if not pool[0] <= address.packed[3] <= pool[1])
    return Plan(
        interface=interface,
        host_ip=str(address),
        first=str(network[low]),
        last=str(network[high]),
        tftp_root=root,
        http_port=channel.get("http_port", HTTP_PORT),
        content_type=channel.get("content_type", ""),
        boots=boots(_relative(channel.get("boot_file", ""), root), root),
    )


def boots(boot_file: str, root: str) -> dict[str, str]:
    """Which file each kind of client is offered.

    A `boot_file` is for everybody, but that an iPXE script is for iPXE, which firmware loads first. Without one, each
    gets the file of the usual name that is there.
    """
    script = boot_file.endswith(".ipxe")
    if boot_file and not script:
        return {"": boot_file}
    found = {}
    for kind, names in LOADERS.items():
        there = [name for name in names if os.path.isfile(os.path.join(root, name))]
        if there:
            found[kind] = there[0]
    return found | ({"ipxe": boot_file} if script else {})


def lacking(boot_file: str, root: str) -> str | None:
    """What to tell somebody who starts without the files that a board will ask for; None when all is there."""
    if boot_file and not os.path.isfile(os.path.join(root, boot_file)):
        return f"there is no {boot_file} in {root} yet; boards are told to ask for it"
    if boot_file.endswith(".ipxe") and not set(boots(boot_file, root)) & {"bios", "efi64", "efiarm64"}:
        return (
            f"{boot_file} is a script for iPXE, and {root} has no iPXE that a PXE ROM could load first "
            "(undionly.kpxe, snponly.efi: /usr/lib/ipxe of the package ipxe); a board with iPXE in its ROM needs none"
        )
    if not boot_file and not boots("", root):
        return f"no boot_file is set and {root} has none of the usual ones: a board must know what to ask for"
    return None


def _relative(boot_file: str, root: str) -> str:
    """A file as boards ask for it, by TFTP and by HTTP."""
    return os.path.relpath(boot_file, root) if os.path.isabs(boot_file) else boot_file


def _root(target: str, channel: Mapping[str, Any], env: Mapping[str, str], folder: str, words: str) -> str:
    if not channel.get("tftp_root"):
        raise NotFound(
            f"{target}.netboot has no tftp_root", hint=f"labd {words}netboot set -t {target} --tftp-root DIR"
        )
    root = paths.expand(channel["tftp_root"], env, folder)
    check_names(target, root, channel.get("boot_file", ""), words)
    if not os.path.isdir(root):
        raise NotFound(f"{target}.netboot: there is no directory {root}", hint=f"mkdir -p {shlex.quote(root)}")
    return root
