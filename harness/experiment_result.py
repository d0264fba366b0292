"""What came of an experiment: both arms measured, compared in pairs, and a verdict with its reasons. Pure.

Scenarios are the unit. Two things are tested, the right answer and the commands that it took, held to 5 % together. A
change is confirmed where agents were right more often, or as often with fewer commands; refuted where they were right
less often, or where a gain that would be worth it can be ruled out. All else is inconclusive, and says why.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from shlex import join
from typing import Any, Literal

from graders import explain
from graders.contract import Record
from harness import paired
from harness.experiment import Experiment
from harness.ledger import FOUND
from harness.report.model import rates
from harness.report.rows import Row
from harness.stats import Rate

Verdict = Literal["confirmed", "refuted", "inconclusive"]

MACHINERY = "a scripted model played both arms: this proves that the experiment works, never what a model would do"

#: The level of each test. The right answer has most of it, so that six scenarios that all differ are enough.
LEVELS = {"right": 0.04, "commands": 0.01}

#: So much of a command's streams, and of an answer, is kept in a trace (characters).
HEAD = 1200


@dataclass(frozen=True)
class Side:
    """One arm as it was played: its rows (harness/report/rows.py) and its records by trial. `build`: the digest of the
    program; `options`: what run.json keeps; `planted`: the name, meaning and code of the defect in its program."""

    rows: Sequence[Row]
    records: Mapping[str, Record]
    build: str
    options: Mapping[str, Any]
    run: str
    planted: Mapping[str, str] | None = None

    @property
    def valid(self) -> list[Row]:
        """The trials that enter a rate."""
        return [row for row in self.rows if row["valid"]]

    def calls(self, row: Row) -> int | None:
        """How many commands of the program a trial took; None where no record tells."""
        record = self.records.get(row["id"])
        return record.program_calls if record is not None else None


def result(experiment: Experiment, before: Side, after: Side, *, model: bool) -> dict[str, Any]:
    """All of it as plain data. `model`: whether the agent is a program with a model of some kind behind it."""
    before, after = _dropped(before), _dropped(after)
    right = paired.compare(rates(before.rows), rates(after.rows))
    fewer = _fewer(before, after, "commands")
    scripted = any(row["scripted_model"] for side in (before, after) for row in side.rows) or not model
    verdict, reasons = judge(experiment, right, fewer, (before, after))
    told = {
        "schema": FOUND,
        "name": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "lever": experiment.lever,
        "subject": experiment.subject,
        "scripted": scripted,
        "label": MACHINERY if scripted else "",
        "agent": before.rows[0]["agent"] if before.rows else experiment.agent,
        "model": before.options.get("model"),
        "conditions": list(experiment.conditions),
        "scenarios": list(experiment.scenarios),
        "trials": max((row["number"] for row in before.rows), default=0),
        "verdict": "inconclusive" if scripted else verdict,
        "numbers_alone": verdict,
        "reasons": [MACHINERY, *reasons] if scripted else reasons,
        "small_n": small_n(right),
        "right": right.data(),
        "commands": fewer,
        "levels": LEVELS,
        "turns": _fewer(before, after, "turns"),
        "fails_as": list(experiment.fails_as),
        "arms": {name: _arm(experiment, side, experiment.arm(name).text)
                 for name, side in (("before", before), ("after", after))},
    }  # fmt: skip
    return told | {"traces": _traces(experiment, before, after)}


def _dropped(side: Side) -> Side:
    """Without the trials in which the environment failed (class E): what came of those says nothing of the change."""
    failed = {name for name, record in side.records.items() if any(call.cls == "E" for call in record.calls)}
    rows = [{**row, "valid": row["valid"] and row["id"] not in failed} for row in side.rows]
    return replace(side, rows=rows)


def judge(experiment: Experiment, right: paired.Comparison, fewer: Mapping[str, Any],
          sides: tuple[Side, Side]) -> tuple[Verdict, list[str]]:  # fmt: skip
    """The verdict that the numbers alone give, and why."""
    failed = [met(experiment, side) for side in sides]
    what = " or ".join(experiment.fails_as)
    if right.difference is None:
        return "inconclusive", ["no scenario has valid trials in both arms"]
    if not failed[0].passed:
        return "inconclusive", [f"nothing to mend: before the change no trial met a failure of class {what}"]
    shares = " → ".join(f"{one.passed} of {one.valid} trials" for one in failed)
    reasons = [f"failures of class {what}: {shares}", f"right answers: {right.sentence}",
               f"commands: {fewer['sentence']}"]  # fmt: skip
    if right.unsafe:
        return "inconclusive", [*reasons, f"too many trials were lost: {right.unsafe}"]
    if right.p <= LEVELS["right"] and right.difference:
        return ("confirmed" if right.difference > 0 else "refuted"), reasons
    if fewer["p"] <= LEVELS["commands"] and fewer["difference"] < 0 <= right.difference:
        return "confirmed", [*reasons, "as often right as before, with fewer commands"]
    if right.finding == "no difference shown" and right.interval is not None and right.interval[1] < experiment.worth:
        gain = f"{experiment.worth * 100:.0f} points"
        return "refuted", [*reasons, f"a gain of {gain}, which would be worth the change, can be ruled out"]
    return "inconclusive", [*reasons, "neither a gain, nor that there is none worth having, is shown"]


def small_n(right: paired.Comparison) -> str:
    """What so few scenarios can and can't show."""
    told = f"{right.scenarios} scenarios are the unit; with so many the smallest p-value that could come out is "
    told += f"{right.least:.3g} (a right answer is tested at {LEVELS['right']:g})" + (
        ": no difference could be shown" if right.least > LEVELS["right"] else ""
    )
    if right.noise is not None:
        told += f"; a difference below {right.noise.visible * 100:.0f} points would mostly go unseen"
    return told


