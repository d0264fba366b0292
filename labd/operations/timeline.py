"""`labd timeline`: everything that happened to a target, of all its channels, on one clock. Reads only."""

from __future__ import annotations

from labd.errors import NotFound, Usage, nearest
from labd.operations.model import Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from labd.call import Call
    from labd.lab import Lab
    from labd.operations.model import Args
    from labd.timeline import Sources, Span

#: A moment's spellings, for the help of every flag that takes one.
MOMENT = "a line's number, how long ago (10m), or a time (10:15:00)"

#: Which part of a history is meant; shared with `labd record export`.
SPAN_PARAMS = (
    Param("since", f"from here on: {MOMENT}", flags=("--since",), metavar="WHEN"),
    Param("until", f"up to here: {MOMENT}", flags=("--until",), metavar="WHEN"),
    Param("interface", "only this console, and the one whose line numbers are meant", flags=("-i", "--interface"),
          complete="interface"),
    Param("channels", "only these, with commas between: serial, tx, port, power, video, hid, netboot, netif, adb, "
          "board, claim, refusal, config", flags=("--channels",), metavar="NAMES"),
)  # fmt: skip


def _timeline(call: Call, args: Args) -> Iterator[dict[str, Any] | bytes]:
    import labd.timeline
    from labd.call import encode
    from labd.timeline_text import data_of, text_of

    lab, target = _target(call, args)
    sources = sources_of(call, lab, target, args.interface)
    span = _span(call, args, sources)
    encodings = {line["name"]: line["encoding"] for line in sources.consoles}
    shown = 0
    for entry in labd.timeline.timeline(sources, span, channels_of(args.channels)):
        shown += 1
        encoding = encodings.get(entry.interface, "utf-8")
        if call.json:
            yield data_of(entry, encoding)
        else:
            yield encode(text_of(entry, encoding, color=call.color) + "\n")
    call.flush()
    if not shown:
        call.reason(_why_empty(call, target, args))
    elif shown == span.tail and args.tail is None:
        call.note(f"showing the last {shown}; --tail 0 for all")


def _target(call: Call, args: Args) -> tuple[Lab, str]:
    lab = call.lab()
    return lab, lab.resolve_target(args.target, call)


def sources_of(call: Call, lab: Lab, target: str, interface: str | None) -> Sources:
    """Where the history of a target is; of its consoles only `interface`, if one is named. Raises NotFound."""
    from labd import paths
    from labd.timeline import Sources

    consoles = lab.serial(target)
    if interface is not None:
        consoles = [lab.resolve_interface(target, interface, call)]
    return Sources(target, call.lab_path, paths.state_dir(call.env), consoles,
                   lambda name: call.journal_dir(target, name), len(lab.targets) == 1)  # fmt: skip


def channels_of(words: str | None) -> frozenset[str]:
    """The channels that are chosen; all without a choice. Raises Usage for an unknown one, with near matches."""
    from labd.timeline import CHANNELS

    if words is None:
        return frozenset(CHANNELS)
    named = [word.strip() for word in words.split(",") if word.strip()]
    for name in named:
        if name not in CHANNELS:
            raise Usage(f"--channels does not know {name!r}; there is {', '.join(CHANNELS)}",
                        near=nearest(name, list(CHANNELS)))  # fmt: skip
    if not named:
        raise Usage("--channels names no channel", hint="labd timeline --channels serial,power")
    return frozenset(named)


def moment_ns(call: Call, flag: str, text: str, sources: Sources) -> int:
    """The time (ns since 1970) that the value of a flag means. Raises Usage, NotFound for a line that is not there."""
    import time

    from labd import moments
    from labd.timeline import moment_of_line

    seq, wall_ns = moments.parse(text, flag, time.time_ns())
    if seq is None:
        return wall_ns
    if len(sources.consoles) != 1:
        names = ", ".join(line["name"] for line in sources.consoles) or "none"
        raise Usage(f"{flag} {text} is a line's number, and {sources.target} has several consoles or none: {names}",
                    hint="labd timeline --help")  # fmt: skip
    name = sources.consoles[0]["name"]
    found = moment_of_line(sources.directory(name), seq)
    if found is None:
        raise NotFound(f"{sources.target}.{name} has no line #{seq}",
                       hint=f"labd serial log {sources.target} -i {name} --tail 5")  # fmt: skip
    return found


def _span(call: Call, args: Args, sources: Sources) -> Span:
    from labd.timeline import DEFAULT_TAIL, FOREVER_NS, Span

    since_ns, until_ns = 0, FOREVER_NS
    if args.around is not None:
        if args.since is not None or args.until is not None:
            raise Usage(
                "--around is a moment with time before and behind it: it takes --window, not --since or --until"
            )
        middle = moment_ns(call, "--around", args.around, sources)
        width = int(args.window * 10**9)
        since_ns, until_ns = max(0, middle - width), middle + width
    if args.since is not None:
        since_ns = moment_ns(call, "--since", args.since, sources)
    if args.until is not None:
        until_ns = moment_ns(call, "--until", args.until, sources)
    if until_ns < since_ns:
        raise Usage("--until is before --since")
    chosen = since_ns > 0 or until_ns < FOREVER_NS
    tail = args.tail if args.tail is not None else 0 if chosen else DEFAULT_TAIL
    return Span(since_ns, until_ns, tail or None)


def _why_empty(call: Call, target: str, args: Args) -> str:
    if args.given("since", "until", "around", "channels", "interface"):
        return (
            f"nothing of {target} is in what was chosen; without flags, labd timeline {target} shows the last there is"
        )
    return f"nothing has happened to {target} yet; labd serial watch {target} captures its consoles"


TIMELINE = Operation(
    ("timeline",),
    "everything that happened to a target, of all its channels, in one order",
    effect="observe",
    stream=True,
    params=(
        Param("target", "the target; may be left out when the lab has one", complete="target"),
        *SPAN_PARAMS,
        Param("around", f"what happened around this moment: {MOMENT}", flags=("--around",), metavar="WHEN"),
        Param("window", "how much before and behind --around", kind="float", flags=("--window",), default=5.0, unit="s",
              minimum=0, maximum=86400),
        Param("tail", "the last N entries; 0 for all; default 200 where nothing else chooses", kind="int",
              flags=("-n", "--tail"), metavar="N", minimum=0),
    ),
    handler=_timeline,
    doc="Console lines with their numbers, what was sent to them, what happened to their ports; power, pictures that "
    "changed, keys, network boots, links; who claimed the target, what was refused and why, what was changed in the "
    "lab. Read from the journals, so it works with the daemon down. Each source keeps its own order; between sources "
    "the clock of this machine decides. With --json each line has ts_ms, mono_ns (the clock that never jumps), channel "
    "and, for a console, interface; a line has seq and text, anything else event and its own fields.",
    examples=(
        ("labd timeline pico", "the last 200 things"),
        ("labd timeline pico --since 10m --channels power,serial", "ten minutes of power and console"),
        ("labd timeline pico --around 1840 --window 2", "two seconds before and behind line 1840"),
        ("labd timeline pico --since 10:15:00 --until 10:20:00 --json", "five minutes, for a program"),
    ),
)  # fmt: skip

OPERATIONS = (TIMELINE,)
