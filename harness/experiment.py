"""A paired experiment: the same questions, conditions, agent and seed, with one change and without. Its definition.

`scenarios/experiments/NAME.toml` says what is asked and what the change is. The lever is the tool (two builds of the
program) or the instructions (text that the agent is told before its goal); nothing else may differ, which is checked
here. harness/experiment_arms.py runs the two arms, harness/experiment_result.py says what came of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from graders.contract import CLASSES, SUBTYPES
from harness import files, plan, scenario, subject
from harness.run import SCHEMA as RUN_SCHEMA
from harness.scenario_fill import data_dir
from harness.scenario_schema import (
    Findings,
    Key,
    Shape,
    each,
    is_a,
    one_of,
    table,
    toml_of,
    whole_within,
    within,
)
from labd.errors import LabdError, NotFound, nearest

#: What an experiment's directory holds, besides the runs of its arms.
PLAN, RESULT, PAGE = "experiment.json", "result.json", "result.md"
PLAN_SCHEMA = "labd-experiment-plan/1"

ARMS = ("before", "after")

Lever = Literal["tool", "instructions"]

_text = is_a(str, what="a text")
_ARM: Shape = {"planted": Key(_text), "program": Key(_text), "text": Key(_text)}
SHAPE: Shape = {
    "title": Key(_text, required=True),
    "question": Key(_text, required=True),
    "subject": Key(_text, required=True),
    "scenarios": Key(each(_text), required=True),
    "conditions": Key(each(one_of(*plan.CONDITIONS))),
    "agent": Key(_text),
    "script": Key(_text),
    "trials": Key(whole_within(1, 1000)),
    "lever": Key(one_of("tool", "instructions"), required=True),
    "fails_as": Key(each(one_of(*CLASSES, *SUBTYPES)), required=True),
    "worth": Key(within(0.01, 1, "a share")),
    "before": Key(table(_ARM), required=True),
    "after": Key(table(_ARM), required=True),
}


@dataclass(frozen=True)
class Arm:
    """One side. `planted`: a defect put into the subject's program; `program`: the path of another build of it;
    `text`: what its agents are told before their goal."""

    planted: str = ""
    program: str = ""
    text: str = ""

    @property
    def build(self) -> tuple[str, str]:
        """What tells one build from another."""
        return self.planted, self.program


@dataclass(frozen=True)
class Experiment:
    """One experiment, checked. `fails_as`: the classes of failure that the change is to do away with; where the before
    arm has none of them, there is nothing to mend. `worth`: the smallest gain in right answers (a share) that would
    be worth the change; one that can be ruled out refutes. `script`: what a scripted model plays (a path)."""

    name: str
    title: str
    question: str
    subject: str
    scenarios: tuple[str, ...]
    lever: Lever
    fails_as: tuple[str, ...]
    before: Arm
    after: Arm
    conditions: tuple[str, ...] = ("cold",)
    agent: str = "loop"
    script: str = ""
    trials: int = 1
    worth: float = 0.2
    digest: str = field(default="", compare=False)

    def arm(self, name: str) -> Arm:
        """The arm of that name."""
        return self.before if name == "before" else self.after


def folder() -> Path:
    """Where the definitions are."""
    return data_dir("scenarios") / "experiments"


def names() -> list[str]:
    """All experiments."""
    return sorted(path.stem for path in folder().glob("*.toml"))


def load(name: str) -> Experiment:
    """The experiment of that name. Raises NotFound with near matches, or ScenarioError naming each mistake."""
    if name not in names():
        raise NotFound(f"no experiment {name!r}", near=nearest(name, names()), hint="labd-eval experiment list")
    return read(folder() / f"{name}.toml")


def read(path: Path) -> Experiment:
    """The experiment in a file. Raises ScenarioError."""
    told = toml_of(path)
    _check(told, path)
    plain = {key: " ".join(told[key].split()) for key in ("title", "question")}
    lists = {key: tuple(told[key]) for key in ("scenarios", "conditions", "fails_as") if key in told}
    digest = files.digest(path.read_bytes())
    script = str(path.parent / "scripts" / told["script"]) if "script" in told else ""
    return Experiment(**{**told, **plain, **lists, "script": script, "name": path.stem, "digest": digest,
                         "before": Arm(**told["before"]), "after": Arm(**told["after"])})  # fmt: skip


def with_builds(one: Experiment, programs: Mapping[str, str]) -> Experiment:
    """The experiment with other programs in its arms."""
    return replace(one, **{name: replace(one.arm(name), planted="", program=path) for name, path in programs.items()})


def _check(told: dict[str, Any], path: Path) -> None:
    report = Findings(path.name)
    table(SHAPE)(told, "", report)
    report.done()
    if told["subject"] not in subject.names():
        report("subject", f"there is no subject {told['subject']!r}", nearest(told["subject"], subject.names()))
        report.done()
    known = [one.id for one in scenario.load_all(told["subject"])]
    for name in told["scenarios"]:
        if name not in known:
            report("scenarios", f"there is no scenario {name!r}", nearest(name, known))
    for key in ("scenarios", "conditions", "fails_as"):
        for name in sorted({name for name in told.get(key, ()) if told[key].count(name) > 1}):
            report(key, f"{name!r} is named twice", [])
    for name in ("before", "after"):
        _check_planted(told, name, report)
    before, after = Arm(**told["before"]), Arm(**told["after"])
    if told["lever"] == "tool" and (before.build == after.build or before.text != after.text):
        report("after", "the lever is the tool: the builds have to differ, and nothing else", [])
    if told["lever"] == "instructions" and (before.text == after.text or before.build != after.build):
        report("after", "the lever is the instructions: the texts have to differ, and nothing else", [])
    script = told.get("script")
    if script is not None and not (path.parent / "scripts" / script).is_file():
        report("script", f"there is no scripts/{script} beside it", [])
    report.done()


def _check_planted(told: dict[str, Any], arm: str, report: Findings) -> None:
    """Whether the defect of an arm is one that can be planted, in the program that is asked about."""
    from harness import sabotage

    name = told[arm].get("planted")
    if not name:
        return
    known = [one.name for one in sabotage.defects() if one.tool]
    if told["subject"] != sabotage.SUBJECT:
        report(f"{arm}.planted", f"defects are planted in {sabotage.SUBJECT} alone", [])
    elif name not in known:
        report(f"{arm}.planted", f"there is no defect {name!r}", nearest(name, known))


# -- what was run --------------------------------------------------------------------------------------------------


def find(out: Path, name: str) -> Path:
    """The directory of an experiment's run: a path, a name under `out`, or `latest`. Raises NotFound."""
    known = sorted(path.parent.name for path in out.glob(f"*/{PLAN}"))
    if name == "latest" and known:
        return out / known[-1]
    for path in (Path(name), out / name):
        if (path / PLAN).is_file():
            return path
    raise NotFound(f"no experiment was run as {name!r}", near=nearest(name, known), hint=f"ls {out}")


