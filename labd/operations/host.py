"""`labd host`: machines that hardware is wired to."""

from __future__ import annotations

from labd.errors import LabdError, Usage
from labd.lab import schema
from labd.lab.hosts import is_here, own_name
from labd.operations.labedit import (
    DRY_RUN,
    UNSET,
    Report,
    check_new_name,
    edit,
    lab_of,
    merged,
    params_of,
    report_text,
    require_any,
    wish,
)
from labd.operations.labshow import channels, fields_text
from labd.operations.model import Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.lab import Lab
    from labd.operations.model import Args

NAME = Param("name", "the host", required=True, complete="host")
NEW_NAME = Param("name", "its name: letters, digits, dots, - and _", required=True)


def list_hosts(call: Call, args: Args) -> dict[str, Any]:
    """Every declared host, then this machine."""
    lab = call.lab()
    rows = [{"name": name, **host, "this_machine": is_here(name, host)} for name, host in lab.hosts.items()]
    return {"hosts": [*rows, {"name": "local", "ssh": None, "hostname": own_name(), "this_machine": True}]}


def list_text(data: dict[str, Any], call: Call) -> str:
    """`NAME<TAB>SSH<TAB>HOSTNAME`, one line a host; this machine last."""
    lines = []
    for host in data["hosts"]:
        here = "  (this machine)" if host["this_machine"] else ""
        lines.append(f"{host['name']}\t{host['ssh'] or '-'}\t{host.get('hostname') or '-'}{here}")
    return "\n".join(lines)


def show(call: Call, args: Args) -> dict[str, Any]:
    """One host: its fields, whether it is this machine, and what is wired to it."""
    from labd.lab.redact import redacted

    lab = call.lab()
    name = args.name
    host = {"hostname": own_name()} if name == "local" else lab.host(name)
    data: dict[str, Any] = redacted({"name": name, **host})
    return {**data, "this_machine": is_here(name, host), "wired": wired_to(lab, name)}


def show_text(data: dict[str, Any], call: Call) -> str:
    """The host's fields, then one line for each channel on it."""
    fields = {key: value for key, value in data.items() if key not in ("name", "this_machine", "wired")}
    lines = [data["name"] + ("  (this machine)" if data["this_machine"] else "") + fields_text(fields)]
    lines += [f"  {item['target']}  {item['channel']}" for item in data["wired"]]
    return "\n".join(lines if data["wired"] else [*lines, "  nothing is wired to it"])


def add(call: Call, args: Args) -> dict[str, Any]:
    """A new host."""
    name = args.name
    found = wish(call, args, schema.HOST)
    report = Report(f"host {name}", host=name)
    if name == "local":
        raise Usage("local always means this machine; it needs no declaration")

    def change(data: dict[str, Any]) -> list[Any]:
        from labd.lab.change import Add

        check_new_name("host", name, data.get("hosts", {}), f"labd host set {name} --help")
        report.add(found.values)
        return [Add(("hosts", name), found.values)]

    edit(call, args, change, report)
    return report.data()


def set_host(call: Call, args: Args) -> dict[str, Any]:
    """Change or clear fields of a host."""
    name = args.name
    found = wish(call, args, schema.HOST)
    require_any(found, schema.HOST)
    report = Report(f"host {name}", host=name)

    def change(data: dict[str, Any]) -> list[Any]:
        report.begin("unchanged")
        return merged(("hosts", name), lab_of(call, data).host(name), found, report)

    edit(call, args, change, report)
    return report.data()


def remove(call: Call, args: Args) -> dict[str, Any]:
    """Take a host out of the lab; refused while anything refers to it."""
    name = args.name
    report = Report(f"host {name}", host=name)

    def change(data: dict[str, Any]) -> list[Any]:
        from labd.lab.change import Remove
        from labd.lab.validate import host_references

        lab_of(call, data).host(name)
        users = [path for path, host in host_references(data.get("targets", {})) if host == name]
        if users:
            first = users[0]
            raise LabdError(
                f"host {name!r} is in use by {', '.join(_user(data, path) for path in users)}",
                hint=_unset_command(data, first),
            )
        report.begin("removed")
        return [Remove(("hosts", name))]

    edit(call, args, change, report)
    return report.data()


def wired_to(lab: Lab, host: str) -> list[dict[str, str]]:
    """(target, channel) of everything that is wired to a host."""
    return [
        {"target": target, "channel": label}
        for target, table in lab.targets.items()
        for label, channel in channels(table)
        if lab.host_of(target, channel) == host
    ]


def _user(data: dict[str, Any], path: tuple[Any, ...]) -> str:
    """`pico`, `pico.power`, `pico.serial.console`: who names a host at this path."""
    parts = [str(part) for part in path[1:-1]]
    if len(path) == 5 and path[2] == "serial":
        parts[-1] = data["targets"][path[1]]["serial"][path[3]]["name"]
    return ".".join(parts)


def _unset_command(data: dict[str, Any], path: tuple[Any, ...]) -> str:
    target = path[1]
    if len(path) == 3:
        return f"labd target set {target} --unset host"
    if path[2] == "serial":
        return f"labd serial set {data['targets'][target]['serial'][path[3]]['name']} -t {target} --unset host"
    return f"labd {path[2]} set -t {target} --unset host"


OPERATIONS = (
    Operation(
        ("host", "list"),
        "the machines of the lab, and this one",
        effect="observe",
        handler=list_hosts,
        text=list_text,
        examples=(("labd host list", "every host, one a line"),),
    ),
    Operation(
        ("host", "show"),
        "one machine: how to reach it, what is wired to it",
        effect="observe",
        params=(NAME,),
        handler=show,
        text=show_text,
        examples=(("labd host show bench1", "bench1 and its channels"), ("labd host show local", "this machine")),
    ),
    Operation(
        ("host", "add"),
        "declare a machine that hardware is wired to",
        effect="config",
        looking=("dry_run",),
        params=(NEW_NAME, *params_of(schema.HOST, required=("ssh",)), DRY_RUN),
        handler=add,
        text=report_text,
        examples=(("labd host add bench1 --ssh me@bench1.local", "a machine reached as ssh reaches it"),),
    ),
    Operation(
        ("host", "set"),
        "change or clear fields of a machine",
        effect="config",
        looking=("dry_run",),
        params=(NAME, *params_of(schema.HOST), UNSET, DRY_RUN),
        handler=set_host,
        text=report_text,
        examples=(
            ("labd host set bench1 --identity ~/.ssh/bench", "use this key"),
            ("labd host set bench1 --unset identity", "use ssh's own choice again"),
        ),
    ),
    Operation(
        ("host", "rm"),
        "take a machine out of the lab; refused while something is wired to it",
        effect="config",
        looking=("dry_run",),
        params=(NAME, DRY_RUN),
        handler=remove,
        text=report_text,
        examples=(("labd host rm bench1", "forget bench1"),),
    ),
)
