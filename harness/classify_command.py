"""`labd-eval classify`: what went wrong in the trials of a run, call by call, and what that says of the program.

Parsed in harness/cli.py like all commands; here is what it does. It asks the program anew, after the trials and never
in them, about answers that mean nothing by themselves; the records lie beside the run's bundles.
"""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graders import explain
from harness import classifying, experiment, files, report, run, selection, subject
from harness.report import classes, histogram, markdown, words
from harness.telling import many, note
from labd.errors import NotFound, Usage

HELP = "what went wrong, call by call: six classes, how often, and the calls behind each"

EXAMPLES = """\
  labd-eval classify latest                     make the records of a run, ask the program, show the distribution
  labd-eval classify latest --explain           every failure with its evidence, as an instruction for a fix
  labd-eval classify runs/before runs/after --no-probes --json"""

#: The forms of the answer, besides --json.
FORMATS = ("table", "json", "markdown", "html")


def options(parser: argparse.ArgumentParser, once: type[argparse.Action]) -> None:
    """What the command takes, besides what all take."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="the runs: paths, names under --out, or `latest`")
    parser.add_argument(
        "--no-probes", action="store_true", help="ask the program nothing: an empty answer stays unexplained"
    )
    parser.add_argument("--explain", action="store_true", help="tell each failure whole, and what is missing")
    parser.add_argument("--format", action=once, default="table", choices=FORMATS,
                        help="the form of the answer (default: table; html: the run's whole report)")  # fmt: skip


def do_classify(values: argparse.Namespace, words_: Sequence[str]) -> int:
    """Make the records, write the reports again, and say what they say."""
    form = _form(values)
    places = list(dict.fromkeys(run.find(Path(values.out), name) for name in values.runs))
    told = [_classified(values, place) for place in places]
    if form == "json":
        sys.stdout.write(files.canonical(_data(places, told)).decode())
    elif form == "html":
        sys.stdout.write(report.text(places[0], told[0], "html"))
    elif form == "markdown":
        parts = (f"# Run {one['run']}\n\n" + "\n\n".join(markdown.classes(one)) + "\n" for one in told)
        sys.stdout.write("\n".join(parts))
    elif values.explain:
        sys.stdout.write("".join(_explained(place, one) for place, one in zip(places, told, strict=True)))
    else:
        sys.stdout.write("\n".join(map(histogram.render, told)))
    return 0


def _form(values: argparse.Namespace) -> str:
    """The form that is meant. Raises Usage where two are."""
    hint = "labd-eval classify --help"
    if values.json and values.format not in ("table", "json"):
        raise Usage(f"--json and --format {values.format} say different things", hint=hint)
    form = "json" if values.json else str(values.format)
    if values.explain and form in ("markdown", "html"):
        raise Usage(f"--explain has no form {form}", hint=hint)
    if form == "html" and len(values.runs) > 1:
        raise Usage("--format html is the report of one run", hint=hint)
    return form


def _classified(values: argparse.Namespace, place: Path) -> dict[str, Any]:
    """The report of a run whose records were just made."""
    with run.Run(place, run.load(place)) as held, _as_played(place, run.subject_of(held.manifest)):
        meant = selection.chosen(values.scenario, held.manifest["scenarios"])
        trials = [one.identity for one in held.orders if held.finished(one) and one.scenario in meant]
        if not trials:
            raise NotFound(f"{place} has no finished trial of that kind", hint=f"labd-eval report {place}")
        known = classifying.signs_of(run.subject_of(held.manifest))
        for number, made in enumerate(classifying.classify(place, trials, known, probes=not values.no_probes), 1):
            what = made.why or many(len(made.record.calls) if made.record else 0, "call")
            asked = f", {many(made.asked, 'question')} asked" if made.asked else ""
            note(values, report.plain(f"[{number}/{len(trials)}] {made.trial}  {what}{asked}"))
        return report.write(place)


def _as_played(place: Path, name: str) -> contextlib.AbstractContextManager[None]:
    """An arm of an experiment is asked about in its own build, any other run in the installed one."""
    program = experiment.kept_build(place)
    return subject.in_place(name, program) if program else contextlib.nullcontext()


def _data(places: list[Path], told: list[dict[str, Any]]) -> dict[str, Any]:
    """The distributions as plain data, with each failure told whole."""
    runs = [{"run": one["run"], "labels": one["labels"], **one["classes"],
             "explained": {name: text for name, text in _explanations(place).items() if text}}
            for place, one in zip(places, told, strict=True)]  # fmt: skip
    return {"schema": "labd-classes/1", "runs": runs}


def _explained(place: Path, told: dict[str, Any]) -> str:
    """Every failure and every ignored hint of a run's trials, trial by trial."""
    parts = [f"{name}\n{text}" for name, text in _explanations(place).items() if text]
    unseen = words.not_asked(told)
    parts += ["nothing that can be seen went wrong\n"] * (not parts) + [f"{unseen}\n"] * bool(unseen)
    return "\n".join([f"run {told['run']}\n", *parts])


def _explanations(place: Path) -> dict[str, str]:
    records = classes.read(place)
    return {name: explain.explain(one) for name, one in records.found.items()} if records else {}
