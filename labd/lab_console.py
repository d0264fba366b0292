"""One serial interface for Python programs: send to it, wait for what it says, read back all that it ever said.

Got from `labd.lab_client` (`lab["pico"].console`); any thread may use it. What acts goes to the daemon; reading reads
the journal's files, and so works with the daemon down. Waiting (`expect`, `run`) is the daemon's as well: the console
only remembers where the last answer ended, so that the next `expect` goes on from there.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from labd import logquery
from labd.bell import Bell
from labd.client import Client, reply_of
from labd.errors import PassedOn, Usage
from labd.journal_read import Event as JournalEvent
from labd.journal_read import Line as JournalLine
from labd.journal_read import Reader
from labd.lab_hold import Grip
from labd.lab_results import Event, Interface, Line, Match, Ran, Sent, match_of, ran_of
from labd.logtext import line_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from labd.client import Reply
    from labd.lab_client import Lab
    from labd.pexpect_bridge import LabSpawn


class Console:
    """A serial interface of a target."""

    def __init__(self, lab: Lab, target: str, interface: str) -> None:
        self.lab = lab
        self.target = target
        self.interface = interface
        self.touched = 0.0  # when it was last used (time.monotonic)
        self._lock = threading.Lock()
        self._cursor: int | None = None
        self.born = self._start() if lab.is_here(target, interface) else 0
        self._bells: set[Bell] = set()
        self._grips: list[Grip] = []

    def __repr__(self) -> str:
        return f"<Console {self.name}>"

    @property
    def name(self) -> str:
        """`target.interface`."""
        return f"{self.target}.{self.interface}"

    @property
    def config(self) -> dict[str, Any]:
        """The interface as the lab file has it, every default filled in."""
        lab = self.lab.config()
        return dict(lab.resolve_interface(self.target, self.interface, self.lab.own_call()))

    # --- capture -----------------------------------------------------------------------------------------------------

    def watch(self) -> Interface:
        """Open the port and capture it, until `stop`, whatever becomes of this program. Answers once it is open.

        Raises Unreachable or Busy (who has it), Refused by the policy. Watching what is watched changes nothing.
        """
        self._start()
        opened = self._call("serial.watch")
        return self._state_of(opened["interfaces"][0])

    def stop(self) -> bool:
        """Stop the capture and free the port; False when there was none. What was captured stays readable."""
        return bool(self._call("serial.stop")["stopped"])

    def state(self) -> Interface:
        """What the daemon makes of it now; `state` is `not captured`, `open`, `lost` or `closed`."""
        rows = self.lab.call("serial.show", target=self.target)
        return self._state_of(next(row for row in rows if row["name"] == self.interface))

    def _state_of(self, row: dict[str, Any]) -> Interface:
        return Interface(self.target, self.interface, row["state"], row["device"], row.get("node"), row)

    # --- sending and waiting -----------------------------------------------------------------------------------------

    def send(self, data: str | bytes | bytearray | memoryview, *, newline: bool | None = None,
             pace_ms: float | None = None, **more: Any) -> Sent:  # fmt: skip
        """Type text (its line end is added) or send bytes (exactly those). `newline` says otherwise.

        `pace_ms` waits after each byte. `more` are parameters of `labd serial send` by name. The next `expect` looks
        at what comes after this. Raises Unreachable when the port is not captured or down (nothing is sent later),
        Busy while somebody else holds the line, TimedOut when it takes no more.
        """
        whole = _bytes(data)
        if isinstance(data, str) if newline is None else newline:
            whole += self.config["eol"].encode()
        wait = _seconds(more.get("wait") or 0.0) + len(whole) * (pace_ms or 0.0) / 1000
        self.still_held()
        answer = self._call("serial.send", wait_s=wait, **exact(whole), pace_ms=pace_ms, **more)
        with self._lock:
            self._cursor = int(answer["rx"])
        return Sent(int(answer["accepted"]), int(answer.get("seq") or 0), int(answer["rx"]), answer)

    def expect(self, pattern: str | Sequence[str], *, timeout: float = 30.0, cursor: int | None = None,
               **more: Any) -> Match:  # fmt: skip
        """Wait for a pattern, or the first of several, for at most `timeout` seconds.

        Looks at what came after the last `send`, or the last match; before any, after this object was made; or from
        the offset `cursor` on. Never matches the echo of what was sent. `more` are parameters of `labd serial expect`
        by name: `literal`, `ignore_case`, `raw`, `settle`, `death`, `no_death`. Raises TimedOut (its notes have the
        nearest miss and the last lines), Died at a death pattern, Unreachable when the capture ended, Usage for a bad
        pattern.
        """
        first, *others = _patterns(pattern)
        start = self._start() if cursor is None else cursor
        params = {"pattern": first, "any": others, "from_offset": start, "timeout": timeout, **more}
        found = match_of(self._ask("serial.expect", wait_s=_seconds(timeout), **params), self.name)
        with self._lock:
            self._cursor = found.end
        return found

    def run(self, command: str, *, timeout: float = 30.0, check: bool = False, **more: Any) -> Ran:
        """Run a command in the target's shell; what it printed, and its exit code (None when it can't be known).

        With `check` any exit code but 0 raises PassedOn. `more` are parameters of `labd serial run` by name: `binary`
        (then `data` has the exact bytes), `no_status`, `shell`, `pace_ms`, `take` … Raises TimedOut when it does not
        end in `timeout` seconds, Busy while somebody else types, Unreachable when the port is down or goes.
        """
        if not isinstance(command, str):
            raise Usage(f"a command is text, not {command!r}", hint=f"{self.name}: run('uname -r')")
        wait = _seconds(timeout) + _seconds(more.get("wait") or 0.0)
        self.still_held()
        data = self._call("serial.run", wait_s=wait, command=command, timeout=timeout, **more)
        ran = ran_of(data)
        with self._lock:
            self._cursor = int(data.get("cursor") or self.end)
        if check and ran.code != 0:
            raise PassedOn(f"{self.name}: {command!r} ended with {ran.code}", ran.code or 1)
        return ran

    @contextmanager
    def hold(self, *, take: bool = False, wait: float = 2.0, why: str = "") -> Iterator[None]:
        """Within `with`: nobody but this process writes to the console. Reading is free for all.

        Waits up to `wait` seconds for whoever writes now, or takes the console over. Raises Busy, which says who has
        it. Once somebody took it over sends and the end of the `with` raise Busy, and Unreachable once the daemon went
        away under it: others may have typed then.
        """
        grip = Grip(self.name, self.grip(take=take, wait=wait, why=why))
        with self._lock:
            self._grips.append(grip)
        try:
            yield
            grip.check()
        finally:
            with self._lock:
                self._grips.remove(grip)
            grip.close()

    def still_held(self) -> None:
        """Raise why, if this object holds the console and lost it."""
        with self._lock:
            grips = list(self._grips)
        for grip in grips:
            grip.check()

    def grip(self, *, take: bool, wait: float, why: str) -> Client:
        """A connection of its own that holds the console for as long as it is open."""
        params = {"target": self.target, "interface": self.interface, "take": take, "wait": wait, "why": why or None}
        self.lab.start_daemon()
        grip = Client(self.lab.env, timeout_s=self.lab.timeout_s + wait)
        try:
            held = {name: value for name, value in params.items() if value is not None}
            grip.post("serial.hold", held, lab=self.lab.path)
            while "method" not in (answer := grip.message()):
                reply_of(answer)  # raises why it is not held
            return grip
        except BaseException:
            grip.close()
            raise

    # --- reading back ------------------------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The offset behind the newest byte of all that the target ever sent here."""
        if not self.lab.is_here(self.target, self.interface):
            return int(self.state().fields["end"])
        return self.reader().end_offset

    def _start(self) -> int:
        """Where `expect` looks from: a console of another machine is asked for it when that is first needed."""
        with self._lock:
            known = self._cursor
        if known is None:
            known = self.end
            with self._lock:
                self._cursor = known
        return known

    def reader(self) -> Reader:
        """The journal, for what the methods here don't offer. Raises Refused when the policy forbids looking."""
        self.lab.permit("serial.log", self.target)
        return Reader(self.directory)

    @property
    def directory(self) -> str:
        """Where the journal is."""
        return self.lab.journal_dir(self.target, self.interface)

    def bytes(self, start: int = 0, stop: int | None = None) -> bytes:
        """The exact bytes between two offsets, of those that are kept."""
        return self.reader().bytes(start, stop)

    def log(
        self,
        *,
        tail: int | None = None,
        since: int | str | None = None,
        frm: int | None = None,
        to: int | None = None,
        grep: str | None = None,
        ignore_case: bool = False,
        since_boot: bool = False,
    ) -> Iterator[Line]:
        """The chosen lines, oldest first, as `labd serial log` chooses them; the last 200 without a selector.

        `since` is the `seq` of the last line that was seen. The last line may be unfinished (`partial`).
        """
        found = self._query(tail=tail, since=since, frm=frm, to=to, grep=grep, ignore_case=ignore_case,
                            since_boot=since_boot)  # fmt: skip
        return (item for item in found if isinstance(item, Line))

    def follow(self, *, since: int | str | None = None, grep: str | None = None, events: bool = False,
               timeout: float | None = None) -> Iterator[Line | Event]:  # fmt: skip
        """Lines as they come, from now on or after line `since`; with `events` also what happened.

        A line that stays unfinished is given as it is (`partial`), and again, whole, once it ends. Goes on until
        `hang_up`, until the Lab is closed, or `timeout` seconds in all have passed.
        """
        bell = self.bell()
        until = None if timeout is None else time.monotonic() + timeout

        def wait(directory: str, seconds: float) -> bool:
            left = seconds if until is None else min(seconds, until - time.monotonic())
            return left > 0 and bell.wait(left)

        start = self.reader().last_seq if since is None else since
        return self._following(bell, self._query(since=start, grep=grep, events=events, follow=True, wait=wait))

    def events(self, *, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Event]:
        """What happened (sent, opened, lost, reopened …), oldest first; `after` leaves out those up to that number."""
        found = (_event(event) for event in self.reader().events(after=after))
        return (event for event in found if not kinds or event.kind in kinds)

    def pexpect(self, **options: Any) -> LabSpawn:
        """A pexpect spawn on this console. Reads come from the capture, so it goes on and any number may read along.

        `options` are those of `pexpect.fdpexpect.fdspawn` (timeout, encoding, logfile …), and `cursor`.
        """
        from labd.pexpect_bridge import LabSpawn

        return LabSpawn(self, **options)

    def hang_up(self) -> None:
        """End every `follow` of this console, in whatever thread, and be EOF for its pexpect spawns."""
        with self._lock:
            bells = list(self._bells)
        for bell in bells:
            bell.close()

    def bell(self) -> Bell:
        """Rings when there is more to read, until `hang_up` or `forget`."""
        bell = Bell(self.lab.env, self.directory)
        with self._lock:
            self._bells.add(bell)
        return bell

    def forget(self, bell: Bell) -> None:
        """Nobody waits for this bell any more."""
        bell.close()
        with self._lock:
            self._bells.discard(bell)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _call(self, method: str, **params: Any) -> Any:
        return self._ask(method, **params).result

    def _ask(self, method: str, *, wait_s: float = 0.0, **params: Any) -> Reply:
        self.touched = time.monotonic()
        params = {"target": self.target, "interface": self.interface, **params}
        return self.lab.ask(method, params, timeout_s=wait_s + self.lab.timeout_s)

    def _query(self, **selectors: Any) -> Iterator[Line | Event]:
        self.lab.permit("serial.log", self.target)
        self.touched = time.monotonic()
        encoding = str(self.config["encoding"])
        found = logquery.query(self.directory, encoding=encoding, **selectors)
        return (_value(item, encoding) for item in found if not isinstance(item, (bytes, logquery.Note)))

    def _following(self, bell: Bell, items: Iterator[Line | Event]) -> Iterator[Line | Event]:
        try:
            yield from items
        finally:
            self.forget(bell)


