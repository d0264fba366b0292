"""Captures that the daemon ended because the lab's policy no longer permits them, taken up again when it does.

Runs on the daemon's loop, but for what says `thread-safe`. Forgotten with the daemon.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from labd import paths
from labd.errors import LabdError
from labd.policy import SIMULATED, in_force, permits

if TYPE_CHECKING:
    from labd.bench import Bench, Entry
    from labd.lab import Lab

Key = tuple[str, str]


def barred(lab: Lab, target: str, levels: list[str]) -> dict[str, str]:
    """The interfaces of a target that an edited lab's watch may not capture, each with why.

    `levels` are those of the watch and the daemon: an edit must not reach what a verb could not.
    """
    of_lab = lab.policy_levels(target)
    level, _ = in_force([("the lab", level) for level in [*of_lab, *levels]])
    why = f"the lab's policy level {level!r} no longer permits it"
    if level not in of_lab:
        why = f"policy level {level!r}, at which it was watched, does not permit its device"
    return {
        config["name"]: why
        for config in lab.serial(target)
        if not permits(level, "simulated" if config["device"].startswith(SIMULATED) else "bench")
    }


class Suspended:
    """What waits for its policy, by lab (its real path) and target: interface → why."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._why: dict[Key, dict[str, str]] = {}
        self._level: dict[Key, str] = {}
        self._whole: set[Key] = set()
        self._seen: dict[str, tuple[int, int, int] | None] = {}
        """The lab files as they were read last."""

    def add(self, entry: Entry, why: dict[str, str]) -> None:
        """The captures of `entry` that have just been ended, each with why."""
        if not why:
            return
        key = (entry.lab_path, entry.target)
        self._seen[entry.lab_path] = entry.seen
        self._why.setdefault(key, {}).update(why)
        self._level[key] = entry.level
        if entry.channel.whole:
            self._whole.add(key)

    def forget(self, key: Key, names: list[str] | None = None) -> None:
        """These (None: all) are watched by somebody, or are not to be any more."""
        waiting = self._why.get(key, {})
        for name in list(waiting) if names is None else names:
            waiting.pop(name, None)
        if not waiting:
            self._why.pop(key, None)
            self._level.pop(key, None)
            self._whole.discard(key)

    def row(self, lab_path: str, target: str, name: str) -> dict[str, str]:
        """What `serial show` says of an interface that waits: state and why; nothing for all others. Thread-safe."""
        why = self._why.get((os.path.realpath(lab_path), target), {}).get(name)
        return {"state": "suspended", "why": f"{why}; it is captured again once that does"} if why else {}

    async def follow(self) -> None:
        """Take up edits of the lab files; called each second. Raises LabdError for one that can't be read."""
        from labd.lab import load

        for path in {path for path, _ in self._why}:
            now = paths.identity(path)
            if now is not None and now[2] and now != self._seen.get(path):
                self._seen[path] = now
                await self._take_up(path, await trio.to_thread.run_sync(load, path, dict(os.environ)))

    async def _take_up(self, path: str, lab: Lab) -> None:
        """The lab at `path` was edited: capture again what it permits now."""
        for key in [key for key in self._why if key[0] == path]:
            target, level = key[1], self._level[key]
            there = [config["name"] for config in lab.serial(target)] if target in lab.targets else []
            still = barred(lab, target, [level, self._bench.level]) if there else {}
            waiting = list(self._why[key])
            ready = [name for name in waiting if name in there and name not in still]
            whole = key in self._whole and not still
            self.forget(key, [name for name in waiting if name not in still])
            for name in [None] if whole and ready else ready:
                try:
                    await self._bench.watch(lab, target, name, level)
                    self._bench.log(f"{path}: {target}.{name or '*'} is permitted and captured again")
                except LabdError as error:
                    self._bench.log(f"{path}: {target}: {error.message}")
