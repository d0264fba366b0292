"""Playing steps on a device: what is held, how long, and letting go when something goes wrong.

One player is one keyboard: what `down` and `mdown` hold stays held for as long as it lives. Blocks.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from labd.errors import LabdError, Usage
from labd.hid import keys
from labd.hid.device import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from labd.hid.device import Device
    from labd.hid.words import Step

#: The version of the words, which `version` answers first.
WORDS_VERSION = 1


#: The verbs that send nothing to the target.
QUIET = ("ping", "version", "delay", "sleep")


class Player:
    """Plays on `device` at `pace`; `held` keys in the order in which they went down, `pressed` mouse buttons."""

    def __init__(self, device: Device, pace: Pace, sleep: Callable[[float], None] = time.sleep) -> None:
        self.device = device
        self.pace = pace
        self.sleep = sleep
        self.held: tuple[int, ...] = ()
        self.pressed: frozenset[str] = frozenset()

    @property
    def holds(self) -> bool:
        """Whether anything is down."""
        return bool(self.held or self.pressed)

    def check(self, steps: Iterable[Step]) -> None:
        """Raise Usage for keys that the device has not, or more at once than it can hold. Sends nothing."""
        held = set(self.held)
        for step in steps:
            if step.verb == "releaseall":
                held = set()
            for group in step.chords:
                missing = [key for key in group if key in self.device.lacks]
                if missing:
                    raise Usage(
                        f"{self.device.implementation} has no key {keys.name_of(missing[0])!r}; nothing was sent"
                    )
                now = held - set(group) if step.verb == "up" else held | set(group)
                count = len(now - set(keys.MODIFIERS))
                if self.device.most_keys is not None and count > self.device.most_keys:
                    raise Usage(
                        f"{count} keys at once, and {self.device.implementation} can hold {self.device.most_keys}; "
                        "nothing was sent",
                        hint="releaseall lets go of those that are held",
                    )
                held = now if step.verb in ("down", "up") else held

    def play(self, steps: Sequence[Step], delay_s: float = 0.0) -> list[str]:
        """Do the steps, `delay_s` between two; what `ping` and `version` answered. Raises what the device raises."""
        self.check(steps)
        if any(step.verb not in QUIET for step in steps):
            self.device.ready()
        answers = []
        for number, step in enumerate(steps):
            if number and delay_s:
                self.sleep(delay_s)
            answer = getattr(self, f"_{step.verb}")(step)
            if answer is not None:
                answers.append(answer)
        return answers

    def let_go(self) -> None:
        """Release what this player holds; nothing is sent when it holds nothing."""
        if self.held:
            self._hold(())
        if self.pressed:
            self._press(frozenset())

    # --- keys --------------------------------------------------------------------------------------------------------

    def _hold(self, held: tuple[int, ...]) -> None:
        self.device.keys(held, self.held)
        self.held = held

    def _strike(self, group: tuple[int, ...], hold_s: float) -> None:
        """Press keys together and release them; whatever happens between, they are not left down."""
        before = self.held
        together = (*before, *(key for key in _modifiers_first(group) if key not in before))
        try:
            self.device.keys(together, before)
            self.sleep(hold_s)
        except BaseException:
            try:
                self.device.keys(before, together)
            except LabdError:
                pass  # the first failure says what is wrong
            raise
        self.device.keys(before, together)

    def _type(self, step: Step) -> None:
        for group in step.chords:
            longer = (len(group) - 1) * self.pace.further
            self._strike(group, self.pace.char_hold + longer)
            self.sleep(self.pace.char_gap + longer)

    def _key(self, step: Step) -> None:
        for group in step.chords:
            self._strike(group, self.pace.lock_hold if set(group) & set(keys.LOCKS) else self.pace.hold)
            self.sleep(self.pace.gap)

    _combo = _key

    def _down(self, step: Step) -> None:
        (group,) = step.chords
        self._hold((*self.held, *(key for key in group if key not in self.held)))

    def _up(self, step: Step) -> None:
        (group,) = step.chords
        self._hold(tuple(key for key in self.held if key not in group))

    def _releaseall(self, step: Step) -> None:
        self.device.release_all()
        self.held, self.pressed = (), frozenset()

    # --- the mouse ---------------------------------------------------------------------------------------------------

    def _press(self, pressed: frozenset[str]) -> None:
        self.device.buttons(pressed, self.pressed)
        self.pressed = pressed

    def _move(self, step: Step) -> None:
        self.device.move(step.x, step.y, self.pressed)

    def _moveabs(self, step: Step) -> None:
        self.device.point(step.x, step.y, self.pressed)

    def _click(self, step: Step) -> None:
        self.sleep(self.pace.settle)
        for _ in range(step.times):
            before, pressed = self.pressed, self.pressed | {step.button}
            try:
                self.device.buttons(pressed, before)
                self.sleep(self.pace.click)
            finally:
                self.device.buttons(before, pressed)
            self.sleep(self.pace.gap)

    def _mdown(self, step: Step) -> None:
        self._press(self.pressed | {step.button})

    def _mup(self, step: Step) -> None:
        self._press(self.pressed - {step.button})

    def _scroll(self, step: Step) -> None:
        self.device.scroll(step.y, self.pressed)

    # --- the rest ----------------------------------------------------------------------------------------------------

    def _ping(self, step: Step) -> str:
        self.device.ping()
        return "OK"

    def _version(self, step: Step) -> str:
        self.device.ping()
        return f"{WORDS_VERSION} {self.device.implementation}"

    def _delay(self, step: Step) -> None:
        self.sleep(step.seconds)

    _sleep = _delay


def seconds(steps: Iterable[Step], pace: Pace) -> float:
    """About how long playing takes, the device's own time aside."""
    total = 0.0
    for step in steps:
        total += step.seconds
        if step.verb == "type":
            total += sum(pace.char_hold + pace.char_gap + 2 * (len(group) - 1) * pace.further for group in step.chords)
        elif step.verb in ("key", "combo"):
            total += pace.lock_hold + pace.gap
        elif step.verb == "click":
            total += pace.settle + step.times * (pace.click + pace.gap)
    return total


def _modifiers_first(group: tuple[int, ...]) -> list[int]:
    return sorted(group, key=lambda key: key not in keys.MODIFIERS)
