"""The one projection of a release: what is stored in its directory → plain data, from which every face is rendered.

Reads only what is in the directory, so that anybody computes the same later. Journeys stand by product job, each
scenario with its own n of 3; readiness stands beside, and nothing is averaged over both.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graders import parsed
from graders import readiness as grader
from harness import files, run
from harness.agents import JOURNEY
from harness.report import journeys, model, rows
from harness.report.rows import Row

SCHEMA = "labd-release-data/1"

#: Trials of a scenario that make it complete.
TRIALS = 3

#: What of a trial's limits is told.
_LIMITS = ("turns", "tokens", "time_s", "money_usd", "temperature", "seed", "sampling")


def project(place: Path, name: str, published: str, previous: str | None) -> dict[str, Any]:
    """The data of the release that lies, or is being gathered, in `place`. Raises OSError, ValueError, LabdError."""
    catalog = files.read_json(place / "catalog.json")
    held = [_run(path.parent) for path in sorted(place.glob("runs/*/run.json"))]
    measured = [grader.grade(path.parent) | {"from": path.parent.name}
                for path in sorted(place.glob("readiness/*/manifest.json"))]  # fmt: skip
    names = sorted({*catalog, *(one["subject"] for one in held), *(one["subject"] for one in measured)})
    return {
        "schema": SCHEMA, "name": name, "published": published, "previous": previous,
        "labels": list(dict.fromkeys(label for one in held for label in one["labels"])),
        "subjects": [_subject(one, catalog.get(one, {}), held, measured) for one in names],
        "runs": held,
        "limits": _same([told for one in held for told in one["limits"]]),
        "spending": _spending(held),
        "review": _review(place / "review.toml"),
    }  # fmt: skip


def _subject(name: str, catalog: Mapping[str, Any], held: Sequence[dict[str, Any]],
             measured: Sequence[dict[str, Any]]) -> dict[str, Any]:  # fmt: skip
    mine = [one for one in held if one["subject"] == name]
    own = [one for one in measured if one["subject"] == name]
    return {"subject": name, "readiness": _readiness(own[-1]) if own else None,
            "measurements": [one["from"] for one in own],
            "jobs": [_job(name, job, about, mine) for job, about in sorted(catalog.items())]}  # fmt: skip


def _readiness(told: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("rubric", "program", "version", "build", "measured", "domains", "overall", "missing", "hashes", "from")
    checks = [{key: one[key] for key in ("id", "domain", "verdict", "reason")} for one in told["checks"]]
    return {**{key: told[key] for key in kept}, "checks": checks}


def _job(subject: str, job: str, about: Mapping[str, Any], held: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A job of the catalog: its scenarios with a cell an agent (none: not measured), and its controls."""
    cells: dict[str, list[dict[str, Any]]] = {one["id"]: [] for one in about["scenarios"]}
    stamps, stale = [], []
    for one in held:
        for scenario, found in one["cells"].items():
            if scenario in cells:
                cells[scenario] += [{"run": one["run"], **cell} for cell in found]
        if job in one["controls"]:
            stamps.append({"run": one["run"], **one["controls"][job]})
        stale += [entry["id"] for entry in about["scenarios"]
                  if one["scenarios"].get(entry["id"], entry["sha256"]) != entry["sha256"]]  # fmt: skip
    scenarios = [{"id": one["id"], "variant": one["variant"], "cells": cells[one["id"]],
                  "result": _result(cells[one["id"]])} for one in about["scenarios"]]  # fmt: skip
    return {"job": job, "title": about["title"], "group": about["group"], "reviewed": about["reviewed"],
            "scenarios": scenarios, "controls": stamps, "stale": sorted(set(stale))}  # fmt: skip


def _result(cells: Sequence[Mapping[str, Any]]) -> str:
    """A scenario's own n of its trials, in words; that it was not measured, never a zero of three."""
    told = [cell["result"] for cell in cells]
    return "; ".join(told) if told else journeys.NOT_MEASURED


# -- one run ----------------------------------------------------------------------------------------------------------


