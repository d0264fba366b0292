"""Journeys: packs of three scenarios a job, from scenarios/journeys/SUBJECT/JOB.toml. Loads, checks and expands them.

A pack has parts that all three share and what each has of its own: tables are merged, the lists of `[verifier]` are put
one behind the other, anything else of a scenario's own takes the place of the shared. What comes out are ordinary
scenarios (harness/scenario.py builds and checks them), so that everything that runs, grades and reports scenarios does
so with these. Runs nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graders import when
from graders.shape import Key, Report, Shape, each, is_a, one_of, table
from harness import scenario, subject
from harness.journey_parts import CHANGED, REPLAYED, RIGHT, STAGES, VARIANTS, Fault, Journey, Stage
from harness.scenario import Scenario
from harness.scenario_fill import data_dir
from harness.scenario_schema import ASSERT, GRADER, SCENARIO, Findings, ScenarioError, toml_of
from labd.errors import NotFound, nearest

SCHEMA = "labd-journey/1"

#: What every scenario of a journey has, besides the reference, that must not pass. The file's key is with `_`.
CONTROLS = ("noop", "printed-success", "wrong-resource", "partial", "tampered-artifact")

#: Keys of a scenario that a pack gives by itself.
_MADE = ("id", "title", "tier", "core", "grader", "task")

#: Seconds that a trial has, where the pack gives no less.
TIME_S = 900.0

_text = is_a(str, what="a text")


def _reached(value: Any, key: str, report: Report) -> None:
    if value in (CHANGED, REPLAYED):
        return
    try:
        when.compile_when(value)
    except (when.WhenError, TypeError) as error:
        report(key, f"neither {CHANGED!r} nor {REPLAYED!r} nor a predicate: {error}", [])


STAGE: Shape = {
    "shows": Key(_text, required=True),
    "reached": Key(_reached, required=True),
    "right": Key(one_of(*RIGHT), required=True),
    "run": Key(each(_text)),
}

FAULT: Shape = {
    "text": Key(_text, required=True),
    "seed": Key(_text),
    "plants": Key(is_a(dict, what="a table")),
    "gone": Key(each(table(ASSERT))),
}

_shared: Shape = {name: Key(key.check) for name, key in SCENARIO.items() if name not in _MADE}
_any = is_a(dict, what="a table")

PACK: Shape = {
    **{name: Key(lambda value, key, report: None) for name in _shared},
    "schema": Key(one_of(SCHEMA), required=True),
    "job": Key(_text, required=True),
    "title": Key(_text, required=True),
    "group": Key(_text, required=True),
    "reviewed": Key(_text),
    "verifier": Key(table({name: Key(key.check) for name, key in GRADER.items() if name != "type"}), required=True),
    "stage": Key(_any, required=True),
    "scenario": Key(each(_any), required=True),
}


def directory(name: str) -> Path:
    """Where the packs of a subject are."""
    return data_dir("scenarios") / "journeys" / name


def subjects() -> list[str]:
    """The subjects that have packs, the default one first."""
    return [name for name in subject.names() if any(directory(name).glob("*.toml"))]


def load(name: str = subject.DEFAULT) -> list[Scenario]:
    """The scenarios of all packs of a subject, by job, each job's in the order of VARIANTS.

    Raises ScenarioError naming every pack that lacks something, and NotFound for a subject that is not there.
    """
    subject.load(name)
    found: list[Scenario] = []
    problems: list[str] = []
    near: list[str] = []
    for path in sorted(directory(name).glob("*.toml")):
        try:
            found += read(path, name)
        except ScenarioError as error:
            problems += error.problems
            near += error.near
    if problems:
        raise ScenarioError(problems, near)
    return found


def chosen(name: str, jobs: Sequence[str] = ()) -> list[Scenario]:
    """The scenarios of these jobs (all, if none is named). Raises NotFound with near matches."""
    known = load(name)
    ids = list(dict.fromkeys(one.journey.job for one in known if one.journey))
    for job in jobs:
        if job not in ids:
            raise NotFound(f"no journey {job!r} of {name}", near=nearest(job, ids), hint="labd-eval journey list")
    return [one for one in known if one.journey and (not jobs or one.journey.job in jobs)]


def of_run(manifest: Mapping[str, Any]) -> list[Scenario]:
    """All scenarios that a run may have been begun with: its subject's, or its subject's journeys."""
    name = str(manifest.get("subject", subject.DEFAULT))
    return load(name) if manifest.get("journeys") else scenario.load_all(name)


def facts(chosen: Sequence[Scenario], controls: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a run's manifest says of them: the job of each, by its scenario, and the stamps of their controls."""
    told = {one.id: one.journey for one in chosen if one.journey}
    jobs = {name: {"job": one.job, "title": one.title, "group": one.group, "variant": one.variant,
                   "stages": [stage.name for stage in one.stages]} for name, one in told.items()}  # fmt: skip
    return {"jobs": jobs, "controls": dict(controls) if controls is not None else None}


def read(path: Path, name: str) -> list[Scenario]:
    """The three scenarios of one pack. Raises ScenarioError with every problem of it."""
    data = toml_of(path)
    _check(data, path)
    made, problems, near = [], [], []
    for own in sorted(data["scenario"], key=lambda one: VARIANTS.index(one["variant"])):
        try:
            made.append(_expand(data, own, path, name))
        except ScenarioError as error:
            problems += error.problems
            near += error.near
    if problems:
        raise ScenarioError(problems, near)
    return made


