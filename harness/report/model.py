"""What a run's report says, as plain data: computed once, rendered by others. Reads bundles and their verdicts only.

Only `pass` and `fail` enter a rate. A control agent's rate counts how often it was caught. What was planned and has
no bundle is `not_run`, never a zero.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from graders.verdict import RATED
from harness import files, grading, run
from harness.causes import policy_of
from harness.stats import Rate
from harness.trial import Order

SCHEMA = "labd-report/1"

Row = dict[str, Any]


def collect(directory: Path) -> dict[str, Any]:
    """The data of the report of the run in `directory`."""
    manifest = run.load(directory)
    orders = [Order(**order) for order in manifest["orders"]]
    rows = [_row(directory / "trials" / order.identity, order, manifest) for order in orders]
    return {
        "schema": SCHEMA,
        "run": manifest["id"],
        "created": manifest["created"],
        "versions": manifest["versions"],
        "hashes": manifest["hashes"],
        "as_expected": all(row["expected"] for row in rows),
        "counts": dict(sorted(Counter(row["verdict"] for row in rows).items())),
        "causes": dict(sorted(Counter(row["cause"] for row in rows if row["cause"]).items())),
        "order": {key: list(dict.fromkeys(row[key] for row in rows)) for key in ("agent", "scenario")},
        "agents": {name: _agent(name, told, rows) for name, told in manifest["agents"].items()},
        "scenarios": {name: {"title": told["title"], "lane": told["lane"]}
                      for name, told in manifest["scenarios"].items()},
        "traps": _traps(rows, manifest),
        "trials": [{key: value for key, value in row.items() if key != "traps"} for row in rows],
    }  # fmt: skip


def _row(directory: Path, order: Order, manifest: dict[str, Any]) -> Row:
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
        "valid": False,
        "duration_s": None,
        "agent_s": None,
        "commands_s": None,
        "stop_s": None,
        "bundle": None,
        "failed_checks": [],
        "traps": [],
    }
    if not directory.is_dir():
        return row
    row["bundle"] = f"trials/{directory.name}"
    damage = grading.damage(directory)
    if damage:
        return row | {"verdict": "harness_error", "reason": damage}
    trial = files.read_json(directory / "trial.json")
    verdict = grading.kept(directory)
    row |= {key: trial.get(key) for key in ("duration_s", "agent_s", "commands_s", "stop_s")}
    row["cause"] = trial["ended_by"]
    if verdict is None:
        return row | {"reason": "not graded yet: labd-eval grade"}
    return row | {
        "verdict": verdict.verdict,
        "expected": verdict.verdict in manifest["agents"][order.agent]["expected"],
        "reason": verdict.reason,
        "valid": verdict.verdict in RATED and policy_of(str(row["cause"])).valid,
        "failed_checks": [check.name for check in verdict.checks if check.ok is False],
        "traps": [{"text": trap.name, "ok": trap.ok} for trap in verdict.traps],
    }


def _agent(name: str, told: dict[str, Any], rows: list[Row]) -> dict[str, Any]:
    mine = [row for row in rows if row["agent"] == name]
    lanes = sorted({row["lane"] for row in mine})
    scenarios = list(dict.fromkeys(row["scenario"] for row in mine))
    control = "pass" not in told["expected"]
    return {
        "summary": told.get("summary", ""),
        "expected": told["expected"],
        "control": control,
        "counts": "caught" if control else "passed",
        "overall": _rate(mine, control).data(),
        "by_lane": {lane: _rate([r for r in mine if r["lane"] == lane], control).data() for lane in lanes},
        "by_scenario": {s: _rate([r for r in mine if r["scenario"] == s], control).data() for s in scenarios},
    }


def _rate(rows: list[Row], control: bool) -> Rate:
    """Of the valid trials, how many passed (of a control: how many were caught). Attempted: those with a bundle."""
    valid = [row for row in rows if row["valid"]]
    wanted = "fail" if control else "pass"
    return Rate(sum(row["verdict"] == wanted for row in valid), len(valid), sum(bool(r["bundle"]) for r in rows))


def _traps(rows: list[Row], manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """How often each trap was walked into, by agents that are there to pass; traps for a judge are not counted."""
    serious = {name for name, told in manifest["agents"].items() if "pass" in told["expected"]}
    found: dict[tuple[str, str], list[bool]] = {}
    for row in rows:
        for trap in row["traps"] if row["agent"] in serious and row["valid"] else ():
            if trap["ok"] is not None:
                found.setdefault((row["scenario"], trap["text"]), []).append(not trap["ok"])
    return [{"scenario": scenario, "trap": text, **_walked(walked)} for (scenario, text), walked in found.items()]


def _walked(walked: list[bool]) -> dict[str, Any]:
    rate = Rate(sum(walked), len(walked), len(walked)).data()
    return {"walked_into": rate["passed"], "of": rate["valid"], "interval": rate["interval"]}
