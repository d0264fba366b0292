"""Recordings: named spans of a target's history. The journals hold all of it anyway; a recording is where to look.

One small file each in the state directory, replaced whole. Needs no daemon, and goes on over daemons' lives.
"""

from __future__ import annotations

import json
import os
import re
import time

from labd import paths
from labd.errors import Busy, LabdError, NotFound, Usage, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Recordings:
    """The recordings of one target of one lab."""

    def __init__(self, env: Mapping[str, str], lab_path: str, target: str) -> None:
        self.target = target
        self.directory = os.path.join(paths.state_dir(env), "recordings", paths.lab_id(lab_path), target)

    def all(self) -> list[dict[str, Any]]:
        """Every recording, the oldest first: `name`, `target`, `why`, `by`, `since_ns`, `until_ns` (None: it runs)."""
        try:
            names = sorted(name for name in os.listdir(self.directory) if name.endswith(".json"))
        except OSError:
            return []
        found = [loaded for name in names if (loaded := _load(os.path.join(self.directory, name))) is not None]
        return sorted(found, key=lambda entry: int(entry["since_ns"]))

    def start(self, name: str | None, why: str, by: str) -> dict[str, Any]:
        """Begin one. Raises Busy where one of that name runs or is, Usage for a name that can't be a file's."""
        now = time.time_ns()
        if name is None:
            name = time.strftime("%Y%m%d-%H%M%S", time.localtime(now // 10**9))
        if not _NAME.fullmatch(name):
            raise Usage(f"{name!r} can't be a recording's name: letters, digits, dots, dashes, underscores, at most 64")
        entry = {"name": name, "target": self.target, "why": why, "by": by, "since_ns": now, "until_ns": None}
        if not self._store(entry, new=True):
            raise Busy(f"{self.target} has a recording {name!r} already", hint=f"labd record list {self.target}")
        return entry

    def stop(self, name: str | None) -> dict[str, Any]:
        """End the one that runs, or the named one of several. Raises NotFound."""
        running = [entry for entry in self.all() if entry["until_ns"] is None]
        if name is not None:
            entry = self.find(name)
            if entry["until_ns"] is not None:
                raise NotFound(f"the recording {name!r} of {self.target} has ended already")
        elif len(running) != 1:
            names = ", ".join(entry["name"] for entry in running)
            raise NotFound(
                f"{self.target} has several recordings that run: {names}"
                if running
                else f"no recording of {self.target} runs",
                hint=f"labd record stop {self.target} --name {running[0]['name']}"
                if running
                else f"labd record start {self.target}",
            )
        else:
            entry = running[0]
        entry = {**entry, "until_ns": time.time_ns()}
        self._store(entry)
        return entry

    def find(self, name: str | None) -> dict[str, Any]:
        """The recording of that name; without one, the newest. Raises NotFound, with near matches."""
        known = self.all()
        if name is None and known:
            return known[-1]
        for entry in known:
            if entry["name"] == name:
                return entry
        names = [entry["name"] for entry in known]
        said = f"no recording {name!r} of {self.target}" if name else f"{self.target} has no recording"
        raise NotFound(said, near=nearest(name or "", names), hint=f"labd record start {self.target}")

    def running(self) -> bool:
        """Whether any runs."""
        return any(entry["until_ns"] is None for entry in self.all())

    def _store(self, entry: dict[str, Any], *, new: bool = False) -> bool:
        """Write it, whole; whether that was done: a `new` one of a name that is taken is left alone."""
        path = os.path.join(self.directory, entry["name"] + ".json")
        fresh = f"{path}.{os.getpid()}-{time.monotonic_ns()}"
        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
                json.dump(entry, file)
                file.flush()
                os.fsync(file.fileno())
            try:
                (os.link if new else os.replace)(fresh, path)
            except FileExistsError:
                return False
            finally:
                if new or os.path.exists(fresh):
                    os.unlink(fresh)
        except OSError as error:
            raise LabdError(f"{path} can't be written: {error.strerror}") from None
        return True


def _load(path: str) -> dict[str, Any] | None:
    """One recording; None for a file that is none."""
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(1 << 16))
        whole = isinstance(found["since_ns"], int) and isinstance(found["until_ns"], int | None)
        return {"why": "", "by": "", **found} if whole and isinstance(found["name"], str) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
