"""What an agent gets: the goal, and a way to run commands in its sandbox. Everything it does is kept as evidence.

The agents are written against this and against nothing else. Owns the trial's time limit: a command is never given
more than what is left of it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness import execute
from harness.sandbox import Sandbox
from harness.scenario import Scenario, Step

#: The most that is kept of each stream of an agent's own program (bytes): one that prints more is stopped.
PROGRAM_BYTES = 32 << 20

#: Seconds between two tries of a step that waits for something.
PAUSE_S = 0.1


class TimeIsUp(Exception):
    """The scenario's time ran out; the trial ends with the cause `time_limit`."""


class Interrupted(Exception):
    """Somebody stopped the run; nothing of this trial is kept."""


class GaveUp(Exception):
    """The agent can't go on: what it needed did not come. The trial ends with the cause `agent_stopped`."""


class Unavailable(Exception):
    """This machine lacks a program that the agent goes by; the trial ends with the cause `capability_missing`."""


@dataclass(frozen=True)
class Call:
    """One command that the agent ran, as told in calls.jsonl: of a step that waits, the last run.

    `tries` counts its runs; `spent_s` is the time of all of them and of the pauses between.
    """

    step: str
    ended: execute.Ended
    tries: int
    spent_s: float


class Bench:
    """One agent's side of one trial."""

    def __init__(self, scenario: Scenario, sandbox: Sandbox, *, cancelled: Callable[[], bool] = lambda: False) -> None:
        self.scenario = scenario
        self.sandbox = sandbox
        self.calls: list[Call] = []
        self.limit_s = scenario.timeout_s
        self.deadline = time.monotonic() + scenario.timeout_s
        self._cancelled = cancelled

    @property
    def values(self) -> Mapping[str, str]:
        """What the placeholders stand for in this trial: `nonce`, `lab`, `home`."""
        return self.sandbox.values

    def limit(self, seconds: float) -> None:
        """Give the agent this much time, from now."""
        self.limit_s = seconds
        self.deadline = min(self.deadline, time.monotonic() + seconds)

    def run(self, step: Step, values: Mapping[str, str] | None = None) -> execute.Ended:
        """Run one line until it ends; if it waits for something (`until`), again until that comes.

        Raises TimeIsUp or Interrupted; the command so far is kept.
        """
        argv = step.argv(values or self.values)
        wanted = step.wanted(values or self.values)
        begun = time.monotonic()
        tries = 0
        while True:
            tries += 1
            ended = self._once(argv)
            came = wanted is None or wanted.search(ended.stdout.decode("utf-8", "replace"))
            if came or ended.ended_by != "exit" or time.monotonic() >= begun + step.within_s:
                break
            time.sleep(PAUSE_S)
        self.calls.append(Call(step.run, ended, tries, time.monotonic() - begun))
        if ended.ended_by == "cancelled":
            raise Interrupted
        if ended.ended_by == "time_limit":
            raise TimeIsUp(f"{self.limit_s:g} s ran out during: {step.run}")
        return ended

    def program(self, argv: Sequence[str], env: Mapping[str, str] | None = None, stdin: bytes = b"",
                halt: Callable[[bytearray], execute.Halt | None] = lambda _: None) -> execute.Ended:  # fmt: skip
        """Run an agent's own program until it ends, the trial's time is up, or `halt` (of execute.run) says so.

        Its output is kept in any case, up to PROGRAM_BYTES of each stream. `env` adds to the sandbox's variables and
        never replaces one. Raises Interrupted, and nothing else: `ended_by` says what ended it.
        """
        ended = self._once(list(argv), {**(env or {}), **self.sandbox.env}, stdin, kept=PROGRAM_BYTES, halt=halt)
        if ended.ended_by == "cancelled":
            raise Interrupted
        return ended

    def _once(self, argv: list[str], env: Mapping[str, str] | None = None, stdin: bytes = b"", **more: Any
              ) -> execute.Ended:  # fmt: skip
        ended = execute.run(
            argv,
            env=env or self.sandbox.env,
            stdin=stdin,
            cwd=self.sandbox.work,
            limit_s=max(0.0, self.deadline - time.monotonic()),
            cancelled=self._cancelled,
            mark=self.sandbox.mark,
            **more,
        )
        if ended.session:
            self.sandbox.sessions.add(ended.session)
        return ended

    def rehearse(self, act: "Callable[[Bench], str]") -> tuple[str, bytes | None]:
        """Let `act` play in a second sandbox with the same seed and nonce; its answer, and the lab it ended with.

        For controls that fake a right end: nothing of it is evidence of this trial.
        """
        from harness.sandbox import create

        copy = create(self.scenario, self.sandbox.subject)
        try:
            other = Bench(self.scenario, copy, cancelled=self._cancelled)
            other.deadline = self.deadline
            answer = act(other)
            copy.stop()
            lab = copy.lab_bytes()
        finally:
            copy.stop()
            copy.close()
        swap = {copy.values[name]: self.values[name] for name in ("lab", "home", "nonce")}
        return _swapped(answer, swap), None if lab is None else _swapped(lab.decode("utf-8", "replace"), swap).encode()


def _swapped(text: str, swap: Mapping[str, str]) -> str:
    for old, new in swap.items():
        text = text.replace(old, new)
    return text


def as_text(raw: bytes) -> dict[str, Any]:
    """Bytes for JSON: readable text, and exact base64 beside it when the bytes are not UTF-8."""
    import base64

    try:
        return {"text": raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {"text": raw.decode("utf-8", "replace"), "b64": base64.b64encode(raw).decode("ascii")}
