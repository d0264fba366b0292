"""What a record of an attempt is worth, and what many are: weights by class of failure. Pure function of records.

The weights are named and untuned: they say which order is meant (one silent wrong answer is worse than several honest
refusals, a refusal that says how to go on costs next to nothing), not how much anything matters. A score is there to
put two versions of one program side by side, under the same questions and conditions; it measures nothing absolute.

An attempt in which the environment failed (class E) is dropped, from the sum and from the number that divides it: what
comes after such a call is no longer the program's doing. What was the agent's own doing (class F) is told and not
charged. Whether the answer was right is the grader's verdict, which stands beside this and is no part of it.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from graders.contract import CLASSES, Call, Record

# Untuned: chosen before any distribution was seen, and to be set by one, not by taste.
#: Shares of the three terms. The first alone decides between one C and up to five A (tests/graders/test_score.py).
W_OUTCOME, W_RECOVERY, W_EFFORT = 0.80, 0.15, 0.05
#: What a call of each class costs. Of D, this and what each minute costs, up to what CHARGE_D_MOST says.
CHARGE = {"A": 0.25, "B": 0.01, "C": 8.0, "D": 0.25}
CHARGE_D_MINUTE, CHARGE_D_MOST = 0.25, 4.0

#: A call that went well, in counts.
OK = "ok"
#: Calls that the program answers for.
_ITS_OWN = frozenset({OK, *CHARGE})
#: What a failure asks to be followed by: a success, or a refusal that says how to go on.
_REDEEMS = frozenset({OK, "B"})
#: Failures that left the agent to find its way alone.
_LEFT_ALONE = frozenset({"A", "C", "D"})


@dataclass(frozen=True)
class Score:
    """One attempt. `value` is in (0, 1], None where it was dropped; `why` then says for what.

    `outcome` falls with every charge, `recovery` is the share of failures that were followed by a success or by a
    refusal with guidance (1 where nothing failed), `effort` the share of the program's calls that went well. A guided
    refusal (or empty answer) that came again, to the same words and with the same, counts once in both sums.
    `counts`: calls by class, `ok` for those of none.
    """

    value: float | None
    outcome: float | None
    recovery: float | None
    effort: float | None
    counts: dict[str, int]
    why: str = ""

    def data(self) -> dict[str, Any]:
        """Plain data, rounded to what is worth reading."""
        terms = {name: getattr(self, name) for name in ("value", "outcome", "recovery", "effort")}
        told = {name: None if value is None else round(value, 4) for name, value in terms.items()}
        return {**told, "counts": self.counts, "why": self.why}


def score(record: Record) -> Score:
    """The score of one attempt."""
    classes = [one.cls or OK for one in record.calls]
    counts = {name: classes.count(name) for name in (OK, *CLASSES)}
    if counts["E"]:
        number = classes.index("E") + 1
        return Score(None, None, None, None, counts, f"call {number}: the environment failed (class E)")
    mine = [name for name in classes if name in _ITS_OWN]
    if not mine:
        why = "every call was the agent's own mistake (class F)" if classes else "the program was never called"
        return Score(None, None, None, None, counts, why)
    charged = _once(record.calls)
    outcome = 1 / (1 + sum(map(charge, charged)))
    of_effort = sum((one.cls or OK) in _ITS_OWN for one in charged)
    recovery, effort = _recovered(mine), mine.count(OK) / of_effort
    return Score(W_OUTCOME * outcome + W_RECOVERY * recovery + W_EFFORT * effort, outcome, recovery, effort, counts)


def _once(calls: Iterable[Call]) -> list[Call]:
    """The calls without those that repeat a guided one, words and answer: who polls meets one refusal, many times."""
    met: set[tuple[object, ...]] = set()
    kept = []
    for one in calls:
        known = (one.argv, one.exit_code, one.stdout_head, one.stderr_head)
        if one.cls != "B" or known not in met:
            kept.append(one)
        met |= {known} if one.cls == "B" else set()
    return kept


def charge(call: Call) -> float:
    """What one call costs: nothing if it went well or was not the program's doing; a degenerate one by its time."""
    name = call.cls or OK
    cost = CHARGE.get(name, 0.0)
    if name == "D":
        cost += CHARGE_D_MINUTE * (call.duration_s or 0.0) / 60
    return min(cost, CHARGE_D_MOST) if name == "D" else cost


def _recovered(classes: list[str]) -> float:
    """The share of failures without guidance behind which anything redeems."""
    failures = [at for at, name in enumerate(classes) if name in _LEFT_ALONE]
    redeemed = sum(any(name in _REDEEMS for name in classes[at + 1 :]) for at in failures)
    return redeemed / len(failures) if failures else 1.0


def mean(scores: Iterable[Score]) -> dict[str, Any]:
    """The mean over attempts that have a score, with how many those are and why the others have none."""
    found = list(scores)
    values = [one.value for one in found if one.value is not None]
    dropped = Counter(one.why.partition(": ")[2] or one.why for one in found if one.value is None)
    return {
        "mean": round(sum(values) / len(values), 4) if values else None,
        "scored": len(values),
        "attempts": len(found),
        "dropped": dict(sorted(dropped.items())),
    }
