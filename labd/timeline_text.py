"""Entries of a timeline as a person reads them, and as plain data. Pure functions."""

from __future__ import annotations

from labd.journal_read import Event, Line
from labd.logtext import as_data, as_text, event_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.timeline import Entry

#: Columns of the channel's name.
LABEL = 8

_DIM, _OFF = "\x1b[2m", "\x1b[0m"


def label(entry: Entry) -> str:
    """What stands in front of it: the console's name, or the channel's."""
    return entry.interface or entry.channel


def text_of(entry: Entry, encoding: str = "utf-8", *, color: bool = False) -> str:
    """One line, without a newline (several where a gap is in a console's line): time, channel, what happened."""
    name = label(entry)
    whole = as_text(_plainer(entry), color=color, encoding=encoding)
    return "\n".join(_labelled(line, name, color) for line in whole.split("\n"))


def data_of(entry: Entry, encoding: str = "utf-8") -> dict[str, Any]:
    """The same for --json: `channel`, `interface` of a console, `mono_ns`, and what `serial log --json` gives."""
    own = as_data(entry.item, encoding=encoding)
    if isinstance(entry.item, Event) and not entry.interface:
        own.pop("rx", None)
    head: dict[str, Any] = {"channel": entry.channel}
    if entry.interface:
        head["interface"] = entry.interface
    return {"ts_ms": own.pop("ts_ms"), **head, **own, "mono_ns": entry.item.mono_ns}


def _labelled(line: str, name: str, color: bool) -> str:
    """`name` behind the time of a line; a gap's line has none."""
    when, bracket, rest = line.partition("] ")
    if not bracket or line.startswith("---"):
        return line
    if color:
        when, bracket, rest = line.partition(f"]{_OFF} ")
    return f"{when}{bracket}{name:<{LABEL}} {rest}"


def _plainer(entry: Entry) -> Line | Event:
    """The item without what only programs want."""
    item = entry.item
    if isinstance(item, Line) or entry.interface:
        return item
    fields = {name: value for name, value in item.fields.items() if value not in (None, "", [], {})}
    return Event(item.number, item.kind, item.rx, item.wall_ns, item.mono_ns, fields)


def summary(entry: Entry, encoding: str = "utf-8") -> str:
    """What happened, alone: a marker's label."""
    if isinstance(entry.item, Line):
        return as_text(entry.item, encoding=encoding)
    return f"{label(entry)}: {event_text(_event(entry))}"


def _event(entry: Entry) -> Event:
    found = _plainer(entry)
    assert isinstance(found, Event)
    return found
