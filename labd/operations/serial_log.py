"""`labd serial log`: read back what a console said, with the daemon up or down. Light: the most used verb."""

from __future__ import annotations

from labd import logquery
from labd.call import encode
from labd.operations.model import INTERFACE, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args


def read_log(call: Call, args: Args) -> Iterator[dict[str, Any] | bytes]:
    """The chosen lines as they are found; notes about what is not shown go to stderr."""
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    line = lab.resolve_interface(target, args.interface, call)
    found = logquery.query(
        call.journal_dir(target, line["name"]),
        tail=args.tail,
        since=args.since,
        frm=getattr(args, "from"),
        to=args.to,
        grep=args.grep,
        ignore_case=args.ignore_case,
        since_boot=args.since_boot,
        events=args.events,
        raw=args.raw,
        pending=not args.no_pending,
        follow=args.follow,
        wait=call.wait_data,
        encoding=line["encoding"],
    )
    return _items(call, found, target, line, f"labd {lab.words}serial watch {target}")


def _items(
    call: Call, found: logquery.Query, target: str, line: dict[str, Any], watch: str
) -> Iterator[dict[str, Any] | bytes]:
    name = f"{target}.{line['name']}"
    row = _row(call, target, line["name"])
    failing = row.get("failing") if row else None
    if found.wait is not None and row is None:
        call.note(f"{name} is not being captured: nothing comes before {watch}")
    if found.wait is not None and failing:
        call.note(f"bytes are missing: the journal of {name} can't be written just now ({failing})")
    tell = call.reason  # while nothing is shown
    for item in found:
        if isinstance(item, logquery.Note):
            call.note(item.text)
            continue
        tell = call.note
        if isinstance(item, bytes):
            yield {"data": item.decode("latin-1")} if call.json else item
        elif call.json:
            yield logquery.as_data(item, encoding=line["encoding"])
        else:
            yield encode(logquery.as_text(item, color=call.color, encoding=line["encoding"]) + "\n")
    call.flush()
    for text in found.notes(name, watch=watch, live=row is not None, failing=failing):
        tell(text)


def _row(call: Call, target: str, name: str) -> dict[str, Any] | None:
    """The interface's state, if it is being captured right now."""
    if call.bench is None:
        return None
    return next((row for row in call.bench.status(call.lab_path, target) if row["name"] == name), None)


SERIAL_LOG = Operation(
    ("serial", "log"),
    "read back what the console said",
    effect="observe",
    stream=True,
    params=(
        Param("target", "the target; may be left out when the lab has one", complete="target"),
        Param("target", "the target, as a flag", flags=("-t", "--target"), complete="target"),
        INTERFACE,
        Param(
            "tail",
            "the last N lines of what was chosen; 0 for all",
            kind="int",
            flags=("-n", "--tail"),
            metavar="N",
            minimum=0,
        ),
        Param(
            "since",
            "what came after line N, the last you saw; line N itself may come again, until you move on, if it was "
            "shown unfinished; N+BYTES, as notes give it, is exact",
            flags=("--since",),
            metavar="N",
        ),
        Param("from", "from line N on", kind="int", flags=("--from",), metavar="N", minimum=0),
        Param("to", "up to and with line N", kind="int", flags=("--to",), metavar="N", minimum=0),
        Param("grep", "only lines that match this regular expression", flags=("--grep",), metavar="REGEX"),
        Param(
            "ignore_case",
            "match small and capital letters alike",
            kind="switch",
            flags=("--ignore-case",),
            default=False,
        ),
        Param("since_boot", "from the board's last boot on", kind="switch", flags=("--since-boot",), default=False),
        Param(
            "events",
            "also what was sent and what happened (opened, lost, reset …)",
            kind="switch",
            flags=("--events",),
            default=False,
        ),
        Param("follow", "go on with what comes, until Ctrl-C", kind="switch", flags=("-f", "--follow"), default=False),
        Param(
            "raw", "the exact bytes: no times, no numbers, colours kept", kind="switch", flags=("--raw",), default=False
        ),
        Param(
            "no_pending",
            "leave out the line that is still unfinished",
            kind="switch",
            flags=("--no-pending",),
            default=False,
        ),
    ),
    handler=read_log,
    doc="Reads the journal on disk, so it works during capture, after serial stop, and with the daemon down. Without "
    "a selector it shows the last 200 lines. Each line has a number that never changes; * marks the one that is still "
    "unfinished. To poll, remember the last number and ask for what came --since. No line is ever lost that way, but "
    "one that was shown unfinished may be repeated until you ask with a higher number; a note then gives the exact "
    "cursor, like next: --since 1840+17 (17 bytes of line 1840 were seen). A line that was interrupted is shown in "
    "pieces of one number, with --- gap 1.2 s: unplugged --- between them (in JSON it is one line with gap true).",
    examples=(
        ("labd serial log pico --tail 50", "the last 50 lines"),
        ("labd serial log pico --since 1840", "only what is new after line 1840"),
        ("labd serial log pico --from 840 --to 870 --json", "a range, as JSON Lines"),
        ("labd serial log pico -i bmc --since-boot --grep 'error|fail' --ignore-case", "trouble since the last boot"),
        ("labd serial log pico --follow", "live"),
    ),
)
