"""Everything that happened to a target, of all its channels, in one order: lines, sends, power, video, refusals.

A pure reader of journals and of the argv record; needs no daemon. Each source keeps its own order (that of cause), and
the sources are merged by the wall clock. Rendering is in `labd.timeline_text`.
"""

from __future__ import annotations

import heapq
import os
from collections import deque

from labd import logquery, paths
from labd.journal_read import Event, Line, Reader
from labd.past_calls import past_calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

#: What an entry can be of, for choosing. `tx` is what was sent to a console, `port` what happened to its port; `claim`,
#: `refusal` and `config` come from the record of commands.
CHANNELS = ("serial", "tx", "port", "power", "video", "hid", "netboot", "netif", "adb", "board",
            "claim", "refusal", "config")  # fmt: skip

#: Entries that are shown when nothing says how many.
DEFAULT_TAIL = 200

#: More entries than any history has: a larger --tail means all, too.
MOST = 1 << 31

#: No end, and no beginning.
FOREVER_NS = 1 << 62


class Entry:
    """One thing that happened. `channel` is of `CHANNELS`, `interface` the console's name or "".

    `key` is what sources are merged by: the wall clock in ns, never running backwards within a source.
    """

    __slots__ = ("channel", "interface", "item", "key")

    def __init__(self, key: int, channel: str, interface: str, item: Line | Event) -> None:
        self.key = key
        self.channel = channel
        self.interface = interface
        self.item = item


class Span:
    """From when to when (ns since 1970, both included), and at most how many of the last entries (None: all)."""

    __slots__ = ("since_ns", "tail", "until_ns")

    def __init__(self, since_ns: int = 0, until_ns: int = FOREVER_NS, tail: int | None = None) -> None:
        self.since_ns = since_ns
        self.until_ns = until_ns
        self.tail = tail


class Sources:
    """Where the history of one target is: its consoles (each with `name` and `encoding`), and the record of commands.

    `directory(name)` is the journal of an interface, `state` the state directory, `lab_path` the lab file.
    """

    def __init__(self, target: str, lab_path: str, state: str, consoles: Iterable[Mapping[str, Any]],
                 directory: Callable[[str], str], sole: bool) -> None:  # fmt: skip
        self.target = target
        self.lab_path = lab_path
        self.state = state
        self.consoles = list(consoles)
        self.directory = directory
        self.sole = sole
        """Whether it is the lab's only target: then a command that named none meant it."""


def timeline(sources: Sources, span: Span, channels: frozenset[str] = frozenset(CHANNELS)) -> Iterator[Entry]:
    """What happened within `span` on the chosen channels, oldest first."""
    streams = [
        _console(sources.directory(line["name"]), line, span)
        for line in sources.consoles
        if channels & {"serial", "tx", "port"}
    ]
    if channels - {"serial", "tx", "port", "claim", "refusal", "config"}:
        streams.append(_bench(sources.directory(paths.BENCH_JOURNAL), span))
    if channels & {"claim", "refusal", "config"}:
        streams.append(_commands(sources, span))
    merged: Iterator[Entry] = heapq.merge(*(_within(stream, span) for stream in streams), key=lambda e: e.key)
    chosen = (entry for entry in merged if entry.channel in channels)
    return iter(deque(chosen, min(span.tail, MOST))) if span.tail else chosen


def moment_of_line(directory: str, seq: int) -> int | None:
    """When the first byte of a line came (ns since 1970); None if it is not in the journal."""
    line = next(Reader(directory).lines(seq, seq), None)
    return None if line is None else line.wall_ns


def first_line_at(reader: Reader, wall_ns: int) -> int:
    """The number of the first line that began at or after a time; one beyond the last if there is none."""
    low, high = reader.first_seq, reader.last_seq + 1
    while low < high:
        middle = (low + high) // 2
        record = reader.record_at(reader.locate(middle)[1])
        if record is not None and record.wall_ns < wall_ns:
            low = middle + 1
        else:
            high = middle
    return low


# -- sources ---------------------------------------------------------------------------------------------------------


def _within(stream: Iterator[Entry], span: Span) -> Iterator[Entry]:
    """The entries of one source in the span; ends with the first one behind it. Makes the keys run forward."""
    newest = 0
    for entry in stream:
        newest = entry.key = max(newest, entry.key)
        if entry.key > span.until_ns:
            return
        if entry.key >= span.since_ns:
            yield entry


def _console(directory: str, line: Mapping[str, Any], span: Span) -> Iterator[Entry]:
    """The lines of a console, and what was sent to it and happened to its port."""
    reader = Reader(directory)
    chosen: dict[str, Any] = {"tail": 0}
    if span.since_ns and reader.captured:
        # One line earlier: what was sent while that line was the last one is told behind it.
        chosen = {"frm": max(reader.first_seq, first_line_at(reader, span.since_ns) - 1)}
    elif span.tail:
        chosen = {"tail": span.tail}
    for item in logquery.query(directory, events=True, encoding=line["encoding"], **chosen):
        if isinstance(item, Line):
            yield Entry(item.wall_ns, "serial", line["name"], item)
        elif isinstance(item, Event):
            yield Entry(item.wall_ns, "tx" if item.kind == "tx" else "port", line["name"], item)


def _bench(directory: str, span: Span) -> Iterator[Entry]:
    """What was done and seen on the channels other than serial."""
    reader = Reader(directory)
    after = max(0, reader.event_count - span.tail) if span.tail and not span.since_ns else 0
    for event in reader.events(after=after):
        channel = str(event.fields.pop("channel", "board"))
        yield Entry(event.wall_ns, channel, "", event)


def _commands(sources: Sources, span: Span) -> Iterator[Entry]:
    """Claims, refusals and changes of the lab, from the record of commands."""
    path = os.path.join(sources.state, "argv.jsonl")
    for channel, event in past_calls(path, sources.lab_path, sources.target, sources.sole):
        if event.wall_ns >= span.since_ns:
            yield Entry(event.wall_ns, channel, "", event)
