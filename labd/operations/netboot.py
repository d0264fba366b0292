"""`labd netboot` and `labd netif`: booting a target over the network, and the link that leads to it."""

from __future__ import annotations

from labd.errors import NotFound
from labd.operations.channel_config import channel_operations
from labd.operations.model import TARGET, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

LATER = "network boot arrives with a later version; netboot set, rm, show, list and tftp-root work"
LATER_LINK = "driving the link arrives with a later version; netboot set, rm, show, list and tftp-root work"


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
    root, host = channel["tftp_root"], lab.host_of(target, channel)
    if host != "local":
        call.note(f"on host {host}")
        return {"target": target, "tftp_root": root, "host": host}
    root = paths.expand(root, call.env, lab.directory)
    if not os.path.isdir(root):
        call.note(f"there is no such directory yet; mkdir -p {shlex.quote(root)}")
    return {"target": target, "tftp_root": root, "host": host}


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
    ),
    Operation(
        ("netboot", "start"),
        "serve DHCP, TFTP and HTTP to a target",
        effect="actuate",
        params=(TARGET,),
        missing=LATER,
        examples=(("labd netboot start pico", "pico boots from us at its next power-up"),),
    ),
    Operation(
        ("netboot", "stop"),
        "stop serving a target",
        effect="actuate",
        params=(TARGET,),
        missing=LATER,
        examples=(("labd netboot stop pico", "pico boots from its own storage again"),),
    ),
    Operation(
        ("netboot", "status"),
        "whether a target is being served",
        effect="observe",
        params=(TARGET,),
        missing=LATER,
        examples=(("labd netboot status pico", "running or not, since when"),),
    ),
    Operation(
        ("netboot", "logs"),
        "what was asked for and served",
        effect="observe",
        params=(
            TARGET,
            Param("tail", "the last lines", kind="int", flags=("-n", "--tail"), default=50, minimum=0, metavar="N"),
            Param("follow", "go on as lines come", kind="switch", flags=("-f", "--follow")),
        ),
        missing=LATER,
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
        missing=LATER + "; labd discover lists Ethernet interfaces today",
        examples=(("labd netboot devices", "one line an interface"),),
    ),
    Operation(
        ("netif", "mode"),
        "what a target's link is for: netboot, a bare link, ffx, or off",
        effect="actuate",
        params=(
            Param(
                "mode", "what the link is for", kind="choice", choices=("netboot", "link", "ffx", "off"), required=True
            ),
            TARGET,
        ),
        missing=LATER_LINK,
        examples=(("labd netif mode ffx pico", "stop network boot, reach pico with ffx"),),
    ),
    Operation(
        ("netif", "status"),
        "the state of a target's link",
        effect="observe",
        params=(TARGET,),
        missing=LATER_LINK,
        examples=(("labd netif status pico", "mode, carrier, addresses"),),
    ),
    Operation(
        ("netif", "down-hard"),
        "take the link down so that the target sees its loss",
        effect="actuate",
        params=(TARGET,),
        missing=LATER_LINK,
        examples=(("labd netif down-hard pico", "no carrier, no Wake-on-LAN"),),
    ),
)