def met(experiment: Experiment, side: Side) -> Rate:
    """In how many valid trials, of those with a record, a call failed as the experiment is about."""
    told = [side.records[row["id"]] for row in side.valid if row["id"] in side.records]
    hit = sum(any({call.cls, call.subtype} & set(experiment.fails_as) for call in record.calls) for record in told)
    return Rate(hit, len(told), len(told))


def _amount(side: Side, row: Row, what: str) -> float | None:
    value = side.calls(row) if what == "commands" else row[what]
    return None if value is None else float(value)


def _fewer(before: Side, after: Side, what: str) -> dict[str, Any]:
    """Commands or turns of a trial: means over scenarios, their mean difference, and the exact paired p-value."""
    cells: list[dict[str, Fraction]] = []
    for side in (before, after):
        found: dict[str, list[float]] = {}
        for row in side.valid:
            if (value := _amount(side, row, what)) is not None:
                found.setdefault(row["scenario"], []).append(value)
        cells.append({name: Fraction(sum(some)) / len(some) for name, some in found.items()})
    shared = [name for name in cells[0] if name in cells[1]]
    if not shared:
        return {"scenarios": 0, "before": None, "after": None, "difference": None, "p": 1.0, "sentence": "not told"}
    means = [float(sum(cell[name] for name in shared) / len(shared)) for cell in cells]
    p = paired.sign_flip([cells[1][name] - cells[0][name] for name in shared])
    told = f"{means[0]:.1f} → {means[1]:.1f} a trial (p = {p:.3g})"
    return {"scenarios": len(shared), "before": round(means[0], 3), "after": round(means[1], 3),
            "difference": round(means[1] - means[0], 3), "p": round(p, 6), "sentence": told}  # fmt: skip


def _arm(experiment: Experiment, side: Side, text: str) -> dict[str, Any]:
    """What one arm was, and what came of it."""
    valid = [row for row in side.valid if row["id"] in side.records]
    records = [side.records[row["id"]] for row in valid]
    failed = [(row, record) for row, record in zip(valid, records, strict=True) if any(c.cls for c in record.calls)]
    recovered = sum(row["verdict"] == "pass" for row, _ in failed)
    counts = Counter(label(call) for record in records for call in record.calls)
    right = rates(side.rows).values()
    return {
        "run": side.run,
        "planted": dict(side.planted) if side.planted else None,
        "text": " ".join(text.split()),
        "build": side.build,
        "right": Rate(sum(cell.passed for cell in right), sum(cell.valid for cell in right),
                      sum(cell.attempted for cell in right)).data(),
        "recovered": Rate(recovered, len(failed), len(failed)).data(),
        "met": met(experiment, side).data(),
        "ignored_hints": sum(len(record.agent_side) for record in records),
        "calls": sum(counts.values()),
        "classes": dict(sorted(counts.items(), key=lambda one: (one[0] != "ok", one[0]))),
    }  # fmt: skip


def label(call: Any) -> str:
    """A call's class for a histogram: `ok`, `B`, `C c-vocabulary` …"""
    return f"{call.cls} {call.subtype}" if call.subtype else call.cls or "ok"


def _traces(experiment: Experiment, before: Side, after: Side) -> dict[str, Any] | None:
    """One question in both arms: the first whose before trial met the failure, the first of all if none did."""
    told = [row for row in before.valid if row["id"] in before.records]
    wanted = set(experiment.fails_as)
    hit = [row for row in told if any({c.cls, c.subtype} & wanted for c in before.records[row["id"]].calls)]
    for row in [*hit, *told]:
        cell = (row["scenario"], row["condition"], row["number"])
        other = next((one for one in after.valid if (one["scenario"], one["condition"], one["number"]) == cell
                      and one["id"] in after.records), None)  # fmt: skip
        if other is not None:
            return {"scenario": row["scenario"], "before": _trace(row, before), "after": _trace(other, after)}
    return None


def _trace(row: Row, side: Side) -> dict[str, Any]:
    record = side.records[row["id"]]
    program = explain.program_of(record)
    return {
        "calls": [{"run": join([program, *call.argv]), "exit": call.exit_code, "stdout": call.stdout_head[:HEAD],
                   "stderr": call.stderr_head[:HEAD], "class": label(call), "evidence": call.evidence[:HEAD]}
                  for call in record.calls],
        "commands": record.program_calls,
        "turns": row["turns"],
        "answer": record.answer.text[:HEAD],
        "right": row["verdict"] == "pass",
    }  # fmt: skip
