"""What the end of a trial means: one frozen table from cause to policy, usable on stored results for ever.

The cause is read from what the harness itself saw (who ended the trial), never from text that an agent controls.
A valid outcome is never run again: a rerun of failures alone would lift the rate. An invalid one stays on disk, is in
no rate, and a new trial of its own takes its place.
"""

from collections.abc import Collection
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Verdict = Literal["pass", "fail", "not_run", "not_applicable", "blocked", "not_reached", "unknown", "harness_error",
                  "provider_error", "judge_error"]  # fmt: skip
Rerun = Literal["never", "new_trial", "resume"]


@dataclass(frozen=True)
class Policy:
    """What a cause means. `verdict` None leaves it to the graders; `valid` says whether it may enter a rate.

    `rerun`: `never` (it is the agent's result), `new_trial` (again, under a new number, when asked for),
    `resume` (the same trial is run by the next --resume, since nothing was kept of it).
    """

    cause: str
    verdict: Verdict | None
    valid: bool
    rerun: Rerun
    meaning: str


_TABLE = (
    Policy("completed", None, True, "never", "the agent came to its own end"),
    Policy("agent_stopped", None, True, "never", "the agent gave up: a step it needed gave nothing to go on with"),
    Policy("time_limit", "fail", True, "never", "the scenario's time ran out and the agent was stopped"),
    Policy("agent_exit", None, True, "never", "the agent's program ended by itself, with an error, after it had begun"),
    Policy("turn_limit", "fail", True, "never", "the agent used up the turns that the run gave it"),
    Policy("token_limit", "fail", True, "never", "the agent used up the tokens that the run gave it"),
    Policy("money_limit", "fail", True, "never", "the agent used up the money that the run gave it"),
    Policy("output_limit", "fail", True, "never", "the agent printed without end and was stopped"),
    Policy("agent_missing", "blocked", False, "new_trial", "the agent's program is not installed"),
    Policy("agent_failed_to_start", "harness_error", False, "new_trial", "the agent's program ended before it began"),
    Policy("transcript_unreadable", "harness_error", False, "new_trial", "what the agent left is in no known form"),
    Policy("condition_broken", "harness_error", False, "new_trial", "the agent knew more, or less, than it should"),
    Policy("smoke", "not_applicable", False, "never", "run without isolation: a smoke test, which counts for nothing"),
    Policy("agent_crashed", "harness_error", False, "new_trial", "the harness's own code of the agent raised"),
    Policy("sandbox_failed", "harness_error", False, "new_trial", "the sandbox could not be made or read"),
    Policy("bundle_failed", "harness_error", False, "new_trial", "the evidence could not be written"),
    Policy("processes_left", "harness_error", False, "new_trial", "a process of the sandbox could not be ended"),
    Policy("worker_lost", "harness_error", False, "new_trial", "the worker that ran the trial died, or was cut off"),
    Policy("subject_missing", "blocked", False, "new_trial", "the program under test is not installed"),
    Policy("capability_missing", "blocked", False, "new_trial", "this machine lacks what the lane needs"),
    Policy("not_executable", "not_run", False, "never", "the scenario has no lane that executes commands"),
    Policy("provider_failed", "provider_error", False, "new_trial", "the model's provider failed, not the agent"),
    Policy("interrupted", "not_run", False, "resume", "somebody stopped the run; nothing of this trial is kept"),
)

CAUSES = MappingProxyType({policy.cause: policy for policy in _TABLE})
assert len(CAUSES) == len(_TABLE), "a cause is listed twice"
assert all((policy.verdict in (None, "fail")) == policy.valid for policy in _TABLE), "only pass and fail are valid"


def policy_of(cause: str) -> Policy:
    """The policy of a cause; one that this version does not know (a newer bundle) is a harness error, never a pass."""
    return CAUSES.get(cause) or Policy(cause, "harness_error", False, "new_trial", "a cause this version doesn't know")


def as_expected(verdict: str, cause: str | None, wanted: Collection[str]) -> bool:
    """Whether a trial ended as its agent is there to end. What a machine lacks is nobody's fault, and no surprise."""
    return verdict in wanted or cause == "capability_missing"
