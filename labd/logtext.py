"""Lines and events of a journal as a person reads them, and as plain data for --json. Pure functions. Light.

A line: `[2026-11-29T10:15:00.123Z] #1840 text`, with `*` behind the number while the line is unfinished. Its time is
that of its first byte, in UTC. An event has no number: `[2026-11-29T10:15:00.123Z] -- tx "boot\\r"`.

Where a line was interrupted, what stands before and behind the gap is shown in two lines of the same number, each with
its own time, and between them, without time and number, `--- gap 1.2 s: unplugged ---`. A gap whose place is not known
better stands behind the last line that it can be in.
"""

import time

from labd.journal_read import Event, Line
from labd.view import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from labd.journal_seams import Seam

_DIM, _CYAN, _YELLOW, _OFF = "\x1b[2m", "\x1b[36m", "\x1b[33m", "\x1b[0m"
_second: tuple[int, str] = (-1, "")


def stamp(wall_ns: int) -> str:
    """A time as RFC 3339 in UTC with milliseconds: `2026-11-29T10:15:00.123Z`."""
    global _second
    second = wall_ns // 1_000_000_000
    known, text = _second
    if known != second:
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _second = (second, text)
    return f"{text}.{wall_ns // 1_000_000 % 1000:03d}Z"


def line_text(line: Line, encoding: str = "utf-8") -> str:
    """The line's text for people. Of a line that was cut it is what stands behind its last carriage return, which is
    all that a terminal would show; where that was cut, too, it says so."""
    skipped, behind = line.skipped, line.length - line.skipped - len(line.raw)
    if skipped <= 0 and behind <= 0:
        return plain(line.raw, encoding, partial=line.partial)
    raw = line.raw.rstrip(b"\r")
    newest = raw.rfind(b"\r") + 1
    text = plain(raw[newest:] if newest else _whole_characters(raw), encoding, partial=line.partial or behind > 0)
    if newest and behind <= 0:
        return text
    if behind > 0:
        return f"[{skipped} bytes…] {text} […{behind} bytes; --raw has all {line.length}]"
    return f"[the end of {line.length} bytes; --raw has all] {text}"


def _whole_characters(raw: bytes) -> bytes:
    """Without the rest of a UTF-8 character that was cut."""
    at = 0
    while at < min(3, len(raw)) and raw[at] & 0xC0 == 0x80:
        at += 1
    return raw[at:]


def as_text(item: "Line | Event", *, color: bool = False, encoding: str = "utf-8") -> str:
    """One line of the answer, without a newline; several where there is a gap in it."""
    if isinstance(item, Line) and item.gap:
        return "\n".join(_with_gaps(item, color, encoding))
    return _one_line(item, color, encoding)


def _one_line(item: "Line | Event", color: bool, encoding: str) -> str:
    when = f"[{stamp(item.wall_ns)}]"
    if isinstance(item, Event):
        said = event_text(item)
        return f"{_DIM}{when}{_OFF} {_YELLOW}-- {said}{_OFF}" if color else f"{when} -- {said}"
    number = f"#{item.seq}*" if item.partial else f"#{item.seq}"
    text = line_text(item, encoding)
    if color:
        when, number = f"{_DIM}{when}{_OFF}", f"{_CYAN}{number}{_OFF}"
    return f"{when} {number} {text}" if text else f"{when} {number}"


def _with_gaps(line: Line, color: bool, encoding: str) -> "Iterator[str]":
    """The pieces of a line and the gaps between them. One that no event tells of may be before the line."""

    def gap(said: str) -> str:
        return f"{_YELLOW}--- {said} ---{_OFF}" if color else f"--- {said} ---"

    if not line.seams:
        yield gap("gap: bytes are missing here, or in the next line")
    begin, wall_ns = line.offset, line.wall_ns
    for seam in line.seams:
        if seam.placed:
            piece = _piece(line, begin, seam.rx, wall_ns)
            yield _one_line(piece, color, encoding)
            yield gap(gap_text(seam))
            begin, wall_ns = seam.rx, seam.wall_ns or line.wall_ns
    yield _one_line(_piece(line, begin, line.offset + line.length, wall_ns), color, encoding)
    for seam in line.seams:
        if not seam.placed and line.offset < seam.rx <= line.end:
            yield gap(gap_text(seam))


