"""Why an answer from a journal is empty, and what was left out of one. Words only; used by `labd.logquery` alone."""

import time

from labd.journal_scan import Hole
from labd.logquery import DEFAULT_TAIL, Query


def notes(asked: Query) -> list[str]:
    """What to tell beside an answer that is not empty."""
    facts = asked.facts
    told = []
    if asked.limited_by_default and facts.matched > DEFAULT_TAIL:
        what = f"lines with {asked.pattern_text!r}" if asked.pattern else "lines"
        told.append(f"showing {facts.shown:,} of {facts.matched:,} {what}; --tail 0 for all")
    if asked.wants_boot and facts.boot is None:
        told.append("no boot is in what is kept (no reset, no boot banner); this is what there is")
    elif facts.boot is not None:
        told.append(f"the last boot begins at #{asked.boot_seq} ({facts.boot})")
    if facts.first_seq > 1 and asked.asked_first is not None and asked.asked_first < facts.first_seq:
        told.append(_evicted(asked, asked.asked_first))
    if facts.gaps:
        where = (
            f"inside these bytes, in {facts.gaps} places" if asked.raw else f"in or before {facts.gaps} of these lines"
        )
        told.append(f"bytes are missing, or may be, {where}; --events shows where and why")
    return told + _next(asked)


def losses(asked: Query, name: str, failing: str | None) -> list[str]:
    """What is known to be missing from what was asked for, answer or not."""
    facts = asked.facts
    told = [_gone(hole) for hole in facts.holes_among(facts.start_seq, facts.stop_seq)]
    if facts.stop_seq >= facts.last_seq:
        lost = sum(seam.lost for seam in asked.reader.seams(facts.end_offset) if seam.rx == facts.end_offset)
        if lost:
            told.append(f"{lost:,} bytes that came after the last line could not be stored; --events shows why")
    if failing:
        told.append(f"bytes are missing: the journal of {name} can't be written just now ({failing})")
    return told


def _gone(hole: Hole) -> str:
    size = f"{hole.stop - hole.start:,} bytes from offset {hole.start}"
    if hole.last_seq is None:
        return f"{size} are gone from the end of the journal: its newest file was cut"
    if hole.lines:
        some = "" if hole.clean else ", and parts of the lines beside them"
        return f"lines #{hole.first_seq} to #{hole.last_seq}{some} are gone from the journal's files: {size}"
    return f"a part of line #{hole.first_seq - 1} is gone from the journal's files: {size}"


def _next(asked: Query) -> list[str]:
    """The exact cursor for who polls, where the number alone would bring the last line once more, or does not tell."""
    if asked.since is None or asked.last_seen is None or asked.wait is not None:
        return []
    seq, seen, partial = asked.last_seen
    if not partial and asked.shown_before.length(seq) is None:
        return []
    why = f"#{seq} is unfinished and comes again once it has grown" if partial else f"#{seq} is whole now"
    return [f"next: --since {seq}+{seen} ({why})"]


def why_empty(asked: Query, name: str, watch: str, live: bool) -> str:
    """One sentence: why nothing was shown, and what there is."""
    facts = asked.facts
    if not facts.captured:
        if live:
            return f"{name} is being captured and has said nothing yet"
        return (
            f"{name} said nothing while it was captured; {watch}"
            if facts.exists
            else f"no capture of {name} yet; {watch}"
        )
    if facts.cursor_beyond:
        return (
            f"#{asked.since} is beyond the last line of {name}, #{facts.last_seq}: "
            f"another interface's number, or a journal begun anew; --since {facts.first_seq - 1} for all there is"
        )
    kept = f"{name} has lines #{facts.first_seq} to #{facts.last_seq}{'*' if facts.partial else ''}"
    gone = facts.missing(facts.first_seq, facts.last_seq)
    kept += f", {gone:,} of them gone" if gone else ""
    if asked.pattern is not None and facts.start_seq <= facts.stop_seq:
        return f"none of {facts.looked:,} lines of {name} has {asked.pattern_text!r}; {kept}"
    if asked.since is not None:
        stopped = "" if live else f"; it is not being captured now: {watch}"
        return f"nothing new on {name} since #{asked.since}; the last byte came {_ago(facts.last_wall_ns)} ago{stopped}"
    if asked.asked_first is not None and asked.asked_first > facts.last_seq:
        return f"#{asked.asked_first} has not come yet; {kept}"
    if facts.stop_seq < facts.first_seq and facts.first_seq > 1:
        return f"{_evicted(asked, 1)}; {kept}"
    if facts.partial and not asked.pending:
        return f"the only line is unfinished and --no-pending leaves it out; {kept}"
    return f"no line was chosen; {kept}"


def _evicted(asked: Query, first: int) -> str:
    return (
        f"lines #{first} to #{asked.facts.first_seq - 1} are no longer kept "
        "(journal.keep_mb and journal.keep_days in the lab say how much is)"
    )


def _ago(wall_ns: int) -> str:
    seconds = max(0, time.time_ns() - wall_ns) // 1_000_000_000
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}s"
    return f"{seconds} s"
