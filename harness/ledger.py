"""The ledger of what makes a command line fit for agents: its entries, as data. Loads and checks; starts nothing.

An entry is `fixtures/ledger/NN-name.toml`, written by people; what its commands print is measured
(harness/ledger_measure.py) into `NN-name.measured.json` beside it, and what an experiment found is taken from its run
into `NN-name.EXPERIMENT.json`. No entry says of itself that it is confirmed: `standing` follows from what was found.

Tier 1 (the program knew, and did not say) makes a candidate. Tier 2 (it was said, and agents did better or did not, in
a paired run) confirms or refutes; a scripted model proves that the machinery works, and nothing more.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness import files, subject
from harness.scenario import fixtures_dir
from harness.scenario_schema import (
    Findings,
    Key,
    ScenarioError,
    Shape,
    each,
    is_a,
    one_of,
    table,
    toml_of,
    whole_within,
)

MEASURED = "labd-ledger-measured/1"
FOUND = "labd-experiment/1"

Standing = Literal["hypothesis", "confirmed", "refuted"]

_text, _flag = is_a(str, what="a text"), is_a(bool, what="true or false")
_texts = each(_text)


def _pattern(value: Any, key: str, report: Any) -> None:
    _text(value, key, report)
    try:
        re.compile(str(value))
    except re.error as error:
        report(key, f"not a regular expression: {error}", [])


_RUN: Shape = {
    "run": Key(_text, required=True),
    "exit": Key(whole_within(0, 255), required=True),
    "stdout": Key(_pattern),
    "stderr": Key(_pattern),
    "says_nothing": Key(_flag),
    "silent_s": Key(whole_within(2, 600)),
    "speaks_within_s": Key(whole_within(2, 600)),
}
_EVIDENCE: Shape = {
    "subject": Key(_text, required=True),
    "stands": Key(one_of("holds", "violates"), required=True),
    "scenario": Key(_text, required=True),
    "planted": Key(_text),
    "before": Key(_texts),
    "claim": Key(_text, required=True),
    "concludes": Key(_text),
    "run": Key(each(table(_RUN)), required=True),
}
_CHANGE: Shape = {
    "lever": Key(one_of("tool", "instructions"), required=True),
    "text": Key(_text, required=True),
    "why": Key(_text, required=True),
    "experiment": Key(_text),
}
ENTRY: Shape = {
    "number": Key(whole_within(1, 999), required=True),
    "property": Key(_text, required=True),
    "meaning": Key(_text, required=True),
    "classes": Key(_texts, required=True),
    "violation": Key(_text, required=True),
    "evidence": Key(each(table(_EVIDENCE)), required=True),
    "change": Key(each(table(_CHANGE)), required=True),
}


@dataclass(frozen=True)
class Line:
    """One command line of an evidence, and what of its outcome the claim rests on.

    `stdout` and `stderr` are patterns; `says_nothing`: both streams are empty; `silent_s`: at least so many whole
    seconds passed without a byte of either; `speaks_within_s`: never so many.
    """

    run: str
    exit: int
    stdout: str = ""
    stderr: str = ""
    says_nothing: bool = False
    silent_s: int = 0
    speaks_within_s: int = 0

    def problems(self, measured: dict[str, Any]) -> list[str]:
        """What of the claim the measurement does not bear out."""
        found = []
        if measured["exit"] != self.exit:
            found.append(f"exit {measured['exit']}, not {self.exit}")
        for name, pattern in (("stdout", self.stdout), ("stderr", self.stderr)):
            if pattern and not re.search(pattern, measured[name], re.MULTILINE):
                found.append(f"{name} does not show {pattern!r}")
        if self.says_nothing and (measured["stdout"] or measured["stderr"]):
            found.append("it says something")
        silent = measured.get("silent_s", 0)
        if silent < self.silent_s or 0 < self.speaks_within_s <= silent:
            found.append(f"silent for {silent} s")
        return [f"{self.run}: {problem}" for problem in found]


@dataclass(frozen=True)
class Evidence:
    """What one subject does about a property (`stands`): `lines`, run in the state that a scenario begins with.

    `planted` names a defect that is put into the program first; `before` are command lines that bring the state about
    and prove nothing. `concludes` says what the answer invites its reader to believe.
    """

    subject: str
    stands: Literal["holds", "violates"]
    scenario: str
    claim: str
    lines: tuple[Line, ...]
    planted: str = ""
    before: tuple[str, ...] = ()
    concludes: str = ""

    @property
    def key(self) -> str:
        """A digest of what has to be measured: another one means that the measurement is of something else."""
        asked = [self.subject, self.scenario, self.planted, *self.before, *(line.run for line in self.lines)]
        return files.digest(files.canonical(asked))[:16]


@dataclass(frozen=True)
class Change:
    """What would be done about it, by which lever and why by that; `experiment` names the paired run that tries it,
    `found` is what came of that run, if one was taken."""

    lever: Literal["tool", "instructions"]
    text: str
    why: str
    experiment: str = ""
    found: dict[str, Any] | None = None

    @property
    def real(self) -> bool:
        """Whether agents with a real model behind them have tried it."""
        return self.found is not None and not self.found["scripted"]


@dataclass(frozen=True)
class Entry:
    """One property, with its evidence. `measured` has a measurement for each evidence (None: not measured yet),
    `programs` the versions that were measured."""

    number: int
    name: str
    path: Path
    title: str
    meaning: str
    classes: tuple[str, ...]
    violation: str
    evidence: tuple[Evidence, ...]
    changes: tuple[Change, ...]
    measured: tuple[dict[str, Any] | None, ...] = ()
    programs: dict[str, str] | None = None

    @property
    def standing(self) -> Standing:
        """Only a paired run with a real model confirms or refutes; one change that helps confirms the property."""
        verdicts = [change.found["verdict"] for change in self.changes if change.found is not None and change.real]
        for standing in ("confirmed", "refuted"):
            if standing in verdicts:
                return standing
        return "hypothesis"

    @property
    def tier(self) -> int:
        """2 where agents played a change, 1 where only the programs were asked, 0 where nothing was measured."""
        if any(change.real for change in self.changes):
            return 2
        return 1 if any(self.measured) else 0

    def subjects(self, stands: str) -> list[str]:
        """Which subjects, as they are (nothing planted), do or break what the property says."""
        return list(dict.fromkeys(one.subject for one in self.evidence if one.stands == stands and not one.planted))

    def problems(self) -> list[str]:
        """Evidence that was not measured, or whose measurement does not bear its claim out."""
        told = []
        for one, measured in zip(self.evidence, self.measured, strict=True):
            where = f"{self.path.name}: {one.subject}{f' ({one.planted})' if one.planted else ''}"
            if measured is None:
                told.append(f"{where}: not measured, or measured before it was changed: labd-eval ledger --measure")
                continue
            for line, ran in zip(one.lines, measured["runs"], strict=True):
                told += [f"{where}: {problem}" for problem in line.problems(ran)]
        return told


def directory() -> Path:
    """Where the entries are."""
    return fixtures_dir() / "ledger"


def load_all(root: Path | None = None) -> list[Entry]:
    """Every entry, by number. Raises ScenarioError naming each mistake."""
    found = [read(path) for path in sorted((root or directory()).glob("[0-9]*.toml"))]
    numbers = [entry.number for entry in found]
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if twice:
        raise ScenarioError([f"two entries have the number {twice[0]}"], [])
    return sorted(found, key=lambda entry: entry.number)


def read(path: Path) -> Entry:
    """One entry with what was measured and found for it. Raises ScenarioError."""
    told = toml_of(path)
    _check(told, path)
    evidence = tuple(_evidence(one) for one in told["evidence"])
    kept = _beside(path, "measured", MEASURED)
    measured = {one["key"]: one for one in kept["evidence"]} if kept else {}
    return Entry(
        number=told["number"], name=path.stem.partition("-")[2], path=path, title=_joined(told["property"]),
        meaning=_joined(told["meaning"]), classes=tuple(told["classes"]), violation=_joined(told["violation"]),
        evidence=evidence, changes=tuple(_change(one, path) for one in told["change"]),
        measured=tuple(measured.get(one.key) for one in evidence), programs=kept["programs"] if kept else None,
    )  # fmt: skip


def beside(path: Path, what: str) -> Path:
    """Where what belongs to an entry's file lies: `NN-name.WHAT.json`."""
    return path.with_name(f"{path.stem}.{what}.json")


