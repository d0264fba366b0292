"""The closed vocabulary of findings, and what one finding looks like. Every grader answers with a Verdict.

Pure values: no clock, no path of this machine, no order that depends on a hash, so that grading a bundle again
years later gives the same bytes. Imports nothing of the project.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

SCHEMA = "labd-verdict/1"

Outcome = Literal[
    "pass",
    "fail",
    "not_run",
    "not_applicable",
    "blocked",
    "not_reached",
    "unknown",
    "harness_error",
    "provider_error",
    "judge_error",
]

#: What each word says, for reports. Only `pass` and `fail` enter a rate.
MEANING: dict[str, str] = {
    "pass": "every check held",
    "fail": "at least one check did not hold",
    "not_run": "nobody tried",
    "not_applicable": "reviewed: the question does not arise here",
    "blocked": "a prerequisite is missing on this machine",
    "not_reached": "an earlier stage did not get there",
    "unknown": "no check failed, but evidence is missing",
    "harness_error": "the exam itself broke; says nothing about the agent",
    "provider_error": "the model's provider broke; says nothing about the agent",
    "judge_error": "the judge's answer could not be used",
}
assert set(MEANING) == set(get_args(Outcome)), "every outcome has a meaning, every meaning an outcome"

#: The outcomes that enter a rate.
RATED: frozenset[str] = frozenset({"pass", "fail"})


@dataclass(frozen=True)
class Check:
    """One question that a grader asked. `ok` is None where the evidence that would answer it is missing.

    `name` is the same in every trial of a scenario (no nonce, no path of a sandbox), so that reports can count it.
    """

    name: str
    ok: bool | None
    detail: str = ""


@dataclass(frozen=True)
class Stage:
    """What one stage of a journey came to: `pass` or `fail`, `not_reached`, or `unknown` where evidence is missing."""

    name: str
    verdict: Outcome
    detail: str = ""


@dataclass(frozen=True)
class Verdict:
    """What one grader found in one bundle. `reason` is one line a person can act on.

    `traps` has one entry a trap of the scenario (ok: not walked into; None: a judge has to say). They are counted
    by reports and do not enter the verdict, which is about the end that was reached. `scores`: a judge's, a dimension
    (graders/rubric.py), where there was one. `stages`: a journey's, in order.
    """

    grader: str
    verdict: Outcome
    reason: str
    checks: tuple[Check, ...] = ()
    traps: tuple[Check, ...] = ()
    scores: Mapping[str, int] = field(default_factory=dict)
    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict not in MEANING:
            raise ValueError(f"no such verdict {self.verdict!r}; known: {', '.join(MEANING)}")

    @property
    def rated(self) -> bool:
        """Whether it enters a rate."""
        return self.verdict in RATED

    def as_dict(self) -> dict[str, Any]:
        """Plain data with its schema's name."""
        told = {"schema": SCHEMA, **asdict(self)}
        for name in ("scores", "stages"):
            if not told[name]:
                del told[name]
        return told

    def dumps(self) -> str:
        """JSON, the same bytes for the same finding, with a final newline."""
        return json.dumps(self.as_dict(), indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def from_dict(data: dict[str, Any]) -> Verdict:
    """A Verdict from what `dumps` wrote. Raises ValueError for another schema or an outcome out of vocabulary."""
    if data.get("schema") != SCHEMA:
        raise ValueError(f"not a {SCHEMA} record: {data.get('schema')!r}")
    checks, traps = (tuple(Check(**check) for check in data[key]) for key in ("checks", "traps"))
    stages = tuple(Stage(**stage) for stage in data.get("stages", ()))
    return Verdict(data["grader"], data["verdict"], data["reason"], checks, traps, dict(data.get("scores", {})), stages)


def conclude(grader: str, checks: Iterable[Check], traps: Iterable[Check] = ()) -> Verdict:
    """The verdict that follows from checks: one that failed fails all, else one unanswered leaves it unknown.

    No checks at all is `unknown`: a grader that asked nothing has found nothing.
    """
    asked, trapped = tuple(checks), tuple(traps)
    failed = [check for check in asked if check.ok is False]
    open_ = [check for check in asked if check.ok is None]
    if failed:
        return Verdict(grader, "fail", _reason(failed), asked, trapped)
    if open_ or not asked:
        return Verdict(grader, "unknown", _reason(open_) if open_ else "no check applied", asked, trapped)
    return Verdict(grader, "pass", f"{len(asked)} checks held", asked, trapped)


def _reason(checks: list[Check]) -> str:
    first = checks[0]
    more = f" (and {len(checks) - 1} more)" if len(checks) > 1 else ""
    return f"{first.name}: {first.detail}{more}" if first.detail else f"{first.name}{more}"
