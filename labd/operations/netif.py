"""`labd netif`: what the Ethernet link that leads to a target is for just now, and what is to be seen of it."""

from __future__ import annotations

from labd.operations.consoles import who_of
from labd.operations.model import TARGET, Operation, Param
from labd.operations.netboot import channel_of, serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

#: What each mode does, for the doc.
MODES = ("netboot", "link", "ffx", "off")


def mode(call: Call, args: Args) -> dict[str, Any]:
    """Bring the link into a mode; what it is then."""
    target, channel = channel_of(call, args)
    if args.mode == "netboot":
        serve(call, target, channel)
    else:
        _change(call, target, channel, args.mode)
    return _look(call, target, channel)


def down_hard(call: Call, args: Args) -> dict[str, Any]:
    """Switch the link off so that the target sees its loss; what it is then."""
    target, channel = channel_of(call, args)
    _change(call, target, channel, "down-hard")
    return _look(call, target, channel)


def status(call: Call, args: Args) -> dict[str, Any]:
    """What the link is now."""
    return _look(call, *channel_of(call, args))


def _change(call: Call, target: str, channel: dict[str, Any], wanted: str) -> None:
    """Guard, stop serving, change the interface, record. Raises LabdError; then it is as it was."""
    from labd.netboot.link import InterfaceLock, links_of
    from labd.netboot.plan import address_of, interface_of

    name, address = interface_of(target, channel, call.lab_words()), address_of(target, channel, call.lab_words())
    netboots = call.bench.netboots
    with netboots.lock:
        links = links_of(call, changing=True)
        running = netboots.find(call.lab_path, target)
        netboots.not_another(call.lab_path, target, name)
        ours = [running.plan.host_ip] if running is not None else []
        links.guard(name, target, address, gains=wanted == "link", ours=ours)
        if running is not None:
            netboots.stop(call.lab_path, target, who_of(call))
            call.note(f"stopped serving {target}")
        lock = InterfaceLock(name, f"labd netif of {target}")
        try:
            if wanted == "down-hard":
                lacks = links.down_hard(name, address)
                if lacks:
                    call.note(lacks)
            else:
                links.set_mode(wanted, name, address)
        finally:
            lock.close()
        call.bench.chronicle.tell(call.lab_path, target, "netif", "mode", mode=wanted, interface=name,
                                  who=who_of(call))  # fmt: skip


def _look(call: Call, target: str, channel: dict[str, Any]) -> dict[str, Any]:
    from labd.netboot.link import links_of
    from labd.netboot.plan import address_of, interface_of

    name, address = interface_of(target, channel, call.lab_words()), address_of(target, channel, call.lab_words())
    served = call.bench is not None and call.bench.netboots.find(call.lab_path, target) is not None
    return links_of(call).status(name, target, address, served=served)


def status_text(data: dict[str, Any], call: Call) -> str:
    """`field<TAB>value` lines; a neighbour's ends, in mode ffx, with the command that makes it known to ffx."""
    rows: list[tuple[str, ...]] = [
        ("target", data["target"]), ("interface", data["interface"]), ("mode", data["mode"]),
        ("carrier", "up" if data["carrier"] else "down"),
        *([] if data["up"] else [("state", "switched off")]),
        *(("inet", address) for address in data["inet"]), *(("inet6", address) for address in data["inet6"]),
    ]  # fmt: skip
    for peer in data["peers"]:
        scoped = f"{peer}%{data['interface']}" if peer.startswith("fe80:") else peer
        ffx = data["mode"] == "ffx" and peer.startswith("fe80:")
        rows.append(("peer", scoped, f"ffx target add {scoped}") if ffx else ("peer", scoped))
    return "\n".join("\t".join(row) for row in rows)


OPERATIONS = (
    Operation(
        ("netif", "mode"),
        "what a target's link is for: netboot, a bare link, ffx, or off",
        effect="actuate",
        where="daemon",
        params=(Param("mode", "what the link is for", kind="choice", choices=MODES, required=True), TARGET),
        handler=mode,
        text=status_text,
        doc="netboot serves DHCP, TFTP and HTTP, as netboot start does. link gives the interface host_ip/24 and "
        "nothing else. ffx gives it fe80::1, by which ffx finds a device. off takes these addresses away; the carrier "
        "may stay (down-hard cuts it). Each mode ends the one before. Refused on the interface of the default route, "
        "on one that is in use for another network, and on one that labd serves for another target. Only netboot asks "
        "whether another DHCP server is on the link: the other modes answer nobody. Answers as netif status.",
        examples=(("labd netif mode ffx pico", "stop network boot, reach pico with ffx"),),
    ),
    Operation(
        ("netif", "status"),
        "the state of a target's link",
        effect="observe",
        params=(TARGET,),
        handler=status,
        text=status_text,
        doc="The mode is read from the interface. Peers are the neighbours that answered. The carrier is up while the "
        "board's side of the cable is, in any mode.",
        examples=(("labd netif status pico", "mode, carrier, addresses, peers"),),
    ),
    Operation(
        ("netif", "down-hard"),
        "take the link down so that the target sees its loss",
        effect="actuate",
        where="daemon",
        params=(TARGET,),
        handler=down_hard,
        text=status_text,
        doc="As mode off, then Wake-on-LAN off (it keeps the line alive) and the interface switched off. Any mode but "
        "off switches it on again.",
        examples=(("labd netif down-hard pico", "no carrier, no Wake-on-LAN"),),
    ),
)
