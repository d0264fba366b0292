"""Whether an act on a target's power had its effect: its state read back, and what its console said since.

A `Watch` is made before the act, so that nothing which comes meanwhile is missed, and asked after it. It tells what it
has seen and, as plainly, what nobody has looked at: a hook's exit 0 alone is no proof.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from labd.errors import Died, LabdError, NotFound, PassedOn, TimedOut, Unreachable
from labd.journal_read import Event, Reader
from labd.logboot import BANNERS
from labd.power import word
from labd.view import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from labd.expect import Result
    from labd.power import Sense, State, Supply

#: Seconds that a state may take to follow the act, and a boot line to come, where the call does not say.
STATE_SECONDS, BOOT_SECONDS = 10.0, 60.0

#: Seconds between asking `state_cmd`, and between looking at a sense line.
ASK_SECONDS, LOOK_SECONDS = 0.5, 0.05

#: What a console says when a board boots, where the call does not say what to wait for.
BOOTS = tuple(re.escape(text.decode()) for _, text in BANNERS)

_ERRORS = {"timed_out": TimedOut, "cancelled": TimedOut, "died": Died, "gone": Unreachable}


class Seen:
    """What was verified, what was not and why, and the first thing that contradicts the act (None: nothing did)."""

    def __init__(self) -> None:
        self.verified: list[dict[str, Any]] = []
        self.unverified: list[str] = []
        self.error: LabdError | None = None


class Console:
    """A captured interface, and where it was before the act."""

    def __init__(self, directory: str, line: dict[str, Any]) -> None:
        self.line = line
        self.name: str = line["name"]
        self.directory = directory
        self.reader = Reader(directory)
        self.offset = self.reader.end_offset
        self.event = self.reader.event_count
        self.seq = self.reader.last_seq

    def data(self) -> dict[str, Any]:
        """Where to read on, as JSON."""
        return {"interface": self.name, "since": self.seq, "offset": self.offset}


class Watch:
    """What is looked at over one act (`on`, `off`, `cycle`) on a target.

    `state`: read the state back: True must, False must not, None where it can be known. `patterns`: what its console
    has to say (empty: nothing), on `interface` or the only one. `within`: seconds for each, None for the defaults.
    Raises Usage, NotFound or Unreachable, before anything was done, when what must be looked at can't be.
    """

    def __init__(self, supply: Supply, action: str, *, state: bool | None, patterns: Sequence[str] = (),
                 interface: str | None = None, within: float | None = None) -> None:  # fmt: skip
        self.supply = supply
        self.call = supply.call
        self.target = supply.target
        self.action = action
        self.must = state is True
        self.patterns = list(patterns)
        self.within = within
        self.consoles = [
            Console(self.call.journal_dir(self.target, line["name"]), line)
            for line in supply.lab.serial(self.target)
            if supply.captured(line["name"])
        ]
        self.sense: Sense | None = None
        self.why_not = "nobody asked for it" if state is False else self._why_no_state()
        if self.must and self.why_not:
            raise Unreachable(f"{self.target}: its state can't be read back: {self.why_not}; nothing was done",
                              hint=f"labd power-state {self.target}")  # fmt: skip
        self.console = self._console(interface) if patterns else None

    def look(self) -> Seen:
        """Look, now that the act is done; each thing is given the time that `within` says."""
        seen = Seen()
        if self.why_not:
            seen.unverified.append(f"its state ({self.why_not})")
        elif self.sense is not None:
            self._sensed(seen, self.sense)
        else:
            self._asked(seen)
        if self.console is not None and seen.error is None:
            self._booted(seen, self.console)
        elif self.console is None and self.action != "off":
            seen.unverified.append("that it boots")
        return seen

    # --- before ----------------------------------------------------------------------------------------------------

    def _why_no_state(self) -> str:
        """Why the state can't be known, "" where it can."""
        if "state_cmd" in self.supply.table:
            return ""
        try:
            self.sense = self.supply.sense()
            if self.sense is None:
                return "it has no state_cmd and no sense line"
            self.supply.sensed(self.sense)
        except (NotFound, Unreachable) as error:
            return error.message
        return ""

    def _console(self, interface: str | None) -> Console:
        lab = self.supply.lab
        names = [line["name"] for line in lab.serial(self.target)]
        if interface is None and len(names) > 1 and "console" in names:
            interface = "console"
            self.call.note("interface console")
        name = lab.resolve_interface(self.target, interface, self.call)["name"]
        for console in self.consoles:
            if console.name == name:
                return console
        raise Unreachable(
            f"{self.target}.{name} is not being captured, so nobody would see it boot; nothing was done",
            hint=f"labd serial watch {self.target}",
        )

    # --- after: the state ------------------------------------------------------------------------------------------

    def _asked(self, seen: Seen) -> None:
        """Ask `state_cmd` until it says what the act should have brought about."""
        self._until(ASK_SECONDS, self.supply.state, seen)
        if seen.error is None and self.action == "cycle" and not self._cut(seen):
            seen.unverified.append("that the power was cut in between (state_cmd was asked afterwards only)")

    def _sensed(self, seen: Seen, sense: Sense) -> None:
        """Look at the sense line as it is, and at what was recorded of it during the act."""
        self._until(LOOK_SECONDS, lambda: self.supply.sensed(sense), seen)
        if seen.error is not None or self.action != "cycle" or self._cut(seen):
            return
        never = f"{sense.signal.upper()} of {sense.interface} never said off"
        if self.must:
            seen.error = LabdError(f"{self.target}: the hook ended well, but the power was not cut: {never}")
        else:
            seen.unverified.append(f"that the power was cut in between ({never})")

    def _cut(self, seen: Seen) -> bool:
        """Whether a console's journal shows that the power was cut since the act began; told in `seen`."""
        for console in self.consoles:
            for event in console.reader.events(after=console.event):
                witness = _off_by(event)
                if witness:
                    seen.verified.append({"what": "cut", "by": witness[0], "says": f"{witness[1]} in between"})
                    console.offset = max(console.offset, event.rx)  # what came before is of the boot before
                    return True
        return False

    def _until(self, pause: float, ask: Callable[[], State], seen: Seen) -> None:
        """Ask until the state is as it should be, or the time is up; told in `seen`."""
        wanted = self.action != "off"
        within = STATE_SECONDS if self.within is None else self.within
        end = time.monotonic() + within
        while True:
            try:
                state = ask()
                if state.on == wanted:
                    seen.verified.append({"what": "state", **state.data()})
                    return
                problem: LabdError = LabdError(
                    f"{self.target}: the hook ended well, but {within:g} s later the power is still {word(state.on)}: "
                    f"{state.says}",
                    hint=f"labd power-state {self.target}",
                )
            except LabdError as error:
                problem = _unread(self.target, error)
            left = end - time.monotonic()
            if left <= 0:
                seen.error = problem
                return
            self._nap(min(pause, left))

    def _nap(self, seconds: float) -> None:
        """Sleep, unless the caller has gone."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.call.wait_data("", left)

    # --- after: the console ----------------------------------------------------------------------------------------

    def _booted(self, seen: Seen, console: Console) -> None:
        """Wait for what the console has to say, from where it was when the act began."""
        from labd.expect import expect

        within = BOOT_SECONDS if self.within is None else self.within

        def waiting(_: str) -> None:
            self.call.note(f"{self.target}.{console.name}: waiting for it to boot, up to {within:g} s …")

        result = expect(
            console.directory,
            self.patterns,
            cursor=console.offset,
            timeout_s=within,
            wait=self.call.wait_data,
            encoding=console.line["encoding"],
            live=lambda: self.supply.captured(console.name),
            progress=waiting,
        )
        if result.matched:
            seen.verified.append(_boot(console, result))
        else:
            seen.error = _no_boot(self.target, console, result)


def patterns_of(expected: Sequence[str]) -> list[str]:
    """What the console has to say: the caller's patterns, else what boots begin with. Raises Usage for a bad one."""
    from labd.match import compile_all

    patterns = list(expected) or list(BOOTS)
    compile_all(patterns, as_written="")
    return patterns


