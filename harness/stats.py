"""Rates of few trials: k of n with Wilson's interval, rates over scenarios, medians. Standard library only, pure.

Never a mean with a standard error: three of three is "44 to 100 %", not "100 % exactly". Trials of one scenario are not
independent of each other, so that a rate over several scenarios has scenarios as its unit, not trials.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, median, quantiles

Z95 = 1.959963984540054

#: The quantile of the normal distribution for a power of 80 %.
Z_POWER = 0.8416212335729143


@dataclass(frozen=True)
class Rate:
    """`passed` of `valid` trials that ended in pass or fail, of `attempted` in all.

    `interval` bounds the true rate (95 %, Wilson); None when nothing was valid: zero of zero is no rate.
    """

    passed: int
    valid: int
    attempted: int

    @property
    def interval(self) -> tuple[float, float] | None:
        return wilson(self.passed, self.valid)

    def data(self) -> dict[str, object]:
        """As JSON: counts, interval (null without valid trials)."""
        return {
            "passed": self.passed,
            "valid": self.valid,
            "attempted": self.attempted,
            "interval": _rounded(self.interval),
        }

    def __str__(self) -> str:
        bounds = self.interval
        if bounds is None:
            return f"not measured (0 valid of {self.attempted} attempted)"
        text = f"{self.passed}/{self.valid} ({bounds[0] * 100:.0f}–{bounds[1] * 100:.0f} %)"
        return text if self.valid == self.attempted else f"{text}, {self.valid} valid of {self.attempted} attempted"


@dataclass(frozen=True)
class Overall:
    """A rate over scenarios: the mean of their own rates, each counting the same however many trials it had.

    `interval` is Wilson's with as many observations as there are scenarios, as if the trials of one all said the same:
    wide rather than wrong. `cells` are those of the scenarios, also those without a valid trial, which are in no mean.
    """

    cells: tuple[Rate, ...]

    @property
    def measured(self) -> list[Rate]:
        """The scenarios with a valid trial."""
        return [cell for cell in self.cells if cell.valid]

    @property
    def mean(self) -> float | None:
        """Between 0 and 1; None when no scenario has a valid trial."""
        found = [cell.passed / cell.valid for cell in self.measured]
        return mean(found) if found else None

    @property
    def interval(self) -> tuple[float, float] | None:
        middle = self.mean
        return None if middle is None else wilson(middle * len(self.measured), len(self.measured))

    def data(self) -> dict[str, object]:
        """As JSON: the mean over scenarios and its interval, and the counts of trials below it."""
        return {
            "scenarios": len(self.measured),
            "of_scenarios": len(self.cells),
            "mean": None if self.mean is None else round(self.mean, 4),
            "interval": _rounded(self.interval),
            "passed": sum(cell.passed for cell in self.cells),
            "valid": sum(cell.valid for cell in self.cells),
            "attempted": sum(cell.attempted for cell in self.cells),
        }


@dataclass(frozen=True)
class Spread:
    """What lies in the middle of some measured values, and between what they lie: costs have heavy tails."""

    count: int
    low: float
    lower: float
    median: float
    upper: float
    high: float

    def data(self) -> dict[str, float | int]:
        """As JSON: count, median, quartiles, lowest and highest."""
        return {
            "count": self.count,
            "low": round(self.low, 6),
            "lower_quartile": round(self.lower, 6),
            "median": round(self.median, 6),
            "upper_quartile": round(self.upper, 6),
            "high": round(self.high, 6),
        }


def spread(values: Iterable[float]) -> Spread | None:
    """Median, quartiles (those of R's type 7) and range; None of nothing."""
    found = sorted(values)
    if not found:
        return None
    lower, _, upper = quantiles(found, n=4, method="inclusive") if len(found) > 1 else found * 3
    return Spread(len(found), found[0], lower, median(found), upper, found[-1])


def wilson(passed: float, valid: float, z: float = Z95) -> tuple[float, float] | None:
    """Wilson's score interval of `passed` of `valid`, within [0, 1]; None for zero of zero.

    Raises ValueError if `passed` is not between 0 and `valid`.
    """
    if not 0 <= passed <= valid:
        raise ValueError(f"{passed} of {valid} is no count")
    if valid == 0:
        return None
    rate, square = passed / valid, z * z / valid
    centre = (rate + square / 2) / (1 + square)
    half = z / (1 + square) * sqrt(rate * (1 - rate) / valid + square / (4 * valid))
    low = 0.0 if passed == 0 else max(0.0, centre - half)
    high = 1.0 if passed == valid else min(1.0, centre + half)
    return low, high


@dataclass(frozen=True)
class Noise:
    """What the same agent, run twice, would differ by, and what a comparison of that size can therefore see.

    `floor`: 95 % of the differences between two runs of the very same lie within it. `visible`: the smallest true
    difference that such a comparison finds four times of five (the minimum detectable effect). `headroom`: what there
    is above the rate; where it is smaller than `visible`, no improvement could be shown.
    """

    floor: float
    visible: float
    headroom: float

    def data(self) -> dict[str, float]:
        """As JSON, all between 0 and 1."""
        return {key: round(value, 4) for key, value in vars(self).items()}


def noise(cells: Sequence[Rate]) -> Noise | None:
    """The noise of the mean over these scenarios at their numbers of trials; None where nothing was valid.

    Each scenario's variance is that of (k + ½)/(n + 1): three of three does not mean that it never varies.
    """
    overall = Overall(tuple(cells))
    if overall.mean is None:
        return None
    variance = 0.0
    for cell in overall.measured:
        likely = (cell.passed + 0.5) / (cell.valid + 1)
        variance += likely * (1 - likely) / cell.valid
    error = sqrt(2 * variance) / len(overall.measured)
    return Noise(min(1.0, Z95 * error), min(1.0, (Z95 + Z_POWER) * error), 1 - overall.mean)


def _rounded(bounds: tuple[float, float] | None) -> list[float] | None:
    return [round(bound, 4) for bound in bounds] if bounds else None
