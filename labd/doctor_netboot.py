"""Booting a target over the network: the interface, what is served, and what serving needs of the system.

Sends nothing and listens on nothing. Whether an interface may serve at all is judged as `labd netboot start` does it:
never the one that carries this machine's default route.
"""

import ipaddress
import os
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from labd import doctor_sudo
from labd.doctor import Bench, Row, install, row
from labd.errors import Busy, LabdError, NotFound, Refused, Usage
from labd.netboot.plan import HOST_IP, HTTP_PORT, address_of
from labd.netboot.tree import check_names, leading_out, mend_link
from labd.platform import net
from labd.platform.net import find_program

#: System → (program, its package, its name with brew, what it does) of what serving needs.
PROGRAMS = {
    "linux": (
        ("dnsmasq", "dnsmasq-base", "", "serves DHCP and TFTP"),
        ("ip", "iproute2", "", "sets addresses"),
    ),
    "macos": (("dnsmasq", "dnsmasq", "dnsmasq", "serves DHCP and TFTP"),),
}

#: What the guard before an interface raises → the status of the interface.
GUARDED: dict[type[LabdError], str] = {NotFound: "missing", Refused: "denied", Usage: "denied", Busy: "busy"}

#: How much of the command line of a program that is in the way is shown.
COMMAND_CHARS = 80

#: (protocol, port, what it is for) of what is always served.
PORTS = (("udp", 67, "DHCP"), ("udp", 69, "TFTP"))


def check(bench: Bench, target: str, config: Mapping[str, Any]) -> Iterator[Row]:
    """The interface, its address, the files; then the engine, its rights and its ports."""
    name = config.get("interface")
    if not name:
        fix = f"labd netboot set -t {target} --interface IF  # labd discover lists them"
        yield row(target, "netboot", "incomplete", "no interface is set", fix=fix)
    else:
        found = _interface(bench, target, name, config)
        yield found
        if found["status"] in ("ok", "warning"):
            yield from _meddlers(bench, target, name, config.get("host_ip", HOST_IP))
    yield _files(bench, target, config)
    yield from _engine(bench, target, config)


def _interface(bench: Bench, target: str, name: str, config: Mapping[str, Any]) -> Row:
    """What the guard of `labd netboot start` says of the interface and our address on it."""
    from labd.netboot.link import Links, tool_run

    links = Links(bench.machine.net or net.current(tool_run))
    try:
        link = links.guard(name, target, address_of(target, config), gains=True)
    except LabdError as error:
        detail = error.message.removeprefix(f"{target}: ").replace("; nothing was done", "")
        return row(target, "netboot", GUARDED.get(type(error), "warning"), detail, device=name, fix=error.hint)
    if not link.carrier:
        return row(
            target,
            "netboot",
            "warning",
            "present, but no cable or no power at the other end",
            device=name,
            fix="check the cable; switch the board on",
        )
    return row(target, "netboot", "ok", "the interface is there", device=name)


def _meddlers(bench: Bench, target: str, name: str, host_ip: str) -> Iterator[Row]:
    """What else sets addresses there, and what else reaches the network that would be served."""
    manager = bench.machine.facts.managed_by(name)
    if manager:
        yield row(
            target,
            "netboot",
            "warning",
            f"{manager} manages it, and may take our address off it when the carrier comes or goes",
            interface="link",
            device=name,
            fix=f"nmcli device set {quote(name)} managed no",
        )
    ours = ipaddress.ip_address(host_ip)
    for other, network in bench.machine.facts.networks():
        if other != name and ours in network:
            yield row(
                target,
                "netboot",
                "warning",
                f"host_ip {host_ip} is in {network}, which this machine reaches by {other}: answers may go there",
                interface="link",
                device=name,
                fix=f"labd netboot set -t {target} --host-ip IP  # of a network that nothing else here uses",
            )


