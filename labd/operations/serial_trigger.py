"""`labd serial trigger`: armed reactions of the daemon to what a console says. Light."""

from __future__ import annotations

from labd.errors import Usage
from labd.operations.consoles import TARGET_EITHER, console, who_of
from labd.operations.model import INTERFACE, TARGET, Operation, Param
from labd.operations.serial_send import EOL, HEX, KEY, NO_NEWLINE, payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args


def add(call: Call, args: Args) -> dict[str, Any]:
    """Arm a trigger."""
    import os

    if args.once and args.always:
        raise Usage("--once and --always contradict each other", hint="leave one out")
    lab, target, line = console(call, args)
    if args.text == "-":
        raise Usage("a trigger sends what it is given now, not stdin", hint="labd serial trigger add --help")
    data = payload(call, args, line)
    state = next((row for row in call.bench.status(lab.path, target) if row["name"] == line["name"]), None)
    key = (os.path.realpath(lab.path), target, line["name"])
    how = {"literal": args.literal, "ignore_case": args.ignore_case, "encoding": line["encoding"]}
    made: dict[str, Any] = call.hop(
        call.bench.triggers.add, key, call.journal_dir(target, line["name"]), args.pattern, data,
        once=not args.always, who=who_of(call), how=how,
    )  # fmt: skip
    if state is None:
        call.note(
            f"{target}.{line['name']} is not being captured yet; the trigger waits for labd serial watch {target}"
        )
    elif state["state"] != "open":
        call.note(f"{target}.{line['name']} is {state['state']} just now; the trigger waits for its return")
    if not made["kept"]:
        call.note("it can't be kept for the next daemon: it ends with this one (labd daemons says where its log is)")
    return made


def add_text(data: dict[str, Any], call: Call) -> str:
    """Its number, and what it will do."""
    times = "once" if data["once"] else "each time"
    armed = "armed already" if data.get("already") else "armed"
    return (f"{data['id']} is {armed}: when {data['target']}.{data['interface']} says {data['pattern']!r}, "
            f"{shown(data['data'])} is sent, {times}")  # fmt: skip


def shown(data: str) -> str:
    """Bytes (as latin-1) as a person can read them."""
    return repr(data)


def listed(call: Call, args: Args) -> list[dict[str, Any]]:
    """The triggers of this lab, or of one target."""
    import os

    rows = call.bench.triggers.rows() if call.bench is not None else []
    lab = call.lab()
    if args.target is not None:
        lab.resolve_target(args.target, call)
    here = os.path.realpath(lab.path)
    return [row for row in rows if row["lab"] == here and args.target in (None, row["target"])]


def told(call: Call, args: Args) -> list[dict[str, Any]]:
    """The same, for a reader: without any, a note says how one is armed."""
    rows = listed(call, args)
    if not rows:
        of = f" on {args.target}" if args.target is not None else ""
        call.reason(f"no trigger is armed{of}; labd {call.lab_words()}serial trigger add "
                    f"{args.target or 'TARGET'} PATTERN TEXT arms one")  # fmt: skip
    return rows


def listed_text(rows: list[dict[str, Any]], call: Call) -> str | None:
    """One line a trigger."""
    from labd.render import columns

    if not rows:
        return None
    table = []
    for row in rows:
        last = row["last"]
        told = f"fired {row['fired']} times" if row["fired"] != 1 else "fired once"
        if last is not None:
            took = f"{last['ms']:g} ms" if last["ms"] is not None else "an unknown time"
            told += f", last {took} late ({last['late']})" if last.get("late") else f", last in {took}"
        state = row["state"] + ("" if row["once"] or row["state"] != "armed" else " always")
        told += f" ({row['why']})" if row["why"] else ""
        what = f"{row['pattern']!r} → {shown(row['data'])}"
        table.append((row["id"], f"{row['target']}.{row['interface']}", state, what, told))
    return columns(table, call.columns, indent="")


def remove(call: Call, args: Args) -> dict[str, Any]:
    """Disarm triggers."""
    if bool(args.ids) == args.all:
        raise Usage("name the triggers, or say --all", hint="labd serial trigger list")
    rows = listed(call, args)
    ids = [row["id"] for row in rows] if args.all else args.ids
    return {"removed": call.hop(call.bench.triggers.remove, ids)}


def remove_text(data: dict[str, Any], call: Call) -> str:
    """Which, and what became of them."""
    return "\n".join(
        f"{row['id']} is removed: {row['pattern']!r} on {row['target']}.{row['interface']} fired {row['fired']} times"
        for row in data["removed"]
    ) or "there was no trigger"  # fmt: skip


SERIAL_TRIGGERS = (
    Operation(
        ("serial", "trigger", "add"),
        "arm a reaction: when the console says this, send that at once",
        effect="actuate",
        where="daemon",
        params=(
            TARGET,
            Param("pattern", "a regular expression, or text where it has no special character", required=True),
            Param("text", "what to send then", required=True, unless=("key", "hex")),
            TARGET_EITHER,
            INTERFACE,
            KEY,
            HEX,
            NO_NEWLINE,
            EOL,
            Param("once", "fire once, then be spent (the default)", kind="switch", flags=("--once",), default=False),
            Param("always", "fire each time", kind="switch", flags=("--always",), default=False),
            Param("literal", "take the pattern as it is written", kind="switch", flags=("--literal",), default=False),
            Param("ignore_case", "match without regard to case", kind="switch", flags=("-I", "--ignore-case"),
                  default=False),
        ),
        handler=add,
        text=add_text,
        doc="Arm it before the reset whose output it waits for, or before the first watch. It looks at what comes from "
        "now on; text and patterns of one length fire as soon as their last character is there, others when their line "
        "has ended or nothing followed for 300 ms. The echo of what was sent fires nothing. With --always a pattern "
        "that is in its own text is refused, and one that fires 50 times in 10 s is disarmed. Each firing is an event "
        "in the log (serial log --events). It fires whoever else is writing, and lives over unplugs and the daemon's "
        "restart or crash: what came meanwhile is looked at then, fires once (with --always only the newest), and the "
        "event says how late. It ends with serial stop and labd daemons stop.",
        examples=(
            ("labd serial trigger add pico 'Hit any key' --key space", "stop a boot loader's countdown, once"),
            ("labd serial trigger add pico 'login: ' root --always", "log in after each boot"),
        ),
    ),
    Operation(
        ("serial", "trigger", "list"),
        "the triggers and how often they fired",
        effect="observe",
        params=(TARGET,),
        handler=told,
        text=listed_text,
        examples=(("labd serial trigger list pico", "those of pico"),),
    ),
    Operation(
        ("serial", "trigger", "rm"),
        "disarm triggers",
        effect="actuate",
        where="daemon",
        params=(
            Param("ids", "their numbers, from serial trigger list", repeat=True, metavar="ID…", complete="trigger"),
            Param("target", "with --all: only this target's", flags=("-t", "--target"), complete="target"),
            Param("all", "all of this lab", kind="switch", flags=("--all",), default=False),
        ),
        handler=remove,
        text=remove_text,
        examples=(("labd serial trigger rm t1", "one"), ("labd serial trigger rm --all", "all of them")),
    ),
)  # fmt: skip
