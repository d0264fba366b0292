"""`labd netboot`: booting a target over the network. The link that leads to it is `labd.operations.netif`'s."""

from __future__ import annotations

from labd.call import encode
from labd.errors import NotFound
from labd.operations.channel_config import channel_operations
from labd.operations.consoles import who_of
from labd.operations.model import TARGET, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args


def tftp_root(call: Call, args: Args) -> dict[str, Any]:
    """The directory that a target boots from, `~` expanded where it is on this machine."""
    import os
    import shlex

    from labd import paths

    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    channel = lab.channel(target, "netboot")
    if "tftp_root" not in channel:
        raise NotFound(
            f"{target}.netboot has no tftp_root", hint=f"labd {call.lab_words()}netboot set -t {target} --tftp-root DIR"
        )
    root = paths.expand(channel["tftp_root"], call.env, lab.directory)
    if not os.path.isdir(root):
        call.note(f"there is no such directory yet; mkdir -p {shlex.quote(root)}")
    return {"target": target, "tftp_root": root, "host": lab.host_of(target, channel)}


def channel_of(call: Call, args: Args) -> tuple[str, dict[str, Any]]:
    """(target, its netboot channel) that the words mean. Raises NotFound."""
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    return target, lab.channel(target, "netboot")


def start(call: Call, args: Args) -> dict[str, Any]:
    """Serve a target; answers once DHCP, TFTP and HTTP do."""
    target, channel = channel_of(call, args)
    return serve(call, target, channel)


def serve(call: Call, target: str, channel: dict[str, Any]) -> dict[str, Any]:
    """Start, or go on, serving; what is served. Notes say which files are not there yet."""
    from labd.netboot.link import links_of
    from labd.netboot.plan import lacking, plan
    from labd.netboot.tree import sealed

    wanted = plan(target, channel, call.env, call.lab().directory, call.lab_words())
    unseen = sealed(wanted.tftp_root)
    links = links_of(call)
    facts, done = call.bench.netboots.start(call.lab_path, target, wanted, links, who_of(call), call.env)
    lacks = lacking(channel.get("boot_file", ""), wanted.tftp_root)
    for told in filter(None, (unseen, lacks)):
        call.note(told)
    if not links.find(wanted.interface, target).carrier:
        call.note(f"{wanted.interface} has no carrier: the board is off, or the cable is out")
    return {"done": done, **facts}


def start_text(data: dict[str, Any], call: Call) -> str:
    """What answers where."""
    words = {"started": "serves", "restarted": "serves anew", "unchanged": "already serves"}[data["done"]]
    port = "" if data["http_port"] == 80 else f":{data['http_port']}"
    return (
        f"{words} {data['target']} on {data['interface']}: DHCP {data['first']}-{data['last']}, "
        f"TFTP {data['host_ip']}, http://{data['host_ip']}{port}/ from {data['tftp_root']}"
    )


def stop(call: Call, args: Args) -> dict[str, Any]:
    """Stop serving a target; its interface is as it was before."""
    target = args.target
    if target is None or call.bench is None or call.bench.netboots.find(call.lab_path, target) is None:
        target = call.lab().resolve_target(target, call)  # what is served can be stopped when the lab has it no more
    stopped = call.bench is not None and call.bench.netboots.stop(call.lab_path, target, who_of(call))
    if not stopped:
        call.note(f"{target} was not being served")
    return {"target": target, "stopped": stopped}


def stop_text(data: dict[str, Any], call: Call) -> str | None:
    """What was stopped."""
    return f"stopped serving {data['target']}" if data["stopped"] else None


def status(call: Call, args: Args) -> dict[str, Any]:
    """Whether a target is served, since when, to whom, and what was fetched."""
    target, channel = channel_of(call, args)
    facts = call.bench.netboots.facts(call.lab_path, target) if call.bench is not None else None
    if facts is None:
        return {"target": target, "running": False, "interface": channel.get("interface"), "why": None}
    _note_change(call, target, channel)
    return dict(facts)


