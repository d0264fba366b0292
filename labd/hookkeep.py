"""Hooks that stay: `CMD serve`, kept running as children of the daemon so that what they hold down stays down.

Such a program says a line that begins with `serving` once it is ready, ends when its stdin does, and is found by
`CMD WORDS…` by its own means (`labd.hid.serving` for the bundled helpers). One a target. It ends with the daemon, also
one that was killed. Blocks: called in the worker thread of a call.
"""

from __future__ import annotations

import collections
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from labd import shim
from labd.errors import LabdError, PassedOn, TimedOut
from labd.hookrun import argv_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from labd.hookrun import Hooks

#: Seconds for a helper to say that it serves, and to end by itself.
READY_SECONDS, END_SECONDS = 10.0, 3.0


class KeptHook:
    """One program that stays (`process`, a Popen). `said`: its last lines. `ready` is set once it serves or ended."""

    def __init__(self, lab_path: str, target: str, channel: str, command: str, process: Any) -> None:
        self.key = (lab_path, target)
        self.channel = channel
        self.command = command
        self.process = process
        self.since = time.time()
        self.said: collections.deque[str] = collections.deque(maxlen=20)
        self.ready = threading.Event()
        self.stopping = False

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return bool(self.process.poll() is None)

    def read(self) -> None:
        """Take what it says, to its end."""
        for line in self.process.stdout:
            self.said.append(line.decode("utf-8", "replace").strip())
            if line.startswith(b"serving"):
                self.ready.set()
        self.process.wait()
        self.ready.set()

    def stop(self) -> None:
        """End it: by the end of its stdin, then TERM, then KILL for its group."""
        self.stopping = True
        try:
            self.process.stdin.close()
        except OSError:
            pass  # it had ended
        for number in (signal.SIGTERM, signal.SIGKILL, None):
            end = time.monotonic() + END_SECONDS
            while self.alive and time.monotonic() < end:
                time.sleep(0.01)
            if not self.alive or number is None:
                return
            try:
                os.killpg(self.process.pid, number)
            except (ProcessLookupError, PermissionError):
                return

    def row(self) -> dict[str, Any]:
        """Plain data for `labd daemons` and `hid show`."""
        lab, target = self.key
        return {"lab": lab, "target": target, "channel": self.channel, "command": self.command,
                "pid": self.process.pid, "since": self.since}  # fmt: skip


class KeptHooks:
    """All of one daemon, one a target of a lab."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks
        self._kept: dict[tuple[str, str], KeptHook] = {}

    def start(self, call: Any, target: str, channel: str, command: str,
              who: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:  # fmt: skip
        """Keep `command serve` running for a target: what runs, and whether it was started now.

        Raises TimedOut when it does not come to serve, PassedOn with its exit code when it ends, Unreachable when it
        can't be started, Busy when a hook of the target does not end.
        """
        key = (os.path.realpath(call.lab_path), target)
        with self.hooks.turn(call.lab_path, target, f"{channel} serve"):
            kept = self._kept.get(key)
            if kept is not None and kept.alive and kept.command == command:
                return kept.row(), False
            self._end(key, who)
            kept = self._kept[key] = self._started(call, key, channel, command)
        self._tell(kept, "serving", who=who, pid=kept.process.pid)
        return kept.row(), True

    def stop(self, lab_path: str, target: str, who: Mapping[str, Any]) -> bool:
        """End a target's; False when none ran."""
        return self._end((os.path.realpath(lab_path), target), who)

    def find(self, lab_path: str, target: str) -> dict[str, Any] | None:
        """A target's. Thread-safe."""
        kept = self._kept.get((os.path.realpath(lab_path), target))
        return kept.row() if kept is not None and kept.alive else None

    def rows(self) -> list[dict[str, Any]]:
        """All that run. Thread-safe."""
        return [kept.row() for kept in list(self._kept.values()) if kept.alive]

    def close(self) -> None:
        """End all."""
        for key in list(self._kept):
            self._end(key, {"face": "daemon"})

    def _started(self, call: Any, key: tuple[str, str], channel: str, command: str) -> KeptHook:
        folder, env = os.path.dirname(call.lab_path), self.hooks.env_of(call, key[1])
        argv = argv_of(command, env, folder, ["serve"])
        kept = KeptHook(*key, channel, command, shim.start_kept(argv, cwd=folder, env=env))
        threading.Thread(target=self._follow, args=(kept,), daemon=True).start()
        in_time = kept.ready.wait(READY_SECONDS)
        if in_time and kept.alive:
            return kept
        kept.stop()
        because = f": {kept.said[-1]}" if kept.said else ""
        if in_time:
            code = kept.process.returncode
            raise PassedOn(
                f"{key[1]}: {command} serve ended with exit code {code}{because}", code or LabdError.exit_code
            )
        raise TimedOut(f"{key[1]}: {command} serve did not say that it serves within {READY_SECONDS:g} s{because}",
                       hint="labd hid serve --help")  # fmt: skip

    def _follow(self, kept: KeptHook) -> None:
        kept.read()
        if not kept.stopping and self._kept.get(kept.key) is kept:
            self._tell(kept, "ended", code=kept.process.returncode, said=list(kept.said)[-1:])

    def _end(self, key: tuple[str, str], who: Mapping[str, Any]) -> bool:
        kept = self._kept.pop(key, None)
        if kept is None or not kept.alive:
            return False
        kept.stop()
        self._tell(kept, "stopped", who=who)
        return True

    def _tell(self, kept: KeptHook, state: str, **fields: Any) -> None:
        self.hooks.chronicle.tell(*kept.key, kept.channel, "helper", state=state, command=kept.command, **fields)