def plan_of(directory: Path) -> dict[str, Any]:
    """What was to be run there. Raises LabdError if it can't be read."""
    return _stored(directory / PLAN, PLAN_SCHEMA)


def kept_build(arm: Path) -> str:
    """The program that an arm's run was played with, by the arm's directory; "" where that is no arm, or it was played
    with what is installed."""
    directory = arm.resolve().parent
    if arm.name not in ARMS or not (directory / PLAN).is_file():
        return ""
    from harness import sabotage

    copy = directory / f"build-{arm.name}" / sabotage.SUBJECT
    return str(copy) if copy.is_file() else str((plan_of(directory).get("builds") or {}).get(arm.name, ""))


def found(directory: Path) -> dict[str, Any]:
    """What came of it. Raises LabdError if it was not run to its end."""
    from harness.ledger import FOUND

    if not (directory / RESULT).is_file():
        raise LabdError(f"{directory} has no result: it was not run to its end",
                        hint=f"labd-eval experiment run --resume {directory}")  # fmt: skip
    return _stored(directory / RESULT, FOUND)


def _stored(path: Path, schema: str) -> dict[str, Any]:
    try:
        told = files.read_json(path)
    except (OSError, ValueError) as error:
        raise LabdError(f"{path}: {error}") from error
    if not isinstance(told, dict) or told.get("schema") != schema:
        raise LabdError(f"{path}: not of schema {schema} (its runs are of {RUN_SCHEMA})")
    return told
