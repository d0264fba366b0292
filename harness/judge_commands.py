"""`labd-eval judge` and `labd-eval calibrate`: have a judge asked, and hold graders against people.

Parsed in harness/cli.py like all commands; here is what they do.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graders import judge_prompt, rubric
from harness import agreement, calibration, files, grading, judging, report, run, scenario, selection, surface
from harness.agreement import Confusion
from harness.calibration import Compared
from harness.scenario import fixtures_dir
from harness.telling import note
from labd.errors import NotFound, nearest

Values = argparse.Namespace


def do_judge(values: Values, words: Sequence[str]) -> int:
    """Ask a judge about the trials of a run that a judge has a say in, and grade them again."""
    directory = run.find(Path(values.out), values.run)
    judge = judging.find(values.judge, values.judge_model)
    with run.Run(directory, run.load(directory)) as held:
        meant = selection.chosen(values.scenario, held.manifest["scenarios"])
        finished = [order for order in held.orders if order.scenario in meant and held.finished(order)]
        chosen = [place for order in finished if _judged(place := held.trials / order.identity)]
        if not chosen:
            raise NotFound(f"{directory} has no finished trial for a judge", hint=f"labd-eval report {directory}")
        verdicts: dict[str, int] = {}
        failed = 0
        for number, place in enumerate(chosen, 1):
            problems = [said["problem"] for said in judging.ask(place, judge, values.repeats) if said["problem"]]
            failed += bool(problems)
            verdict = grading.grade(place)[0]
            verdicts[verdict.verdict] = verdicts.get(verdict.verdict, 0) + 1
            why = f" ({problems[0]})" if problems else ""
            note(values, f"[{number}/{len(chosen)}] {place.name}  {verdict.verdict}: {verdict.reason}{why}")
        told = report.write(directory)
    summary = {
        "judged": len(chosen) - failed,
        "without_answer": failed,
        "verdicts": verdicts,
        "judge": judge.name,
        "rubric": judge_prompt.digest(),
    }
    if values.json:
        sys.stdout.write(files.canonical(summary).decode())
    else:
        missing = f", {failed} without an answer" if failed else ""
        sys.stdout.write(f"{len(chosen) - failed} trials judged by {judge.name}{missing}\n{report.table_text(told)}")
    return 1 if failed or verdicts.get("judge_error") else 0


def _judged(place: Path) -> bool:
    """Whether a judge has a say in a finished trial: it is undamaged, and its grader asks one."""
    if grading.damage(place):
        return False
    grader = files.read_json(place / "scenario.json").get("grader", {})
    return files.read_json(place / "trial.json")["grader"] == "stated" and bool(grader.get("judge", True))


def do_calibrate(values: Values, words: Sequence[str]) -> int:
    """Hold the graders (and a judge, if one is named) against sessions that people have scored."""
    sessions = calibration.load(Path(values.labels) if values.labels else fixtures_dir() / "calibration")
    known = {one.id: one for one in scenario.load_all()}
    for session in sessions:
        if session.scenario not in known:
            raise NotFound(f"session {session.id}: no scenario {session.scenario!r}",
                           near=nearest(session.scenario, list(known)), hint="labd-eval list")  # fmt: skip
    judge = judging.find(values.judge, values.judge_model) if values.judge else None
    with surface.live() as ask, tempfile.TemporaryDirectory(prefix="labd-calibrate-") as under:
        reference = surface.take(ask)
        compared = []
        for number, session in enumerate(sessions, 1):
            place = calibration.bundle(session, known[session.scenario], reference, Path(under))
            if judge is not None:
                judging.ask(place, judge, values.repeats)
                note(values, f"[{number}/{len(sessions)}] {session.id}")
            compared.append(calibration.graded(session, place))
    told = summed_up(compared, judge.name if judge else None)
    sys.stdout.write(json.dumps(told, indent=2) + "\n" if values.json else _text(compared, told))
    return 0


def summed_up(compared: Sequence[Compared], judge: str | None) -> dict[str, Any]:
    """The figures of a calibration, and each session."""
    rated = [one for one in compared if one.agrees is not None]
    table = agreement.confusion((one.session.passed, one.verdict.verdict == "pass") for one in rated)
    measured = agreement.corrected(table.pass_pass + table.fail_pass, table.total, table)
    return {
        "judge": judge,
        "rubric": judge_prompt.digest(),
        "sessions": len(compared),
        "compared": table.total,
        "agreed": table.agreed,
        "confusion": asdict(table),
        "kappa": _rounded(table.kappa),
        "kappa_interval": [round(bound, 3) for bound in table.kappa_interval] if table.kappa_interval else None,
        "sensitivity": _rounded(table.sensitivity),
        "specificity": _rounded(table.specificity),
        "corrected_rate": asdict(measured) if measured else None,
        "dimensions": {key: _dimension(compared, key) for key in rubric.KEYS} if judge else {},
        "each": [{"session": one.session.id, "scenario": one.session.scenario, "person": one.session.passed,
                  "verdict": one.verdict.verdict, "agrees": one.agrees, "reason": one.verdict.reason,
                  "why": one.session.why} for one in compared],
    }  # fmt: skip


def _dimension(compared: Sequence[Compared], key: str) -> dict[str, Any]:
    pairs = [(one.session.scores[key], one.verdict.scores[key]) for one in compared
             if key in one.session.scores and key in one.verdict.scores]  # fmt: skip
    same = sum(person == grader for person, grader in pairs)
    return {"compared": len(pairs), "same": same, "weighted_kappa": _rounded(agreement.weighted_kappa(pairs))}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _text(compared: Sequence[Compared], told: dict[str, Any]) -> str:
    width = max(len(one.session.id) for one in compared)
    lines = [f"{'session'.ljust(width)}  person  graders       "]
    for one in compared:
        mark = "" if one.agrees else "  no verdict" if one.agrees is None else "  DISAGREE"
        person = "pass" if one.session.passed else "fail"
        lines.append(f"{one.session.id.ljust(width)}  {person.ljust(6)}  {one.verdict.verdict.ljust(12)}{mark}")
        if one.agrees is not True:
            lines += [f"{' ' * width}    person: {one.session.why}", f"{' ' * width}    graders: {one.verdict.reason}"]
    lines += ["", *_figures(told)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _figures(told: dict[str, Any]) -> list[str]:
    table = Confusion(**told["confusion"])
    who = f"with the judge {told['judge']}" if told["judge"] else "without a judge"
    lines = [f"{told['agreed']} of {told['compared']} agree ({told['sessions']} sessions, {who})"]
    bounds = told["kappa_interval"]
    if told["kappa"] is not None and bounds:
        lines.append(f"Cohen's kappa {told['kappa']:.2f} ({bounds[0]:.2f} to {bounds[1]:.2f})")
    lines += [
        "",
        "              graders pass  graders fail",
        f"person pass   {table.pass_pass:>12}  {table.pass_fail:>12}",
        f"person fail   {table.fail_pass:>12}  {table.fail_fail:>12}",
    ]
    rate = told["corrected_rate"]
    if rate:
        bounds = f"{rate['low'] * 100:.0f} to {rate['high'] * 100:.0f} %"
        text = "These sessions' own rate, corrected for what the graders get wrong"
        lines += ["", f"{text}: {rate['rate'] * 100:.0f} % ({bounds})"]
    for key, one in told["dimensions"].items():
        kappa = "" if one["weighted_kappa"] is None else f", weighted kappa {one['weighted_kappa']:.2f}"
        lines.append(f"{key.upper()}: {one['same']} of {one['compared']} the same{kappa}")
    return lines
