"""What a run's report says, as plain data: computed once, rendered by others. Reads bundles and their verdicts only.

Only `pass` and `fail` enter a rate. A control agent's rate counts how often it was caught. What was planned and has
no bundle is `not_run`, never a zero. A rate over several scenarios has scenarios as its unit (harness/stats.py).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from graders.sufficiency import Found
from harness import paired, passk, run
from harness.plan import CONDITIONS
from harness.report import classes, enough, journeys
from harness.report.rows import LIGHT, Row, read_all
from harness.stats import Overall, Rate, noise, spread

SCHEMA = "labd-report/2"

SMOKE = "isolation light: a smoke test; none of its trials is counted in any number"
SCRIPTED = "scripted model: it proves the harness, never a model's skill"

#: What of the spending is told, with its unit.
SPENT = {"cost_usd": "USD", "tokens": "tokens", "turns": "turns", "agent_s": "s"}


def collect(directory: Path) -> dict[str, Any]:
    """The data of the report of the run in `directory`."""
    manifest, records = run.load(directory), classes.read(directory)
    rows = read_all(directory, manifest)
    return project(manifest, rows, records, enough.read(directory, rows))


def project(manifest: Mapping[str, Any], rows: list[Row], records: classes.Records | None = None,
            found: Mapping[str, Found] | None = None) -> dict[str, Any]:  # fmt: skip
    """The data of the report from a manifest, its rows, the records of its trials, if it was ever classified, and
    what their transcripts tell of the program's answers, where there are any."""
    found = found or {}
    rows = [row | classes.of(records.found.get(row["id"]) if records else None) | enough.row(found.get(row["id"]))
            for row in rows]  # fmt: skip
    ranks = {name: rank for rank, name in enumerate(CONDITIONS)}
    conditions = sorted(dict.fromkeys(row["condition"] for row in rows), key=lambda name: ranks.get(name, len(ranks)))
    return {
        "schema": SCHEMA,
        "run": manifest["id"],
        "created": manifest["created"],
        "versions": manifest["versions"],
        "hashes": manifest["hashes"],
        "seed": manifest.get("seed"),
        "labels": labels(rows),
        "as_expected": all(row["expected"] for row in rows),
        "counts": dict(sorted(Counter(row["verdict"] for row in rows).items())),
        "causes": dict(sorted(Counter(row["cause"] for row in rows if row["cause"]).items())),
        "order": {key: list(dict.fromkeys(row[key] for row in rows)) for key in ("agent", "scenario")}
                 | {"condition": conditions},
        "agents": {name: _agent(told, [row for row in rows if row["agent"] == name], conditions)
                   for name, told in manifest["agents"].items()},
        "scenarios": {name: {"title": told["title"], "lane": told["lane"]}
                      for name, told in manifest["scenarios"].items()},
        "deltas": _deltas(rows, manifest, conditions),
        "traps": _traps(rows, manifest),
        "journeys": journeys.project(rows, manifest),
        "classes": classes.project(rows, records) if records else None,
        "sufficiency": enough.project(rows, found),
        "trials": rows,
    }  # fmt: skip


def labels(rows: list[Row]) -> list[str]:
    """What has to be said wherever these numbers are shown."""
    light = any(row["isolation"] == LIGHT for row in rows)
    scripted = any(row["scripted_model"] for row in rows)
    return [text for text, applies in ((SMOKE, light), (SCRIPTED, scripted)) if applies]


def _agent(told: Mapping[str, Any], mine: list[Row], conditions: list[str]) -> dict[str, Any]:
    control = "pass" not in told["expected"]
    found = {name: [row for row in mine if row["condition"] == name] for name in conditions}
    return {
        "summary": told.get("summary", ""),
        "expected": told["expected"],
        "control": control,
        "counts": "caught" if control else "passed",
        "conditions": {name: _condition(some, control) for name, some in found.items() if some},
    }


