"""What several logs tell together: an arm is what was tried (with it, without it), a pass one log of an arm. Pure.

A share of one pass is a coin or two. Arms are held against each other by their passes, never by their calls, with an
exact permutation test; where so few passes could not show anything, that is what is said.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

from graders.sufficiency import BUCKETS, OF_PROGRAMS, Found

#: The level of the test, two-sided, and the most ways of dealing passes to arms that are tried one by one.
LEVEL, MOST_WAYS = 0.05, 50_000
#: With fewer answered calls than this, shares are told with a warning.
FEW = 30

NOT_CORRECT = "Enough is not correct: that it moved on says that the agent had enough to go on, not that it was right."
A_VOTE = "One call is a vote, not a proof; `again` does not say whether too little was found or too little shown."
UNSEEN = "Not seen, and so told as moved on: what sort, wc, diff, a script or an interpreter (python3 -) read."


@dataclass(frozen=True)
class Arm:
    """The passes of one arm."""

    name: str
    passes: tuple[Found, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many calls each bucket has, over all passes."""
        total: Counter[str] = Counter()
        for one in self.passes:
            total.update(one.counts)
        programs = any(one.thing.program for one in self.passes)
        return {name: total[name] for name in BUCKETS if programs or name not in OF_PROGRAMS}

    @property
    def answered(self) -> int:
        """How many calls have a bucket."""
        return sum(one.answered for one in self.passes)

    @property
    def shares(self) -> list[float]:
        """The share of calls that were enough, of each pass that has an answered call."""
        return [one.counts["moved_on"] / one.answered for one in self.passes if one.answered]

    def data(self) -> dict[str, Any]:
        """Plain data; shares are of answered calls, null where there are none."""
        counts, of = self.counts, self.answered
        return {
            "passes": len(self.passes),
            "answered": of,
            "counts": counts,
            "shares": {name: round(count / of, 4) if of else None for name, count in counts.items()},
            "open": sum(one.open for one in self.passes),
            "failed": sum(len(one.failed) for one in self.passes),
            "unanswered": sum(len(one.unanswered) for one in self.passes),
            "concurrent": sum(one.concurrent for one in self.passes),
            "other_route": sum(one.other_route for one in self.passes),
            "other_route_answered": sum(one.other_route_answered for one in self.passes),
            "enough_by_pass": [round(share, 4) for share in self.shares],
        }


@dataclass(frozen=True)
class Compared:
    """The second arm against the first. difference: of the mean shares of passes; p is None where nothing is tested."""

    first: str
    second: str
    difference: float | None
    p: float | None
    least: float | None
    sentence: str


def compare(first: Arm, second: Arm) -> Compared:
    """Whether the second arm's answers were enough more often, by passes."""
    ours, theirs = first.shares, second.shares
    names = first.name, second.name
    if not ours or not theirs:
        lacking = first.name if not ours else second.name
        return Compared(*names, None, None, None, f"not measured: {lacking} has no answered call")
    difference = _mean(theirs) - _mean(ours)
    points = f"{difference * 100:+.0f} points enough"
    if min(len(ours), len(theirs)) < 2:
        told = f"{points}; not compared: an arm needs two passes or more, {len(ours)} and {len(theirs)} are here"
        return Compared(*names, difference, None, None, told)
    least = 2 / comb(len(ours) + len(theirs), len(ours)) if len(ours) == len(theirs) \
        else 1 / comb(len(ours) + len(theirs), len(ours))  # fmt: skip
    if least > LEVEL:
        told = f"{points}; so few passes can't show a difference ({len(ours)} and {len(theirs)})"
        return Compared(*names, difference, None, least, told)
    p = permuted(ours, theirs)
    if p is None:
        return Compared(*names, difference, None, least, f"{points}; too many passes for the exact test: not tested")
    shown = ("better" if difference > 0 else "worse") if p <= LEVEL else "no difference shown"
    return Compared(*names, difference, p, least, f"{points}; {shown} (p = {p:.2g}, exact, by passes)")


def permuted(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """The exact two-sided p-value of the difference of means under all ways to deal the passes to two arms of these
    sizes; None where there are too many."""
    every = [*ours, *theirs]
    if comb(len(every), len(ours)) > MOST_WAYS:
        return None
    seen, total, hits, ways = abs(_mean(theirs) - _mean(ours)), sum(every), 0, 0
    for chosen in combinations(range(len(every)), len(ours)):
        mine = sum(every[at] for at in chosen)
        hits += abs((total - mine) / len(theirs) - mine / len(ours)) >= seen - 1e-12
        ways += 1
    return hits / ways


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def cautions(arms: Sequence[Arm]) -> list[str]:
    """What has to be said wherever these numbers are shown."""
    told = [f"{arm.name}: no answered call: nothing is measured." for arm in arms if not arm.answered]
    few = [arm for arm in arms if arm.answered and (arm.answered < FEW or len(arm.passes) < 2)]
    if few:
        counts = ", ".join(f"{arm.name} {arm.answered} in {len(arm.passes)}" for arm in few)
        most = 100 / min(arm.answered for arm in few)
        told.append(f"Few answered calls in few passes ({counts}): one call is up to {most:.0f} points. Read the "
                    "lines, not the shares; compare arms over two passes or more.")  # fmt: skip
    return [*told, A_VOTE, UNSEEN, NOT_CORRECT]
