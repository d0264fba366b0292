"""Rates of few trials: k of n with Wilson's interval. Standard library only, pure.

Never a mean with a standard error: three of three is "44 to 100 %", not "100 % exactly".
"""

from dataclasses import dataclass
from math import sqrt

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Rate:
    """`passed` of `valid` trials that ended in pass or fail, of `attempted` in all.

    `low` and `high` bound the true rate (95 %, Wilson); both None when nothing was valid: zero of zero is no rate.
    """

    passed: int
    valid: int
    attempted: int

    @property
    def interval(self) -> tuple[float, float] | None:
        return wilson(self.passed, self.valid)

    def data(self) -> dict[str, object]:
        """As JSON: counts, interval (null without valid trials)."""
        bounds = self.interval
        return {
            "passed": self.passed,
            "valid": self.valid,
            "attempted": self.attempted,
            "interval": [round(bound, 4) for bound in bounds] if bounds else None,
        }

    def __str__(self) -> str:
        bounds = self.interval
        if bounds is None:
            return f"not measured (0 valid of {self.attempted} attempted)"
        text = f"{self.passed}/{self.valid} ({bounds[0] * 100:.0f}–{bounds[1] * 100:.0f} %)"
        return text if self.valid == self.attempted else f"{text}, {self.valid} valid of {self.attempted} attempted"


def wilson(passed: int, valid: int, z: float = Z95) -> tuple[float, float] | None:
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
