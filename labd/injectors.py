"""Devices by which this machine is the keyboard and mouse of another: known by their USB ids, or as gadget nodes.

Looks only: whether a USB serial adapter has an injector behind it can be told by asking it, which would open it.
"""

from collections.abc import Iterator
from typing import Any

from labd.inventory import Machine

#: (vid, pid) → (what it is, the helper that drives it, whether the ids alone are proof).
KNOWN = {
    ("239a", "8105"): ("Adafruit KB2040", "hidrig", True),
    ("239a", "8106"): ("Adafruit KB2040", "hidrig", True),
    ("1a86", "7523"): ("CH340, as on CH9329 injectors and on many plain serial cables", "ch9329", False),
}

#: Words in a product's name → the helper; a name is proof.
NAMED = {"kb2040": "hidrig", "hidrig": "hidrig", "ch9329": "ch9329"}


def injectors(machine: Machine, ports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What could type on a target: device, node, name, helper, `cmd` (what a lab would hold), `sure`, `access`.

    Of a board with several serial ports only the last is listed: the first is its own console.
    """
    last: dict[Any, dict[str, Any]] = {}
    for row in _serial(ports):
        last[row["topology"] or row["node"]] = row
    found = [{key: value for key, value in row.items() if key != "topology"} for row in last.values()]
    gadgets = machine.facts.hid_gadgets()
    if gadgets:
        name = f"this machine as a USB keyboard ({', '.join(gadgets)})"
        found.append({"device": gadgets[0], "node": gadgets[0], "name": name, "helper": "hidgadget",
                      "cmd": "hidgadget", "sure": True})  # fmt: skip
    return sorted(found, key=lambda row: (not row["sure"], row["device"]))


def _serial(ports: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for port in sorted(ports, key=lambda port: str(port.get("interface") or "")):
        words = f"{port['description'] or ''} {port.get('product') or ''}".lower()
        name, helper, sure = KNOWN.get((port["vid"], port["pid"]), ("", "", False))
        named = next((NAMED[word] for word in NAMED if word in words), None)
        if named:
            name, helper, sure = port["description"] or name, named, True
        if helper:
            yield {"device": port["device"], "node": port["node"], "name": name, "helper": helper,
                   "cmd": f"{helper} -d {port['device']}", "sure": sure, "topology": port["topology"]}  # fmt: skip