def _files(bench: Bench, target: str, config: Mapping[str, Any]) -> Row:
    root, boot_file = config.get("tftp_root"), config.get("boot_file")
    if not root:
        fix = f"labd netboot set -t {target} --tftp-root DIR"
        return row(target, "netboot", "incomplete", "no tftp_root is set", interface="tftp_root", fix=fix)
    path = bench.path(root)

    def told(status: str, detail: str, fix: str | None = None) -> Row:
        return row(target, "netboot", status, detail, interface="tftp_root", device=path, fix=fix)

    try:
        check_names(target, path, boot_file or "")
    except Usage as error:
        return told("denied", error.message.removeprefix(f"{target}.netboot: "), error.hint)
    if not os.path.isdir(path):
        return told("missing", f"tftp_root {path} is not a directory", f"mkdir -p {quote(path)}")
    if not os.access(path, os.R_OK | os.X_OK):
        return told("denied", f"tftp_root {path} may not be read", f"chmod u+rx {quote(path)}")
    link, _ = leading_out(path)
    if link is not None:
        return told("denied", f"{link} leads out of tftp_root: labd refuses to serve what TFTP would then give to any "
                    "board", mend_link(link))  # fmt: skip
    if not boot_file:
        empty = not os.listdir(path)
        return told("warning", f"tftp_root {path} is empty", f"cp FILES {quote(path)}/") if empty else told(
            "ok", "tftp_root is there")  # fmt: skip
    file = os.path.join(path, boot_file)
    if not os.path.exists(file):
        return told("missing", f"boot_file {boot_file} is not in {path}", f"cp KERNEL {quote(file)}")
    if not os.access(file, os.R_OK):
        return told("denied", f"boot_file {file} may not be read", f"chmod u+r {quote(file)}")
    return told("ok", f"tftp_root is there, with boot_file {boot_file} of {os.path.getsize(file)} bytes")


def _engine(bench: Bench, target: str, config: Mapping[str, Any]) -> Iterator[Row]:
    """dnsmasq and what sets addresses, the rights to use them, and the ports they need."""
    for name, package, brew, what in PROGRAMS[bench.machine.facts.name]:
        if find_program(name, bench.env.get("PATH")) is None:
            yield row(
                target,
                "netboot",
                "missing",
                f"{name}, which {what}, is not installed",
                interface=name,
                fix=install(bench, package, brew),
            )
    yield from _rights(bench, target)
    http = config.get("http_port", HTTP_PORT)
    for protocol, port, what in (*PORTS, ("tcp", http, "HTTP")):
        yield from _port(bench, target, config.get("host_ip", HOST_IP), protocol, port, what)


def _rights(bench: Bench, target: str) -> Iterator[Row]:
    """Root, as it is or by sudo: only root sets addresses and opens DHCP's port."""
    if bench.machine.account.root:
        if not bench.machine.facts.may_serve():
            detail = "this process is root without the rights to set addresses and open DHCP's port (a container?)"
            fix = "run the container with NET_ADMIN, NET_RAW and NET_BIND_SERVICE"
            yield row(target, "netboot", "denied", detail, interface="rights", fix=fix)
        return
    from labd.netboot.link import root_commands

    asked = [[bench.folder if word == "*" else word for word in words] for words in root_commands()]
    if not all(doctor_sudo.lets(bench.machine, argv) for argv in asked):
        yield row(
            target,
            "netboot",
            "denied",
            "it needs root, and sudo does not let this user run what it needs without a password",
            interface="rights",
            fix=doctor_sudo.grant(bench.machine, [" ".join(words) for words in root_commands()]),
        )


def _port(bench: Bench, target: str, host_ip: str, protocol: str, port: int, what: str) -> Iterator[Row]:
    listeners = bench.machine.facts.listeners(protocol, port)
    for found in listeners or ():
        pid, command = found["pid"], " ".join((found["command"] or "").split())
        ours = pid is not None and bench.machine.facts.descends(pid, os.getpid())
        if ours or found["address"] not in ("0.0.0.0", "::", host_ip):
            continue
        shown = command if len(command) <= COMMAND_CHARS else command[: COMMAND_CHARS - 1] + "…"
        who = f"{shown} (pid {pid})" if pid else "a program of another user"
        shared = "dnsmasq" in command and protocol == "udp"
        look = f"ps -fp {pid}  # and stop it" if pid else f"sudo lsof -nP -i{protocol.upper()}:{port}"
        yield row(
            target,
            "netboot",
            "warning" if shared else "busy",
            f"{what}'s port {port}/{protocol} is taken by {who}" + "; it may keep to another interface" * shared,
            interface=what,
            device=f"{found['address']}:{port}",
            fix=look,
        )
        return
