"""A span of a target's history as something that can be handed on: text, JSON Lines, a terminal recording, a bundle.

What is handed on is for other eyes: secrets that can be recognised become `***`, in lines, in what was sent and in
commands, and what was typed at a password prompt is not in it at all. The exact bytes of a console are added to a
bundle only when they are asked for, since nothing can be blanked in those.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from labd.journal_read import Event, Line
from labd.lab.redact import redact, redacted
from labd.timeline import Entry
from labd.timeline_text import data_of, text_of

#: A console that asks for something that is typed unseen.
_ASKS = re.compile(r"(?i)(?:pass(?:word|phrase|code)?|\bpin|\btoken|secret)[^:]{0,60}:\s*$")


def handed_on(entries: Iterable[Entry], encodings: Mapping[str, str]) -> Iterator[Entry]:
    """The entries without the secrets that can be recognised in them. Each is made anew where it has one."""
    asking: dict[str, bool] = {}
    for entry in entries:
        item = entry.item
        if isinstance(item, Line):
            encoding = encodings.get(entry.interface, "utf-8")
            asking[entry.interface] = bool(_ASKS.search(item.raw[-200:].decode("latin-1").rstrip("\r")))
            yield Entry(entry.key, entry.channel, entry.interface, without_secrets(item, encoding))
            continue
        fields = redacted(item.fields)
        if item.kind == "tx" and asking.get(entry.interface):
            fields = {"data": "***", "who": fields.get("who")}  # not even how long it was
        fresh = Event(item.number, item.kind, item.rx, item.wall_ns, item.mono_ns, fields)
        yield Entry(entry.key, entry.channel, entry.interface, fresh)


def without_secrets(line: Line, encoding: str) -> Line:
    """The line, its bytes changed only where a secret was recognised in its text."""
    try:
        text = line.raw.decode(encoding)
    except (LookupError, ValueError):
        encoding, text = "latin-1", line.raw.decode("latin-1")
    clean = redact(text)
    if clean == text:
        return line
    raw = clean.encode(encoding)
    fresh = Line(line.seq, line.offset, raw, len(raw), line.wall_ns, line.mono_ns, line.partial, line.gap)
    fresh.seams = ()
    return fresh


def as_lines(entries: Iterable[Entry], encodings: Mapping[str, str]) -> Iterator[bytes]:
    """The timeline as text, as `labd timeline` shows it."""
    for entry in entries:
        yield text_of(entry, encodings.get(entry.interface, "utf-8")).encode("utf-8", "backslashreplace") + b"\n"


def as_jsonl(entries: Iterable[Entry], encodings: Mapping[str, str]) -> Iterator[bytes]:
    """The timeline as JSON Lines, as `labd timeline --json` gives it."""
    for entry in entries:
        yield json.dumps(data_of(entry, encodings.get(entry.interface, "utf-8"))).encode() + b"\n"
