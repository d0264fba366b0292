"""The gate: is what goes wrong found, before anything is measured? Each planted defect is met by a scripted agent in a
real trial, classified as any trial is, and must get its verdict; atlas itself must get none.

The commands that meet a defect are played on the undamaged program as well: what it says of them is free (class B) or
nothing. A gate that was passed leaves a stamp, a small file in the user's cache that is named by a digest of all that
the verdicts depend on; a run that measures is refused without one.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graders.contract import Record
from graders.signs import Signs
from harness import agents, classifying, data, files, sabotage, scenario, subject
from harness.agents._program import RATED, Options
from harness.agents._script import play
from harness.bench import Bench
from harness.sabotage import SUBJECT, Defect
from harness.scenario import Scenario, Step
from harness.scenario_fill import data_dir
from harness.trial import Order, conduct
from labd.errors import Refused

SCHEMA = "labd-gate/1"

#: Trials at once: most of each is waiting for processes to start.
AT_ONCE = 3

#: The class that a refusal gets which says how to go on: what a good program does with a mistake.
FREE = "B"


@dataclass(frozen=True)
class Case:
    """One trial of the gate: what is played, on which program (None: atlas itself), and what it must be called."""

    name: str
    scenario: Scenario
    run: tuple[str, ...]
    planted: str | None
    wanted: str | None


@dataclass(frozen=True)
class Finding:
    """What a case was called: `found` has a verdict a call (`C c-truncated`, or "" for nothing wrong)."""

    case: Case
    found: tuple[str, ...]
    evidence: str = ""
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether the planted verdict is there, and no other but class B; without one, whether nothing is there."""
        named = {one for one in self.found if one}
        if self.problem or not self.found:
            return False
        return not named if self.case.wanted is None else self.case.wanted in named <= {self.case.wanted, FREE}


@dataclass(frozen=True)
class Row:
    """One defect: its verdict where it is planted, and what the same commands are called on atlas itself."""

    defect: Defect
    planted: Finding
    without: Finding | None

    @property
    def ok(self) -> bool:
        """Whether both are as they must be."""
        return self.planted.ok and (self.without is None or self.without.ok)