# -- what is wrong with a pack ----------------------------------------------------------------------------------------


def _check(data: dict[str, Any], path: Path) -> None:
    report = Findings(str(path))
    table(PACK)(data, "", report)
    report.done()
    if data["job"] != path.stem:
        report("job", f"{data['job']!r} does not fit the file's name {path.name!r}", [])
    if not data["verifier"].get("assert") and data["verifier"].get("state") != "outcome":
        report("verifier", "it asks for nothing: at least one [[verifier.assert]], or state = 'outcome'", [])
    _check_variants(data, report)
    _check_stages(data, report)
    report.done()


def _check_variants(data: Mapping[str, Any], report: Report) -> None:
    there = [one.get("variant") for one in data["scenario"]]
    for name in VARIANTS:
        if there.count(name) != 1:
            report("scenario", f"exactly one has the variant {name!r}; there are {there.count(name)}", [])
    for strange in (name for name in there if name not in VARIANTS):
        report("scenario.variant", f"no {strange!r}", nearest(str(strange), list(VARIANTS)))
    for one in data["scenario"]:
        variant = one.get("variant")
        for key in ("verifier", "stage", "controls"):
            if not isinstance(one.get(key, {}), dict):
                report(f"scenario[{variant}].{key}", "expected a table", [])
        if ("fault" in one) != (variant == "recovery"):
            report(f"scenario[{variant}].fault", "the planted fault belongs to the recovery scenario, and it alone", [])
        if "fault" in one:
            table(FAULT)(one["fault"], f"scenario[{variant}].fault", report)
            if isinstance(one["fault"], dict) and not {"seed", "plants"} & set(one["fault"]):
                report(f"scenario[{variant}].fault", "nothing is planted: seed or plants", [])


def _check_stages(data: Mapping[str, Any], report: Report) -> None:
    for name in STAGES:
        if name not in data["stage"]:
            report(f"stage.{name}", "missing; a journey has all of: " + ", ".join(STAGES), [])
    for name, told in data["stage"].items():
        if name not in STAGES:
            report(f"stage.{name}", "no such stage", nearest(name, list(STAGES)))
            continue
        _check_stage(name, told, f"stage.{name}", report)
    for one in data["scenario"]:
        own = one.get("stage")
        for name, told in own.items() if isinstance(own, dict) else ():
            where = f"scenario[{one.get('variant')}].stage.{name}"
            shared = data["stage"].get(name)
            if not isinstance(shared, dict):
                report(where, "no such stage", nearest(name, list(STAGES)))
            else:
                _check_stage(name, merged(shared, told) if isinstance(told, dict) else told, where, report)


def _check_stage(name: str, told: Any, where: str, report: Report) -> None:
    table(STAGE)(told, where, report)
    if isinstance(told, dict) and ("run" in told) != (name == "replay"):
        report(f"{where}.run", "the stage replay, and it alone, says what is run once more", [])


# -- from a pack to a scenario ----------------------------------------------------------------------------------------


def _expand(data: Mapping[str, Any], own: Mapping[str, Any], path: Path, name: str) -> Scenario:
    variant, fault = own["variant"], own.get("fault") or {}
    shared = {key: value for key, value in data.items() if key in _shared}
    told = merged(shared, {key: value for key, value in own.items() if key not in _PARTS})
    told = merged(told, fault.get("plants", {}))
    grader = _added(data["verifier"], own.get("verifier", {}))
    grader = _added(grader, {"assert": fault["gone"]} if fault.get("gone") else {})
    told |= {
        "id": f"J-{data['job']}-{variant}".upper(),
        "title": f"{data['title']} ({variant})",
        "tier": "t1",
        "grader": {"type": "journey", **grader},
        "timeout_s": told.get("timeout_s", TIME_S),
    }
    journey = Journey(
        data["job"], data["title"], data["group"], variant,
        tuple(_stages(merged(data["stage"], own.get("stage", {})), variant)),
        _fault(fault) if fault else None, data.get("reviewed", ""),
    )  # fmt: skip
    return scenario.made(told, path, subject=name, journey=journey)


#: What a scenario of a pack has that is no key of a scenario file.
_PARTS = ("variant", "fault", "verifier", "stage")


def _stages(all_of_them: Mapping[str, Any], variant: str) -> Iterator[Stage]:
    for name in STAGES:
        if name != "recover" or variant == "recovery":
            told = all_of_them[name]
            yield Stage(name, told["shows"], told["reached"], told["right"], tuple(told.get("run", ())))


def _fault(told: Mapping[str, Any]) -> Fault:
    return Fault(told["text"], told.get("seed"), tuple(entry["path"] for entry in told.get("gone", ())))


def merged(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """`shared` with what is `own`: tables are merged, everything else of the own takes its place."""
    found = dict(shared)
    for key, value in own.items():
        both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = merged(found[key], value) if both else value
    return found


def _added(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a verifier, whose lists are put one behind the other: a scenario asks for more, never for less."""
    found = merged(shared, own)
    for key, value in own.items():
        if isinstance(value, list) and isinstance(shared.get(key), list):
            found[key] = [*shared[key], *value]
    return found