def _condition(mine: list[Row], control: bool) -> dict[str, Any]:
    """All numbers of one agent under one condition."""
    cells = rates(mine, control)
    lanes = {row["scenario"]: row["lane"] for row in mine}
    quiet = noise(list(cells.values()))
    return {
        "overall": Overall(tuple(cells.values())).data(),
        "by_lane": {lane: Overall(tuple(cell for name, cell in cells.items() if lanes[name] == lane)).data()
                    for lane in sorted(set(lanes.values()))},
        "by_scenario": {name: cell.data() for name, cell in cells.items()},
        "pass_k": passk.over(list(cells.values())).data(),
        "noise": quiet.data() if quiet else None,
        "invented": _invented(mine),
        "spent": {name: _spent(row[name] for row in mine if row["counted"]) for name in SPENT},
        "not_valid": dict(sorted(Counter(_why_not(row) for row in mine if row["bundle"] and not row["valid"]).items())),
    }  # fmt: skip


def rates(rows: Iterable[Row], control: bool = False) -> dict[str, Rate]:
    """Scenario → rate of its valid trials that passed (of a control: were caught). Attempted: those with a bundle."""
    cells: dict[str, list[Row]] = {}
    for row in rows:
        cells.setdefault(row["scenario"], []).append(row)
    wanted = "fail" if control else "pass"
    return {
        name: Rate(
            sum(row["verdict"] == wanted for row in some if row["valid"]),
            sum(row["valid"] for row in some),
            sum(bool(row["bundle"]) for row in some),
        )
        for name, some in cells.items()
    }


def _why_not(row: Row) -> str:
    """Why a trial enters no rate: what ended it, where that is the reason; else its verdict."""
    if row["isolation"] == LIGHT:
        return LIGHT
    return str(row["verdict"] if row["counted"] or not row["cause"] else row["cause"])


def _invented(rows: list[Row]) -> dict[str, Any]:
    """The invent-rate: trials with an invented command or flag, of those in which that was asked."""
    asked = [row["invented"] for row in rows if row["counted"] and row["invented"] is not None]
    rate = Rate(sum(asked), len(asked), len(asked)).data()
    return {"trials": rate["passed"], "of": rate["valid"], "interval": rate["interval"]}


def _spent(values: Iterable[float | None]) -> dict[str, Any]:
    """Median and range of what was told, with how many trials told it; `median` is null where none did."""
    found = list(values)
    told = spread(value for value in found if value is not None)
    return {"of": len(found), **(told.data() if told else {"count": 0, "median": None})}


def _deltas(rows: list[Row], manifest: Mapping[str, Any], conditions: list[str]) -> list[dict[str, Any]]:
    """What telling an agent more did: cold → warm → preloaded, over the same scenarios, adjusted for their number."""
    named, found = [], []
    for agent, told in manifest["agents"].items():
        if "pass" not in told["expected"]:
            continue
        for before, after in pairwise(name for name in CONDITIONS if name in conditions):
            first, second = ([row for row in rows if row["agent"] == agent and row["condition"] == name]
                             for name in (before, after))  # fmt: skip
            if first and second:
                named.append({"agent": agent, "from": before, "to": after})
                found.append(paired.compare(rates(first), rates(second)))
    return [name | one.data() for name, one in zip(named, paired.family(found), strict=True)]


def _traps(rows: list[Row], manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How often each trap was walked into, by agents that are there to pass; one that nobody decided is not counted."""
    serious = {name for name, told in manifest["agents"].items() if "pass" in told["expected"]}
    found: dict[tuple[str, str], dict[str, list[bool]]] = {}
    for row in rows:
        for trap in row["traps"] if row["agent"] in serious and row["counted"] else ():
            if trap["ok"] is not None:
                cells = found.setdefault((row["scenario"], trap["text"]), {})
                cells.setdefault(row["condition"], []).append(not trap["ok"])
    return [
        {
            "scenario": scenario,
            "trap": text,
            "central": text.startswith("central"),
            **_walked([one for some in cells.values() for one in some]),
            "by_condition": {name: _walked(some) for name, some in cells.items()},
        }
        for (scenario, text), cells in found.items()
    ]


def _walked(walked: list[bool]) -> dict[str, Any]:
    rate = Rate(sum(walked), len(walked), len(walked)).data()
    return {"walked_into": rate["passed"], "of": rate["valid"], "interval": rate["interval"]}
