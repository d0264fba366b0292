"""`labd discover`, `labd doctor`, `labd configure`: this machine's hardware, and the lab against it.

They look and propose; they open no device and write nothing.
"""

from __future__ import annotations

from labd.errors import LabdError, NotFound, Unreachable
from labd.operations.model import Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.lab import Lab
    from labd.operations.model import Args

HOST = Param("host", "the machine that the hardware is wired to (a host of the lab)", flags=("-H", "--host"),
             complete="host")  # fmt: skip


def _discover(call: Call, args: Args) -> dict[str, Any]:
    from labd import inventory

    return inventory.discover(inventory.this_machine(), call.env)


def _discover_text(data: Any, call: Call) -> str:
    from labd.render import columns

    lines: list[str] = []
    groups: list[tuple[str, list[tuple[str, ...]]]] = [
        ("serial ports", [(port["device"], _port_words(port)) for port in data["serial"]]),
        ("ethernet", [(nic["device"], _nic_words(nic)) for nic in data["ethernet"]]),
        ("video", [(str(v["id"] or v["device"]), f"{v['name']} (index {v['index']})") for v in data["video"]]),
        ("adb", [(d["serial"], f"{d['state']} {d.get('model', '')}".strip()) for d in data["adb"]]),
        ("simulated boards", [(d["device"], d["title"]) for d in data["simulated"]]),
    ]  # fmt: skip
    for title, rows in groups:
        lines += [f"{title}:", columns(rows, call.columns) if rows else "  none", ""]
    lines += [f"note: {note}" for note in data["notes"]]
    return "\n".join([*lines, "next: labd configure TARGET proposes a block for the lab; labd doctor checks the lab"])


def _port_words(port: dict[str, Any]) -> str:
    words = [
        port["description"] or "serial port",
        port["driver"] or "",
        port["node"] if port["node"] != port["device"] else "",
    ]
    if port.get("system_console"):
        words.append("this machine's own console")
    held = ", ".join(f"held by {h['command']} (pid {h['pid']})" for h in port["holders"])
    return ", ".join(word for word in (*words, held, "ambiguous by-id name" if port["ambiguous"] else "") if word)


def _nic_words(nic: dict[str, Any]) -> str:
    carrier = {True: "carrier", False: "no carrier", None: "down or unknown"}[nic["active"]]
    words = [nic.get("port") or "", nic["driver"] or "", "USB" if nic["usb"] else "", nic["mac"] or "", carrier]
    return ", ".join(
        [word for word in words if word] + (["default route: not for netboot"] if nic["default_route"] else [])
    )


def _local(call: Call, host: str | None) -> None:
    """Raise unless `host` is this machine: NotFound if the lab does not know it, Unreachable if it is another."""
    if host in (None, "local"):
        return
    import shlex

    from labd.doctor import is_local

    lab = call.lab()
    lab.host(host or "")
    if not is_local(lab.data, host):
        raise Unreachable(f"host {host!r} is another machine; remote hosts arrive with a later version of labd",
                          hint=f"ssh {shlex.quote(lab.hosts[host or '']['ssh'])} labd discover")  # fmt: skip


def _doctor(call: Call, args: Args) -> Answer:
    from labd import doctor, inventory
    from labd.lab.model import in_lab

    lab = call.lab()
    _local(call, args.host)
    names = [args.target] if args.target is not None else list(lab.targets)
    if not names:
        raise NotFound(
            f"nothing to check: the lab {lab.path} has no target", hint=f"labd {call.lab_words()}target add NAME"
        )
    machine = inventory.this_machine()
    bench = doctor.Bench(machine, lab.data, lab.directory, call.env)
    rows: list[dict[str, Any]] = []
    for name in names:
        lab.target(name)
        rows += doctor.examine(bench, name, lab.serial(name))
    for row in rows:
        row["fix"] = in_lab(row["fix"], call.lab_words())
    problems = sum(row["status"] in doctor.PROBLEMS for row in rows)
    warnings = sum(row["status"] == "warning" for row in rows)
    data = {"lab": lab.path, "targets": names, "rows": rows, "problems": problems, "warnings": warnings}
    return Answer(data, code=1 if problems else 0, text=_doctor_text(data))


def _doctor_text(data: dict[str, Any]) -> str:
    lines = []
    for row in data["rows"]:
        where = ":".join(part for part in (row["channel"], row["interface"]) if part)
        device = f"  {row['device']}" if row["device"] else ""
        lines.append(f"{row['status']:<10}  {row['target']}  {where}{device}\n            {row['detail']}")
        if row["fix"]:
            lines.append(f"            fix: {row['fix']}")
    counts = [f"{data[what]} {what if data[what] != 1 else what[:-1]}" for what in ("problems", "warnings")]
    found = len(data["rows"])
    checked = f"{found} finding{'s' if found != 1 else ''} on {', '.join(data['targets'])} in {data['lab']}"
    return "\n".join([*lines, "", f"{', '.join(counts)}: {checked}; no device was opened, no hook was run"])


