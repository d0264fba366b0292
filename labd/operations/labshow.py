"""The lab as people and programs read it: rows, blocks and trees of targets and channels, secrets out.

Pure functions of a Lab, shared by the configuration operations. Shows nothing live.
"""

from __future__ import annotations

from labd.lab.model import CHANNELS, channel_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from labd.lab import Lab


def target_row(lab: Lab, name: str) -> dict[str, Any]:
    """A target in a list: its hosts and the names of its channels."""
    table = lab.targets[name]
    return {
        "name": name,
        "description": table.get("description"),
        "hosts": hosts_of(lab, name),
        "channels": channel_names(table),
    }


def hosts_of(lab: Lab, name: str) -> list[str]:
    """The machines that a target's channels are wired to; its default host if it has no channel."""
    table = lab.targets[name]
    hosts = [lab.host_of(name, channel) for _, channel in channels(table)]
    return list(dict.fromkeys(hosts)) or [lab.host_of(name, table)]


def channels(table: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(label, table) of every channel of a target: `power`, `serial console`."""
    found: list[tuple[str, dict[str, Any]]] = []
    for kind in CHANNELS:
        if kind == "serial":
            found += [(f"serial {entry['name']}", entry) for entry in table.get("serial", [])]
        elif kind in table:
            found.append((kind, table[kind]))
    return found


def target_facts(lab: Lab, name: str) -> dict[str, Any]:
    """A target with all its channels as data; serial interfaces with their defaults, secrets out."""
    from labd.lab.redact import redacted

    table = lab.targets[name]
    facts: dict[str, Any] = {"name": name, "description": table.get("description"), "host": lab.host_of(name, table)}
    if "policy" in table:
        facts["policy"] = table["policy"]
    facts["channels"] = {}
    for kind in CHANNELS:
        if kind == "serial" and table.get("serial"):
            facts["channels"]["serial"] = lab.serial(name)
        elif kind != "serial" and kind in table:
            facts["channels"][kind] = {**table[kind], "host": lab.host_of(name, table[kind])}
    cleaned: dict[str, Any] = redacted(facts)
    return cleaned


def target_text(facts: dict[str, Any]) -> str:
    """A target as a block of lines."""
    head = f"{facts['name']} @{facts['host']}" + (f"  {_line(facts['description'])}" if facts["description"] else "")
    lines = [head]
    if "policy" in facts:
        lines.append(f"  policy  level={facts['policy'].get('level')}")
    for kind, found in facts["channels"].items():
        for entry in found if isinstance(found, list) else [found]:
            label = f"{kind} {entry['name']}" if kind == "serial" else kind
            lines.append(f"  {label} @{entry['host']}" + fields_text(entry, kind))
    if not facts["channels"]:
        lines.append(f"  no channel yet (labd serial add console -t {facts['name']} -d DEVICE gives it a console)")
    return "\n".join(lines)


def fields_text(entry: Mapping[str, Any], kind: str = "") -> str:
    """The fields of a channel on one line; of a serial interface only what is not the default, and its speed."""
    from labd.lab.model import SERIAL_DEFAULTS
    from labd.operations.labedit import shown

    plain = {**SERIAL_DEFAULTS, "assert_dtr": not entry.get("power_button", False)} if kind == "serial" else {}
    told = [
        f"{key}={shown(value)}"
        for key, value in entry.items()
        if key not in ("name", "host") and value is not None and (key == "baud" or plain.get(key) != value)
    ]
    return "".join(f"  {part}" for part in told)


def lab_text(data: dict[str, Any]) -> str:
    """The whole lab as a tree, from the data of `config show`."""
    lines = [f"Lab {data['path']}"]
    for section in ("policy", "journal"):
        if data.get(section):
            lines.append(f"{section.capitalize()}{fields_text(data[section])}")
    lines.append("Hosts" if data["hosts"] else "Hosts: none but this machine")
    for name, host in data["hosts"].items():
        lines.append(f"  {name}{fields_text(host)}")
    lines.append("Targets" if data["targets"] else "Targets: none yet (labd target add NAME)")
    for facts in data["targets"].values():
        lines += [f"  {line}" for line in target_text(facts).split("\n")]
    return "\n".join(lines)


def _line(text: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
