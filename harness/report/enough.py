"""Whether the program's answers were enough, in a run: what the agents did next, by agent and condition, as data.

Read from the bundles' transcripts (harness/sufficiency_judging.py); where no trial has one, there is nothing to say,
which is no zero. Only trials that count at all are counted: a pass is a trial.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graders.bundle_view import BundleError
from graders.sufficiency import Found, Judged
from graders.sufficiency_arms import Arm, cautions
from harness.report.rows import Row
from harness.sufficiency_judging import judged_bundle


def of(bundle: Path) -> Found | None:
    """What a trial tells; None where it has no transcript, or one that can't be read."""
    try:
        made = judged_bundle(bundle)
    except (BundleError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # which the trial's own verdict tells
    return made[1] if made else None


def read(run: Path, rows: Sequence[Row]) -> dict[str, Found]:
    """Trial → what it tells, of all that count and have a transcript."""
    told = {row["id"]: of(run / row["bundle"]) for row in rows if row["bundle"] and row["counted"]}
    return {name: found for name, found in told.items() if found is not None}


def row(found: Found | None) -> Row:
    """What a trial's row says: how many calls each bucket has; None without a transcript."""
    return {"sufficiency": None if found is None else {name: n for name, n in found.counts.items() if n}}


def project(rows: Sequence[Row], found: Mapping[str, Found]) -> dict[str, Any] | None:
    """Counts and shares by agent and condition, with the calls behind them; None where there is no transcript."""
    if not found:
        return None
    cells: dict[tuple[str, str], list[str]] = {}
    for one in rows:
        if one["id"] in found:
            cells.setdefault((one["agent"], one["condition"]), []).append(one["id"])
    arms = {key: Arm(" ".join(key), tuple(found[name] for name in names)) for key, names in cells.items()}
    columns = [
        {"agent": agent, "condition": condition, **arm.data(),
         "calls": [_told(name, one) for name in cells[agent, condition] for one in found[name].judged]}
        for (agent, condition), arm in arms.items()
    ]  # fmt: skip
    return {"columns": columns, "notes": cautions(list(arms.values()))}


def _told(trial: str, one: Judged) -> dict[str, Any]:
    return {"trial": trial, "n": one.n, "thread": one.thread, "asked": one.query, "next": one.next, "note": one.note,
            "bucket": one.bucket, "concurrent": one.concurrent}  # fmt: skip


def by_number(bundle: Path) -> dict[int, Judged]:
    """The judged calls of a trial by their place in its transcript."""
    found = of(bundle)
    return {one.n: one for one in found.judged} if found else {}