def _piece(line: Line, begin: int, end: int, wall_ns: int) -> Line:
    """What stands in a line between two offsets, as a line of the same number."""
    known = line.offset + line.skipped
    raw = line.raw[max(0, begin - known) : max(0, end - known)]
    partial = line.partial and end == line.offset + line.length
    piece = Line(line.seq, begin, raw, end - begin, wall_ns, line.mono_ns, partial, False)
    piece.skipped = max(0, min(known, end) - begin)
    return piece


def gap_text(seam: "Seam") -> str:
    """How long an interruption was and what caused it: `gap 1.2 s: unplugged`, as far as its event tells."""
    import json

    try:
        fields = json.loads(seam.raw)
    except ValueError:
        return "gap"
    if fields["kind"] == "reopened":
        ms, cause = fields.get("gap_ms"), str(fields.get("cause") or "the port went down")
        return f"gap {_duration(ms)}: {plain(cause.encode())}" if ms is not None else f"gap: {plain(cause.encode())}"
    if fields["kind"] == "open":
        return "gap: it was not captured in between"
    lost = fields.get("count") or fields.get("lost")
    where = "in these lines" if not seam.placed else "here"
    if fields["kind"] == "repaired":
        return f"gap: {lost} bytes lost {where}, in a crash or a power cut"
    why = fields.get("cause") or (f"overrun in the {fields['where']}" if fields.get("where") else "overrun")
    return f"gap: {lost} bytes lost {where}: {plain(str(why).encode())}"


def _duration(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s" if ms < 120_000 else f"{ms / 60_000:.0f} min"


def as_data(item: "Line | Event", *, encoding: str = "utf-8") -> "dict[str, Any]":
    """The same for --json. A line: seq, ts_ms, text, partial (and `length` if it was cut, `gap` if bytes are missing).

    An event: event (its kind), ts_ms, rx (the offset of the next received byte then), and its own fields.
    """
    if isinstance(item, Event):
        return {"event": item.kind, "ts_ms": item.wall_ns // 1_000_000, "rx": item.rx, **item.fields}
    data: dict[str, Any] = {
        "seq": item.seq,
        "ts_ms": item.wall_ns // 1_000_000,
        "text": line_text(item, encoding),
        "partial": item.partial,
    }
    if item.length > len(item.raw):
        data["length"] = item.length
    if item.gap:
        data["gap"] = True
    return data


def event_text(event: Event) -> str:
    """What happened, in one line."""
    fields = dict(event.fields)
    if event.kind == "tx":
        data = str(fields.pop("data", ""))
        said = f"tx {quoted(data)}"
        accepted = fields.pop("accepted", len(data))
        if accepted != len(data):
            said += f" ({accepted} of {len(data)} bytes accepted)"
    elif event.kind == "overrun" and "count" in fields:
        said = f"overrun: {fields.pop('count')} bytes lost at offset {fields.pop('offset', event.rx)}"
        said += f" ({fields.pop('cause', 'unknown cause')})"
        fields.pop("since_ns", None)
        fields.pop("until_ns", None)
    else:
        said = event.kind
    rest = " ".join(f"{name}={_value(value)}" for name, value in fields.items() if value is not None)
    return f"{said} {rest}" if rest else said


def quoted(data: str) -> str:
    """Bytes given as latin-1 text, in double quotes, every control and non-ASCII byte escaped."""
    named = {"\r": "\\r", "\n": "\\n", "\t": "\\t", "\x1b": "\\e", '"': '\\"', "\\": "\\\\"}
    shown = [named.get(c) or (c if " " <= c <= "~" else f"\\x{ord(c):02x}") for c in data]
    return '"' + "".join(shown) + '"'


def _value(value: object) -> str:
    """A field's value: bare if it is one plain word, else in quotes; a mapping or a list by its parts."""
    if isinstance(value, dict):
        return ",".join(f"{name}:{_value(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ",".join(_value(part) for part in value)
    text = str(value)
    plain_word = text.isprintable() and text and not any(c in " \"'," for c in text)
    return text if plain_word else '"' + plain(text.encode("utf-8", "backslashreplace")).replace('"', '\\"') + '"'
