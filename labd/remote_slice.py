"""The part of a lab that another machine needs: one target's channels that are wired to it, and it is that machine.

Pure. The rest of the lab, its hosts and keys and other targets' hooks, stays here.
"""

from __future__ import annotations

import os

from labd import paths
from labd.lab.hosts import own_name
from labd.lab.model import CHANNELS
from labd.lab.text import block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from labd.lab import Lab

#: What of a channel is of no use to the machine that it is on.
_OURS = ("host", "description")


def text_of(lab: Lab, host: str, target: str | None) -> str:
    """The slice as a lab file: `target`, or every target that has something on `host`."""
    lines = [f"# A part of {_one_line(lab.path)} on {own_name()}, which labd writes anew when that changes.", ""]
    for name in ("policy", "journal"):
        if name in lab.data:
            lines += [*block((name,), lab.data[name], element=False), ""]
    lines += [*block(("hosts", host), {"ssh": "local"}, element=False), ""]
    for name in [target] if target is not None else list(lab.targets):
        lines += _target(lab, host, name, whole=target is not None)
    return "\n".join(lines)


def origin_of(lab: Lab) -> str:
    """Where a slice comes from, as a directory name: another machine's lab of the same path is another lab."""
    node = "".join(char if char.isalnum() or char in "-." else "-" for char in own_name()) or "machine"
    return f"{node.lstrip('.-')[:40]}-{paths.lab_id(lab.path)}"


def name_of(host: str, target: str | None) -> str:
    """The slice's file name there. It stays what it is, since journals go by a lab file's path."""
    return f"{target}.toml" if target is not None else f"@{host}.toml"


def _target(lab: Lab, host: str, target: str, whole: bool) -> list[str]:
    table = lab.targets[target]
    lines: list[str] = []
    for kind in CHANNELS:
        entries = table.get(kind, [])
        for entry in entries if kind == "serial" else [entries] if kind in table else []:
            if lab.host_of(target, entry) == host:
                lines += [*block(("targets", target, kind), _without(entry), element=kind == "serial"), ""]
    if not lines and not whole:
        return []
    if "policy" in table:
        lines += [*block(("targets", target, "policy"), table["policy"], element=False), ""]
    return [*block(("targets", target), {"host": host}, element=False), "", *lines]


def _without(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in _OURS}


def _one_line(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace").replace("\n", " ")
