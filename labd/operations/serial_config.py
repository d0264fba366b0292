"""`labd serial add|set|rm|list`: the serial interfaces that the lab says a target has. Opens no device. Light."""

from __future__ import annotations

from labd.lab import schema
from labd.operations.labedit import (
    DRY_RUN,
    UNSET,
    Report,
    check_host,
    check_new_name,
    edit,
    lab_of,
    merged,
    params_of,
    report_text,
    require_any,
    tell_board,
    wish,
)
from labd.operations.model import TARGET_FLAG, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

NAME = Param("name", "the interface", required=True, complete="interface")
NEW_NAME = Param("name", "its name, unique in the target: console, bmc …", required=True)


def add(call: Call, args: Args) -> dict[str, Any]:
    """A new serial interface of a target. What is left out is left out of the file, too, and told."""
    target, name = args.target, args.name
    found = wish(call, args, _settable())
    values = {"name": name, **found.values}
    report = Report(f"{target}.serial.{name}", target=target, interface=name)

    def change(data: dict[str, Any]) -> list[Any]:
        from labd.lab.change import Append

        table = lab_of(call, data).target(target)
        taken = [entry["name"] for entry in table.get("serial", [])]
        check_new_name(f"serial interface of {target!r},", name, taken, f"labd serial set {name} -t {target} --help")
        check_host(call, data, values.get("host"))
        report.add({key: value for key, value in values.items() if key != "name"})
        report.also = _same_device(data, target, name, values["device"])
        return [Append(("targets", target, "serial"), values)]

    edit(call, args, change, report)
    _tell_shared(call, report)
    tell_board(call, values["device"], values.get("host"))
    _tell_name(call, values["device"])
    if "baud" not in values and "/" in values["device"] and "://" not in values["device"]:
        call.note(f"{target}.serial.{name} runs at 115200 baud, the default")
    return report.data()


def set_interface(call: Call, args: Args) -> dict[str, Any]:
    """Change or clear fields of a serial interface."""
    target, name = args.target, args.name
    found = wish(call, args, _settable())
    require_any(found, schema.SERIAL, ("name",))
    report = Report(f"{target}.serial.{name}", target=target, interface=name)

    def change(data: dict[str, Any]) -> list[Any]:
        report.begin("unchanged")
        index, entry = _entry(call, data, target, name)
        check_host(call, data, found.values.get("host"))
        if "device" in found.values:
            report.also = _same_device(data, target, name, found.values["device"])
        return merged(("targets", target, "serial", index), entry, found, report)

    edit(call, args, change, report)
    _tell_shared(call, report)
    tell_board(call, found.values.get("device"), found.values.get("host"))
    _tell_name(call, found.values.get("device"))
    return report.data()


def remove(call: Call, args: Args) -> dict[str, Any]:
    """Take one serial interface out of the lab. What was captured from it stays on disk."""
    target, name = args.target, args.name
    report = Report(f"{target}.serial.{name}", target=target, interface=name)

    def change(data: dict[str, Any]) -> list[Any]:
        from labd.errors import LabdError
        from labd.lab.change import Remove

        report.begin("removed")
        index, _ = _entry(call, data, target, name)
        if data["targets"][target].get("power", {}).get("serial_interface") == name:
            raise LabdError(
                f"{target}.power uses the serial interface {name!r} (serial_interface)",
                hint=f"labd power set -t {target} --unset serial_interface",
            )
        return [Remove(("targets", target, "serial", index))]

    edit(call, args, change, report)
    return report.data()


def list_interfaces(call: Call, args: Args) -> dict[str, Any]:
    """The serial interfaces of one target, or of all, as configured, defaults filled in."""
    from labd.lab.redact import redact

    lab = call.lab()
    if args.target is not None:
        lab.target(args.target)
    names = list(lab.targets) if args.target is None else [args.target]
    found = [{"target": name, **entry, "device": redact(entry["device"])} for name in names
             for entry in lab.serial(name)]  # fmt: skip
    if not found:
        whose = f"target {args.target!r}" if args.target else "any target"
        call.reason(f"no serial interface on {whose} in {lab.path}; "
                    f"labd {call.lab_words()}serial add NAME -t TARGET -d DEVICE makes one")  # fmt: skip
    return {"interfaces": found}


