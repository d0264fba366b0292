"""Runs the two arms of an experiment: two real runs in one directory, each with its own build or text.

An arm's build takes the installed one's place for as long as the arm is run and its calls are classified: what is asked
about a trial afterwards is asked of the same build. A build with a planted defect is a copy in the experiment's own
directory. Which arm comes first is drawn with the seed.
"""

import ast
import contextlib
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import agents, classifying, conditions, experiment, files, report, run, sabotage, scenario, subject
from harness.agents._program import Options
from harness.experiment import ARMS, Arm, Experiment
from harness.experiment_result import Side, result
from harness.report import classes, rows
from harness.telling import many
from labd.errors import LabdError

#: Runs the trials of a run that are not finished; returns the signal that stopped it, 0 if none did.
CarryOut = Callable[[run.Run], int]


def begin(one: Experiment, out: Path, *, agent: str, options: Options, trials: int, seed: int) -> Path:
    """A new directory for the experiment's run, with its plan. Raises LabdError."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    out.mkdir(parents=True, exist_ok=True)
    number = 1
    while (directory := out / f"{stamp}-experiment-{one.name}-{number}").exists():
        number += 1
    directory.mkdir()
    first = list(ARMS)
    random.Random(seed).shuffle(first)
    told = {
        "schema": experiment.PLAN_SCHEMA, "id": directory.name, "experiment": one.name, "sha256": one.digest,
        "builds": {name: os.path.abspath(one.arm(name).program) for name in ARMS if one.arm(name).program},
        "agent": agent, "trials": trials, "seed": seed, "order": first, "options": asdict(options),
    }  # fmt: skip
    files.write_json(directory / experiment.PLAN, told)
    return directory


def carry_out(one: Experiment, directory: Path, carry: CarryOut, note: Callable[[str], None]) -> dict[str, Any] | int:
    """Run what isn't finished of both arms, classify, and keep the result; the signal that stopped it, if one did.

    Raises LabdError if the experiment is another one than the one that was begun.
    """
    plan = experiment.plan_of(directory)
    if plan["sha256"] != one.digest:
        raise LabdError(f"{one.name} changed since {plan['id']} began; its arms would not be comparable",
                        hint=f"labd-eval experiment run {one.name}")  # fmt: skip
    sides: dict[str, Side] = {}
    for name in plan["order"]:
        note(f"the arm {name}")
        with installed(one, one.arm(name), directory / f"build-{name}") as program:
            held = _held(one, name, directory, plan)
            with held:
                if stopped := carry(held):
                    return stopped
                sides[name] = _side(held, program, one.arm(name), note)
    played = agents.find(plan["agent"])
    told = result(one, sides["before"], sides["after"], model=played.program is not None)
    files.write_json(directory / experiment.RESULT, told)
    return told


def _held(one: Experiment, name: str, directory: Path, plan: dict[str, Any]) -> run.Run:
    """The run of an arm: the one that was begun, or a new one."""
    known = scenario.load_all(one.subject)
    place = directory / name
    if (place / "run.json").is_file():
        return run.resume(place, known)
    chosen = [each for each in known if each.id in one.scenarios]
    options = replace(Options(**_tuples(plan["options"])), told=one.arm(name).text)
    return run.create(directory, chosen, agents.select([plan["agent"]]), conditions=one.conditions,
                      trials=plan["trials"], seed=plan["seed"], words=["experiment", one.name, name],
                      options=options, name=name)  # fmt: skip


def _tuples(told: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in told.items()}


def _side(held: run.Run, program: str, arm: Arm, note: Callable[[str], None]) -> Side:
    """The arm as it was played: classified, reported, read."""
    trials = [order.identity for order in held.orders if held.finished(order)]
    examined = subject.load(run.subject_of(held.manifest))
    signs = classifying.signs_of(examined.name)
    asked = sum(made.asked for made in classifying.classify(held.directory, trials, signs, probes=True))
    note(f"{many(len(trials), 'trial')} classified, {many(asked, 'question')} asked about them")
    report.write(held.directory)
    records = classes.read(held.directory)
    return Side(rows.read_all(held.directory, held.manifest), records.found if records else {},
                examined.kind.build(program), held.manifest["options"], held.manifest["id"], _planted(arm))  # fmt: skip


def _planted(arm: Arm) -> dict[str, str] | None:
    """What a planted defect does, and its code."""
    if not arm.planted:
        return None
    code = (scenario.fixtures_dir() / "sabotage" / "defects.py").read_text("utf-8")
    found = next(
        part for part in ast.parse(code).body if isinstance(part, ast.FunctionDef) and part.name == arm.planted
    )
    return {"name": arm.planted, "says": sabotage.chosen([arm.planted])[0].says,
            "code": ast.get_source_segment(code, found) or ""}  # fmt: skip


@contextlib.contextmanager
def installed(one: Experiment, arm: Arm, into: Path) -> Iterator[str]:
    """The arm's build in the place of the installed one; its path. Raises LabdError where there is none."""
    examined = subject.load(one.subject)
    usual = examined.find()
    if usual is None:
        raise LabdError(examined.missing, hint=examined.install)
    program = _build(arm, into) or usual
    conditions.live_guides.cache_clear()  # another build may print other guides
    try:
        with subject.in_place(one.subject, program):
            yield program
    finally:
        conditions.live_guides.cache_clear()


def _build(arm: Arm, into: Path) -> str:
    """The program of an arm that has one of its own: a copy with its defect (made once), or the one that was named."""
    if arm.planted:
        return str(into / sabotage.SUBJECT if into.is_dir() else sabotage.plant(arm.planted, into))
    if not arm.program:
        return ""
    path = os.path.abspath(os.path.expanduser(arm.program))
    if not os.access(path, os.X_OK) or not os.path.isfile(path):
        raise LabdError(f"{arm.program}: no program that can be run")
    return path
