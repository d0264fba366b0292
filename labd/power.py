"""Switching a target's power by its hooks, and telling whether it has any: `state_cmd`, or a live sense line.

Runs in the worker thread of the call that asks, inside the daemon. Whether an act has had its effect is looked at by
`labd.power_verify`. Nothing here knows how an answer is shown.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from labd.errors import LabdError, NotFound, Unreachable
from labd.hookrun import TIMEOUT_SECONDS
from labd.lease import person

if TYPE_CHECKING:
    from collections.abc import Mapping

    from labd.call import Call
    from labd.lab import Lab
    from labd.shim import Ended

#: Action → the key of the hook that does it.
HOOKS = {"on": "on_cmd", "off": "off_cmd", "cycle": "cycle_cmd"}

#: How long a cycle that is made of off_cmd and on_cmd leaves the power off, seconds.
OFF_SECONDS = 3

#: A cycle of off_cmd and on_cmd as one process, which goes on without us: the power comes back, with three tries, also
#: when switching off failed, when its time is up (a shell that waits hears of that, one that runs a command does not),
#: and when the daemon is killed meanwhile.
CYCLE = """off() {{ {off} & wait $!; }}
on() {{ {on} & wait $!; }}
trap 'on; exit 143' TERM
off; code=$?
sleep {seconds}
on || {{ sleep 1; on; }} || {{ sleep 1; on; }} || exit
exit $code"""


class Sense:
    """The modem line that follows a target's power: `interface` has it as `signal` (cts, dsr, dcd, ri)."""

    __slots__ = ("interface", "signal")

    def __init__(self, interface: str, signal: str) -> None:
        self.interface = interface
        self.signal = signal


class State:
    """Whether a target has power, who says so (`state_cmd` or `sense`), in which words; asking took `ms`."""

    __slots__ = ("by", "ms", "on", "says")

    def __init__(self, on: bool, by: str, says: str, ms: float) -> None:
        self.on = on
        self.by = by
        self.says = says
        self.ms = ms

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {"power": word(self.on), "by": self.by, "says": self.says, "ms": round(self.ms, 1)}


class Hook:
    """What switches a target: the lab's keys (`cycle_cmd`, or `off_cmd` and `on_cmd`) and their commands."""

    __slots__ = ("commands", "keys")

    def __init__(self, keys: list[str], commands: list[str]) -> None:
        self.keys = keys
        self.commands = commands

    @property
    def name(self) -> str:
        """The keys in words."""
        return " and ".join(self.keys)

    @property
    def command(self) -> str:
        """The commands in words."""
        return f"; sleep {OFF_SECONDS}; ".join(self.commands)


def word(on: bool) -> str:
    """`on` or `off`."""
    return "on" if on else "off"


