"""Armed reactions: when a console says this, send that, at once, from inside the daemon.

Lives on the daemon's loop as a part of the bench. `grew` is called for every piece of a journal; a trigger on plain
text is looked for right there and its bytes are written in the same step. A regular expression may take its time, so
it is looked for in a thread. What is matched, and when a match is certain, is `labd.match`'s affair, echo included.

A trigger fires whoever holds the console's lease: it was armed for just that. Each firing is a `trigger` event in the
journal. One that would fire on its own text is refused, and one that fires too often is disarmed and that is said.
Triggers end with the daemon.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import trio

from labd.errors import LabdError, NotFound, Usage
from labd.journal_read import Reader
from labd.match import QUIET_MS, Matcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from labd.channels.serial import SerialChannel
    from labd.lease import Key

#: More firings than these in `LIMIT_S` seconds disarm a trigger: it answers itself, or another one.
LIMIT = 50
LIMIT_S = 10.0
#: How many triggers a daemon keeps, the spent ones included.
MOST = 200
#: What is looked at in one step, in bytes.
_STEP = 1 << 16
#: How long the rest of an answer may take that the port does not accept at once.
_SEND_S = 5.0
# The matcher's clock runs this much faster than ours, so that what it gathers for milliseconds waits a fraction of one.
_HASTE = 16.0


class Trigger:
    """One of them. `state`: armed, spent (it was to fire once), limited, failed; `why` says the last two in words."""

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
        self.echoes: list[tuple[int, bytes]] = []  # sent, and not told to the matcher yet
        self.times: list[float] = []
        self.matcher = self._matcher(start)
        self.plain = self.matcher.patterns[0].literal is not None

    def _matcher(self, start: int) -> Matcher:
        return Matcher([self.pattern], start=start, deaths=(), quiet_ms=QUIET_MS * _HASTE, **self.how)

    def again_from(self, offset: int) -> None:
        """Look for it anew from `offset` on."""
        self.matcher = self._matcher(offset)

    def row(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "id": self.id, "target": self.key[1], "interface": self.key[2], "lab": self.key[0], "pattern": self.pattern,
            "data": self.data.decode("latin-1"), "once": self.once, "state": self.state, "why": self.why,
            "fired": self.fired, "since": round(self.since, 3), "who": self.who, "last": self.last,
        }  # fmt: skip


class _Watch:
    """The armed triggers of one journal, its reader, and the task that looks where it can't be done in passing."""

    def __init__(self, directory: str) -> None:
        self.reader = Reader(directory)
        self.triggers: list[Trigger] = []
        self.busy = False
        self.poke = trio.Event()
        self.scope = trio.CancelScope()