def list_text(data: dict[str, Any], call: Call) -> str | None:
    """`TARGET<TAB>NAME<TAB>DEVICE<TAB>BAUD and the rest`, one line an interface."""
    from labd.operations.labshow import fields_text

    lines = []
    for entry in data["interfaces"]:
        rest = fields_text({k: v for k, v in entry.items() if k not in ("target", "device")}, "serial").strip()
        lines.append(f"{entry['target']}\t{entry['name']}\t{entry['device']}\t{rest}")
    return "\n".join(lines) or None


def _settable() -> dict[str, Any]:
    return {key: field for key, field in schema.SERIAL.items() if key != "name"}


def _entry(call: Call, data: dict[str, Any], target: str, name: str) -> tuple[int, dict[str, Any]]:
    """The index and the table of an interface. Raises NotFound with near matches."""
    lab = lab_of(call, data)
    lab.resolve_interface(target, name, call)
    entries = lab.target(target)["serial"]
    index = next(i for i, entry in enumerate(entries) if entry["name"] == name)
    return index, entries[index]


def _same_device(data: dict[str, Any], target: str, name: str, device: str) -> list[str]:
    """Other interfaces that name this device. A simulated board is started once for each, so it is never shared; a
    virtual one has one serial port, and is the same for all of a target."""
    if device.startswith("loopback:"):
        return []
    return [
        f"{other}.serial.{entry['name']}"
        for other, table in data.get("targets", {}).items()
        for entry in table.get("serial", [])
        if entry["device"] == device
        and (other, entry["name"]) != (target, name)
        and (other == target or not device.startswith("board:"))
    ]


def _tell_shared(call: Call, report: Report) -> None:
    if report.also:
        call.note(f"{', '.join(report.also)} names the same device; only one of them can be captured at a time")


def _tell_name(call: Call, device: str | None) -> None:
    """Say so when the name can come to mean another adapter: a number, or an id that two adapters share."""
    if device is None or not device.startswith("/"):
        return
    from labd.platform.naming import advice

    better = advice(device)
    if better:
        call.note(better)


SERIAL_CONFIG_OPERATIONS = (
    Operation(
        ("serial", "list"),
        "the serial interfaces that are configured",
        effect="observe",
        stays=True,
        params=(Param("target", "the target; all of them if left out", complete="target"),),
        handler=list_interfaces,
        text=list_text,
        examples=(("labd serial list", "of every target"), ("labd serial list pico --json", "of pico, for a program")),
    ),
    Operation(
        ("serial", "add"),
        "add a named serial interface to a target",
        effect="config",
        looking=("dry_run",),
        params=(NEW_NAME, TARGET_FLAG, *params_of(schema.SERIAL, required=("device",), without=("name",)), DRY_RUN),
        handler=add,
        text=report_text,
        doc="The target has to exist (labd target add). Other interfaces stay as they are. The device may be a tty "
        "(take the name under /dev/serial/by-id: it stays the same; under by-path where two adapters share an id), "
        "loopback:DUT for a simulated board, board:NAME for a virtual one (QEMU), rfc2217://host:port for a port of "
        "another machine with its line rate and modem lines, or socket://host:port for a plain TCP stream.\n\n"
        "--sense names the modem line that follows the target's power; --power-button says that DTR is wired to its "
        "power button, which labd serial reset and labd serial dtr need.",
        examples=(
            ("labd serial add console -t pico --device /dev/ttyUSB0", "a console at 115200 baud"),
            ("labd serial add bmc -t pico -d /dev/ttyUSB1 --baud 9600", "a second interface beside it"),
            ("labd serial add console -t dut -d loopback:uboot", "a simulated board's console"),
        ),
    ),
    Operation(
        ("serial", "set"),
        "change or clear fields of a serial interface",
        effect="config",
        looking=("dry_run",),
        params=(NAME, TARGET_FLAG, *params_of(schema.SERIAL, without=("name",)), UNSET, DRY_RUN),
        handler=set_interface,
        text=report_text,
        examples=(
            ("labd serial set console -t pico --baud 1500000", "another speed"),
            ("labd serial set console -t pico --sense none", "no modem line follows its power"),
            ("labd serial set console -t pico --unset prompt", "forget its prompt"),
        ),
    ),
    Operation(
        ("serial", "rm"),
        "take one serial interface out of the lab",
        effect="config",
        looking=("dry_run",),
        params=(NAME, TARGET_FLAG, DRY_RUN),
        handler=remove,
        text=report_text,
        examples=(("labd serial rm bmc -t pico", "forget the BMC's console, keep everything else"),),
    ),
)
