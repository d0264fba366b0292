"""The six controls of journeys: a verifier that lets one pass which must not, or the reference fail, measures nothing.

They are played like any trial, in a run of their own with state of their own, and are in no agent's number. What they
came to is kept in a small file in the user's cache, one a job, named by a digest of all that it depends on; a journey
whose controls went the wrong way, or were not played on this build, is not run and not published.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from graders.verdict import Verdict
from harness import data, files, grading, run, subject
from harness.agents import JOURNEY
from harness.gate import cache_dir
from harness.scenario import Scenario
from harness.trial import Order
from labd.errors import Refused

SCHEMA = "labd-controls/1"


def cells(held: run.Run) -> dict[str, dict[str, Verdict | None]]:
    """Scenario → agent → what is kept of its trial in a run of controls."""
    found: dict[str, dict[str, Verdict | None]] = {}
    for order in held.orders:
        found.setdefault(order.scenario, {})[order.agent] = grading.kept(held.trials / order.identity)
    return found


def wrong(agent: str, verdict: Verdict | None) -> str:
    """Why a control did not go as it must; empty if it did. The reference has to get through every stage too."""
    if verdict is None:
        return "it has not been played to its end"
    if agent != JOURNEY[0]:
        return "" if verdict.verdict == "fail" else f"{verdict.verdict}: {verdict.reason}"
    if verdict.verdict != "pass":
        return f"{verdict.verdict}: {verdict.reason}"
    return next((f"stage {stage.name}: {stage.verdict}: {stage.detail}" for stage in verdict.stages
                 if stage.verdict != "pass"), "")  # fmt: skip


def lacking(verdict: Verdict | None) -> bool:
    """Whether this machine lacks what it needs: then nothing is known of it, and nothing is wrong with it."""
    return verdict is not None and verdict.verdict == "blocked"


def by_job(chosen: Iterable[Scenario]) -> dict[tuple[str, str], list[Scenario]]:
    """(subject, job) → its scenarios."""

    def place(one: Scenario) -> tuple[str, str]:
        assert one.journey is not None, "only journeys have controls of this kind"
        return one.subject, one.journey.job

    return {key: list(group) for key, group in groupby(chosen, key=place)}


# -- the stamp --------------------------------------------------------------------------------------------------------


def key(name: str, mine: Sequence[Scenario]) -> str:
    """A digest of all that the controls of a job depend on: the exam's code, the pack, and the program under test."""
    hashes, versions = data.hashes(), data.versions()
    examined = subject.load(name)
    program = examined.find()
    build = examined.kind.build(program) if program else None
    parts = [hashes.get("harness"), hashes.get("graders"), hashes.get("loopback"), versions["python"], build]
    return files.digest(files.canonical([*parts, *map(run.fingerprint, mine)]))


def stamp_path(name: str, mine: Sequence[Scenario]) -> Path:
    """Where the stamp of a job is on this build, or would be (`$LABD_EVAL_CACHE/journeys/…`)."""
    journey = mine[0].journey
    assert journey is not None
    return cache_dir() / "journeys" / f"{name}.{journey.job}.{key(name, mine)[:32]}.json"


def stamp(held: run.Run, chosen: Iterable[Scenario]) -> list[Path]:
    """Write down what a run of controls came to, a file a job; returns where. Raises OSError.

    A job of which some control could not be played gets none.
    """
    found, written = cells(held), []
    for (name, job), mine in by_job(chosen).items():
        rows = {one.id: {agent: found.get(one.id, {}).get(agent) for agent in JOURNEY} for one in mine}
        if any(cell is None or lacking(cell) for row in rows.values() for cell in row.values()):
            continue
        path = stamp_path(name, mine)
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(path, {
            "schema": SCHEMA, "subject": name, "job": job, "key": key(name, mine), "run": held.manifest["id"],
            "created": held.manifest["created"], "versions": data.versions(), "hashes": data.hashes(),
            "ok": not any(wrong(agent, cell) for row in rows.values() for agent, cell in row.items()),
            "scenarios": {scenario: {agent: _cell(agent, cell) for agent, cell in row.items()}
                          for scenario, row in rows.items()},
            "bundles": {Order(scenario, "cold", agent, 1).identity: _seal(held, scenario, agent)
                        for scenario, row in rows.items() for agent in row},
        })  # fmt: skip
        written.append(path)
    return written


def _cell(agent: str, verdict: Verdict | None) -> dict[str, Any]:
    assert verdict is not None
    return {"verdict": verdict.verdict, "reason": verdict.reason, "wrong": wrong(agent, verdict),
            "stages": {stage.name: stage.verdict for stage in verdict.stages}}  # fmt: skip


def _seal(held: run.Run, scenario: str, agent: str) -> str:
    """The digest of a trial's trial.json, which binds the rest of its bundle."""
    return files.file_digest(held.trials / Order(scenario, "cold", agent, 1).identity / "trial.json")


def stamped(name: str, mine: Sequence[Scenario]) -> dict[str, Any] | None:
    """The stamp of a job on this build; None if there is none."""
    try:
        found: Any = files.read_json(stamp_path(name, mine))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("key") == key(name, mine) else None


def must_have_held(chosen: Iterable[Scenario]) -> dict[str, Any]:
    """The stamps of the jobs of these scenarios, by job. `chosen` has whole jobs.

    Raises Refused, naming each control that went the wrong way or was not played on this build.
    """
    found, problems = {}, []
    for (name, job), mine in by_job(chosen).items():
        stored = stamped(name, mine)
        if stored is None:
            problems.append(f"{job}: its controls were not played on this build")
        elif not stored["ok"]:
            problems += [f"{scenario}: {agent}: {cell['wrong']}" for scenario, row in stored["scenarios"].items()
                         for agent, cell in row.items() if cell["wrong"]]  # fmt: skip
        else:
            found[job] = stored
    if problems:
        subjects = {name for name, _ in by_job(chosen)}
        hint = f"labd-eval journey controls {' '.join(subjects) if len(subjects) == 1 else ''}".strip()
        raise Refused("\n".join(["no journey is run whose controls do not hold", *problems]), hint=hint)
    return found


def table(found: dict[str, dict[str, Verdict | None]]) -> str:
    """Six columns, a row a scenario: what each control was found to be; what went the wrong way is said below."""
    head = ["journey", *JOURNEY]
    rows = [[name, *(_shown(agent, row.get(agent)) for agent in JOURNEY)] for name, row in found.items()]
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    every = [(name, agent, row.get(agent)) for name, row in found.items() for agent in JOURNEY]
    bad = [f"{name}: {agent}: {why}" for name, agent, cell in every
           if cell and not lacking(cell) and (why := wrong(agent, cell))]  # fmt: skip
    unplayed, lacks = sum(cell is None for *_, cell in every), sum(lacking(cell) for *_, cell in every)
    held = f"{len(every) - len(bad) - unplayed - lacks} of {len(every)} controls went as they must"
    rest = [f"{unplayed} not played"] * bool(unplayed)
    rest += [f"{lacks} blocked: this machine lacks what they need"] * bool(lacks)
    return "\n".join([*text, "", *bad, ", ".join([held, *rest])]) + "\n"


def _shown(agent: str, verdict: Verdict | None) -> str:
    if verdict is None:
        return "not played"
    return f"{verdict.verdict} WRONG" if wrong(agent, verdict) and not lacking(verdict) else verdict.verdict
