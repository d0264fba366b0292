"""Whether one arm did better than another over the same scenarios, by exact tests. Standard library only, pure.

An arm is a condition, an agent or a run. Scenarios are the unit: each gives one difference of two rates, and the test
asks how often chance alone, flipping the sign of each, would give a mean as far from zero. It needs no distribution and
is exact for any number of scenarios; with one trial a cell it is McNemar's exact test. Where the smallest p-value that
so many scenarios can give is above the level, "better" is never said, whatever was measured.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, lcm, sqrt
from typing import Literal

from harness.stats import Noise, Overall, Rate, noise

#: The level of all tests, two-sided.
LEVEL = 0.05

#: An arm that lost more of its trials than this, for reasons that are not the agent's, can't be compared safely.
LOST = 0.1

Finding = Literal["better", "worse", "no difference shown", "cannot show", "not measured"]


def sign_flip(differences: Sequence[Fraction]) -> float:
    """The exact two-sided p-value of the mean of paired differences under flips of their signs; 1.0 of none."""
    denominator = lcm(*(one.denominator for one in differences))
    whole = [abs(int(one * denominator)) for one in differences if one]
    seen = abs(int(sum(differences) * denominator))
    sums: Counter[int] = Counter({0: 1})
    for size in whole:
        flipped: Counter[int] = Counter()
        for total, ways in sums.items():
            flipped[total + size] += ways
            flipped[total - size] += ways
        sums = flipped
    extreme = sum(ways for total, ways in sums.items() if abs(total) >= seen)
    return float(Fraction(extreme, 2 ** len(whole)))


def mcnemar(better: int, worse: int) -> float:
    """McNemar's exact two-sided p-value of the pairs that differ: `better` one way, `worse` the other."""
    pairs = better + worse
    tail = sum(comb(pairs, k) for k in range(min(better, worse) + 1))
    return float(min(Fraction(1), Fraction(2 * tail, 2**pairs)))


def fisher(first: Rate, second: Rate) -> float:
    """Fisher's exact two-sided p-value of two cells that share nothing; 1.0 where one has no valid trial."""
    passed, valid = first.passed + second.passed, first.valid + second.valid
    if not first.valid or not second.valid:
        return 1.0

    def ways(k: int) -> int:
        return comb(first.valid, k) * comb(second.valid, passed - k)

    possible = [ways(k) for k in range(max(0, passed - second.valid), min(first.valid, passed) + 1)]
    return float(Fraction(sum(one for one in possible if one <= ways(first.passed)), comb(valid, passed)))


