"""A console's part of a timeline as a terminal recording that players replay: asciicast version 2.

Format: https://docs.asciinema.org/manual/asciicast/v2/ (a header line, then `[seconds, "o" or "i" or "m", text]`).
A line is one event at the time of its first byte; what was sent is "i", what happened on other channels a marker "m".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from labd.journal_read import Line
from labd.timeline import Entry
from labd.timeline_text import summary
from labd.view import decode

#: The terminal's size in a recording; consoles don't say theirs.
COLUMNS, ROWS = 120, 40


def as_cast(entries: Iterable[Entry], encodings: Mapping[str, str], *, title: str) -> Iterator[bytes]:
    """The recording, line by line; times are seconds from the first entry on, and never run backwards."""
    began: int | None = None
    for entry in entries:
        if began is None:
            began = entry.key
            header = {"version": 2, "width": COLUMNS, "height": ROWS, "timestamp": began // 10**9, "title": title}
            yield json.dumps(header).encode() + b"\n"
        code, text = _event(entry, encodings.get(entry.interface, "utf-8"))
        yield json.dumps([round((entry.key - began) / 1e9, 6), code, text]).encode() + b"\n"
    if began is None:
        header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": title}
        yield json.dumps(header).encode() + b"\n"


def _event(entry: Entry, encoding: str) -> tuple[str, str]:
    item = entry.item
    if isinstance(item, Line):
        text = decode(item.raw, encoding, partial=item.partial).rstrip("\r")
        return "o", text if item.partial else text + "\r\n"
    if item.kind == "tx":
        return "i", str(item.fields.get("data", ""))
    return "m", summary(entry, encoding)[:200]
