"""Armed reactions: when a console says this, send that, at once, from inside the daemon.

Lives on the daemon's loop as a part of the bench. `grew` is called for every piece of a journal; a trigger on plain
text is looked for right there and its bytes are written in the same step. A regular expression may take its time, so
it is looked for in a thread. What is matched, and when a match is certain, is `labd.match`'s affair, echo included.

A trigger fires whoever holds the console's lease: it was armed for just that. Each firing is a `trigger` event in the
journal. One that would fire on its own text is refused, and one that fires too often is disarmed and that is said.

Triggers outlive the daemon (`labd.trigger_store`): the next one recalls them before it takes up the ports, and arms
each again when its port is open, from where the last look ended. What fires then says how late it is, and nothing
fires twice. They end with the capture of their console, and with the daemon when it is told to stop.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import trio

from labd.errors import LabdError, NotFound, Usage
from labd.journal_read import Reader
from labd.trigger import Trigger, check_not_its_own, taken_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from labd.channels.serial import SerialChannel
    from labd.lease import Key
    from labd.trigger_store import TriggerStore

#: More firings than these in `LIMIT_S` seconds disarm a trigger: it answers itself, or another one.
LIMIT = 50
LIMIT_S = 10.0
#: How many triggers a daemon keeps, the spent ones included.
MOST = 200
#: How long the rest of an answer may take that the port does not accept at once.
_SEND_S = 5.0
#: Bytes looked at in vain until it is noted how far that went: so many may be looked at again after a crash.
_NOTE_BYTES = 1 << 20


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

    def __init__(
        self, nursery: trio.Nursery, channel_of: Callable[[str, str], SerialChannel | None], store: TriggerStore
    ) -> None:
        self._nursery = nursery
        self._channel_of = channel_of
        self._store = store
        self._all: dict[str, Trigger] = {}
        self._watches: dict[str, _Watch] = {}
        self._waiting: dict[str, list[Trigger]] = {}  # of an earlier daemon, until their port is open
        self._last = 0

    async def add(self, key: Key, directory: str, pattern: str, data: bytes, *, once: bool, who: dict[str, Any],
                  how: dict[str, Any]) -> dict[str, Any]:  # fmt: skip
        """Arm one, from the live edge on. `how` are `literal`, `ignore_case`, `encoding` of `Matcher`.

        One that is armed just so already stays as it is, and is the answer (`already`): a second would send everything
        twice. `kept` says whether it would outlive this daemon. Raises Usage for a bad pattern, or one that is
        in its own text though it is to fire again and again.
        """
        reader = await trio.to_thread.run_sync(Reader, directory)
        same = next((t for t in self._all.values() if t.does(key, pattern, data, once, how)), None)
        if same is not None:
            return {**same.row(), "rx": reader.end_offset, "kept": self._store.kept, "already": True}
        self._last += 1
        trigger = Trigger(f"t{self._last}", key, directory, pattern, data, once=once, start=reader.end_offset, who=who,
                          how=how)  # fmt: skip
        if not once:
            check_not_its_own(trigger)
        self._forget_spent()
        self._all[trigger.id] = trigger
        self._watch_for(trigger)
        self._keep()
        self._tell(trigger, "armed", pattern=pattern, once=once)
        self.grew(directory)
        return {**trigger.row(), "rx": reader.end_offset, "kept": self._store.kept, "already": False}

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
        self._keep()
        return [trigger.row() for trigger in gone]

    def end(self, why: str, lab: str | None = None, target: str | None = None, interface: str | None = None) -> None:
        """Disarm those on these consoles (None: whichever), for good and with an event: nobody listens any more."""
        ours = [t for t in self._all.values() if _on(t.key, (lab, target, interface)) and t.state == "armed"]
        for trigger in ours:
            trigger.why = why
            self._tell(trigger, "ended", why=why)
            self._disarm(trigger, "ended")
        if ours:
            self._keep()

    # -- over the end of a daemon --------------------------------------------------------------------------------------

    async def recall(self) -> None:
        """Know again what an earlier daemon had. Before the ports are taken up; then `recalled`."""
        self._last, rows = self._store.load()
        for row in rows:
            try:
                trigger = await trio.to_thread.run_sync(_taken_up, row)
            except (LabdError, OSError, KeyError, TypeError, ValueError) as error:
                self._store.log(f"trigger {row.get('id')}: can't be armed again ({error!r})")
                continue
            self._all[trigger.id] = trigger
            if trigger.state == "armed" or trigger.unsure:
                self._waiting.setdefault(trigger.directory, []).append(trigger)
        self._keep()

    def recalled(self) -> None:
        """The ports are taken up. A trigger whose console is not captured any more begins with what comes next."""
        for directory, triggers in list(self._waiting.items()):
            if self._channel_of(*triggers[0].key[:2]) is None:
                end = Reader(directory).end_offset
                for trigger in triggers:
                    trigger.again_from(max(end, trigger.matcher.start))
                self._arm_again(directory)
            else:
                self.grew(directory)

    def leave(self) -> None:
        """This daemon ends, and another one follows: keep how far each has looked."""
        self._keep()

    def stop(self) -> None:
        """This daemon ends for good, and they with it."""
        self.end("the daemon was stopped")
        self._store.forget()

    def _arm_again(self, directory: str) -> None:
        end = Reader(directory).end_offset
        for trigger in self._waiting.pop(directory, ()):
            if trigger.unsure:
                trigger.unsure = False
                trigger.why = "the daemon ended as it fired: whether its answer went out is not known"
                self._tell(trigger, "failed", why=trigger.why)
            if trigger.state == "armed":
                trigger.late_until = end
                self._tell(trigger, "armed again", why="a new daemon", start=trigger.matcher.start)
                self._watch_for(trigger)
        self._keep()

    def _is_open(self, key: Key) -> bool:
        channel = self._channel_of(key[0], key[1])
        return channel is not None and any(r["name"] == key[2] and r["state"] == "open" for r in channel.status())

    def _watch_for(self, trigger: Trigger) -> None:
        watch = self._watches.get(trigger.directory)
        if watch is None:
            watch = self._watches[trigger.directory] = _Watch(trigger.directory)
            self._nursery.start_soon(self._run, trigger.directory, watch)
        watch.triggers.append(trigger)

    def _keep(self) -> None:
        """Have all of them in the store, as they are now. Never between a match and its answer."""
        for trigger in self._all.values():
            trigger.noted = trigger.matcher.resume
        self._store.write(self._last, [trigger.kept() for trigger in self._all.values()])

    def _note_progress(self, watch: _Watch) -> None:
        for trigger in watch.triggers:
            resume = trigger.matcher.resume
            if resume - trigger.noted > _NOTE_BYTES and trigger.pending is None:
                trigger.noted = resume
                self._store.note("at", trigger.id, resume)
        if self._store.long:
            self._keep()

    # -- looking -------------------------------------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """All of them, oldest first. Thread-safe."""
        return [trigger.row() for trigger in list(self._all.values())]

    def sent(self, key: Key, rx: int, data: bytes) -> None:
        """`data` goes out while the stream is at `rx`: its echo fires nothing."""
        for trigger in self._all.values():
            if trigger.key == key and trigger.state == "armed":
                trigger.sent(rx, data)

    def grew(self, directory: str) -> None:
        """The journal there may have grown: look at once where that is quick, else have it looked at."""
        if directory in self._waiting and self._is_open(self._waiting[directory][0].key):
            self._arm_again(directory)
        watch = self._watches.get(directory)
        if watch is None:
            return
        if not watch.busy and all(trigger.plain for trigger in watch.triggers):
            watch.busy = True
            try:
                more = self._fire_all(watch, self._look(watch))
            finally:
                watch.busy = False
            self._note_progress(watch)
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
                    self._note_progress(watch)
                finally:
                    watch.busy = False
        if self._watches.get(directory) is watch:
            del self._watches[directory]

    def _nap(self, watch: _Watch) -> float:
        due = [at for t in watch.triggers if t.state == "armed" and (at := t.deadline()) is not None]
        return max(0.0, min(due) - time.monotonic()) if due else float("inf")

    def _look(self, watch: _Watch) -> tuple[list[tuple[Trigger, Any]], bool]:
        """(what matched, whether there is more to look at). In the loop or in a thread; sends nothing."""
        found: list[tuple[Trigger, Any]] = []
        more = False
        watch.reader.refresh()
        for trigger in list(watch.triggers):
            try:
                result, rest = trigger.feed(watch.reader)
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
                self._keep()
            else:
                self._fire(trigger, result, watch)
                more = True  # behind the match there may be another one
        return more

    def _fire(self, trigger: Trigger, result: Any, watch: _Watch) -> None:
        lab, target, interface = trigger.key
        channel = self._channel_of(lab, target)
        who = {"face": "trigger", "id": trigger.id, "user": trigger.who.get("user")}
        self._store.note("fired", trigger.id, result.stop)
        is_late = trigger.is_late(result)
        self.sent(trigger.key, watch.reader.end_offset if is_late else result.stop, trigger.data)
        count = channel.send_now(interface, trigger.data, who=who) if channel is not None else 0
        at = time.monotonic_ns()
        if count < len(trigger.data):
            self._nursery.start_soon(self._send_rest, trigger, trigger.data[count:], who)
        record = watch.reader.record_at(result.stop - 1)
        ms = round((at - record.mono_ns) / 1e6, 3) if record is not None and record.mono_ns else None
        late: dict[str, Any] = {"late": "it came while no daemon was there"} if is_late else {}
        late |= {"passed": trigger.passed} if trigger.passed else {}
        trigger.fired += 1
        trigger.passed = 0
        trigger.last = {"text": result.text, "start": result.start, "stop": result.stop, "ms": ms, "at": time.time(),
                        **late}  # fmt: skip
        self._tell(trigger, "fired", text=result.text, start=result.start, stop=result.stop, ms=ms,
                   data=trigger.data.decode("latin-1"), accepted=count, **late)  # fmt: skip
        if trigger.once:
            self._disarm(trigger, "spent")
            return
        now = time.monotonic()
        trigger.times = [then for then in trigger.times if now - then < LIMIT_S] + [now]
        if len(trigger.times) >= LIMIT:
            trigger.why = f"it fired {LIMIT} times within {now - trigger.times[0]:.1f} s, so it was disarmed"
            self._tell(trigger, "limited", why=trigger.why)
            self._disarm(trigger, "limited")
            self._keep()
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
        waiting = self._waiting.get(trigger.directory, [])
        if trigger in waiting:
            waiting.remove(trigger)
            if not waiting:
                del self._waiting[trigger.directory]
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


def _taken_up(row: dict[str, Any]) -> Trigger:
    return taken_up(row, Reader(row["directory"]))


def _on(key: Key, wanted: tuple[str | None, ...]) -> bool:
    return all(part in (None, found) for part, found in zip(wanted, key, strict=True))