class Triggers:
    """All triggers of the daemon. `channel_of` gives the channel of a lab's target, None when it has none now."""

    def __init__(self, nursery: trio.Nursery, channel_of: Callable[[str, str], SerialChannel | None]) -> None:
        self._nursery = nursery
        self._channel_of = channel_of
        self._all: dict[str, Trigger] = {}
        self._watches: dict[str, _Watch] = {}
        self._next = 0

    async def add(self, key: Key, directory: str, pattern: str, data: bytes, *, once: bool, who: dict[str, Any],
                  how: dict[str, Any]) -> dict[str, Any]:  # fmt: skip
        """Arm one, from the live edge on. `how` are `literal`, `ignore_case`, `encoding` of `Matcher`.

        Raises Usage for a bad pattern, or one that is in its own text though it is to fire again and again.
        """
        reader = await trio.to_thread.run_sync(Reader, directory)
        self._next += 1
        trigger = Trigger(f"t{self._next}", key, directory, pattern, data, once=once, start=reader.end_offset, who=who,
                          how=how)  # fmt: skip
        if not once:
            _not_its_own(trigger)
        self._forget_spent()
        self._all[trigger.id] = trigger
        watch = self._watches.get(directory)
        if watch is None:
            watch = self._watches[directory] = _Watch(directory)
            self._nursery.start_soon(self._run, directory, watch)
        watch.triggers.append(trigger)
        self._tell(trigger, "armed", pattern=pattern, once=once)
        self.grew(directory)
        return {**trigger.row(), "rx": reader.end_offset}

    async def remove(self, ids: list[str]) -> list[dict[str, Any]]:
        """Disarm and forget these. Raises NotFound, having removed none."""
        for number in ids:
            if number not in self._all:
                raise NotFound(f"no trigger {number!r}", near=list(self._all)[:3], hint="labd serial trigger list")
        gone = [self._all.pop(number) for number in dict.fromkeys(ids)]
        for trigger in gone:
            if trigger.state == "armed":
                self._tell(trigger, "removed")
            self._disarm(trigger, "removed")
        return [trigger.row() for trigger in gone]

    def rows(self) -> list[dict[str, Any]]:
        """All of them, oldest first. Thread-safe."""
        return [trigger.row() for trigger in list(self._all.values())]

    def sent(self, key: Key, rx: int, data: bytes) -> None:
        """`data` goes out while the stream is at `rx`: its echo fires nothing."""
        for trigger in self._all.values():
            if trigger.key == key and trigger.state == "armed":
                trigger.echoes.append((rx, data))

    def grew(self, directory: str) -> None:
        """The journal there may have grown: look at once where that is quick, else have it looked at."""
        watch = self._watches.get(directory)
        if watch is None:
            return
        if not watch.busy and all(trigger.plain for trigger in watch.triggers):
            watch.busy = True
            try:
                more = self._fire_all(watch, self._look(watch))
            finally:
                watch.busy = False
            if not more and all(trigger.matcher.deadline is None for trigger in watch.triggers):
                return
        watch.poke.set()

    # -- inside ------------------------------------------------------------------------------------------------------

    async def _run(self, directory: str, watch: _Watch) -> None:
        """Look when poked, and when a matcher wants to be asked again; ends with the last trigger."""
        with watch.scope:
            while watch.triggers:
                with trio.move_on_after(self._nap(watch)):
                    await watch.poke.wait()
                watch.poke = trio.Event()
                watch.busy = True
                try:
                    plain = all(trigger.plain for trigger in watch.triggers)
                    found = self._look(watch) if plain else await trio.to_thread.run_sync(self._look, watch)
                    if self._fire_all(watch, found):
                        watch.poke.set()
                finally:
                    watch.busy = False
        if self._watches.get(directory) is watch:
            del self._watches[directory]

    def _nap(self, watch: _Watch) -> float:
        due = [t.matcher.deadline for t in watch.triggers if t.state == "armed" and t.matcher.deadline is not None]
        return max(0.0, min(due) / _HASTE - time.monotonic()) if due else float("inf")

    def _look(self, watch: _Watch) -> tuple[list[tuple[Trigger, Any]], bool]:
        """(what matched, whether there is more to look at). In the loop or in a thread; sends nothing."""
        found = []
        more = False
        watch.reader.refresh()
        for trigger in list(watch.triggers):
            try:
                result, rest = _feed(trigger, watch.reader)
            except (LabdError, OSError) as error:
                found.append((trigger, error))
                continue
            more = more or rest
            if result is not None:
                found.append((trigger, result))
        return found, more

    def _fire_all(self, watch: _Watch, looked: tuple[list[tuple[Trigger, Any]], bool]) -> bool:
        found, more = looked
        for trigger, result in found:
            if trigger.state != "armed":
                continue
            if isinstance(result, Exception):
                trigger.why = str(result)
                self._tell(trigger, "failed", why=trigger.why)
                self._disarm(trigger, "failed")
            else:
                self._fire(trigger, result, watch)
                more = True  # behind the match there may be another one
        return more

    def _fire(self, trigger: Trigger, result: Any, watch: _Watch) -> None:
        lab, target, interface = trigger.key
        channel = self._channel_of(lab, target)
        who = {"face": "trigger", "id": trigger.id, "user": trigger.who.get("user")}
        self.sent(trigger.key, result.stop, trigger.data)
        count = channel.send_now(interface, trigger.data, who=who) if channel is not None else 0
        at = time.monotonic_ns()
        if count < len(trigger.data):
            self._nursery.start_soon(self._send_rest, trigger, trigger.data[count:], who)
        record = watch.reader.record_at(result.stop - 1)
        ms = round((at - record.mono_ns) / 1e6, 3) if record is not None and record.mono_ns else None
        trigger.fired += 1
        trigger.last = {"text": result.text, "start": result.start, "stop": result.stop, "ms": ms, "at": time.time()}
        self._tell(trigger, "fired", text=result.text, start=result.start, stop=result.stop, ms=ms,
                   data=trigger.data.decode("latin-1"), accepted=count)  # fmt: skip
        if trigger.once:
            self._disarm(trigger, "spent")
            return
        now = time.monotonic()
        trigger.times = [then for then in trigger.times if now - then < LIMIT_S] + [now]
        if len(trigger.times) >= LIMIT:
            trigger.why = f"it fired {LIMIT} times within {now - trigger.times[0]:.1f} s, so it was disarmed"
            self._tell(trigger, "limited", why=trigger.why)
            self._disarm(trigger, "limited")
        else:
            trigger.again_from(result.stop)

    async def _send_rest(self, trigger: Trigger, rest: bytes, who: dict[str, Any]) -> None:
        """What the port did not take at once, in turn behind whoever was sending."""
        channel = self._channel_of(trigger.key[0], trigger.key[1])
        try:
            if channel is None:
                raise LabdError("it is not being captured")
            await channel.send(trigger.key[2], rest, who=who, timeout_s=_SEND_S)
        except LabdError as error:
            trigger.why = f"its answer did not go out: {error.message}"
            self._tell(trigger, "failed", why=trigger.why)

    def _disarm(self, trigger: Trigger, state: str) -> None:
        trigger.state = state
        watch = self._watches.get(trigger.directory)
        if watch is not None and trigger in watch.triggers:
            watch.triggers.remove(trigger)
            if not watch.triggers:
                del self._watches[trigger.directory]
                watch.scope.cancel()

    def _forget_spent(self) -> None:
        over = len(self._all) + 1 - MOST
        for trigger in [t for t in self._all.values() if t.state != "armed"][: max(0, over)]:
            del self._all[trigger.id]
        if len(self._all) >= MOST:
            raise Usage(f"there are {MOST} armed triggers already", hint="labd serial trigger rm --all")

    def _tell(self, trigger: Trigger, what: str, **fields: Any) -> None:
        channel = self._channel_of(trigger.key[0], trigger.key[1])
        if channel is not None:
            channel.tell("trigger", only=trigger.key[2], id=trigger.id, what=what, **fields, who=trigger.who)


def _feed(trigger: Trigger, reader: Reader) -> tuple[Any, bool]:
    """Give a trigger's matcher what has come; (its result if there is one, whether more is there)."""
    matcher = trigger.matcher
    echoes, trigger.echoes = trigger.echoes, []
    for rx, data in echoes:
        matcher.sent(max(rx, matcher.start), data)
    stop = matcher.end + _STEP
    result = None
    if reader.end_offset > matcher.end:
        for offset, data in reader.chunks(matcher.end, stop):
            result = matcher.feed(offset, data, time.monotonic() * _HASTE)
            if result is not None:
                return result, False
    if matcher.deadline is not None:
        result = matcher.poll(time.monotonic() * _HASTE)
    return result, reader.end_offset > stop


def _not_its_own(trigger: Trigger) -> None:
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
