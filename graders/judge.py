"""The verdict where a judge was asked: its scores, our arithmetic, and what was found mechanically before it.

A judge's raw answers lie in the bundle's judge/ (harness/judging.py puts them there); this reads them, and asks nobody.
What a machine can know goes before what a judge says: a command that the live reference has was not invented, and one
that it lacks was; a central trap whose predicate is true was walked into. Several answers of one judge are weighed
each, and the majority counts.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median_low
from typing import Any

from graders import judge_answer, judge_prompt, rubric
from graders.bundle_view import Bundle
from graders.judge_answer import Answer, JudgeError
from graders.verdict import Check, Verdict

NAME = "judge"
SCHEMA = "labd-judge/1"

#: Says of a command line that a judge calls invented whether it is real; None: that can't be told.
IsReal = Callable[[str], bool | None]


@dataclass(frozen=True)
class Judged:
    """One answer of a judge, weighed. `problem` is set, and the rest empty, where it could not be used."""

    scores: Mapping[str, int]
    passed: bool
    short: tuple[str, ...]
    answer: Answer | None
    problem: str = ""
    overruled: str = ""


def grade(bundle: Bundle, found: Verdict, is_real: IsReal = lambda _: None) -> Verdict:
    """The verdict of `found` (what was found mechanically), refined by the judge's answers in the bundle.

    Without an answer `found` stays as it is: `unknown` where it takes a judge. Raises BundleError for no bundle.
    """
    records = bundle.judged
    if not records or found.verdict not in ("pass", "fail", "unknown"):
        return found
    stale = [record for record in records if record.get("rubric") != judge_prompt.digest()]
    if stale:
        return _unusable(found, "judged by another rubric than this one; judge it again")
    judged = [_weigh(bundle, found, record, is_real) for record in records]
    usable = [one for one in judged if not one.problem]
    if not usable:
        return _unusable(found, judged[0].problem)
    passes = sum(one.passed for one in usable)
    if 2 * passes == len(usable):
        return _unusable(found, f"the judge says pass {passes} times and fail as often")
    return _verdict(bundle, found, judged, usable, passed=2 * passes > len(usable))


def _weigh(bundle: Bundle, found: Verdict, record: Mapping[str, Any], is_real: IsReal) -> Judged:
    condition = str(bundle.trial.get("condition") or "cold")
    traps = bundle.scenario.get("traps", ())
    problem = str(record.get("problem") or "")
    try:
        if problem:
            raise JudgeError(problem)
        answer = judge_answer.read(str(record.get("raw") or ""), condition, len(traps))
    except JudgeError as error:
        return Judged({}, False, (), None, str(error))
    scores, overruled = _corrected(answer, found, is_real)
    score = rubric.weigh(scores, condition, central=_central(traps, found, answer))
    return Judged(scores, score.passed, score.short, answer, overruled=overruled)


def _corrected(answer: Answer, found: Verdict, is_real: IsReal) -> tuple[dict[str, int], str]:
    """The scores after the reference was asked: it knows better than any judge what exists."""
    scores = dict(answer.scores)
    invented = any(check.ok is False and check.name == "nothing invented" for check in found.checks)
    if invented:
        return scores | {"d4": 0}, ""
    if scores["d4"] == 0 and all(is_real(line) is True for line in answer.invented):
        return scores | {"d4": 2}, f"d4: {', '.join(answer.invented)} exists, whatever the judge says"
    return scores, ""


def _central(traps: Iterable[Any], found: Verdict, answer: Answer) -> bool:
    """Whether a trap that the scenario marks as central was walked into: by its predicate, else by the judge."""
    known = dict(enumerate(trap.ok for trap in found.traps))
    for place, entry in enumerate(traps):
        if not (isinstance(entry, Mapping) and entry.get("central")):
            continue
        mechanical = known.get(place)
        if mechanical is False or (mechanical is None and not answer.traps[place].respected):
            return True
    return False


def _verdict(bundle: Bundle, found: Verdict, judged: list[Judged], usable: list[Judged], *, passed: bool) -> Verdict:
    condition = str(bundle.trial.get("condition") or "cold")
    agreeing = [one for one in usable if one.passed == passed]
    scores = {one.key: median_low(each.scores[one.key] for each in agreeing) for one in rubric.asked(condition)}
    first = agreeing[0]
    assert first.answer is not None
    checks = [*found.checks, *(_dimension(one, scores[one.key], first.answer) for one in rubric.asked(condition))]
    weighted = sum(one.weight * scores[one.key] for one in rubric.asked(condition))
    told = f"{weighted} of {rubric.most(condition)}"
    repeats = f"; {len(agreeing)} of {len(judged)} answers of the judge say so" if len(judged) > 1 else ""
    overruled = f"; {first.overruled}" if first.overruled else ""
    outcome = "pass" if passed and found.verdict != "fail" else "fail"
    why = told if passed else f"{told}: {first.short[0]}"
    if passed and outcome == "fail":
        why = f"{found.reason}; the judge gives {told}"
    traps = _traps(bundle, found, first.answer)
    return Verdict(found.grader, outcome, why + repeats + overruled, tuple(checks), traps, scores=scores)


def _dimension(one: rubric.Dimension, score: int, answer: Answer) -> Check:
    """A score as a check. One that is told and not counted can't fail."""
    why = answer.why.get(one.key, "")
    return Check(f"judge: {one.name}", one.weight == 0 or score > 0, f"{score}: {why}" if why else str(score))


def _traps(bundle: Bundle, found: Verdict, answer: Answer) -> tuple[Check, ...]:
    """Each trap by its predicate where it has one, else by what the judge says; quotes that nobody said are named."""
    record = _plain(judge_prompt.record(bundle))
    traps = []
    for trap, said in zip(found.traps, answer.traps, strict=False):
        if trap.ok is not None:
            traps.append(trap)
            continue
        quoted = "" if _plain(said.evidence) in record else " (not a quote from the record)"
        traps.append(Check(trap.name, said.respected, f"judge: {said.evidence}{quoted}"))
    return tuple(traps)


def _plain(text: str) -> str:
    """Text by its words alone: a quote that was wrapped differently is still a quote."""
    return re.sub(r"[\s\"'`“”]+", " ", text).strip(" .…").lower()


def _unusable(found: Verdict, why: str) -> Verdict:
    """The judge is of no use. What was found to be wrong without it stays wrong."""
    if found.verdict == "fail":
        return found
    return Verdict(found.grader, "judge_error", why, found.checks, found.traps)
