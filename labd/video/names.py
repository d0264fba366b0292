"""From what the lab calls a capture device to what is opened: id, part of a name, index, path, URL, file, board.

Looked up at each opening: a replugged device may have another node. Opens nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from labd.errors import NotFound, nearest

#: Files with these endings are single pictures; other files are films.
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".webp", ".tif", ".tiff")


@dataclass(frozen=True, slots=True)
class Found:
    """`kind` is `camera`, `url`, `picture`, `film` or `board`; `where` is what that kind opens."""

    kind: str
    where: str
    name: str = ""


def look_up(device: str, listed: list[dict[str, Any]]) -> Found:
    """What `device` means; `listed` are this machine's capture devices (`labd.inventory`).

    Raises NotFound, with near names, when it means none of them, or more than one.
    """
    if device.startswith("qmp:"):  # what the daemon makes of board:NAME
        return Found("board", device.removeprefix("qmp:"))
    if "://" in device:
        return Found("url", device)
    numbered = [row for row in listed if device.isdigit() and row["index"] == int(device)]
    if numbered:
        return _one(device, numbered, listed)
    if "/" in device:
        return _path(device, listed)
    exact = [row for row in listed if device in (_base(row.get("id")), _base(row["device"]), row["name"])]
    parts = [row for row in listed if device.lower() in f"{row['name']} {_base(row.get('id'))}".lower()]
    return _one(device, exact or parts, listed)


def _path(path: str, listed: list[dict[str, Any]]) -> Found:
    ending = os.path.splitext(path)[1].lower()
    if ending in PICTURES:
        return Found("picture", path)
    if os.path.isfile(path):
        return Found("film", path)
    real = os.path.realpath(path)
    if not os.path.exists(real):
        known = [name for row in listed for name in (row.get("id"), row["device"]) if name]
        raise NotFound(f"there is no {path}", near=nearest(path, known), hint="labd video devices")
    names = [str(row["name"]) for row in listed if os.path.realpath(row["device"]) == real]
    return Found("camera", real, names[0] if names else "")


def _one(device: str, rows: list[dict[str, Any]], listed: list[dict[str, Any]]) -> Found:
    if len(rows) == 1:
        return _camera(rows[0])
    names = [str(row["name"]) for row in listed]
    if rows:
        several = ", ".join(f"{row['index']} {row['name']} ({row.get('id') or row['device']})" for row in rows)
        raise NotFound(f"{device!r} means {len(rows)} capture devices: {several}", hint="labd video devices")
    there = f"; there are {', '.join(names)}" if names else "; this machine has none"
    raise NotFound(f"no capture device {device!r}{there}", near=nearest(device, names), hint="labd video devices")


def _camera(row: dict[str, Any]) -> Found:
    """By its node, or where devices have none (macOS) by its index."""
    node = str(row["device"])
    return Found("camera", node if node.startswith("/") else str(row["index"]), str(row["name"]))


def _base(path: str | None) -> str:
    return os.path.basename(path or "")