def _beside(path: Path, what: str, schema: str) -> dict[str, Any] | None:
    place = beside(path, what)
    try:
        told = files.read_json(place)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ScenarioError([f"{place}: {error}"], []) from error
    if not isinstance(told, dict) or told.get("schema") != schema:
        raise ScenarioError([f"{place}: not of schema {schema}"], [])
    return told


def _joined(text: str) -> str:
    return " ".join(text.split())


def _change(told: dict[str, str], path: Path) -> Change:
    name = told.get("experiment")
    found = _beside(path, name, FOUND) if name else None
    return Change(**{key: _joined(text) for key, text in told.items()}, found=found)


def _evidence(told: dict[str, Any]) -> Evidence:
    rest = {key: value for key, value in told.items() if key not in ("run", "before")}
    rest |= {key: _joined(rest[key]) for key in ("claim", "concludes") if key in rest}
    return Evidence(**rest, lines=tuple(Line(**line) for line in told["run"]), before=tuple(told.get("before", ())))


def _check(told: dict[str, Any], path: Path) -> None:
    report = Findings(path.name)
    if "status" in told:
        report("status", "an entry never says how it stands: that follows from what was measured and found", [])
        told = {key: value for key, value in told.items() if key != "status"}
    table(ENTRY)(told, "", report)
    known: Sequence[str] = subject.names()
    for number, one in enumerate(told.get("evidence", ())):
        if isinstance(one, dict) and one.get("subject") not in known:
            report(f"evidence[{number}].subject", f"there is no subject {one.get('subject')!r}", [])
    if not path.name.startswith(f"{told.get('number', 0):02}-"):
        report("number", f"{told.get('number')!r} does not fit the file's name", [])
    report.done()
