"""How far a grader agrees with people, and what its rate is worth then. Pure, standard library only.

Raw agreement flatters where one outcome is common, so it is never told without Cohen's kappa and the table behind it.
A rate that a grader with known errors measured is corrected by its sensitivity and specificity (Rogan and Gladen 1978);
the interval takes the uncertainty of all three (delta method, as Lang and Reiczigel 2014 do for the simple case).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from harness.stats import Z95, wilson


@dataclass(frozen=True)
class Confusion:
    """Sessions by what people say (first word) and what the grader says (second): pass or fail."""

    pass_pass: int = 0
    pass_fail: int = 0
    fail_pass: int = 0
    fail_fail: int = 0

    @property
    def total(self) -> int:
        return self.pass_pass + self.pass_fail + self.fail_pass + self.fail_fail

    @property
    def agreed(self) -> int:
        return self.pass_pass + self.fail_fail

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa; None where it is not defined: nothing was compared, or all is one outcome on both sides."""
        if not self.total:
            return None
        people, grader = self.pass_pass + self.pass_fail, self.pass_pass + self.fail_pass
        chance = people * grader + (self.total - people) * (self.total - grader)
        if chance == self.total**2:
            return None
        return (self.agreed * self.total - chance) / (self.total**2 - chance)

    @property
    def sensitivity(self) -> float | None:
        """Of what people pass, the share that the grader passes."""
        return _share(self.pass_pass, self.pass_pass + self.pass_fail)

    @property
    def specificity(self) -> float | None:
        """Of what people fail, the share that the grader fails."""
        return _share(self.fail_fail, self.fail_fail + self.fail_pass)

    @property
    def kappa_interval(self) -> tuple[float, float] | None:
        """95 % around kappa, by its large-sample error (Cohen 1960): rough under some 30 sessions."""
        kappa = self.kappa
        if kappa is None:
            return None
        people, grader = self.pass_pass + self.pass_fail, self.pass_pass + self.fail_pass
        chance = (people * grader + (self.total - people) * (self.total - grader)) / self.total**2
        observed = self.agreed / self.total
        half = Z95 * sqrt(observed * (1 - observed) / (self.total * (1 - chance) ** 2))
        return max(-1.0, kappa - half), min(1.0, kappa + half)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def confusion(pairs: Iterable[tuple[bool, bool]]) -> Confusion:
    """The table of (people say pass, the grader says pass)."""
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for pair in pairs:
        counts[pair] += 1
    return Confusion(counts[True, True], counts[True, False], counts[False, True], counts[False, False])


def weighted_kappa(pairs: Iterable[tuple[int, int]], most: int = 2) -> float | None:
    """Cohen's kappa of scores from 0 to `most`, a disagreement counted by its square; None where it is not defined."""
    seen = list(pairs)
    total = len(seen)
    if not total:
        return None
    observed = sum((one - other) ** 2 for one, other in seen)
    chance = sum((one - other) ** 2 for one, _ in seen for _, other in seen) / total
    return 1 - observed / chance if chance else None


@dataclass(frozen=True)
class Corrected:
    """A true rate as far as it can be told from a measured one; `low` and `high` bound it (95 %)."""

    rate: float
    low: float
    high: float


def corrected(passed: int, valid: int, table: Confusion) -> Corrected | None:
    """The rate behind `passed` of `valid` verdicts of a grader that errs as `table` says.

    None where it can't be told: people passed none or failed none, or the grader does not tell the two apart.
    """
    sensitivity, specificity = table.sensitivity, table.specificity
    if sensitivity is None or specificity is None or not valid or sensitivity + specificity <= 1:
        return None
    spread = sensitivity + specificity - 1
    measured = passed / valid
    rate = min(1.0, max(0.0, (measured + specificity - 1) / spread))
    good, bad = table.pass_pass + table.pass_fail, table.fail_fail + table.fail_pass
    half = Z95 * sqrt(
        _variance(passed, valid) + rate**2 * _variance(table.pass_pass, good) + (1 - rate) ** 2
        * _variance(table.fail_fail, bad)
    ) / spread  # fmt: skip
    return Corrected(rate, max(0.0, rate - half), min(1.0, rate + half))


def _variance(part: int, whole: int) -> float:
    """The variance of a share, from Wilson's interval: none seen to err is not known never to err."""
    bounds = wilson(part, whole)
    return ((bounds[1] - bounds[0]) / (2 * Z95)) ** 2 if bounds else 0.0
