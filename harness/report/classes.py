"""How the program's calls went in a run, by class: a projection of its records, as data. Reads RUN/classified only.

A record is made by `labd-eval classify` (harness/classifying.py); where a run has none, there is nothing to say, which
is no zero. Only trials that count at all are counted, each with all of its calls; a control stands by itself.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graders import contract, explain, score
from graders.contract import CLASSES, Call, Record
from harness import files
from harness.report.rows import Row
from harness.stats import Rate

#: The directory of a run's records, one file a trial.
DIRECTORY = "classified"
#: What a call can be, in the order of columns.
NAMES = (score.OK, *CLASSES)


@dataclass(frozen=True)
class Records:
    """The records of a run by trial; why those that can't be read can't be; after which the program was not asked."""

    found: Mapping[str, Record]
    unreadable: Mapping[str, str]
    not_asked: Collection[str] = ()


def path_of(run: Path, trial: str) -> Path:
    """Where the record of a trial is."""
    return run / DIRECTORY / f"{trial}.json"


def log_of(record: Path) -> Path:
    """Where the log of what was asked after the trial of a record is."""
    return record.with_suffix(".probes.jsonl")


def record_of(bundle: Path) -> Record | None:
    """The record of a bundle in a run; None if there is none that can be read."""
    data = files.plain_bytes(path_of(bundle.parent.parent, bundle.name))
    try:
        return None if data is None else contract.load(data)
    except contract.ContractError:
        return None  # which the run's own numbers tell


def read(run: Path) -> Records | None:
    """The records of the run in `run`; None if it was never classified."""
    place = run / DIRECTORY
    if not place.is_dir():
        return None
    found, unreadable, not_asked = {}, {}, []
    for path in sorted(place.glob("*.json")):
        data = files.plain_bytes(path)
        try:
            if data is not None:
                found[path.stem] = contract.load(data)
                not_asked += [path.stem] * (not log_of(path).exists() or _left_open(found[path.stem]))
        except contract.ContractError as error:
            unreadable[path.stem] = error.problems[0]
    return Records(found, unreadable, not_asked)


def _left_open(record: Record) -> bool:
    """Whether a question that fits was not put to the program: no budget left, no state, another build installed."""
    return any(not probe.ran for call in record.calls for probe in call.probes)


def of(record: Record | None) -> Row:
    """What a trial's row says of its calls: how many of each class, the score, hints ignored. All None without one."""
    if record is None:
        return dict.fromkeys(("classes", "score", "hints_ignored"))
    told = score.score(record)
    counts = {name: count for name, count in told.counts.items() if count}
    return {"classes": counts, "score": told.data()["value"], "hints_ignored": len(record.agent_side)}


def project(rows: Sequence[Row], records: Records) -> dict[str, Any]:
    """The distribution of classes by agent and condition, and within by scenario, with the calls behind each bar."""
    cells: dict[tuple[str, str], list[tuple[Row, Record]]] = {}
    for row in rows:
        if row["counted"] and row["id"] in records.found:
            cells.setdefault((row["agent"], row["condition"]), []).append((row, records.found[row["id"]]))
    return {
        "columns": [{"agent": agent, "condition": condition} | _column(some)
                    for (agent, condition), some in cells.items()],
        "without_record": sorted(row["id"] for row in rows if row["bundle"] and row["id"] not in records.found),
        "unreadable": dict(records.unreadable),
        "not_asked": sorted(records.not_asked),
    }  # fmt: skip


def _column(some: list[tuple[Row, Record]]) -> dict[str, Any]:
    mine = [record for _, record in some]
    scenarios = dict.fromkeys(row["scenario"] for row, _ in some)
    ignored = [len(record.agent_side) for record in mine]
    return _bar(mine) | {
        "score": score.mean(map(score.score, mine)),
        "verdicts": {"passed": sum(row["verdict"] == "pass" for row, _ in some if row["valid"]),
                     "of": sum(row["valid"] for row, _ in some)},
        "subtypes": dict(sorted(Counter(call.subtype for one in mine for call in one.calls if call.subtype).items())),
        "hints_ignored": {"hints": sum(ignored), "attempts": sum(map(bool, ignored)), "of": len(mine)},
        "by_scenario": {name: _bar([record for row, record in some if row["scenario"] == name]) for name in scenarios},
        "behind": {name: [_told(row, record, at) for row, record in some for at, call in enumerate(record.calls)
                          if call.cls == name] for name in CLASSES},
    }  # fmt: skip


def _bar(mine: list[Record]) -> dict[str, Any]:
    """Calls of each class, of how many; attempts with at least one of it, of how many, with its interval."""
    counts = Counter(class_of(call) for one in mine for call in one.calls)
    having = Counter(name for one in mine for name in {class_of(call) for call in one.calls})
    return {
        "attempts": len(mine),
        "calls": sum(counts.values()),
        "counts": {name: counts[name] for name in NAMES},
        "attempts_with": {name: _share(having[name], len(mine)) for name in CLASSES},
    }


def _share(some: int, of_all: int) -> dict[str, Any]:
    return {"attempts": some, "of": of_all, "interval": Rate(some, of_all, of_all).data()["interval"]}


def class_of(call: Call) -> str:
    """A to F, or `ok`."""
    return call.cls or score.OK


def _told(row: Row, record: Record, at: int) -> dict[str, Any]:
    call = record.calls[at]
    return {"trial": row["id"], "scenario": row["scenario"], "call": at + 1, "subtype": call.subtype,
            "command": explain.command(call, explain.program_of(record)), "evidence": call.evidence}  # fmt: skip
