"""`set`, `rm`, `show` and `list` of the channels that are one table of a target: netboot, power, video, hid, adb.

One factory; the modules of the nouns add their runtime verbs to what it makes. Opens no device.
"""

from __future__ import annotations

from labd.errors import NotFound, Usage
from labd.lab import schema
from labd.operations.labedit import (
    DRY_RUN,
    UNSET,
    Report,
    check_host,
    edit,
    lab_of,
    merged,
    params_of,
    report_text,
    require_any,
    tell_board,
    wish,
)
from labd.operations.labshow import fields_text
from labd.operations.model import TARGET, TARGET_FLAG, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

    Check = Callable[[Call, str, Mapping[str, Any], Mapping[str, Any]], None]

#: What a new channel cannot do without. An adb channel may be empty: it means the only device.
NEEDED = {"video": "device", "hid": "cmd"}


def channel_operations(
    kind: str,
    *,
    summaries: tuple[str, str, str, str],
    example: tuple[str, str],
    unset: str,
    removed: str,
    doc: str = "",
    check: Check | None = None,
) -> tuple[Operation, ...]:
    """The configuration verbs of one channel. `summaries` are those of set, rm, show and list.

    `unset` is a field for an example, `removed` what an example says of `rm`. `check` raises LabdError for values
    that can't be meant: (call, target, the channel as it is, the values that are set).
    """
    sets, takes, shows, lists = summaries
    fields = schema.SINGLE_CHANNELS[kind]

    def set_channel(call: Call, args: Args) -> dict[str, Any]:
        return _set(call, args, kind, check)

    def remove(call: Call, args: Args) -> dict[str, Any]:
        return _remove(call, args, kind)

    def show(call: Call, args: Args) -> dict[str, Any]:
        return show_channel(call, args, kind)

    def list_all(call: Call, args: Args) -> dict[str, Any]:
        return _list(call, kind)

    return (
        Operation(
            (kind, "set"),
            sets,
            effect="config",
            looking=("dry_run",),
            params=(TARGET_FLAG, *params_of(fields), UNSET, DRY_RUN),
            handler=set_channel,
            text=report_text,
            doc=doc,
            examples=(example, (f"labd {kind} set -t pico --unset {unset}", f"clear {unset}")),
        ),
        Operation(
            (kind, "rm"),
            takes,
            effect="config",
            looking=("dry_run",),
            params=(TARGET_FLAG, DRY_RUN),
            handler=remove,
            text=report_text,
            examples=((f"labd {kind} rm -t pico", removed),),
        ),
        Operation(
            (kind, "show"),
            shows,
            effect="observe",
            stays=True,
            params=(TARGET,),
            handler=show,
            text=show_text,
            examples=((f"labd {kind} show pico", "what the lab says of it"),),
        ),
        Operation(
            (kind, "list"),
            lists,
            effect="observe",
            stays=True,
            handler=list_all,
            text=list_text,
            examples=((f"labd {kind} list", "one line a target"),),
        ),
    )


def channel_words(kind: str) -> str:
    """A channel with its article: `an adb channel`."""
    return f"{'an' if kind == 'adb' else 'a'} {kind} channel"


def _set(call: Call, args: Args, kind: str, check: Check | None) -> dict[str, Any]:
    fields = schema.SINGLE_CHANNELS[kind]
    found = wish(call, args, fields)
    if kind != "adb":
        require_any(found, fields)
    target = args.target
    path = ("targets", target, kind)
    report = Report(f"{target}.{kind}", target=target, channel=kind)

    def change(data: dict[str, Any]) -> list[Any]:
        from labd.lab.change import Add

        report.begin("unchanged")
        lab = lab_of(call, data)
        table = lab.target(target)
        check_host(call, data, found.values.get("host"))
        if found.values.get("serial_interface") is not None:
            lab.resolve_interface(target, found.values["serial_interface"], call)
        if check:
            check(call, target, table.get(kind, {}), found.values)
        if kind in table:
            return list(merged(path, table[kind], found, report))
        if found.clear and not found.values:
            lab.channel(target, kind)  # raises: there is nothing to clear
        needed = NEEDED.get(kind)
        if needed and needed not in found.values:
            raise Usage(f"{target}.{kind} is not configured yet and needs {fields[needed].flags[-1]}")
        report.add(found.values)
        return [Add(path, found.values)]

    edit(call, args, change, report)
    tell_board(call, found.values.get("device"), found.values.get("host"))
    return report.data()


def _remove(call: Call, args: Args, kind: str) -> dict[str, Any]:
    target = args.target
    report = Report(f"{target}.{kind}", target=target, channel=kind)

    def change(data: dict[str, Any]) -> list[Any]:
        from labd.lab.change import Remove

        report.begin("removed")
        lab_of(call, data).channel(target, kind)
        return [Remove(("targets", target, kind))]

    edit(call, args, change, report)
    return report.data()


def show_channel(call: Call, args: Args, kind: str) -> dict[str, Any]:
    """The channel of the target named, or of the only one that has such a channel. Raises NotFound."""
    lab = call.lab()
    holders = [name for name, table in lab.targets.items() if kind in table]
    name = args.target
    if name is None and len(holders) == 1:
        name = holders[0]
        call.note(f"target {name}, the only one with {channel_words(kind)}")
    elif name is None and lab.targets and not holders:
        raise NotFound(f"no target of {lab.path} has {channel_words(kind)}",
                       hint=f"labd {call.lab_words()}{kind} set -t TARGET --help")  # fmt: skip
    name = lab.resolve_target(name, call)
    return _facts(lab, name, kind)


def _facts(lab: Any, name: str, kind: str) -> dict[str, Any]:
    from labd.lab.redact import redacted

    table = lab.channel(name, kind)
    facts: dict[str, Any] = redacted({**table, "host": lab.host_of(name, table)})
    return {"target": name, "channel": kind, **facts}


def show_text(data: dict[str, Any], call: Call) -> str:
    """`field<TAB>value`, one a line."""
    from labd.operations.labedit import shown

    return "\n".join(f"{key}\t{shown(value)}" for key, value in data.items() if key != "channel")


def _list(call: Call, kind: str) -> dict[str, Any]:
    lab = call.lab()
    found = [_facts(lab, name, kind) for name, table in lab.targets.items() if kind in table]
    if not found:
        makes = f"labd {call.lab_words()}{kind} set -t TARGET makes one"
        call.reason(f"no target of {lab.path} has {channel_words(kind)}; {makes}")
    return {"channels": found}


def list_text(data: dict[str, Any], call: Call) -> str | None:
    """`TARGET<TAB>@HOST  fields`, one line a target."""
    rows = []
    for entry in data["channels"]:
        fields = {key: value for key, value in entry.items() if key not in ("target", "channel")}
        rows.append(f"{entry['target']}\t@{entry['host']}{fields_text(fields)}")
    return "\n".join(rows) or None