def _note_change(call: Call, target: str, channel: dict[str, Any]) -> None:
    """Say so when the lab asks for something else than what is served."""
    from labd.errors import LabdError
    from labd.netboot.plan import plan

    if call.bench.netboots.find(call.lab_path, target) is None:
        return
    try:
        wanted = plan(target, channel, call.env, call.lab().directory)
    except LabdError as error:
        call.note(f"what the lab says can't be served any more: {error.message}")
        return
    if call.bench.netboots.changed(call.lab_path, target, wanted):
        call.note(f"the lab has changed since; labd netboot start {target} serves what it says now")


def status_text(data: dict[str, Any], call: Call) -> str:
    """`field<TAB>value` lines; a `lease` line a board."""
    gone = f"waiting: interface {data['interface']} is gone; it is served again when it is back"
    running = gone if data.get("interface_gone") else "running"
    rows = [("netboot", running if data["running"] else f"not running{': ' + data['why'] if data['why'] else ''}")]
    if data["running"]:
        served = data["transfers"]
        rows += [
            ("pid", str(data["pid"])), ("interface", data["interface"]), ("host_ip", data["host_ip"]),
            ("tftp_root", data["tftp_root"]), ("http_port", str(data["http_port"])),
            ("uptime", f"{data['uptime_s']:.0f} s"),
            ("served", f"{served['tftp']} files by TFTP, {served['http']} by HTTP, {data['bytes']} bytes"),
        ]  # fmt: skip
        rows += [
            ("lease", "\t".join(word for word in (lease["ip"], lease["mac"], lease["client"], lease["name"]) if word))
            for lease in data["leases"]
        ]
    return "\n".join("\t".join(row) for row in rows)


def logs(call: Call, args: Args) -> Iterator[dict[str, Any] | bytes]:
    """The last lines of what the servers of a target said; with --follow, what comes too."""
    import os

    from labd import paths
    from labd.netboot.logfile import lines
    from labd.netboot.serving import log_path

    target = call.lab().resolve_target(args.target, call)
    path = log_path(paths.state_dir(call.env), call.lab_path, target)
    if not os.path.exists(path) and not args.follow:
        raise NotFound(f"{target} was never served", hint=f"labd {call.lab_words()}netboot start {target}")
    for line in lines(path, args.tail, call.wait_data if args.follow else None):
        stamp, _, text = line.partition(" ")
        yield {"at": stamp, "text": text} if call.json else encode(line + "\n")
        if args.follow:
            call.flush()


def devices(call: Call, args: Args) -> list[dict[str, Any]]:
    """The wired interfaces of this machine that could lead to a target, those with a carrier first."""
    from labd.inventory import this_machine

    found = this_machine().network()
    may = [nic for nic in found if not nic["default_route"]]
    hidden = [nic["name"] for nic in found if nic["default_route"]]
    if hidden:
        call.reason(f"{', '.join(hidden)} carries this machine's default route and is left out")
    if not may:
        call.reason("no wired interface with hardware behind it is free; a USB Ethernet adapter is one")
    rows = [{"device": nic["name"], "port": nic.get("port") or nic["driver"] or "", "active": bool(nic["carrier"]),
             "mac": nic["mac"], "usb": nic["usb"]} for nic in may]  # fmt: skip
    return sorted(rows, key=lambda row: not row["active"])


def devices_text(rows: list[dict[str, Any]], call: Call) -> str | None:
    """`DEVICE<TAB>PORT<TAB>active|inactive`, one line an interface."""
    words = [(row["device"], row["port"], "active" if row["active"] else "inactive") for row in rows]
    return "\n".join("\t".join(line) for line in words) or None


