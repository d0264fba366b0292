"""Where a call runs: here, or on the machine of the lab that the channel which it is about is wired to.

Pure, but for this machine's own name. The shim asks, for labs that have hosts at all; it says no rule of its own.
Light.
"""

from __future__ import annotations

from labd.errors import NotFound
from labd.lab.hosts import is_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from labd.call import Call
    from labd.lab import Lab
    from labd.operations.model import Args, Operation


class Place:
    """Another machine: the host's name in the lab, and the target that the call is about; None for the host itself."""

    __slots__ = ("host", "target")

    def __init__(self, host: str, target: str | None) -> None:
        self.host = host
        self.target = target


def place_of(op: Operation, args: Args, call: Call) -> Place | None:
    """The other machine that this call runs on; None for this one, and where the handler has to say what is wrong.

    Raises NotFound for an unknown host, and for consoles of different machines where none is named.
    """
    host = vars(args).get("host")
    if host is not None:
        table = {} if host == "local" else call.lab().host(host)
        return None if is_here(host, table) else Place(host, None)
    lab = call.lab()
    if not lab.hosts or not op.channel or "target" not in vars(args):
        return None
    target = args.target or (next(iter(lab.targets)) if len(lab.targets) == 1 else None)
    if target not in lab.targets:
        return None
    wired = _wired(lab, target, op.channel, vars(args).get("interface"))
    names = dict.fromkeys(wired.values())
    away = [name for name in names if not is_here(name, lab.hosts.get(name, {}))]
    if not away:
        return None
    if len(names) > 1:
        if op.channel == "*":
            call.note(f"what {target} has on {', '.join(away)} is recorded there, and not in this")
            return None
        where = ", ".join(f"{what} on {name}" for what, name in wired.items())
        raise NotFound(f"which serial interface of {target!r}? they are wired to different machines: {where}",
                       near=list(wired), hint=f"labd {call.lab_words()}serial list {target}")  # fmt: skip
    if op.path[0] == "timeline":
        call.note(f"as {away[0]} has it: claims, and refusals of this machine, are not in it")
    return Place(away[0], target)


def _wired(lab: Lab, target: str, channel: str, interface: str | None) -> dict[str, str]:
    """Each channel that the call is about, with its host. A power state is sensed by a serial line where no hook is."""
    table = lab.targets[target]
    if channel == "*":
        single = {kind: entry for kind, entry in table.items() if isinstance(entry, dict) and kind != "policy"}
        return {kind: lab.host_of(target, entry) for kind, entry in single.items()} | _lines(lab, target, interface)
    if channel != "serial" and channel in table:
        return {channel: lab.host_of(target, table[channel])}
    return _lines(lab, target, interface) if channel in ("serial", "power") else {}


def _lines(lab: Lab, target: str, interface: str | None) -> dict[str, str]:
    entries: list[Mapping[str, Any]] = lab.targets[target].get("serial", [])
    return {entry["name"]: lab.host_of(target, entry) for entry in entries if interface in (None, entry["name"])}
