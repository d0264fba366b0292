"""pass@k and pass^k: whether one of k trials passes, and whether all of k do. Standard library only, pure.

By the unbiased estimators (Chen et al. 2021 for pass@k; Yao et al. 2024, arXiv 2406.12045, for pass^k), for each
scenario, then averaged over scenarios. A rate raised to the power of k would be biased upward.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import mean

from harness.stats import Rate


def one_of(passed: int, valid: int, k: int) -> float:
    """pass@k: the probability that at least one of `k` of these trials, drawn at random, has passed.

    Raises ValueError if there are fewer than `k` trials, or `k` is no number of trials.
    """
    _must_fit(passed, valid, k)
    return 1 - comb(valid - passed, k) / comb(valid, k)


def all_of(passed: int, valid: int, k: int) -> float:
    """pass^k: the probability that all of `k` of these trials, drawn at random, have passed. Raises as `one_of`."""
    _must_fit(passed, valid, k)
    return comb(passed, k) / comb(valid, k)


def _must_fit(passed: int, valid: int, k: int) -> None:
    if not (0 <= passed <= valid and 1 <= k <= valid):
        raise ValueError(f"{k} of {valid} trials with {passed} passed can't be drawn")


@dataclass(frozen=True)
class PassK:
    """Both, for k = 1 to `most`, averaged over `scenarios` scenarios. `note` says why there is not more."""

    most: int
    scenarios: int
    one_of: tuple[float, ...]
    all_of: tuple[float, ...]
    note: str = ""

    def data(self) -> dict[str, object]:
        """As JSON: lists whose first entry is for k = 1."""
        return {
            "k": list(range(1, self.most + 1)),
            "scenarios": self.scenarios,
            "pass_at_k": [round(value, 4) for value in self.one_of],
            "pass_hat_k": [round(value, 4) for value in self.all_of],
            "note": self.note,
        }


def over(cells: Sequence[Rate]) -> PassK:
    """pass@k and pass^k over scenarios, for every k up to the least number of valid trials that one of them has.

    A scenario without any valid trial is left out, and said so: it would leave nothing to average.
    """
    measured = [cell for cell in cells if cell.valid]
    most = min((cell.valid for cell in measured), default=0)
    planned = max((cell.attempted for cell in cells), default=0)
    notes = []
    if len(measured) < len(cells):
        notes.append(f"{len(cells) - len(measured)} of {len(cells)} scenarios have no valid trial and are left out")
    if measured and most < planned:
        notes.append(f"only up to k = {most}: a scenario has no more valid trials, of {planned} attempted")
    ks = range(1, most + 1)
    return PassK(
        most,
        len(measured),
        tuple(mean(one_of(cell.passed, cell.valid, k) for cell in measured) for k in ks),
        tuple(mean(all_of(cell.passed, cell.valid, k) for cell in measured) for k in ks),
        "; ".join(notes),
    )