def check_set(call: Call, target: str, now: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Raises Usage for a host_ip that can't be ours, and for names that can't be served."""
    from labd import paths
    from labd.netboot.plan import address_of
    from labd.netboot.tree import check_names

    if values.get("host_ip"):
        address_of(target, values, call.lab_words())
    root = str(values.get("tftp_root") or now.get("tftp_root") or "")
    root = paths.expand(root, call.env, call.lab().directory) if root else ""
    if values.get("boot_file") or values.get("tftp_root"):
        check_names(target, root, str(values.get("boot_file") or ""), call.lab_words())


OPERATIONS = (
    *channel_operations(
        "netboot",
        summaries=(
            "say how a target boots over the network; only the given fields change",
            "take a target's network boot out of the lab; the target stays",
            "how a target boots over the network",
            "the targets that boot over the network, with their interfaces",
        ),
        removed="pico boots from its own storage",
        example=("labd netboot set -t pico --interface en7 --tftp-root ~/tftp/pico", "over this Ethernet interface"),
        unset="http_port",
        check=check_set,
    ),
    Operation(
        ("netboot", "start"),
        "serve DHCP, TFTP and HTTP to a target",
        effect="actuate",
        where="daemon",
        params=(TARGET,),
        handler=start,
        text=start_text,
        doc="Answers when a board would be answered. The interface gets host_ip (default 192.168.99.1) and boards get "
        "addresses of its /24: nothing else is done to it, and stop undoes that. DHCP tells the kinds of clients "
        "apart: PXE of a BIOS, UEFI and UEFI HTTP boot, iPXE, Raspberry Pi. boot_file is for all; one that ends in "
        ".ipxe is a script, which iPXE gets, and firmware gets iPXE itself (undionly.kpxe, snponly.efi). Files come by "
        "TFTP and by HTTP, none from beyond tftp_root: a link that leads out of it is refused. Needs root or sudo "
        "without a password. Refuses the interface of the default route, one in use for another network, and a link on "
        "which somebody else answers DHCP at once. One that answers within 6 s of the start, or of the carrier's "
        "coming, ends the serving (some look for 3 s whether an address is free): status and the timeline say so.",
        examples=(("labd netboot start pico", "pico boots from us at its next power-up"),),
    ),
    Operation(
        ("netboot", "stop"),
        "stop serving a target",
        effect="actuate",
        params=(TARGET,),
        handler=stop,
        text=stop_text,
        examples=(("labd netboot stop pico", "pico boots from its own storage again"),),
    ),
    Operation(
        ("netboot", "status"),
        "whether a target is being served",
        effect="observe",
        params=(TARGET,),
        handler=status,
        text=status_text,
        examples=(("labd netboot status pico", "running or not, since when"),),
    ),
    Operation(
        ("netboot", "logs"),
        "what was asked for and served",
        effect="observe",
        params=(
            TARGET,
            Param("tail", "the last lines", kind="int", flags=("-n", "--tail"), default=50, minimum=0, metavar="N"),
            Param("follow", "go on as lines come", kind="switch", flags=("-f", "--follow"), default=False),
        ),
        stream=True,
        handler=logs,
        doc="Leases, transfers, files that were asked for and are not there, and dnsmasq's own words. The log goes on "
        "from one start to the next. The events alone are in labd timeline.",
        examples=(("labd netboot logs pico --tail 20", "the last 20 lines"),),
    ),
    Operation(
        ("netboot", "tftp-root"),
        "the directory that a target boots from",
        effect="observe",
        params=(TARGET,),
        handler=tftp_root,
        text=lambda data, call: str(data["tftp_root"]),
        examples=(
            ("labd netboot tftp-root pico", "the path alone, as in: cp kernel.img $(labd netboot tftp-root pico)/"),
        ),
    ),
    Operation(
        ("netboot", "devices"),
        "the Ethernet interfaces that could lead to a target",
        effect="observe",
        handler=devices,
        text=devices_text,
        examples=(("labd netboot devices", "one line an interface"),),
    ),
)