class Supply:
    """The power of one target, for one call, asked by `who`."""

    def __init__(self, call: Call, lab: Lab, target: str, who: Mapping[str, Any]) -> None:
        self.call = call
        self.lab = lab
        self.target = target
        self.who = dict(who)
        self.table: dict[str, Any] = lab.target(target).get("power", {})

    def hook(self, action: str) -> Hook:
        """What switches it `on` or `off` or cycles it. Raises NotFound, with what can be done instead."""
        key = HOOKS[action]
        for keys in ([key], ["off_cmd", "on_cmd"] if action == "cycle" else [key]):
            if all(key in self.table for key in keys):
                return Hook(keys, [self.table[key] for key in keys])
        has = ", ".join(name for name in (*HOOKS.values(), "state_cmd") if name in self.table)
        other = f"labd power set -t {self.target} --{key.replace('_', '-')} CMD"
        if any(line.get("power_button") for line in self.lab.serial(self.target)):
            other = f"labd serial dtr {self.target}; {other}"
        raise NotFound(
            f"{self.target} has no {key}, so nothing was done ({f'it has {has}' if has else 'no hook is set'})",
            hint=f"{other}; labd helper",
        )

    def switch(self, action: str) -> Ended:
        """Run the hook of an action, recorded on every console that is captured. Raises what `Hooks.run` raises."""
        hook = self.hook(action)
        self.call.hop(_mark_consoles, self.call.bench, self.call.lab_path, self.target, action, self.who)
        limit = self.table.get("timeout_s", TIMEOUT_SECONDS)
        if len(hook.commands) == 1:
            return self._run(action, hook.command, limit)
        off, on = (self.call.bench.hooks.shell_words(self.call, self.target, part) for part in hook.commands)
        script = CYCLE.format(off=off, on=on, seconds=OFF_SECONDS)
        return self._run(action, hook.command, 2 * limit + OFF_SECONDS, script)

    def name_others(self, error: LabdError) -> None:
        """Add to an error who else has switched the target since, which may be why it is not as it should be."""
        action, who = self.call.bench.hooks.last_switched(self.call.lab_path, self.target) or ("", self.who)
        if who is not self.who:
            error.message += f"; meanwhile {person(who)} did {action}"
            error.args = (error.message,)

    def sense(self) -> Sense | None:
        """Its sense line: of the interface that the lab's power names, else the only one. Raises NotFound."""
        named = self.table.get("serial_interface")
        found = [
            Sense(line["name"], line["power_sense_signal"])
            for line in self.lab.serial(self.target)
            if line["power_sense_signal"] and named in (None, line["name"])
        ]
        if len(found) > 1:
            names = ", ".join(sense.interface for sense in found)
            raise NotFound(f"{self.target} has several sense lines: {names}",
                           hint=f"labd power set -t {self.target} --serial-interface {found[0].interface}")  # fmt: skip
        return found[0] if found else None

    def state(self) -> State:
        """Whether it is on, as `state_cmd` says, or else the sense line at this moment.

        Raises NotFound when there is neither, Unreachable when the sense line's port is not captured or has no such
        line, LabdError when `state_cmd` says neither on nor off, and what a hook raises.
        """
        if "state_cmd" in self.table:
            return self._asked(self.table["state_cmd"])
        sense = self.sense()
        if sense is None:
            raise NotFound(
                f"{self.target} has neither a state_cmd nor a sense line, so nobody knows whether it has power",
                hint=f"labd power set -t {self.target} --state-cmd CMD; or, where a modem line follows its power: "
                f"labd serial set INTERFACE -t {self.target} --sense cts",
            )
        return self.sensed(sense)

    def sensed(self, sense: Sense) -> State:
        """The sense line as it is now. Raises Unreachable."""
        if not self.captured(sense.interface):
            raise Unreachable(
                f"{self.target}.{sense.interface} is not being captured, so its {sense.signal.upper()} can't be read",
                hint=f"labd serial watch {self.target}",
            )
        begun = time.monotonic()
        level = self.call.hop(self.call.bench.lines, self.lab, self.target, sense.interface)[sense.signal]
        if level is None:
            raise Unreachable(f"{self.target}.{sense.interface}: nobody tells the level of {sense.signal.upper()}")
        says = f"{sense.signal.upper()} of {sense.interface} is {'asserted' if level else 'not asserted'}"
        ms = (time.monotonic() - begun) * 1000
        return State(not level, "sense", says, ms)  # the inputs are active low: see channels/sense.py

    def captured(self, interface: str) -> bool:
        """Whether an interface is being captured."""
        return interface in self.call.bench.captured(self.call.lab_path, self.target)

    def tell(self, kind: str, **fields: Any) -> None:
        """Record what became of it among the target's own events."""
        self.call.bench.chronicle.tell(self.call.lab_path, self.target, "power", kind, who=self.who, **fields)

    def _asked(self, command: str) -> State:
        begun = time.monotonic()
        ended = self._run("state", command, self.table.get("timeout_s", TIMEOUT_SECONDS))
        ms = (time.monotonic() - begun) * 1000
        said = ended.out.decode("utf-8", "replace").split()
        first = said[0].lower() if said else ""
        if first not in ("on", "off"):
            shown = repr(" ".join(said)[:80]) if said else "nothing"
            raise LabdError(f"{self.target}: state_cmd printed {shown}, and has to print on or off",
                            hint=f"labd power show {self.target}")  # fmt: skip
        return State(first == "on", "state_cmd", f"state_cmd printed {first}", ms)

    def _run(self, action: str, command: str, limit: float, script: str | None = None) -> Ended:
        ended: Ended = self.call.bench.hooks.run(
            self.call, self.target, "power", action, command, self.who, timeout_s=limit, script=script
        )
        return ended


async def _mark_consoles(bench: Any, lab_path: str, target: str, action: str, who: dict[str, Any]) -> None:
    """Put the act into what the consoles said: where a boot begins, for `serial log --since-boot`."""
    entry = bench.entries.get((os.path.realpath(lab_path), target))
    if entry is not None:
        entry.channel.tell("power", action=action, who=who)
