"""Running the hooks of a target: found, run without a shell, one at a time a target, bounded, recorded.

Used by the channels whose work commands of the operator's do (`power`, `hid`). Blocks: it runs in the worker thread of
the call that asked. A hook that has begun goes on to its end or its time limit when the caller goes away: half a power
cycle would leave a board off.
"""

from __future__ import annotations

import os
import shlex
import time
from threading import Lock
from typing import TYPE_CHECKING, Any

from labd import helpers, hookwords, paths, shim
from labd.errors import Busy, LabdError, PassedOn, TimedOut
from labd.lab import hooks
from labd.lab.redact import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from labd.chronicle import Chronicle

#: Seconds that a hook may take where the lab does not say.
TIMEOUT_SECONDS = 60.0

#: Characters of a hook's output that its record and an error keep.
SAID_MAX = 2000


def argv_of(command: str, env: Mapping[str, str], folder: str, extra: Sequence[str] = ()) -> list[str]:
    """The argv of a hook: words as sh would split them, a leading `~` expanded, a bundled helper's name resolved.

    Also behind `sudo` and `env`: sudo would look for it in a PATH of its own. A relative program path with a slash
    counts from `folder`, the lab file's directory. Raises LabdError for what is no command without a shell.
    """
    try:
        taken = hooks.take_apart(command)
    except ValueError as error:
        raise LabdError(f"the hook {command!r} can't be run: {error}") from None
    if taken.shell:
        quoted = hooks.quotable(command)
        meant = f"; or, if it is meant as it is written, {quoted}" if quoted else ""
        raise LabdError(f"the hook {command!r} needs a shell for {taken.shell}", hint=hooks.with_shell(command) + meant)
    words = [paths.expand(word, env, folder) if word == "~" or word.startswith("~/") else word for word in taken.words]
    if "/" in words[0]:
        words[0] = paths.expand(words[0], env, folder)
    at = hookwords.programs(words)[-1]
    if helpers.has(words[at]):
        words[at : at + 1] = helpers.command(words[at])
    return [*words, *extra]


