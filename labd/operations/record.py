"""`labd record`: mark a bench session, and hand it to somebody else as a file. Reads journals; touches no hardware."""

from __future__ import annotations

from labd.errors import Usage
from labd.operations.model import Operation, Param
from labd.operations.timeline import SPAN_PARAMS, channels_of, moment_ns, sources_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args
    from labd.recordings import Recordings
    from labd.timeline import Entry, Sources, Span

#: Format → the file name's ending that means it.
FORMATS = {"text": ".txt", "jsonl": ".jsonl", "asciicast": ".cast", "zip": ".zip"}

NAME = Param("name", "the recording", flags=("--name",), metavar="NAME", complete="recording")
TARGET = Param("target", "the target; may be left out when the lab has one", complete="target")


def _recordings(call: Call, args: Args) -> tuple[str, Recordings]:
    from labd.recordings import Recordings

    target = call.lab().resolve_target(args.target, call)
    return target, Recordings(call.env, call.lab_path, target)


def _start(call: Call, args: Args) -> dict[str, Any]:
    from labd.claims import name_of

    target, recordings = _recordings(call, args)
    entry = recordings.start(args.name, args.why or "", name_of(call.env))
    _film(call, target)
    idle = _not_captured(call, target)
    if idle:
        call.note(
            f"not captured now, so not in the recording until it is: {', '.join(idle)}; labd serial watch {target}"
        )
    return entry


def _film(call: Call, target: str) -> None:
    """The screen as it is at the begin and at the end, if it is captured and a recording runs."""
    if call.bench is not None:
        call.hop(call.bench.screens.film, call.lab_path, target)


def _not_captured(call: Call, target: str) -> list[str]:
    """The consoles of the target that nobody captures, as far as that is known here."""
    if call.bench is None:
        return []
    open_now = call.bench.captured(call.lab_path, target)
    return [line["name"] for line in call.lab().serial(target) if line["name"] not in open_now]


def _stop(call: Call, args: Args) -> dict[str, Any]:
    target, recordings = _recordings(call, args)
    _film(call, target)
    return recordings.stop(args.name)


def _list(call: Call, args: Args) -> dict[str, Any]:
    target, recordings = _recordings(call, args)
    found = recordings.all()
    if not found:
        call.reason(f"no recording of {target}; labd record start {target}")
    return {"target": target, "recordings": found}


def _entry_text(entry: dict[str, Any], call: Call) -> str:
    from labd.logtext import stamp

    until = stamp(entry["until_ns"]) if entry["until_ns"] else "running"
    why = f"\t{entry['why']}" if entry["why"] else ""
    return f"{entry['target']}\t{entry['name']}\t{stamp(entry['since_ns'])}\t{until}\tby {entry['by']}{why}"


def _list_text(data: dict[str, Any], call: Call) -> str | None:
    return "\n".join(_entry_text(entry, call) for entry in data["recordings"]) or None


def _export(call: Call, args: Args) -> Iterator[dict[str, Any] | bytes]:
    from labd import export, outfile, timeline

    target, recordings = _recordings(call, args)
    sources = sources_of(call, call.lab(), target, args.interface)
    span, about = _span(call, args, sources, recordings)
    form = _format(args)
    encodings = {line["name"]: line["encoding"] for line in sources.consoles}
    if form == "asciicast" and len(encodings) != 1:
        names = ", ".join(encodings) or "none"
        raise Usage(f"a terminal recording is of one console, and {target} has {names}: -i NAME",
                    hint="labd record export --help")  # fmt: skip
    if args.raw and form != "zip":
        raise Usage("--raw adds the exact bytes to a bundle: it needs --format zip")
    if form == "zip" and args.out == "-" and call.stdout_tty:
        raise Usage("a bundle is nothing for a terminal", hint=f"labd record export {target} -o session.zip")
    entries = export.handed_on(timeline.timeline(sources, span, channels_of(args.channels)), encodings)
    if form == "zip":
        pieces: Iterator[bytes] = iter([_bundle(call, args, sources, span, list(entries), about)])
    elif form == "asciicast":
        from labd.asciicast import as_cast

        pieces = as_cast(entries, encodings, title=f"{target}.{next(iter(encodings))}")
    else:
        pieces = (export.as_jsonl if form == "jsonl" else export.as_lines)(entries, encodings)
    if args.out == "-":
        yield from pieces
        return
    where = outfile.write(call, args.out, pieces)
    yield {**about, "format": form, "file": where}


def _export_text(item: dict[str, Any], call: Call) -> str:
    return f"{item['file']}\t{item['format']}"


def _format(args: Args) -> str:
    if args.format:
        return str(args.format)
    for form, ending in FORMATS.items():
        if args.out.lower().endswith(ending):
            return form
    if args.out == "-":
        return "text"
    raise Usage(f"{args.out} has no ending that says what to write: {', '.join(FORMATS.values())}",
                hint="labd record export --format zip -o session.zip")  # fmt: skip


