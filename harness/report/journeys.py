"""What a run of journeys tells, by product job: each scenario's own n of its trials, and how far its stages got. Pure.

Nothing is averaged over scenarios or jobs, nor with anything else: three trials measure the one task. What has no valid
trial is not measured, and no zero.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness.journey_parts import VARIANTS
from harness.report.rows import Row

NOT_MEASURED = "Not measured"

NOTE = """Each scenario's own trials; nothing is averaged. A pass was verified from outside: the intended state at the
right place, all else as it was, nothing forbidden done. Stages are told by their own evidence, beside the verdict."""


def project(rows: Sequence[Row], manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """Groups → jobs → scenarios → a cell for each agent and condition; None where the run is of no journeys."""
    told = manifest.get("journeys")
    if not told:
        return None
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    for scenario, about in sorted(told["jobs"].items(), key=_place):
        job = groups.setdefault(about["group"], {}).setdefault(about["job"], {"title": about["title"], "scenarios": []})
        mine = [row for row in rows if row["scenario"] == scenario]
        columns = dict.fromkeys((row["agent"], row["condition"]) for row in mine)
        job["scenarios"].append({
            "id": scenario, "variant": about["variant"], "stages": about["stages"],
            "cells": [_cell([row for row in mine if (row["agent"], row["condition"]) == column], column, about)
                      for column in columns],
        })  # fmt: skip
    stamps = told.get("controls")
    return {
        "note": NOTE,
        "controls": None if stamps is None else {job: {"ok": one["ok"], "key": one["key"]}
                                                 for job, one in stamps.items()},
        "groups": [{"group": group, "jobs": [{"job": name, **job} for name, job in jobs.items()]}
                   for group, jobs in groups.items()],
    }  # fmt: skip


def _place(one: tuple[str, Mapping[str, Any]]) -> tuple[str, int]:
    """Where a scenario stands: by job, then normal, ambiguous, recovery."""
    return str(one[1]["job"]), VARIANTS.index(one[1]["variant"])


def _cell(mine: list[Row], column: tuple[str, str], about: Mapping[str, Any]) -> dict[str, Any]:
    """One agent under one condition in one scenario. `planned` leaves out trials that others took the place of."""
    valid = [row for row in mine if row["valid"]]
    lost = Counter(row["verdict"] for row in mine if not row["valid"] and row["replaced_by"] is None)
    return {
        "agent": column[0],
        "condition": column[1],
        "passed": sum(row["verdict"] == "pass" for row in valid),
        "valid": len(valid),
        "planned": len([row for row in mine if row["replaced_by"] is None]),
        "attempted": sum(bool(row["bundle"]) for row in mine),
        "not_valid": dict(sorted(lost.items())),
        "stages": {name: dict(sorted(Counter(row["stages"][name] for row in valid if name in row["stages"]).items()))
                   for name in about["stages"]},
    }  # fmt: skip


def result(cell: Mapping[str, Any]) -> str:
    """The n of a scenario's trials in words: `2/3`, `2/2 of 3 (1 blocked)`, or that it was not measured, and why."""
    lost = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in cell["not_valid"].items())
    if not cell["valid"]:
        return f"{NOT_MEASURED} ({lost})" if lost else NOT_MEASURED
    whole = f"{cell['passed']}/{cell['valid']}"
    return whole if cell["valid"] == cell["planned"] else f"{whole} of {cell['planned']} ({lost})"


def stages(cell: Mapping[str, Any]) -> str:
    """How many of its valid trials got each stage right: `discover 3, preview 1 (2 not reached), …`."""
    parts = []
    for name, counts in cell["stages"].items():
        more = ", ".join(f"{n} {verdict.replace('_', ' ')}" for verdict, n in counts.items() if verdict != "pass")
        parts.append(f"{name} {counts.get('pass', 0)}" + (f" ({more})" if more else ""))
    return ", ".join(parts) if cell["valid"] else ""


def table(told: Mapping[str, Any]) -> list[list[str]]:
    """A head, and a row a scenario and column, for renderers."""
    head = ["group", "job", "scenario", "agent", "condition", "passed", "stages that were right"]
    return [head, *(
        [group["group"], job["job"], one["variant"], cell["agent"], cell["condition"], result(cell), stages(cell)]
        for group in told["groups"] for job in group["jobs"] for one in job["scenarios"] for cell in one["cells"]
    )]  # fmt: skip