@dataclass(frozen=True)
class Passage:
    """All of one gate: the defects' rows, and the references on the undamaged program."""

    rows: tuple[Row, ...]
    clean: tuple[Finding, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether the gate is passed."""
        return all(row.ok for row in self.rows) and all(one.ok for one in self.clean)


def passage(names: Sequence[str] = ()) -> Passage:
    """Play these defects (all, and the undamaged references, if none is named). Raises LabdError, OSError."""
    defects = sabotage.chosen(names)
    known = {one.id: one for one in scenario.load_all(SUBJECT)}
    with tempfile.TemporaryDirectory(prefix="labd-gate-") as place, ThreadPoolExecutor(AT_ONCE) as pool:
        cases = list(_cases(defects, known, whole=not names))
        signs = classifying.signs_of(SUBJECT)
        findings = pool.map(lambda case: _play(case, Path(place), signs), cases)
        found = dict(zip((case.name for case in cases), findings, strict=True))
    rows = (Row(one, found[one.name], found.get(f"{one.name}.without")) for one in defects)
    return Passage(tuple(rows), tuple(found[f"reference.{name}"] for name in known if f"reference.{name}" in found))


def _cases(defects: Sequence[Defect], known: dict[str, Scenario], *, whole: bool) -> Iterator[Case]:
    """The trials, the slowest first."""
    for one in sorted(defects, key=lambda one: one.cls != "D"):
        examined = known[one.scenario]
        lines = one.run or tuple(step.run for step in examined.reference)
        yield Case(one.name, examined, lines, one.name if one.tool else None, one.verdict)
        if one.tool and one.run:
            yield Case(f"{one.name}.without", examined, lines, None, one.without)
    if whole:
        for examined in known.values():
            lines = tuple(step.run for step in examined.reference)
            yield Case(f"reference.{examined.id}", examined, lines, None, None)


def _play(case: Case, place: Path, signs: Signs) -> Finding:
    """One trial, in a directory of its own, and its classification. The program takes atlas's place in this thread."""
    home = place / case.name
    (home / "trials").mkdir(parents=True)

    def act(bench: Bench) -> str:
        return play(bench, map(Step, case.run))

    agent = agents.Agent("gate", "a line after the other", RATED, act)
    with ExitStack() as held:
        if case.planted is not None:
            held.enter_context(subject.in_place(SUBJECT, str(sabotage.plant(case.planted, home / SUBJECT))))
        order = Order(case.scenario.id, "cold", "gate", 1)
        directory = conduct(order, case.scenario, agent, home / "trials", facts={"hashes": data.hashes()})
        if directory is None:
            return Finding(case, (), problem="it was interrupted")
        made = next(classifying.classify(home, [directory.name], signs, probes=True))
    if made.record is None:
        return Finding(case, (), problem=made.why)
    if len(made.record.calls) != len(case.run):
        return Finding(case, (), problem=f"{len(made.record.calls)} of {len(case.run)} commands were recorded")
    return Finding(case, verdicts(made.record), _evidence(made.record))


def verdicts(record: Record) -> tuple[str, ...]:
    """A word a call: its class and, in class C, its subtype; "" where nothing is wrong."""
    return tuple(" ".join(part for part in (call.cls, call.subtype) if part) for call in record.calls)


def _evidence(record: Record) -> str:
    """What the worst call rests on."""
    wrong = [call for call in record.calls if call.cls]
    return max(wrong, key=lambda call: call.cls != FREE).evidence if wrong else ""


# -- the stamp --------------------------------------------------------------------------------------------------------


def key() -> str:
    """A digest of all that the gate's verdicts depend on: the exam's code, atlas, its defects, signs and scenarios."""
    hashes, versions = data.hashes(), data.versions()
    told = [scenario.fixtures_dir() / SUBJECT, scenario.fixtures_dir() / "sabotage", data_dir("scenarios") / SUBJECT]
    parts = [hashes.get("harness"), hashes.get("graders"), versions["python"], *map(files.tree_digest, told)]
    return files.digest(files.canonical(parts))


def stamp_path() -> Path:
    """Where the stamp of this build is, or would be: `$LABD_EVAL_CACHE/gate/DIGEST.json` (the variable's default is
    ~/.cache/labd-eval, or $XDG_CACHE_HOME/labd-eval)."""
    return cache_dir() / "gate" / f"{key()[:32]}.json"


def cache_dir() -> Path:
    """Where stamps are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.environ.get("LABD_EVAL_CACHE") or f"{cache}/labd-eval")


def stamp(passed: Passage) -> Path:
    """Write down that this build has passed; returns where. Raises OSError."""
    path = stamp_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, {**told(passed), "key": key()})
    return path


def passed() -> bool:
    """Whether this build has passed the gate."""
    try:
        found: Any = files.read_json(stamp_path())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("key") == key()


def must_have_passed(cast: Sequence[agents.Agent], options: Options) -> None:
    """Raises Refused where a run would measure somebody and the gate was not passed on this build.

    Nobody is measured by scripted agents, by controls, with a scripted model, or by a smoke test.
    """
    measured = [one.name for one in cast if one.program is not None and one.expected >= RATED]
    if measured and options.script is None and options.isolation != "light" and not passed():
        who = ", ".join(measured)
        raise Refused(f"{who} would be measured, and nothing shows yet that this build finds what goes wrong",
                      hint="labd-eval gate")  # fmt: skip


# -- telling ----------------------------------------------------------------------------------------------------------


def told(passed: Passage) -> dict[str, Any]:
    """The gate as plain data."""
    return {
        "schema": SCHEMA,
        "ok": passed.ok,
        "rows": [{"defect": row.defect.name, "says": row.defect.says, "ok": row.ok, "planted": _told(row.planted),
                  "without": None if row.without is None else _told(row.without)} for row in passed.rows],
        "undamaged": [_told(one) for one in passed.clean],
    }  # fmt: skip


def _told(one: Finding) -> dict[str, Any]:
    return {"scenario": one.case.scenario.id, "run": list(one.case.run), "wanted": one.case.wanted,
            "found": list(one.found), "ok": one.ok, "evidence": one.evidence, "problem": one.problem}  # fmt: skip


def table(passed: Passage) -> str:
    """The gate for people: planted → verdict, then the undamaged references."""
    head = ("planted", "is", "was called", "without it", "")
    lines = [(row.defect.name, row.defect.verdict, _shown(row.planted), _shown(row.without), "" if row.ok else "MISSED")
             for row in passed.rows]  # fmt: skip
    widths = [max(len(line[n]) for line in (head, *lines)) for n in range(len(head))]
    cells = (head, tuple("-" * width for width in widths), *lines)
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    for row in passed.rows:
        for one in (row.planted, row.without):
            if one is not None and not one.ok:
                text.append(f"{one.case.name}: {one.problem or one.evidence or 'nothing was found'}")
    clean = [one for one in passed.clean if one.ok]
    if passed.clean:
        text += ["", f"atlas itself: {len(clean)} of {len(passed.clean)} references are called nothing"]
    text += [f"  {one.case.scenario.id}: {_shown(one)}: {one.problem or one.evidence}" for one in passed.clean
             if not one.ok]  # fmt: skip
    found = sum(row.ok for row in passed.rows)
    return "\n".join([*text, f"{found} of {len(passed.rows)} planted defects get their verdict"]) + "\n"


def _shown(one: Finding | None) -> str:
    if one is None:
        return ""
    return ", ".join(dict.fromkeys(word for word in one.found if word)) or ("nothing" if one.found else "no record")
