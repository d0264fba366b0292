"""What a person reads of `labd discover` and `labd doctor`. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labd.lab.hosts import own_name
from labd.render import columns

#: How wide the statuses are.
_STATUS = 11


def discover_text(data: dict[str, Any], width: int) -> str:
    """The inventory, a paragraph a kind; kinds of which there is nothing in one line at the end."""
    groups: list[tuple[str, list[tuple[str, ...]]]] = [
        ("serial ports", [(port["device"], _port(port)) for port in data["serial"]]),
        ("ethernet", [(nic["device"], _nic(nic)) for nic in data["ethernet"]]),
        ("video", [(str(v["id"] or v["device"]), _video(v)) for v in data["video"]]),
        ("input injectors", [(row["device"], _injector(row)) for row in data["hid"]]),
        ("adb", [(d["serial"], f"{d['state']} {d.get('model', '')}".strip()) for d in data["adb"]]),
        ("virtual boards", [(board["device"], _board(board)) for board in data["boards"]]),
    ]
    lines: list[str] = []
    for title, rows in groups:
        lines += [f"{title}:", columns(rows, width), ""] if rows else []
    simulated = ", ".join(board["device"] for board in data["simulated"])
    if simulated:
        lines += [
            "simulated boards (python -m loopback --list says what they are):",
            columns([(simulated,)], width),
            "",
        ]
    nothing = [title for title, rows in groups if not rows]
    lines += [f"none here: {', '.join(nothing)}"] if nothing else []
    lines += [f"note: {note}" for note in data["notes"]]
    return "\n".join([*lines, "next: labd configure TARGET proposes a block for the lab; labd doctor checks the lab"])


def doctor_text(data: dict[str, Any]) -> str:
    """The findings, a paragraph a target and one for each machine, and what they amount to."""
    lines: list[str] = []
    for place in dict.fromkeys((row["target"], row["host"]) for row in data["rows"]):
        rows = [row for row in data["rows"] if (row["target"], row["host"]) == place]
        lines += [_title(*place), *(line for row in rows for line in _finding(row)), ""]
    counts = [f"{data[what]} {what if data[what] != 1 else what[:-1]}" for what in ("problems", "warnings")]
    found = len(data["rows"])
    checked = f"{found} finding{'s' if found != 1 else ''} on {', '.join(data['targets'])} in {data['lab']}"
    return "\n".join([*lines, f"{', '.join(counts)}: {checked}; no device was opened, no hook was run"])


def _title(target: str, host: str | None) -> str:
    if target == "-":
        return f"host {host}" if host else f"this machine ({own_name()})"
    return f"{target}, on host {host}" if host else target


def _finding(row: dict[str, Any]) -> Iterator[str]:
    own = row["channel"] in ("machine", "host", "-")
    where = row["interface"] if own else ":".join(part for part in (row["channel"], row["interface"]) if part)
    device = f"  {row['device']}" if row["device"] and str(row["device"]) not in row["detail"] else ""
    yield f"  {row['status']:<{_STATUS}}  {where or '-'}{device}"
    yield f"  {'':<{_STATUS}}  {row['detail']}"
    if row["fix"]:
        yield f"  {'':<{_STATUS}}  fix: {row['fix']}"


def _port(port: dict[str, Any]) -> str:
    names = [name for name in (port["node"], port["by_path"], port["by_id"]) if name and name != port["device"]]
    words = [port["description"] or "serial port", port["driver"] or "", *names]
    if port.get("system_console"):
        words.append("this machine's own console")
    held = _held(port["holders"])
    return ", ".join(word for word in (*words, held, "ambiguous by-id name" if port["ambiguous"] else "") if word)


def _nic(nic: dict[str, Any]) -> str:
    carrier = {True: "carrier", False: "no carrier", None: "down or unknown"}[nic["active"]]
    words = [nic.get("port") or "", nic["driver"] or "", "USB" if nic["usb"] else "", nic["mac"] or "", carrier]
    return ", ".join(
        [word for word in words if word] + (["default route: not for netboot"] if nic["default_route"] else [])
    )


def _video(found: dict[str, Any]) -> str:
    names = [name for name in (found["device"], found["by_path"]) if name and name != found["id"]]
    words = [found["name"], f"index {found['index']}", *names, _held(found["holders"])]
    return ", ".join(word for word in words if word)


def _injector(row: dict[str, Any]) -> str:
    doubt = "" if row["sure"] else "; maybe, its ids alone don't tell"
    return f"{row['name']}{doubt}" + (f"; in a lab: cmd = {row['cmd']!r}" if row["cmd"] else "")


def _board(board: dict[str, Any]) -> str:
    return str(board["title"]) + (f"; needs {board['missing']}: {board['fix']}" if board["missing"] else "")


def _held(holders: list[dict[str, Any]]) -> str:
    return ", ".join(f"held by {holder['command']} (pid {holder['pid']})" for holder in holders)
