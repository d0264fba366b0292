"""`labd discover`, `labd doctor`, `labd configure`: this machine's hardware, and the lab against it.

They look and propose; they open no device and write nothing. Each works on a `labd.inventory.Machine`, the one that
the call runs on.
"""

from __future__ import annotations

import os

from labd.errors import LabdError, NotFound
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


def _doctor(call: Call, args: Args) -> Answer:
    from labd import doctor
    from labd.lab.model import in_lab
    from labd.operations.benchtext import doctor_text

    lab = call.lab()
    names = [args.target] if args.target is not None else list(lab.targets)
    if not names:
        raise NotFound(
            f"nothing to check: the lab {lab.path} has no target", hint=f"labd {call.lab_words()}target add NAME"
        )
    for name in names:
        lab.target(name)
    rows = _rows(call, lab, names)
    for row in rows:
        row["fix"] = in_lab(row["fix"], call.lab_words())
    if args.host is None:
        rows += [row for host in _hosts(lab, names) for row in _far_rows(call, host, args.target)]
    elif all(row["target"] == "-" for row in rows):
        raise NotFound(
            f"nothing to check: no channel of {', '.join(names)} is wired to this machine",
            hint=f"labd {call.lab_words()}target list",
        )
    problems = sum(row["status"] in doctor.PROBLEMS for row in rows)
    warnings = sum(row["status"] == "warning" for row in rows)
    data = {"lab": lab.path, "targets": names, "rows": rows, "problems": problems, "warnings": warnings}
    return Answer(data, code=1 if problems else 0, text=doctor_text(data))


def _rows(call: Call, lab: Lab, names: list[str]) -> list[dict[str, Any]]:
    """Every finding here: the targets in the order of their names, then the machine."""
    from labd import background, doctor, doctor_machine, inventory

    daemon, capture = background.of(call)
    live, screens = ([row for row in (daemon or {}).get(what, ()) if os.path.realpath(row["lab"]) ==
                      os.path.realpath(call.lab_path)] for what in ("channels", "screens"))  # fmt: skip
    bench = doctor.Bench(inventory.this_machine(), lab.data, lab.directory, call.env, live, screens)
    rows = [row for name in names for row in doctor.examine(bench, name, lab.serial(name))]
    return rows + doctor_machine.check(bench, lab, daemon, capture)


def _hosts(lab: Lab, names: list[str]) -> list[str]:
    """The other machines that channels of these targets are wired to."""
    from labd.lab.hosts import is_here

    tables = [(name, table) for name in names for key, value in lab.targets[name].items() if key != "policy"
              for table in (value if isinstance(value, list) else [value]) if isinstance(table, dict)]  # fmt: skip
    hosts = dict.fromkeys(lab.host_of(name, table) for name, table in tables)
    return [host for host in hosts if not is_here(host, lab.hosts.get(host, {}))]


def _far_rows(call: Call, host: str, target: str | None) -> list[dict[str, Any]]:
    """What the doctor of another machine finds; one row that says so where it can't be asked."""
    from labd import doctor

    try:
        rows: list[dict[str, Any]] = _ask(call, OPERATIONS[1], host, target=target)["rows"]
    except LabdError as error:
        rows = [doctor.row("-", "host", "unreachable", error.message, interface=host, fix=error.hint)]
    return [{**row, "host": host} for row in rows]


def _ask(call: Call, op: Operation, host: str, **values: Any) -> Any:
    """What an operation answers on another machine of the lab. Raises what it raises there, and Unreachable."""
    import json
    from copy import copy

    from labd import remote_call
    from labd.operations.model import Args
    from labd.remote_route import Place

    answered = bytearray()
    inner = copy(call)
    inner.out, inner.json, inner.on_error = answered.extend, True, lambda error: None
    inner.note, inner.reason = call.note, call.reason  # type: ignore[method-assign]  # in the form that is asked for
    remote_call.run(op, Args({"host": host, **values}), inner, Place(host, None))
    return json.loads(answered)


def _configure(call: Call, args: Args) -> dict[str, Any]:
    from labd.lab.hosts import is_here
    from labd.proposal import propose

    try:
        lab: Lab | None = call.lab()
    except NotFound:
        if args.host not in (None, "local"):
            raise
        lab = None
    host = args.host if args.host != "local" else None
    if host is None or lab is None or is_here(host, lab.host(host)):
        return propose(_discover(call, args), args.target, lab, host)
    return propose(_ask(call, OPERATIONS[0], host), args.target, lab, host)


def _discover_text(data: Any, call: Call) -> str:
    from labd.operations.benchtext import discover_text

    return discover_text(data, call.columns)


def _configure_text(data: Any, call: Call) -> str:
    notes = [f"# {note}" for note in data["notes"]]
    commands = ["# or as commands:", *(f"#   {command}" for command in data["commands"])] if data["commands"] else []
    head = f"# proposal for {data['target']}; nothing was written"
    return "\n".join([head, *notes, *([data["block"]] if data["block"] else []), *commands])


OPERATIONS = (
    Operation(
        ("discover",),
        "list this machine's hardware that a lab could use",
        effect="observe",
        params=(HOST,),
        doc="Serial ports with their stable names (by-id, by-path) and who holds them, wired network interfaces, "
        "capture devices, input injectors (KB2040, CH9329, USB gadgets), Android devices that a running adb server "
        "sees, and built-in virtual and simulated boards. Opens no device. Whether the lab agrees with it is what "
        "labd doctor tells.",
        handler=_discover,
        text=_discover_text,
        examples=(
            ("labd discover", "what is plugged in here"),
            ("labd discover --json", "lists: serial, ethernet, video, hid, hubs, adb, boards, simulated, notes"),
        ),
    ),
    Operation(
        ("doctor",),
        "check the lab against what is really plugged in",
        effect="observe",
        doc="Every finding with its evidence and the command that mends it: devices present or missing, busy and by "
        "whom, denied and by which group; names that are not stable, programs that meddle with ports, latency, "
        "suspended adapters; hooks, their programs, and what sudo makes of them; what network boot, reading a screen "
        "and adb need; then the machine itself: room for the journals, the daemon, the supply. Opens no device and "
        "runs no hook. Exit 1 when something is missing, busy, denied or incomplete; warnings alone leave it at 0. "
        "What is wired to another machine of the lab is checked there; --host checks only what is wired to that one.",
        params=(Param("target", "the target; without it, all are checked", complete="target"), HOST),
        handler=_doctor,
        examples=(
            ("labd doctor", "every target of the lab, and this machine"),
            ("labd doctor pico", "is what the lab says of pico plugged in, and free?"),
            ("labd doctor pico --json", "rows of target, channel, interface, device, status, detail, fix, host"),
        ),
    ),
    Operation(
        ("configure",),
        "propose a target block for the lab; writes nothing",
        effect="observe",
        doc="Made of hardware that no target uses yet; for a target that is in the lab, what it lacks. Read it, then "
        "paste the block (labd config edit) or run the commands below it.",
        params=(Param("target", "the name of the target to propose", required=True), HOST),
        handler=_configure,
        text=_configure_text,
        stays=True,
        examples=(
            ("labd configure pico", "a block for a board that is wired to this machine"),
            ("labd configure pico --host bench1", "for one that is wired to another machine of the lab"),
        ),
    ),
)
