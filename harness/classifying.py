"""Makes the records of a run: what became of each call of the program, with what asking it afterwards has proved.

Reads bundles and writes RUN/classified/, which is no evidence and can be made again at will: TRIAL.json (the record)
and TRIAL.probes.jsonl (every question that was asked, or was not, and why). A damaged bundle gets no record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graders import attempts, contract, signs, taxonomy
from graders.bundle_view import Bundle, BundleError
from graders.contract import Record
from graders.signs import Signs
from harness import files, grading, probing
from harness import subject as subjects
from harness.report import classes
from labd.errors import LabdError


@dataclass(frozen=True)
class Made:
    """What became of one trial: its record, or `why` there is none. `asked`: questions that were put to the program."""

    trial: str
    record: Record | None
    why: str = ""
    asked: int = 0


def signs_of(name: str) -> Signs:
    """How a subject's answers look. Raises LabdError naming each key that is wrong, NotFound for no such subject."""
    path = subjects.load(name).path.with_name(signs.FILE)
    try:
        return signs.load(path.read_text("utf-8"), str(path))
    except FileNotFoundError:
        hint = "docs/exam.md says what the file tells"
        raise LabdError(f"nothing says how answers of {name} look: there is no {path}", hint=hint) from None
    except (OSError, UnicodeDecodeError, signs.SignsError) as error:
        raise LabdError(str(error)) from error


def classify(run: Path, trials: Sequence[str], known: Signs, *, probes: bool) -> Iterator[Made]:
    """Make the records of these trials of the run in `run`, one after the other."""
    (run / classes.DIRECTORY).mkdir(exist_ok=True)
    for trial in trials:
        yield _one(run, trial, known, probes)


def _one(run: Path, trial: str, known: Signs, probes: bool) -> Made:
    place, path = run / "trials" / trial, classes.path_of(run, trial)
    log = classes.log_of(path)
    why = grading.damage(place)
    try:
        record = None if why else attempts.attempt(Bundle(place), known)
    except BundleError as error:
        record, why = None, str(error)
    if record is None:
        path.unlink(missing_ok=True)
        log.unlink(missing_ok=True)
        return Made(trial, None, why)
    told, asked = taxonomy.classified(record, known), 0
    if probes:
        found = probing.probe(place, told, known)
        told = taxonomy.classified(record, known, found.by_call)
        asked = sum("code" in line for line in found.log)
        files.write_bytes(log, found.lines())
    else:
        log.unlink(missing_ok=True)
    files.write_bytes(path, contract.write(told))
    return Made(trial, told, asked=asked)
