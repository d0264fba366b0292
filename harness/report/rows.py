"""One row a trial: what its bundle and its verdict say, as plain data. Reads files; computes no rate.

What was planned and has no bundle is `not_run`. Figures that a transcript does not tell are None, never a zero.
"""

from pathlib import Path
from typing import Any

from graders.verdict import RATED, Verdict
from harness import files, grading, plan
from harness.causes import as_expected, policy_of
from harness.trial import Order

Row = dict[str, Any]

#: The grader's question whose answer is the invent-rate.
INVENTED = "nothing invented"

#: The isolation whose trials are a smoke test and enter no number.
LIGHT = "light"

_FIGURES = ("duration_s", "agent_s", "commands_s", "stop_s")
_USAGE = ("cost_usd", "tokens", "turns")


def read_all(directory: Path, manifest: dict[str, Any]) -> list[Row]:
    """The rows of a run, by agent, scenario, condition and number. A lost trial that another one replaced says so, and
    is nobody's surprise."""
    orders = plan.orders(manifest, lambda order: plan.cause_of(directory, order))
    places = manifest.get("order") or {
        "agent": list(dict.fromkeys(order.agent for order in orders)),
        "scenario": list(dict.fromkeys(order.scenario for order in orders)),
        "condition": list(plan.CONDITIONS),
    }
    rows = sorted(
        (read(directory, order, manifest) for order in orders),
        key=lambda row: (*(places[key].index(row[key]) for key in ("agent", "scenario", "condition")), row["number"]),
    )
    waiting = [row for row in rows if row["number"] > _planned(manifest, row)]
    for row in rows:
        if plan.is_lost(row["cause"]):
            mine = [one for one in waiting if _cell(one) == _cell(row)]
            if mine:
                waiting.remove(mine[0])
                row["replaced_by"] = mine[0]["id"]
                row["expected"] = True
    return rows


def _cell(row: Row) -> tuple[str, str, str]:
    return row["scenario"], row["condition"], row["agent"]


def _planned(manifest: dict[str, Any], row: Row) -> int:
    return int(manifest.get("trials", row["number"]))


def read(directory: Path, order: Order, manifest: dict[str, Any]) -> Row:
    """The row of one trial of a run. `valid`: whether it enters a rate; `counted`: whether it is a trial at all."""
    bundle = directory / "trials" / order.identity
    row: Row = {
        "id": order.identity,
        "scenario": order.scenario,
        "condition": order.condition,
        "agent": order.agent,
        "number": order.number,
        "lane": manifest["scenarios"][order.scenario]["lane"],
        "verdict": "not_run",
        "expected": False,
        "reason": "no bundle: it has not been run to its end",
        "cause": None,
        "counted": False,
        "valid": False,
        "invented": None,
        "isolation": None,
        "scripted_model": False,
        "bundle": None,
        "replaced_by": None,
        "failed_checks": [],
        "traps": [],
        "stages": {},
        **dict.fromkeys((*_FIGURES, *_USAGE)),
    }
    if not bundle.is_dir():
        return row
    row["bundle"] = f"trials/{bundle.name}"
    damage = grading.damage(bundle)
    if damage:
        return row | {"verdict": "harness_error", "reason": damage}
    trial = files.read_json(bundle / "trial.json")
    verdict = grading.kept(bundle)
    row |= {key: trial.get(key) for key in _FIGURES} | usage(bundle)
    row["cause"], row["isolation"] = trial["ended_by"], (trial.get("options") or {}).get("isolation")
    row["scripted_model"] = bool(trial.get("scripted_model"))
    row["counted"] = policy_of(str(row["cause"])).valid and row["isolation"] != LIGHT
    if verdict is None:
        return row | {"reason": "not graded yet: labd-eval grade"}
    return row | {
        "verdict": verdict.verdict,
        "expected": as_expected(verdict.verdict, str(row["cause"]), manifest["agents"][order.agent]["expected"]),
        "reason": verdict.reason,
        "valid": row["counted"] and verdict.verdict in RATED,
        "invented": _invented(verdict),
        "failed_checks": [check.name for check in verdict.checks if check.ok is False],
        "traps": [{"text": trap.name, "ok": trap.ok} for trap in verdict.traps],
        "stages": {stage.name: stage.verdict for stage in verdict.stages},
    }


def _invented(verdict: Verdict) -> bool | None:
    """Whether the agent invented a command or flag; None where that was not asked or could not be told."""
    asked = [check.ok for check in verdict.checks if check.name == INVENTED and check.ok is not None]
    return None if not asked else not all(asked)


def usage(bundle: Path) -> dict[str, float | None]:
    """What the transcript tells of cost (US dollars), tokens (all of them) and turns; None where it doesn't."""
    told: dict[str, float | None] = dict.fromkeys(_USAGE)
    try:
        found = files.read_json(bundle / "transcript.json")["usage"]
    except (OSError, ValueError, KeyError, TypeError):
        return told
    if not isinstance(found, dict):
        return told
    for name, key in zip(_USAGE, ("cost_usd", "total", "turns"), strict=True):
        value = found.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
            told[name] = value
    return told
