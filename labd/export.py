"""A span of a target's history as something that can be handed on: text, JSON Lines, a terminal recording, a bundle.

What is handed on is for other eyes: secrets that can be recognised become `***`, in lines, in what was sent and in
commands, and what was typed at a password prompt is not in it at all. The exact bytes of a console are added to a
bundle only when they are asked for, since nothing can be blanked in those.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from labd.journal_read import Event, Line
from labd.lab.redact import redact, redacted
from labd.timeline import Entry
from labd.timeline_text import data_of, text_of

#: A console that asks for something that is typed unseen.
_ASKS = re.compile(r"(?i)(?:pass(?:word|phrase|code)?|\bpin|\btoken|secret)[^:]{0,60}:\s*$")

#: The first and the last line of a private key in text.
_KEY_BEGINS = re.compile(rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY")
_KEY_ENDS = re.compile(rb"-----END [A-Z ]{0,40}PRIVATE KEY")

#: What commands type: where a console asks for a secret, their words may be it, whether they were refused or not.
_TYPING = ("serial send", "serial run", "serial trigger add", "hid send")

HIDDEN = "***"


class _Hiding:
    """What has to be known of the entries before, to hide what they led to: who asks, who is printing a key."""

    def __init__(self, encodings: Mapping[str, str]) -> None:
        self.encodings = encodings
        self.asking: dict[str, bool] = {}
        self.in_key: dict[str, bool] = {}

    def line(self, name: str, line: Line) -> Line:
        """A console's line without its secrets."""
        self.asking[name] = bool(_ASKS.search(line.raw[-200:].decode("latin-1").rstrip("\r")))
        inside = self.in_key.get(name, False) or bool(_KEY_BEGINS.search(line.raw))
        self.in_key[name] = inside and not _KEY_ENDS.search(line.raw)
        return _of_text(line, HIDDEN.encode()) if inside else without_secrets(line, self.encodings.get(name, "utf-8"))

    def fields(self, entry: Entry, event: Event) -> dict[str, Any]:
        """An event's fields without its secrets."""
        fields: dict[str, Any] = redacted(event.fields)
        if self.asking.get(entry.interface) and "data" in fields:
            if event.kind == "tx":
                return {"data": HIDDEN, "who": fields.get("who")}  # not even how long it was
            return {**fields, "data": HIDDEN}
        if any(self.asking.values()) and not entry.interface:
            if event.kind in _TYPING:
                return {**fields, "command": f"labd {event.kind} {HIDDEN}"}
            if entry.channel == "hid" and "command" in fields:
                return {**fields, "command": HIDDEN}
        return fields


def handed_on(entries: Iterable[Entry], encodings: Mapping[str, str]) -> Iterator[Entry]:
    """The entries without the secrets that can be recognised in them. Each is made anew where it has one."""
    hiding = _Hiding(encodings)
    for entry in entries:
        item = entry.item
        if isinstance(item, Line):
            yield Entry(entry.key, entry.channel, entry.interface, hiding.line(entry.interface, item))
            continue
        fresh = Event(item.number, item.kind, item.rx, item.wall_ns, item.mono_ns, hiding.fields(entry, item))
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
    return _of_text(line, clean.encode(encoding))


def _of_text(line: Line, raw: bytes) -> Line:
    """The line with another text in its place."""
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
