"""Why an answer from a journal is empty, and what was left out of one. Words only; used by `labd.logquery` alone."""

import time

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
        told.append(f"bytes are missing in or before {facts.gaps} of these lines; --events shows where and why")
    return told


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
    if asked.pattern is not None and facts.start_seq <= facts.stop_seq:
        count = facts.stop_seq - facts.start_seq + 1
        return f"none of {count:,} lines of {name} has {asked.pattern_text!r}; {kept}"
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