class Hooks:
    """The one that runs hooks, for one daemon. `folder` is where helpers are put as programs, for hooks' shells."""

    def __init__(self, chronicle: Chronicle, folder: str) -> None:
        self.chronicle = chronicle
        self.folder = folder
        self.environment: Callable[[str, str], Mapping[str, str]] = lambda lab_path, target: {}
        """What else a hook's environment holds, for a lab and target (the sockets of a virtual board)."""
        self._making = Lock()
        self._turns: dict[tuple[str, str], _Turn] = {}
        self._switched: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
        self._placed = False

    def run(self, call: Any, target: str, channel: str, action: str, command: str, who: Mapping[str, Any], *,
            extra: Sequence[str] = (), timeout_s: float | None = None, stdin: bytes = b"",
            script: str | None = None) -> shim.Ended:  # fmt: skip
        """Run `command` (and `extra` words) for `action` on a channel of a target, asked by `who`; what it did.

        `script`, for sh, is what is run in place of `command` where that is several hooks: see `shell_words`.
        Raises TimedOut when it was killed at its limit, PassedOn with its own exit code when it failed, Busy when
        another hook of this target did not end in time, Unreachable when it can't be started.
        """
        limit = TIMEOUT_SECONDS if timeout_s is None else timeout_s
        folder = os.path.dirname(call.lab_path)
        env = self.env_of(call, target)
        argv = argv_of(command, env, folder, extra) if script is None else ["sh", "-c", script]
        shown = " ".join([command, *extra])

        def told() -> None:
            call.note(f"{target}: the {channel} hook for {action} is running; it may take {limit:g} s")

        with self.turn(call.lab_path, target, f"{channel} {action}", limit, call.note):
            if channel == "power" and action != "state":
                self._switched[os.path.realpath(call.lab_path), target] = (f"power {action}", who)
            try:
                ended = shim.run_hook(argv, cwd=folder, env=env, timeout_s=limit, stdin=stdin, on_wait=told)
            except LabdError as error:
                self._tell(call, target, channel, action, shown, who=who, code=None, error=error.message)
                raise
            said = {"code": ended.code, "ms": round(ended.ms, 1), "out": _head(ended.out), "err": _head(ended.err)}
            self._tell(call, target, channel, action, shown, who=who, **said)
        if ended.code is None:
            over = ended.ms / 1000 - limit
            how = "ended" if over < shim.GRACE_SECONDS else f"asked to end, and killed {over:.0f} s later"
            raise TimedOut(
                f"{target}: the {channel} hook for {action} did not end within {limit:g} s; its process group was "
                f"{how}: {redact(shown + _because(ended))}",
                hint=f"labd power set -t {target} --timeout-s 120" if channel == "power" else None,
            )
        if ended.code:
            raise PassedOn(
                f"{target}: the {channel} hook for {action} failed with exit code {ended.code}: "
                f"{redact(shown + _because(ended))}",
                ended.code,
            )
        return ended

    def last_switched(self, lab_path: str, target: str) -> tuple[str, Mapping[str, Any]] | None:
        """What switched a target's power last (`power off`), and the very `who` that `run` was given for it."""
        return self._switched.get((os.path.realpath(lab_path), target))

    def running(self) -> list[dict[str, Any]]:
        """The hooks that run, each with the seconds since when, and how many it has left. Thread-safe."""
        now = time.monotonic()
        return [
            {"lab": lab, "target": target, "what": turn.holder, "for_s": round(now - turn.since, 1),
             "left_s": round(max(0.0, turn.since + turn.limit - now), 1)}
            for (lab, target), turn in list(self._turns.items()) if turn.lock.locked()
        ]  # fmt: skip

    def shell_words(self, call: Any, target: str, command: str) -> str:
        """A hook as a part of a shell script that does what running the hook alone would. Raises LabdError."""
        return shlex.join(argv_of(command, self.env_of(call, target), os.path.dirname(call.lab_path)))

    def env_of(self, call: Any, target: str) -> dict[str, str]:
        """The daemon's environment (which may hold a helper's password), the caller's over it, and where it runs."""
        env = {**os.environ, **call.env, "LABD_TARGET": target, "LABD_LAB": call.lab_path}
        env |= self.environment(call.lab_path, target)
        env.pop("LABD_ARGV_LOG", None)
        env["PATH"] = os.pathsep.join([self._helpers(), env.get("PATH") or os.defpath])
        return env

    def _helpers(self) -> str:
        """The folder in which every helper is a program, made once a daemon."""
        if not self._placed:
            self._placed = True
            try:
                helpers.place(self.folder)
            except OSError as error:
                self.chronicle.log(f"{self.folder}: {error.strerror}: hooks' shells can't call helpers by name")
        return self.folder

    def turn(self, lab_path: str, target: str, what: str, seconds: float = TIMEOUT_SECONDS,
             note: Callable[[str], None] | None = None) -> _Turn:  # fmt: skip
        """The turn of a target's hooks, taken for `what`; to be left by `with`. Raises Busy after `seconds`.

        `note` hears what is waited for when that takes long.
        """
        key = (os.path.realpath(lab_path), target)
        with self._making:
            turn = self._turns.setdefault(key, _Turn(target))
        turn.take(what, seconds, note)
        return turn

    def _tell(self, call: Any, target: str, channel: str, action: str, command: str, **fields: Any) -> None:
        said = {key: redact(value) if isinstance(value, str) else value for key, value in fields.items()}
        self.chronicle.tell(call.lab_path, target, channel, "hook", action=action, command=redact(command), **said)
        why = self.chronicle.failing(call.lab_path, target)
        if why:
            call.note(f"{target}: what was done is not recorded yet ({why}); it is kept until it can be written")


class _Turn:
    """One hook at a time: `take` waits for it, leaving the `with` block gives it on."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.lock = Lock()
        self.holder = ""
        self.since = 0.0
        self.limit = 0.0

    def take(self, what: str, seconds: float, note: Callable[[str], None] | None = None) -> None:
        """Raises Busy, naming what holds it, after `seconds`."""
        first = min(seconds, shim.WAIT_SECONDS)
        taken = self.lock.acquire(timeout=first)
        if not taken and seconds > first:
            if note is not None:
                note(f"{self.target}: waiting for {self.holder}, which is running, up to {seconds:g} s …")
            taken = self.lock.acquire(timeout=seconds - first)
        if not taken:
            for_s = time.monotonic() - self.since
            raise Busy(f"{self.target}: {self.holder} has been running for {for_s:.0f} s; nothing was done")
        self.holder, self.since, self.limit = what, time.monotonic(), seconds

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self.lock.release()


def _head(data: bytes) -> str:
    return data[:SAID_MAX].decode("utf-8", "replace")


def _because(ended: shim.Ended) -> str:
    """The last line that a hook wrote, which is most often why it failed."""
    said = (ended.err.strip() or ended.out.strip()).decode("utf-8", "replace")
    last = said.splitlines()[-1].strip() if said else ""
    return f": {last[:300]}" if last else ""
