"""Two runs held against each other: what got worse, and whether the numbers can show it. Pure functions of reports.

Each agent under each condition is compared over the scenarios that both runs have, by the paired test of
harness/paired.py, adjusted for how many comparisons are made. Cells of one scenario are listed where they differ, with
Fisher's test; two of three trials each can't show anything. A run against itself again (nothing differs) is the noise.
"""

from collections.abc import Mapping
from typing import Any

from harness import paired
from harness.report.model import rates
from harness.report.rows import Row
from harness.stats import Rate
from labd.errors import LabdError

SCHEMA = "labd-comparison/1"

Report = Mapping[str, Any]


def compare(first: Report, second: Report, *, changed: bool = False) -> dict[str, Any]:
    """What became of the `first` run's numbers in the `second`, as plain data. `regression`: the numbers show one.

    Raises LabdError when a scenario is not the same in both runs, unless `changed`; or when they share nothing.
    """
    differ = [name for name, told in first["scenarios"].items()
              if name in second["scenarios"] and told["sha256"] != second["scenarios"][name]["sha256"]]  # fmt: skip
    if differ and not changed:
        raise LabdError(f"not the same scenarios in both runs: {', '.join(differ)}",
                        hint="leave them out with --scenario, or compare all the same with --changed")  # fmt: skip
    arms = [arm for arm in _arms(first) if arm in _arms(second)]
    if not arms:
        raise LabdError("the runs share no agent under the same condition", hint="labd-eval report RUN")
    compared = [_compared(first, second, arm) for arm in arms]
    found = paired.family([paired.compare(one, other) for one, other in compared])
    cells = _cells(arms, compared)
    return {
        "schema": SCHEMA,
        "first": first["run"],
        "second": second["run"],
        "changed_scenarios": differ,
        "differences": _differences(first, second),
        "regression": any(one.finding == "worse" for one in found) or any(cell["shown"] == "worse" for cell in cells),
        "arms": [
            {"agent": agent, "condition": condition, **one.data(),
             "not_valid": [_lost(report, agent, condition) for report in (first, second)],
             "invented": [_told(report, agent, condition)["invented"] for report in (first, second)]}
            for (agent, condition), one in zip(arms, found, strict=True)
        ],
        "cells": cells,
    }  # fmt: skip


def _arms(report: Report) -> list[tuple[str, str]]:
    return [(name, condition) for name, told in report["agents"].items() for condition in told["conditions"]]


def _told(report: Report, agent: str, condition: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = report["agents"][agent]["conditions"][condition]
    return found


def _lost(report: Report, agent: str, condition: str) -> dict[str, int]:
    return dict(_told(report, agent, condition)["not_valid"])


def _compared(first: Report, second: Report, arm: tuple[str, str]) -> tuple[dict[str, Rate], dict[str, Rate]]:
    """The cells of one agent under one condition in both runs."""

    def mine(report: Report) -> dict[str, Rate]:
        rows: list[Row] = [row for row in report["trials"] if (row["agent"], row["condition"]) == arm]
        return rates(rows, report["agents"][arm[0]]["control"])

    return mine(first), mine(second)


def _cells(arms: list[tuple[str, str]], compared: list[tuple[dict[str, Rate], dict[str, Rate]]]) -> list[Row]:
    """The cells whose rate or number of lost trials differs; all that both have are in Holm's adjustment."""
    named, pairs = [], []
    for (agent, condition), (one, other) in zip(arms, compared, strict=True):
        for scenario in one:
            if scenario in other:
                named.append({"scenario": scenario, "agent": agent, "condition": condition})
                pairs.append((one[scenario], other[scenario]))
    adjusted = paired.holm([paired.fisher(*pair) for pair in pairs])
    found = []
    for name, (one, other), p in zip(named, pairs, adjusted, strict=True):
        before, after = _share(one), _share(other)
        lost = (one.attempted - one.valid, other.attempted - other.valid)
        if before == after and lost[0] == lost[1]:
            continue
        better = before is not None and after is not None and after > before
        shown = ("better" if better else "worse") if p <= paired.LEVEL else ""
        found.append(name | {"first": one.data(), "second": other.data(), "adjusted_p": round(p, 6), "shown": shown})
    return found


def _share(cell: Rate) -> float | None:
    return cell.passed / cell.valid if cell.valid else None


def _differences(first: Report, second: Report) -> list[str]:
    """What is not the same in both runs, by name: the parts whose change is being measured."""
    found = []
    for kind in ("versions", "hashes"):
        for name in sorted({*first[kind], *second[kind]}):
            one, other = first[kind].get(name), second[kind].get(name)
            if one != other:
                found.append(f"{name}'s code" if kind == "hashes" else f"{name} {one} → {other}")
    return found