def _value(item: JournalLine | JournalEvent, encoding: str) -> Line | Event:
    if isinstance(item, JournalEvent):
        return _event(item)
    text = line_text(item, encoding)
    return Line(item.seq, text, item.raw, item.offset, item.wall_ns / 1e9, item.partial, item.gap)


def _event(event: JournalEvent) -> Event:
    return Event(event.number, event.kind, event.rx, event.wall_ns / 1e9, dict(event.fields))


def _bytes(data: object) -> bytes:
    """What goes out for `data`. Raises Usage for what is neither text nor bytes."""
    if isinstance(data, str):
        return data.encode("utf-8", "surrogateescape")
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise Usage(f"what is sent is text or bytes, not {data!r}", hint="send('text') or send(b'\\x1b')")


def _patterns(pattern: object) -> Sequence[str]:
    """The patterns to wait for. Raises Usage for what is no text, or none at all."""
    several = [pattern] if isinstance(pattern, (str, bytes)) or not hasattr(pattern, "__iter__") else [*pattern]
    wrong = [one for one in several if not isinstance(one, str)]
    if wrong or not several:
        what = f"{wrong[0]!r}" if wrong else "an empty list"
        raise Usage(f"a pattern is text, which is looked for in the console's text, not {what}",
                    hint="expect(r'login: ') or expect(['login: ', '# '])")  # fmt: skip
    return cast("list[str]", several)


def _seconds(timeout: object) -> float:
    """How long an answer may take. Raises Usage for what is no number of seconds."""
    if isinstance(timeout, (int, float)) and timeout == timeout:
        return float(timeout)
    raise Usage(f"a timeout is a number of seconds, not {timeout!r}", hint="timeout=30, the default")


def exact(data: bytes) -> dict[str, Any]:
    """The parameters of `serial.send` that send exactly `data`."""
    if data == b"-" or b"\0" in data:  # a bare dash reads stdin, and no word of a command holds a NUL
        return {"hex": data.hex()}
    return {"text": data.decode("utf-8", "surrogateescape"), "no_newline": True}
