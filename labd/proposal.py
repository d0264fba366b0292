"""What `labd configure` proposes: a target made of hardware that no target of the lab uses yet. Writes nothing.

A pure function of an inventory (`labd.inventory.discover`, of this machine or of another) and a lab.
"""

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from labd.errors import LabdError
from labd.lab.text import block
from labd.lab.validate import NAME_RULE, is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from labd.lab import Lab

Table = dict[str, Any]


class Proposal:
    """Grows channel by channel: `tables` are (path, values, whether it is one of several) for the lab file, `commands`
    what would write the same, `notes` what a person should know."""

    def __init__(self, target: str, has: "Table | None", host: str | None) -> None:
        self.target = target
        self.tables: list[tuple[tuple[str, ...], Table, bool]] = []
        self.commands: list[str] = []
        self.notes: list[str] = []
        self._host: str | None = None
        """What each channel has to say of its host, where the target's is another."""
        if has is None:
            self.tables.append((("targets", target), {"host": host} if host else {}, False))
            self.commands.append(f"labd target add {target}" + (f" --host {host}" if host else ""))
        elif has.get("host", "local") != (host or "local"):
            self._host = host or "local"

    def add(self, channel: str, values: Table, command: str) -> None:
        """One channel of the target, and the command that would make it."""
        own = {"host": self._host} if self._host else {}
        self.tables.append((("targets", self.target, channel), values | own, channel == "serial"))
        self.commands.append(f"labd {command}" + (f" --host {self._host}" if self._host else ""))

    def data(self) -> dict[str, Any]:
        """The answer of `labd configure`."""
        lines = [line for path, values, element in self.tables for line in block(path, values, element=element)]
        return {"target": self.target, "block": "\n".join(lines), "commands": self.commands, "notes": self.notes,
                "written": False}  # fmt: skip


def propose(found: Mapping[str, Any], target: str, lab: "Lab | None", host: str | None = None) -> dict[str, Any]:
    """A target of unused hardware, or what an existing one lacks: block, commands, notes.

    `host` is the machine of the lab that the inventory is of, None for this one. Raises LabdError for a name that
    can't be a target's.
    """
    if not is_name(target):
        raise LabdError(f"{target!r} can't be a target's name: {NAME_RULE}")
    has = lab.targets.get(target) if lab is not None else None
    used = set(_used(lab))
    made = Proposal(target, has, host)
    if has is not None:
        made.notes.append(f"target {target} is in the lab already: this is what it has not yet")
    injectors = [row for row in found["hid"] if not used & {row["device"], row["node"]}]
    for channel, step in (("netboot", _netboot), ("serial", _serial), ("power", _power), ("video", _video),
                          ("hid", _hid), ("adb", _adb)):  # fmt: skip
        if channel not in (has or {}):
            step(made, found, used, injectors)
    if not made.commands:
        made.notes.append(f"{target} has every channel that could be proposed")
    return made.data()


def _netboot(made: Proposal, found: Mapping[str, Any], used: set[Any], injectors: list[Table]) -> None:
    nics = [nic["device"] for nic in found["ethernet"]
            if not nic["default_route"] and nic["usb"] and nic["device"] not in used]  # fmt: skip
    if nics:
        made.add("netboot", {"interface": nics[0]}, f"netboot set -t {made.target} --interface {quote(nics[0])}")
        made.notes.append(f"netboot: say what is served: labd netboot set -t {made.target} --tftp-root DIR")
    _others(made, "USB network interfaces", nics)


def _serial(made: Proposal, found: Mapping[str, Any], used: set[Any], injectors: list[Table]) -> None:
    taken = {row["device"] for row in injectors if row["sure"]}
    ports = [port for port in found["serial"]
             if not used & {port["device"], port["node"], port["by_id"], port["by_path"]}
             and not port.get("system_console") and port["device"] not in taken]  # fmt: skip
    ports.sort(key=lambda port: port["vid"] is None)  # on-board ports last
    device = ports[0]["device"] if ports else "loopback:linux-login"
    made.add("serial", {"name": "console", "device": device, "baud": 115200},
             f"serial add console -t {made.target} --device {quote(device)} --baud 115200")  # fmt: skip
    if not ports:
        made.notes.append("no unused serial port is plugged in: the console proposed here is a simulated board's")
    made.notes.append("115200 baud is a guess")
    if ports and ports[0]["holders"]:
        holder = ports[0]["holders"][0]
        made.notes.append(f"{device} is held by {holder['command']} (pid {holder['pid']}) now")
    _others(made, "serial ports", [port["device"] for port in ports])


def _power(made: Proposal, found: Mapping[str, Any], used: set[Any], injectors: list[Table]) -> None:
    made.notes.append("power can't be found out: labd helper lists what a hook can call, as in "
                      f'labd power set -t {made.target} --cycle-cmd "shellyplug -d 192.0.2.41 cycle"')  # fmt: skip
    hubs = [hub for hub in found["hubs"] if "-" in hub]  # root hubs can't cut the power, most of them
    if hubs:
        made.notes.append(
            f"USB hubs here: {', '.join(hubs)}; labd helper usbhub list says which can switch their ports"
        )
    made.notes.append("where the adapter's CTS (or DSR, DCD, RI) is wired to the board's supply, it senses power: "
                      f"labd serial set console -t {made.target} --sense cts")  # fmt: skip


def _video(made: Proposal, found: Mapping[str, Any], used: set[Any], injectors: list[Table]) -> None:
    names = [v["id"] or v["device"] for v in found["video"] if not used & {v["id"], v["device"], v["by_path"]}]
    if names:
        made.add("video", {"device": names[0]}, f"video set -t {made.target} --device {quote(names[0])}")
    _others(made, "capture devices", names)


def _hid(made: Proposal, found: Mapping[str, Any], used: set[Any], injectors: list[Table]) -> None:
    sure = [row for row in injectors if row["sure"] and row["cmd"]]
    if sure:
        made.add("hid", {"cmd": sure[0]["cmd"]}, f"hid set -t {made.target} --cmd {quote(sure[0]['cmd'])}")
    for row in injectors:
        if not row["sure"]:
            made.notes.append(f"{row['device']} may have an input injector behind it ({row['name']}): "
                              f"labd helper {row['helper']} -d {quote(row['device'])} version asks it")  # fmt: skip


def _adb(made: Proposal, found: Mapping[str, Any], used: set[Any], injectors: list[Table]) -> None:
    serials = [device["serial"] for device in found["adb"] if device["serial"] not in used]
    if serials:
        made.add("adb", {"serial": serials[0]}, f"adb set -t {made.target} --serial {quote(serials[0])}")
    _others(made, "Android devices", serials)


def _others(made: Proposal, what: str, names: list[str]) -> None:
    if len(names) > 1:
        made.notes.append(f"other unused {what}: {', '.join(names[1:])}")


def _used(lab: "Lab | None") -> Iterator[Any]:
    """The devices and interfaces that targets of the lab name, and the device paths in their hooks."""
    from labd.hookwords import Hook

    for config in lab.targets.values() if lab is not None else ():
        yield from (line["device"] for line in config.get("serial", []))
        for channel, key in (("video", "device"), ("netboot", "interface"), ("adb", "serial")):
            if config.get(channel, {}).get(key) is not None:
                yield config[channel][key]
        if config.get("hid", {}).get("cmd"):
            yield from Hook(config["hid"]["cmd"]).devices