def holm(values: Sequence[float]) -> list[float]:
    """The p-values of several tests, adjusted by Holm's method, in the order given: each may be held to the level."""
    adjusted, highest = [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = highest
    return adjusted


@dataclass(frozen=True)
class Comparison:
    """The `second` arm against the `first`, over the scenarios that both have valid trials of.

    `difference` (second minus first, −1 to 1) is the mean over scenarios; `interval` bounds it (95 %, Newcombe's with
    scenarios as the unit and no credit for their pairing: wide rather than wrong). `least` is the smallest p-value that
    these numbers could have given; `adjusted` is `p` after Holm's method, where it is one of several. `unsafe` says, in
    a line, why lost trials forbid to trust it; `bounds` is the difference if all lost trials had spoken against, and
    for, the second arm.
    """

    finding: Finding
    scenarios: int
    left_out: int
    first: Overall
    second: Overall
    difference: float | None
    interval: tuple[float, float] | None
    p: float
    adjusted: float
    least: float
    test: str
    noise: Noise | None
    unsafe: str
    bounds: tuple[float, float] | None

    @property
    def sentence(self) -> str:
        """The finding in words a person can act on."""
        if self.difference is None:
            return "not measured: no scenario has valid trials on both sides"
        amount = f"{self.difference * 100:+.0f} points over {self.scenarios} scenarios"
        why = f"p = {self.p:.3g}" + (f", {self.adjusted:.3g} as one of several" if self.adjusted != self.p else "")
        if self.finding == "cannot show":
            why = (f"{self.scenarios} scenarios can't show a difference: the least p that they could give is "
                   f"{self.least:.3g}; 6 are needed")  # fmt: skip
        elif self.finding == "no difference shown" and self.noise is not None:
            why += f"; below {self.noise.visible * 100:.0f} points it would mostly go unseen"
        return f"{self.finding}: {amount} ({why})" + (f"; unsafe: {self.unsafe}" if self.unsafe else "")

    def data(self) -> dict[str, object]:
        """As JSON."""
        return {
            "finding": self.finding,
            "sentence": self.sentence,
            "scenarios": self.scenarios,
            "left_out": self.left_out,
            "first": self.first.data(),
            "second": self.second.data(),
            "difference": None if self.difference is None else round(self.difference, 4),
            "interval": _rounded(self.interval),
            "p": round(self.p, 6),
            "adjusted_p": round(self.adjusted, 6),
            "least_p": round(self.least, 6),
            "test": self.test,
            "noise": self.noise.data() if self.noise else None,
            "unsafe": self.unsafe,
            "bounds": _rounded(self.bounds),
        }


def compare(first: Mapping[str, Rate], second: Mapping[str, Rate]) -> Comparison:
    """Compare two arms by scenario. Scenarios that only one has, or has no valid trial of, are left out and counted."""
    shared = [name for name in first if name in second and first[name].valid and second[name].valid]
    ones, others = [first[name] for name in shared], [second[name] for name in shared]
    differences = [_share(b) - _share(a) for a, b in zip(ones, others, strict=True)]
    single = all(cell.valid == 1 for cell in (*ones, *others))
    p = sign_flip(differences)
    least = float(Fraction(2, 2 ** len(shared))) if shared else 1.0
    mean = float(sum(differences) / len(shared)) if shared else None
    return Comparison(
        finding=_finding(mean, p, least),
        scenarios=len(shared),
        left_out=len({*first, *second}) - len(shared),
        first=Overall(tuple(ones)),
        second=Overall(tuple(others)),
        difference=mean,
        interval=_interval(Overall(tuple(ones)), Overall(tuple(others))),
        p=p,
        adjusted=p,
        least=min(1.0, least),
        test="exact McNemar" if single else "exact permutation of signs",
        noise=noise(ones),
        unsafe=_unsafe(first, second),
        bounds=_bounds(first, second),
    )


def family(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Several comparisons that were made together: each finding is held to the level after Holm's method."""
    asked = [one for one in comparisons if one.finding not in ("cannot show", "not measured")]
    adjusted = dict(zip(map(id, asked), holm([one.p for one in asked]), strict=True))
    return [
        replace(one, adjusted=p, finding=_finding(one.difference, p, one.least))
        if (p := adjusted.get(id(one))) is not None else one
        for one in comparisons
    ]  # fmt: skip


def _share(cell: Rate) -> Fraction:
    return Fraction(cell.passed, cell.valid)


def _finding(mean: float | None, p: float, least: float) -> Finding:
    if mean is None:
        return "not measured"
    if least > LEVEL:
        return "cannot show"
    if p > LEVEL:
        return "no difference shown"
    return "better" if mean > 0 else "worse"


def _interval(first: Overall, second: Overall) -> tuple[float, float] | None:
    """Newcombe's interval of the difference of two rates, from the Wilson interval of each."""
    one, other = first.interval, second.interval
    if one is None or other is None or first.mean is None or second.mean is None:
        return None
    middle = second.mean - first.mean
    return (
        max(-1.0, middle - sqrt((second.mean - other[0]) ** 2 + (one[1] - first.mean) ** 2)),
        min(1.0, middle + sqrt((other[1] - second.mean) ** 2 + (first.mean - one[0]) ** 2)),
    )


def _lost(cells: Mapping[str, Rate]) -> Fraction:
    attempted = sum(cell.attempted for cell in cells.values())
    return Fraction(attempted - sum(cell.valid for cell in cells.values()), attempted or 1)


def _unsafe(first: Mapping[str, Rate], second: Mapping[str, Rate]) -> str:
    """What lost trials do to the comparison: many of them, or far more on one side, are a selection."""
    one, other = _lost(first), _lost(second)
    if (
        max(one, other) > Fraction(LOST).limit_denominator()
        or abs(one - other) > Fraction(LOST / 2).limit_denominator()
    ):
        return f"{float(one):.0%} of the first arm's trials and {float(other):.0%} of the second's are not valid"
    return ""


def _bounds(first: Mapping[str, Rate], second: Mapping[str, Rate]) -> tuple[float, float] | None:
    """The difference if every lost trial had failed on the second side and passed on the first, and the reverse."""
    shared = [name for name in first if name in second and first[name].attempted and second[name].attempted]
    if not shared:
        return None

    def total(cells: Mapping[str, Rate], lost: int) -> Fraction:
        return sum((Fraction(cells[n].passed + lost * (cells[n].attempted - cells[n].valid), cells[n].attempted)
                    for n in shared), Fraction(0)) / len(shared)  # fmt: skip

    return float(total(second, 0) - total(first, 1)), float(total(second, 1) - total(first, 0))


def _rounded(bounds: tuple[float, float] | None) -> list[float] | None:
    return [round(bound, 4) for bound in bounds] if bounds else None
