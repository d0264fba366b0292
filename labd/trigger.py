"""One trigger: its pattern, its bytes, how far it has looked, and how it is told, kept and taken up again.

Sends nothing and decides nothing: `labd.triggers` has them all. `feed` may run in a thread, one at a time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from labd.errors import Usage
from labd.expect import sent_at
from labd.match import QUIET_MS, Matcher, Result
from labd.match_echo import REACH

if TYPE_CHECKING:
    from labd.journal_read import Reader
    from labd.lease import Key

#: What is looked at in one step, in bytes.
STEP = 1 << 16
# The matcher's clock runs this much faster than ours, so that what it gathers for milliseconds waits a fraction of one.
_HASTE = 16.0
_ECHOES = 256
_KEPT = ("id", "directory", "pattern", "once", "who", "how", "since", "state", "why", "fired", "last")


class Trigger:
    """See the module. `state`: armed, spent (it was to fire once), limited, failed, ended; `why` says so in words.

    `late_until` is the offset before which bytes came while nobody looked. Of what an `--always` one finds there only
    the newest fires (`pending`): the others were answers to nobody any more, and are counted in `passed`.
    """

    def __init__(self, number: str, key: Key, directory: str, pattern: str, data: bytes, *, once: bool, start: int,
                 who: dict[str, Any], how: dict[str, Any]) -> None:  # fmt: skip
        self.id = number
        self.key = key
        self.directory = directory
        self.pattern = pattern
        self.data = data
        self.once = once
        self.who = who
        self.how = how
        self.since = time.time()
        self.state = "armed"
        self.why = ""
        self.fired = 0
        self.last: dict[str, Any] | None = None
        self.times: list[float] = []
        self.late_until = 0
        self.pending: Result | None = None
        self.passed = 0
        self.noted = start
        self.unsure = False
        """An earlier daemon ended just as it fired: nobody knows whether its bytes went out."""
        self._echoes: list[tuple[int, bytes]] = []  # sent, and not told to the matcher yet
        self._told: list[tuple[int, bytes]] = []
        self.matcher = self._matcher(start)
        self.plain = self.matcher.patterns[0].literal is not None

    def does(self, key: Key, pattern: str, data: bytes, once: bool, how: dict[str, Any]) -> bool:
        """Whether it is armed, and is to do just this."""
        mine = (self.key, self.pattern, self.data, self.once, self.how)
        return self.state == "armed" and mine == (key, pattern, data, once, how)

    def again_from(self, offset: int) -> None:
        """Look for it anew from `offset` on."""
        self.matcher = self._matcher(offset)

    def sent(self, rx: int, data: bytes) -> None:
        """`data` goes out while the stream is at `rx`: its echo is no match."""
        self._echoes.append((rx, data))

    def deadline(self) -> float | None:
        """When, by the monotonic clock, to look again though nothing came; None for never."""
        due = self.matcher.deadline
        return None if due is None else due / _HASTE

    def feed(self, reader: Reader) -> tuple[Result | None, bool]:
        """Look at what has come: (what matched for certain, whether more is there to look at)."""
        matcher = self.matcher
        echoes, self._echoes = self._echoes, []
        for rx, data in echoes:
            matcher.sent(max(rx, matcher.start), data)
        self._told = (self._told + echoes)[-_ECHOES:] if echoes else self._told
        stop = matcher.end + STEP
        result = None
        if reader.end_offset > matcher.end:
            for offset, data in reader.chunks(matcher.end, stop):
                result = matcher.feed(offset, data, time.monotonic() * _HASTE)
                if result is not None:
                    return self._late(result)
        if matcher.deadline is not None:
            result = matcher.poll(time.monotonic() * _HASTE)
        more = reader.end_offset > stop
        if result is not None:
            return self._late(result)
        if self.pending is not None and matcher.end >= self.late_until and matcher.deadline is None:
            result, self.pending = self.pending, None
        return result, more

    def is_late(self, result: Result) -> bool:
        """Whether it came while nobody looked."""
        return result.stop is not None and result.stop <= self.late_until

    def row(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "id": self.id, "target": self.key[1], "interface": self.key[2], "lab": self.key[0], "pattern": self.pattern,
            "data": self.data.decode("latin-1"), "once": self.once, "state": self.state, "why": self.why,
            "fired": self.fired, "since": round(self.since, 3), "who": self.who, "last": self.last,
        }  # fmt: skip

    def kept(self) -> dict[str, Any]:
        """Plain data that `taken_up` makes it from."""
        found = self.pending.start if self.pending is not None else None
        offset = self.matcher.resume if found is None else found
        return {"key": self.key, "data": self.data.decode("latin-1"), "offset": offset, "unsure": self.unsure,
                **{name: getattr(self, name) for name in _KEPT}}  # fmt: skip

    def _late(self, result: Result) -> tuple[Result | None, bool]:
        """A match; one that came while nobody looked waits for those behind it, unless it is to fire once."""
        if self.once or not self.is_late(result):
            return result, True
        if self.pending is not None:
            self.passed += 1
        self.pending = result
        self.again_from(self.matcher.end if result.stop is None else result.stop)
        return None, True

    def _matcher(self, start: int) -> Matcher:
        echoes = [(rx, data) for rx, data in self._told if rx >= start]
        return Matcher([self.pattern], start=start, deaths=(), quiet_ms=QUIET_MS * _HASTE, echo_of=echoes, **self.how)


def taken_up(row: dict[str, Any], reader: Reader) -> Trigger:
    """The trigger that an earlier daemon kept as `row`, which goes on where that one stopped looking.

    What was sent meanwhile is learned from the journal. Raises KeyError, TypeError or ValueError for what is none.
    """
    lab, target, interface = row["key"]
    trigger = Trigger(row["id"], (lab, target, interface), row["directory"], row["pattern"],
                      row["data"].encode("latin-1"), once=bool(row["once"]), start=int(row["offset"]), who=row["who"],
                      how=row["how"])  # fmt: skip
    for name in ("since", "state", "why", "fired", "last"):
        setattr(trigger, name, row[name])
    unsure = set(row["marks"][-1:])
    if trigger.state != "armed" and not unsure:
        return trigger
    start = trigger.matcher.start
    first = max(reader.first_offset, start - REACH)
    for event in reader.events(first) if reader.exists else ():
        if event.kind == "trigger" and event.fields.get("id") == trigger.id:
            unsure.discard(event.fields.get("stop"))
        elif event.kind == "tx":
            data = str(event.fields.get("data", "")).encode("latin-1", "replace")
            rx = sent_at(event)
            (trigger.sent if rx >= start else trigger.matcher.sent)(rx, data)
    for offset, data in reader.chunks(first, start):
        trigger.matcher.prime(offset, data)
    trigger.unsure = bool(unsure) or bool(row["unsure"])
    return trigger


def check_not_its_own(trigger: Trigger) -> None:
    """Raise Usage if the trigger's pattern is in the text that it sends."""
    text = trigger.data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    for shown in (text, text.rstrip("\n")):
        found = trigger.matcher.patterns[0].find(shown)
        if found is not None:
            raise Usage(
                f"the pattern {trigger.pattern!r} is in the text that it sends ({shown.strip()!r}): when that is "
                "echoed it would fire on itself",
                hint="--once, or a pattern that the text does not have",
            )