def _configure(call: Call, args: Args) -> dict[str, Any]:
    from labd import inventory

    _local(call, args.host)
    try:
        lab: Lab | None = call.lab()
    except NotFound:
        lab = None
    return inventory_proposal(inventory.discover(inventory.this_machine(), call.env), args.target, lab)


def inventory_proposal(found: dict[str, Any], target: str, lab: Lab | None) -> dict[str, Any]:
    """A target block made of hardware that no target of the lab uses yet, and the commands that would write it.

    Raises LabdError for a name that can't be a target's.
    """
    _check_name(target)
    exists = lab is not None and target in lab.targets
    used = _used(lab)
    block, commands, notes = [f"[targets.{target}]"], [] if exists else [f"labd target add {target}"], []
    nics = [nic for nic in found["ethernet"] if not nic["default_route"] and nic["usb"] and nic["device"] not in used]
    if nics:
        block += [f"[targets.{target}.netboot]", f'interface = "{nics[0]["device"]}"']
        commands.append(f"labd netboot set -t {target} --interface {nics[0]['device']}")
    ports = [
        p
        for p in found["serial"]
        if not used & {p["device"], p["node"], p["by_id"], p["by_path"]} and not p.get("system_console")
    ]
    ports.sort(key=lambda port: port["vid"] is None)  # on-board ports last
    device = ports[0]["device"] if ports else "loopback:linux-login"
    block += [f"[[targets.{target}.serial]]", 'name = "console"', f'device = "{device}"', "baud = 115200"]
    commands.append(f"labd serial add console -t {target} --device {device} --baud 115200")
    if not ports:
        notes.append("no unused serial port is plugged in: the console proposed here is a simulated board's")
    if len(ports) > 1:
        notes.append("other unused serial ports: " + ", ".join(port["device"] for port in ports[1:]))
    videos = [v for v in found["video"] if not used & {v["id"], v["device"]}]
    if videos:
        video = videos[0]["id"] or videos[0]["device"]
        block += [f"[targets.{target}.video]", f'device = "{video}"']
        commands.append(f"labd video set -t {target} --device {video}")
    if exists:
        notes.append(f"target {target} is in the lab already: paste only what it lacks")
    notes.append("115200 baud is a guess; power hooks can't be found out: labd helper lists what they can call")
    return {"target": target, "block": "\n".join(block), "commands": commands, "notes": notes, "written": False}


def _check_name(target: str) -> None:
    import re

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", target):
        raise LabdError(
            f"{target!r} can't be a target's name: letters, digits, dots, dashes and underscores, at most 64"
        )


def _used(lab: Lab | None) -> set[str | None]:
    """The devices and interfaces that targets of the lab name."""
    used: set[str | None] = set()
    for config in lab.targets.values() if lab is not None else ():
        used |= {line["device"] for line in config.get("serial", [])}
        used |= {config.get("video", {}).get("device"), config.get("netboot", {}).get("interface")}
    return used - {None}


def _configure_text(data: Any, call: Call) -> str:
    notes = [f"# {note}" for note in data["notes"]]
    commands = [f"#   {command}" for command in data["commands"]]
    head = f"# proposal for {data['target']}; nothing was written"
    return "\n".join([head, *notes, data["block"], "# or as commands:", *commands])


OPERATIONS = (
    Operation(
        ("discover",),
        "list this machine's hardware that a lab could use",
        effect="observe",
        doc="Serial ports with their stable names and who holds them, wired network interfaces, capture devices, "
        "Android devices that a running adb server sees, and built-in simulated boards. Opens no device. "
        "Whether the lab agrees with it is what labd doctor tells.",
        handler=_discover,
        text=_discover_text,
        examples=(("labd discover", "what is plugged in here"), ("labd discover --json", "the same for a program")),
    ),
    Operation(
        ("doctor",),
        "check the lab against what is really plugged in",
        effect="observe",
        doc="One finding a channel, with its evidence and the command that mends it: device present or missing, busy "
        "and by whom, denied and by which group, hook programs, programs that meddle with ports, names that are not "
        "stable. Opens no device and runs no hook. Exit 1 when something is missing, busy, denied or incomplete; "
        "warnings alone leave it at 0.",
        params=(Param("target", "the target; without it, all are checked", complete="target"), HOST),
        handler=_doctor,
        examples=(
            ("labd doctor", "every target of the lab"),
            ("labd doctor pico", "is what the lab says of pico plugged in, and free?"),
            ("labd doctor pico --json", "rows of target, channel, interface, device, status, detail, fix"),
        ),
    ),
    Operation(
        ("configure",),
        "propose a target block for the lab; writes nothing",
        effect="observe",
        doc="Made of hardware that no target uses yet. Read it, then paste the block (labd config edit) or run the "
        "commands below it.",
        params=(Param("target", "the name of the target to propose", required=True), HOST),
        handler=_configure,
        text=_configure_text,
        examples=(("labd configure pico", "a block for a board that is wired to this machine"),),
    ),
)
