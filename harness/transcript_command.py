"""`labd-eval transcript`: what an agent said and did, from any product's transcript, as a table, JSON or ATIF.

Parsed in harness/cli.py like all commands; here is what it does. Reads files, writes none. What an agent wrote is never
shown to a terminal as it is: control characters are escaped.
"""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from graders import joined, route
from graders.bundle_view import Bundle, BundleError
from harness import transcript_files, transcripts
from harness.transcripts import Transcript
from harness.transcripts.model import MAIN, Call
from labd.errors import LabdError, Usage


def options(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "path", metavar="FILE|DIR", help="a transcript (- for standard input), or a directory with those of one session"
    )
    parser.add_argument("--product", choices=transcripts.PRODUCTS, help="whose it is (default: what its records say)")
    parser.add_argument("--atif", action="store_true", help="answer in the interchange form ATIF 1.8 (JSON)")


def do_transcript(values: argparse.Namespace, words: Sequence[str]) -> int:
    """Print the normal form of a transcript."""
    place = Path(values.path)
    raw = read(place)
    product = values.product or product_of(raw)
    if product is None:
        product = "atif"  # which no file here is: it names the first line that made no sense
    try:
        told = transcripts.parse(product, raw)
    except transcripts.TranscriptError as error:
        hint = f"labd-eval transcript {shlex.quote(values.path)} --product text"
        if not place.is_file() or not any(raw.values()):
            hint = "labd-eval transcript --help"
        raise Usage(f"{values.path}: {senseless(raw, error)}", hint=hint) from error
    told = confirmed(place, told)
    if values.atif:
        sys.stdout.write(json.dumps(transcripts.to_atif(told), indent=1, sort_keys=True) + "\n")
    elif values.json:
        sys.stdout.write(told.dumps().decode("ascii"))
    else:
        sys.stdout.write(table(told))
    return 0


def senseless(raw: Mapping[str, bytes], error: transcripts.TranscriptError) -> str:
    """Why the files are no transcript, for a person."""
    return str(error) if any(data.strip() for data in raw.values()) else "it is empty: nothing was said or done"


def confirmed(place: Path, told: Transcript) -> Transcript:
    """With the exit codes that the recorder saw, where `place` is a stored trial that has a record."""
    if not (place / "trial.json").is_file():
        return told
    bundle, plain = Bundle(place), told.as_dict()
    try:
        found = joined.join(plain, route.subject_invocations(bundle), route.subject(bundle.trial))
    except BundleError as error:
        raise LabdError(str(error)) from error
    return transcripts.from_dict(joined.confirmed(plain, found))


def read(place: Path) -> dict[str, bytes]:
    """The files of the one log at a place, by the names that they have under a bundle's raw/. Raises Usage where there
    are several."""
    found = transcript_files.logs(place)
    if len(found) > 1:
        raise Usage(f"{place} holds {len(found)} logs; a transcript is one", near=[str(one) for one in found][:5],
                    hint=f"labd-eval transcript {shlex.quote(str(next(iter(found))))}")  # fmt: skip
    return transcript_files.read(*found.values())


def product_of(raw: Mapping[str, bytes]) -> str | None:
    """Whose transcript it is: by what the program printed, else by its logs."""
    first = [name for name in ("stdout", "calls.jsonl") if name in raw]
    for name in [*first, *(name for name in raw if name.startswith("session/"))]:
        product = transcripts.sniff(raw[name])
        if product is not None:
            return product
    return None


# -- the table ---------------------------------------------------------------------------------------------------


def table(told: Transcript) -> str:
    """A row a call; what it is, above; the answer, usage and what could not be read, below."""
    rows = [("thread", "call", "state", "exit", "source", "command"), *(_row(told, call) for call in told.calls)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    room = max(30, columns() - sum(widths) - 10)
    body = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:5], widths, strict=True)]
        body.append("  ".join([*cells, cut(row[5], room)]).rstrip())
    return "\n".join([*_head(told), "", *(body if told.calls else ["no calls"]), "", *_tail(told)]) + "\n"


def _row(told: Transcript, call: Call) -> tuple[str, ...]:
    named = next((one for one in told.threads if one.id == call.thread), None)
    thread = call.thread if named is None or named.name is None else named.name
    code = "?" if call.exit_code is None else str(call.exit_code)
    shell = call.kind == "shell" or call.exit_code is not None
    tool = f"{call.tool} (invented)" if call.kind == "invented" else call.tool
    what = call.command if call.command is not None else json.dumps(call.input, sort_keys=True)
    cells = (
        cut(thread, 20),
        cut(tool or "?", 28),
        call.state,
        code if shell else "-",
        call.exit_source if shell else "-",
    )
    return (*map(shown, cells), shown(what))


def _head(told: Transcript) -> list[str]:
    version = f" {told.product_version}" if told.product_version else ""
    ended = told.ended.how + (f" (status {told.ended.status})" if told.ended.status is not None else "")
    detail = f": {told.ended.detail}" if told.ended.detail else ""
    model = f", model {told.model}" if told.model else ""
    head = [f"{told.product}{version}, {told.format}{model}", f"ended: {ended}{detail}"]
    if told.truncated:
        head.append("the end of the file is missing")
    return [cut(shown(line), 300) for line in head]


def _tail(told: Transcript) -> list[str]:
    usage = told.usage
    counts = [f"{name} {value}" for name, value in (
        ("input", usage.input), ("output", usage.output), ("cache read", usage.cache_read), ("total", usage.total),
        ("turns", usage.turns)) if value is not None]  # fmt: skip
    if usage.cost_usd is not None:
        counts.append(f"USD {usage.cost_usd:.4f}")
    lines = [
        f"tokens: {', '.join(counts)} ({usage.source}{'' if usage.complete else ', not all'})"
        if counts
        else "tokens: unknown"
    ]
    threads = sum(one.id != MAIN for one in told.threads)
    lines.append(f"messages: {len(told.messages)}" + (f", threads: {threads + 1}" if threads else ""))
    lines += [f"line {problem.line}: {problem.what}" for problem in told.problems[:10]]
    if told.unknown_events:
        lines.append("not known: " + ", ".join(f"{name} ({n})" for name, n in sorted(told.unknown_events.items())[:10]))
    return [
        *(cut(shown(line), 300) for line in lines),
        "answer:",
        *(f"  {shown(one)}" for one in told.answer.split("\n")),
    ]


def shown(text: str) -> str:
    """On one line, with nothing that a terminal would act on."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def columns() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 160
