"""Sessions that people have scored, as bundles that graders can read. Pure but for the files it is asked to write.

A session is an answer (and, where it matters, commands that were run) with a person's scores. It becomes a bundle with
the live command reference in it, and is graded by the very graders that runs are graded by.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graders import rubric
from graders.bundle_view import SCHEMA, Bundle
from graders.verdict import Verdict
from harness import files, grading
from harness.scenario import Scenario
from labd.errors import LabdError, nearest

CONDITIONS = ("cold", "warm", "preloaded")


@dataclass(frozen=True)
class Session:
    """One scored session. `passed` and `scores` (0 to 2 a dimension) are a person's."""

    id: str
    scenario: str
    condition: str
    answer: str
    passed: bool
    scores: Mapping[str, int]
    why: str


@dataclass(frozen=True)
class Compared:
    """What a person and the graders say of one session. `verdict` is not comparable where it is no pass or fail."""

    session: Session
    verdict: Verdict

    @property
    def agrees(self) -> bool | None:
        """None where the graders have no verdict."""
        return (self.verdict.verdict == "pass") == self.session.passed if self.verdict.rated else None


def load(path: Path) -> list[Session]:
    """The sessions of a file, or of all TOML files of a directory. Raises LabdError, naming the place."""
    places = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    found: list[Session] = []
    for place in places:
        entries = files.read_toml(place).get("session", [])
        found += [_session(place, number, entry) for number, entry in enumerate(entries, 1)]
    if not found:
        raise LabdError(f"{path}: there is no [[session]]", hint="docs/exam.md tells what one holds")
    twice = {one.id for one in found if sum(one.id == other.id for other in found) > 1}
    if twice:
        raise LabdError(f"{path}: two sessions are called {sorted(twice)[0]!r}")
    return found


def _session(place: Path, number: int, entry: Any) -> Session:
    name = f"{place}: session {number}"
    known = {"id", "scenario", "condition", "answer", "label", "why"}
    if not isinstance(entry, dict):
        raise LabdError(f"{name} is no table")
    for key in entry:
        if key not in known:
            raise LabdError(f"{name}: unknown key {key!r}", near=nearest(key, sorted(known)))
    label, condition = entry.get("label"), entry.get("condition", "cold")
    if not all(isinstance(entry.get(key), str) for key in ("id", "scenario", "answer")) or not isinstance(label, dict):
        raise LabdError(f"{name}: it needs id, scenario, answer and label")
    if condition not in CONDITIONS:
        raise LabdError(f"{name}: no condition {condition!r}", near=nearest(str(condition), list(CONDITIONS)))
    if not isinstance(label.get("pass"), bool):
        raise LabdError(f"{name}: label.pass is true or false")
    scores = {key: value for key, value in label.items() if key != "pass"}
    for key, value in scores.items():
        if key not in rubric.KEYS or isinstance(value, bool) or value not in (0, 1, 2):
            raise LabdError(f"{name}: label.{key} is no score: {', '.join(rubric.KEYS)}, each 0, 1 or 2")
    return Session(entry["id"], entry["scenario"], condition, entry["answer"], label["pass"], scores,
                   str(entry.get("why", "")))  # fmt: skip


def bundle(session: Session, scenario: Scenario, surface: Mapping[str, Any], under: Path) -> Path:
    """Write the session as a bundle under a directory; returns the bundle's."""
    place = under / session.id
    place.mkdir()
    trial = {"schema": SCHEMA, "id": session.id, "scenario": session.scenario, "condition": session.condition,
             "agent": "session", "number": 1, "grader": scenario.grader["type"], "ended_by": "completed",
             "subject": surface["program"]}  # fmt: skip
    files.write_json(place / "trial.json", trial)
    files.write_json(place / "scenario.json", scenario.frozen({}))
    files.write_json(place / "surface.json", dict(surface))
    files.write_bytes(place / "answer.txt", session.answer.encode())
    files.write_bytes(place / "goal.txt", scenario.goal.encode())
    return place


def graded(session: Session, place: Path) -> Compared:
    """What the scenario's grader (and a judge, where one has answered into the bundle) finds."""
    return Compared(session, grading.by_grader(str(Bundle(place).trial["grader"]), place))