def _run(place: Path) -> dict[str, Any]:
    manifest = run.load(place)
    mine = rows.read_all(place, manifest)
    told = journeys.project(mine, manifest) or {"groups": []}
    trials = [files.read_json(place / row["bundle"] / "trial.json") for row in mine if row["valid"]]
    options = manifest.get("options") or {}
    return {
        "run": manifest["id"], "subject": run.subject_of(manifest), "created": manifest["created"],
        "journeys": bool(manifest.get("journeys")), "labels": model.labels(mine),
        "agents": {name: about.get("summary", "") for name, about in manifest["agents"].items()},
        "model": options.get("model"), "scripted": any(row["scripted_model"] for row in mine),
        "programs": _same([trial["program"] for trial in trials if trial.get("program")]),
        "scenarios": {name: about["sha256"] for name, about in manifest["scenarios"].items()},
        "cells": {one["id"]: [{**cell, "result": journeys.result(cell), "right": journeys.stages(cell)}
                              for cell in one["cells"]]
                  for group in told["groups"] for job in group["jobs"] for one in job["scenarios"]},
        "controls": {job: _control(stamp, manifest) for job, stamp
                     in ((manifest.get("journeys") or {}).get("controls") or {}).items()},
        "limits": _same([{key: trial["limits"].get(key) for key in _LIMITS} for trial in trials]),
        "spent": {"cap_usd": manifest.get("spend_usd"), **_spent([row["cost_usd"] for row in mine if row["bundle"]])},
        "identity": {"versions": manifest["versions"], "hashes": manifest["hashes"],
                     "packages": _same([trial.get("package") for trial in trials if trial.get("package")]),
                     "builds": sorted({trial["build"] for trial in trials if trial.get("build")}),
                     "without": sum(not (trial.get("build") and trial.get("package")) for trial in trials)},
        "cleanup": _cleanup(mine, trials),
        "watched": _watched(place / "log.jsonl", mine),
        "trials": [{key: row[key] for key in ("id", "scenario", "verdict", "cause", "valid", "replaced_by")}
                   for row in mine],
    }  # fmt: skip


def _same(found: Sequence[Any]) -> list[Any]:
    """Each thing once, in a settled order."""
    told = {files.canonical(one): one for one in found}
    return [told[key] for key in sorted(told)]


def _control(stamp: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What a run's stamp says of the controls of a job, and whether they were played on the build of the run."""
    parts = ("harness", "graders", "loopback")
    same = all(stamp["hashes"].get(part) == manifest["hashes"].get(part) for part in parts)
    return {"ok": bool(stamp["ok"]), "same_build": same, "key": stamp["key"],
            "cells": {scenario: {agent: row.get(agent, {}).get("verdict", "not_run") for agent in JOURNEY}
                      for scenario, row in stamp["scenarios"].items()}}  # fmt: skip


def _cleanup(mine: Sequence[Row], trials: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of how many trials it was looked at what they had left running, and of which something could not be ended."""
    return {"looked": sum("left_running" in trial for trial in trials), "of": len(trials),
            "ended_by_us": sum(len(trial.get("left_running", ())) for trial in trials),
            "left": [row["id"] for row in mine if row["cause"] == "processes_left"]}  # fmt: skip


def _watched(log: Path, mine: Sequence[Row]) -> dict[str, Any]:
    """Whether the run's own log tells of it from its beginning to its end, every trial with its time."""
    events = [line for raw in log.read_bytes().split(b"\n") if raw.strip() and (line := _event(raw))]
    names = [one.get("event") for one in events]
    told = {one.get("id") for one in events if one["event"] in ("trial", "sealed")}
    return {"began": names.count("started"), "finished": "finished" in names,
            "untold": sorted(row["id"] for row in mine if row["bundle"] and row["id"] not in told)}  # fmt: skip


def _event(raw: bytes) -> dict[str, Any] | None:
    try:
        told = parsed.from_json(raw)
    except ValueError:
        return None
    return told if isinstance(told, dict) and "event" in told else None


def _spent(costs: Sequence[float | None]) -> dict[str, Any]:
    """What was spent (US dollars), by as many trials as tell it; None where none does, which is no zero."""
    known = [cost for cost in costs if cost is not None]
    return {"usd": round(sum(known), 6) if known else None, "told": len(known), "of": len(costs)}


def _spending(held: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The same of all runs together, under their caps together."""
    caps = [one["spent"]["cap_usd"] for one in held]
    known = [one["spent"]["usd"] for one in held if one["spent"]["usd"] is not None]
    return {"usd": round(sum(known), 6) if known else None, "cap_usd": sum(caps) if caps and None not in caps else None,
            **{key: sum(one["spent"][key] for one in held) for key in ("told", "of")}}  # fmt: skip


def _review(path: Path) -> dict[str, Any] | None:
    """The reviewed file as it is; None without one."""
    return files.read_toml(path) if path.is_file() else None
