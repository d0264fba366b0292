"""`labd target`: the boards of the lab."""

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
    wish,
)
from labd.operations.labshow import target_facts, target_row, target_text
from labd.operations.model import Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

NAME = Param("target", "the target", required=True, metavar="NAME", complete="target")
NEW_NAME = Param("target", "its name: letters, digits, dots, - and _", required=True, metavar="NAME")


def list_targets(call: Call, args: Args) -> dict[str, Any]:
    """Every target with its hosts and channels."""
    lab = call.lab()
    if not lab.targets:
        call.reason(f"no target in {lab.path} yet; labd {call.lab_words()}target add NAME makes one")
    return {"targets": [target_row(lab, name) for name in lab.targets]}


def list_text(data: dict[str, Any], call: Call) -> str | None:
    """`NAME<TAB>hosts<TAB>channels`, one line a target."""
    rows = [(t["name"], ",".join(t["hosts"]), " ".join(t["channels"]) or "-") for t in data["targets"]]
    return "\n".join("\t".join(row) for row in rows) or None


def show(call: Call, args: Args) -> dict[str, Any]:
    """One target, or all of them, with every channel; defaults filled in for serial interfaces."""
    lab = call.lab()
    if args.target is not None:
        lab.target(args.target)
        return {"targets": [target_facts(lab, args.target)]}
    if not lab.targets:
        call.reason(f"no target in {lab.path} yet; labd {call.lab_words()}target add NAME makes one")
    return {"targets": [target_facts(lab, name) for name in lab.targets]}


def show_text(data: dict[str, Any], call: Call) -> str | None:
    """A block of lines a target."""
    return "\n".join(target_text(facts) for facts in data["targets"]) or None


def add(call: Call, args: Args) -> dict[str, Any]:
    """A new target without channels."""
    name = args.target
    found = wish(call, args, schema.TARGET)
    report = Report(name, target=name)

    def change(data: dict[str, Any]) -> list[Any]:
        from labd.lab.change import Add

        check_new_name("target", name, data.get("targets", {}), f"labd target set {name} --help")
        check_host(call, data, found.values.get("host"))
        report.add(found.values)
        return [Add(("targets", name), found.values)]

    edit(call, args, change, report)
    return report.data()


def set_target(call: Call, args: Args) -> dict[str, Any]:
    """Change or clear fields of a target."""
    name = args.target
    found = wish(call, args, schema.TARGET)
    require_any(found, schema.TARGET)
    report = Report(name, target=name)

    def change(data: dict[str, Any]) -> list[Any]:
        report.begin("unchanged")
        table = lab_of(call, data).target(name)
        check_host(call, data, found.values.get("host"))
        return merged(("targets", name), table, found, report)

    edit(call, args, change, report)
    return report.data()


def remove(call: Call, args: Args) -> dict[str, Any]:
    """Take a target out of the lab with all its channels, and its claim. What was captured from it stays on disk."""
    from labd import claims

    name = args.target
    report = Report(name, target=name)

    def change(data: dict[str, Any]) -> list[Any]:
        from labd.lab.change import Remove
        from labd.lab.model import channel_names

        report.begin("removed")
        report.also = channel_names(lab_of(call, data).target(name))
        return [Remove(("targets", name))]

    edit(call, args, change, report)
    if not args.dry_run and claims.read(call.env, call.lab_path, name) is not None:
        claims.release(call.env, call.lab_path, name, force=True)
    return report.data()


OPERATIONS = (
    Operation(
        ("target", "list"),
        "the targets of the lab: name, hosts, channels",
        effect="observe",
        handler=list_targets,
        text=list_text,
        examples=(("labd target list", "every target, one a line"), ("labd target list --json", "for a program")),
    ),
    Operation(
        ("target", "show"),
        "what is configured for a target, or for all of them",
        effect="observe",
        params=(Param("target", "the target; all of them if left out", complete="target"),),
        handler=show,
        text=show_text,
        examples=(("labd target show pico", "pico with all its channels"), ("labd target show", "all targets")),
    ),
    Operation(
        ("target", "add"),
        "name a new target (a board)",
        effect="config",
        looking=("dry_run",),
        params=(NEW_NAME, *params_of(schema.TARGET), DRY_RUN),
        handler=add,
        text=report_text,
        doc="A target comes first; its channels are added after it, each with its own verb: labd serial add, labd "
        "power set, labd netboot set, labd video set, labd hid set, labd adb set. They name the target with -t. "
        "A lab file that does not exist yet is made.",
        examples=(
            ("labd target add pico", "a board on this machine"),
            ('labd target add pico --host bench1 --description "Pi 5, second shelf"', "a board on another machine"),
        ),
    ),
    Operation(
        ("target", "set"),
        "change or clear fields of a target",
        effect="config",
        looking=("dry_run",),
        params=(NAME, *params_of(schema.TARGET), UNSET, DRY_RUN),
        handler=set_target,
        text=report_text,
        examples=(
            ('labd target set pico --description "Pi 5"', "describe it"),
            ("labd target set pico --unset host", "it is on this machine now"),
        ),
    ),
    Operation(
        ("target", "rm"),
        "take a target out of the lab with all its channels",
        effect="config",
        looking=("dry_run",),
        params=(NAME, DRY_RUN),
        handler=remove,
        text=report_text,
        doc="To take away one channel only: labd serial rm NAME -t TARGET, labd power rm -t TARGET and so on.",
        examples=(("labd target rm pico", "forget pico and all its channels"),),
    ),
)