def _off_by(event: Event) -> tuple[str, str] | None:
    """(who, in which words) says by this event that the power is off: a sense line, or a virtual board."""
    said = event.fields
    if event.kind == "line" and said.get("power_on") is False:
        return "sense", f"{str(said.get('line')).upper()} said off"
    if event.kind == "dut" and said.get("state") == "off":
        return "board", "the virtual board was off"
    return None


def _unread(target: str, error: LabdError) -> LabdError:
    """That the act was done but its state can't be read, for the reason that `error` has, with its exit code."""
    message = f"{target}: the hook ended well, but the state can't be read back: {error.message}"
    if isinstance(error, PassedOn):
        return PassedOn(message, error.exit_code, hint=error.hint)
    return type(error)(message, hint=error.hint)


def _boot(console: Console, result: Result) -> dict[str, Any]:
    console.reader.refresh()
    line = next(console.reader.lines(result.seq or 1, result.seq), None)
    says = plain(line.raw, console.line["encoding"], partial=line.partial) if line else result.text
    return {"what": "boot", "by": console.name, "says": says, "pattern": result.pattern, "text": result.text,
            "seq": result.seq, "cursor": result.cursor, "ms": round(result.waited_s * 1000, 1)}  # fmt: skip


def _no_boot(target: str, console: Console, result: Result) -> LabdError:
    """Why the boot was not seen: the error of `serial expect` for the same end."""
    last = result.last_lines[-1] if result.last_lines else None
    told = f"; the last line is #{last['seq']} {last['text'][:100]!r}" if last else ""
    said = f"{result.pattern!r} came" if result.ended == "died" else result.why
    return _ERRORS.get(result.ended, LabdError)(
        f"{target}.{console.name}: the hook ended well, but its boot was not seen: {said}{told}",
        hint=f"labd serial log {target} -i {console.name} --since {console.seq}",
    )