def _span(call: Call, args: Args, sources: Sources, recordings: Recordings) -> tuple[Span, dict[str, Any]]:
    """What is exported: the moments that were given, else a recording. And what the manifest says of it."""
    import time

    from labd.timeline import Span

    if args.since is None and args.until is None:
        entry = recordings.find(args.name)
        until = entry["until_ns"] or time.time_ns()
        return Span(entry["since_ns"], until), {**entry, "until_ns": until}
    if args.name is not None:
        raise Usage("a recording has its own beginning and end: --name or --since and --until, not both")
    since = moment_ns(call, "--since", args.since, sources) if args.since is not None else 0
    until = moment_ns(call, "--until", args.until, sources) if args.until is not None else time.time_ns()
    if until < since:
        raise Usage("--until is before --since")
    return Span(since, until), {"target": sources.target, "name": None, "since_ns": since, "until_ns": until}


def _bundle(call: Call, args: Args, sources: Sources, span: Span, entries: list[Entry], about: dict[str, Any]) -> bytes:
    import json
    import os

    from labd import paths
    from labd.export_zip import Bundle
    from labd.lab.redact import redacted

    encodings = {line["name"]: line["encoding"] for line in sources.consoles}
    bundle = Bundle(about)
    bundle.add_timeline(entries, encodings)
    pictures = os.path.join(sources.directory(paths.BENCH_JOURNAL), "pictures")
    missing = bundle.add_pictures(entries, pictures)
    if missing:
        call.note(f"{missing} pictures of that time are not kept any more")
    if args.raw:
        _add_raw(call, bundle, sources, span)
    lab = redacted(call.lab().targets[sources.target])
    bundle.add("lab.json", json.dumps({"target": sources.target, **lab}, indent=2).encode() + b"\n")
    return bundle.bytes()


def _add_raw(call: Call, bundle: Any, sources: Sources, span: Span) -> None:
    """The exact bytes of the span's lines: nothing can be blanked in them."""
    from labd.journal_read import Reader
    from labd.timeline import first_line_at

    call.note("the exact bytes of the consoles are in it: whatever secret the target printed is, too")
    for line in sources.consoles:
        reader = Reader(sources.directory(line["name"]))
        if reader.captured:
            start = reader.locate(first_line_at(reader, span.since_ns))[1]
            stop = reader.locate(first_line_at(reader, span.until_ns + 1))[1]
            bundle.add(f"consoles/{line['name']}.raw", reader.bytes(start, stop))


_START_DOC = (
    "The journals keep everything anyway; a recording is a name for a span of them, and pictures of the screen are "
    "kept whenever it changes while one runs. Nothing has to run here for a recording to go on: it lasts until it is "
    "stopped, also over a restart of the daemon."
)

OPERATIONS = (
    Operation(
        ("record", "start"),
        "begin a recording of a target's session",
        effect="observe",
        params=(TARGET, NAME, Param("why", "what it is of, for whoever gets it", flags=("--why",), metavar="TEXT")),
        handler=_start,
        text=_entry_text,
        doc=_START_DOC,
        examples=(
            ("labd record start pico", "named by the time"),
            ("labd record start pico --name boot-hang --why 'hangs in one boot of five'", "a name and a reason"),
        ),
    ),
    Operation(
        ("record", "stop"),
        "end a recording",
        effect="observe",
        params=(TARGET, NAME),
        handler=_stop,
        text=_entry_text,
        examples=(("labd record stop pico", "the one that runs"),),
    ),
    Operation(
        ("record", "list"),
        "the recordings of a target",
        effect="observe",
        params=(TARGET,),
        handler=_list,
        text=_list_text,
        examples=(("labd record list pico", "one a line, the oldest first"),),
    ),
    Operation(
        ("record", "export"),
        "write a session to a file: text, JSON Lines, a terminal recording, or a bundle with pictures",
        effect="observe",
        stream=True,
        params=(
            TARGET,
            NAME,
            *SPAN_PARAMS,
            Param("format", "what to write; else the file's ending says it", kind="choice", choices=tuple(FORMATS),
                  flags=("--format",)),
            Param("out", "the file to write; - is stdout", kind="path", flags=("-o", "--out"), default="-",
                  complete="file", ships="out"),
            Param("raw", "with a bundle: the exact bytes of the consoles too, in which no secret is blanked",
                  kind="switch", flags=("--raw",), default=False),
        ),
        handler=_export,
        text=_export_text,
        doc="Without --since or --until it is the newest recording (or --name). Secrets that can be recognised are "
        "blanked, private keys too, and what was typed while a console asked for a password is left out; what else was "
        "typed through hid is in it. Read it before you hand it on. "
        "A bundle opens anywhere: its README.txt says what is in it.",
        examples=(
            ("labd record export pico -o session.zip", "the newest recording, with everything"),
            ("labd record export pico --name boot-hang -o hang.cast -i console", "a console, to be replayed"),
            ("labd record export pico --since 10m --format jsonl", "ten minutes on stdout, for a program"),
        ),
    ),
)  # fmt: skip
