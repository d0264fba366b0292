"""`labd-eval export`: a run as other people's tools read it: ATIF trajectories, or eval logs of Inspect.

A destination is written whole or not at all, and never over something. What a run does not know is left out there,
never a zero: a verdict that is neither pass nor fail is no score, and a trial that the exam lost is an error, not a
failure.
Nothing is blanked: what agents saw and said is in it.
"""

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness import export_inspect, files, grading, run, transcript_command, transcripts
from harness.export_trial import Exported
from harness.report import rows
from harness.telling import many, note
from harness.transcripts import Transcript
from labd.errors import LabdError, Refused

SCHEMA = "labd-export/1"

#: Lost trials that are named beside the answer; all are in the index.
LOST_SHOWN = 20

HELP = "a run in the forms of other tools: ATIF trajectories, eval logs of Inspect"

EXAMPLES = """\
  labd-eval export latest --to atif --out trajectories     a file a trial, and index.json
  labd-eval export latest --to inspect --out logs          a log an agent and condition: inspect view --log-dir logs
  labd-eval export 20261130T101500Z-all-1 --to inspect --out logs --runs elsewhere"""


def options(parser: argparse.ArgumentParser, once: Any) -> None:
    """What the command takes."""
    # fmt: off
    add = parser.add_argument
    add("run", metavar="RUN", help="the run: a path, a name under --runs, or `latest`")
    add("--to", action=once, required=True, choices=sorted(_FORMS), help="the form")
    add("-o", "--out", action=once, required=True, metavar="DIR", help="a directory to be made; never written over")
    add("--runs", action=once, default="runs", metavar="DIR", help="where run directories are (default: ./runs)")
    # fmt: on


def do_export(values: argparse.Namespace, words: Sequence[str]) -> int:
    """Write the files, and tell which."""
    directory = run.find(Path(values.runs), values.run)
    manifest, target = run.load(directory), Path(values.out)
    with _staged(target) as place:
        index = _FORMS[values.to](place, manifest, trials(directory, manifest))
    missing = [entry for entry in index["trials"] if entry["file"] is None]
    if missing:
        note(values, f"{len(missing)} of {len(index['trials'])} trials have no file; index.json says why")
    lost = [entry["id"] for entry in index["trials"] if entry["lost"] is not None]
    if lost:
        more = f" and {len(lost) - LOST_SHOWN} more" if len(lost) > LOST_SHOWN else ""
        note(values, f"lost: {many(len(lost), 'trial')}, no result of an agent: {', '.join(lost[:LOST_SHOWN])}{more}")
    told = files.canonical({"out": str(target), **index}).decode()
    made = many(len({entry["file"] for entry in index["trials"]} - {None}), "file")
    sys.stdout.write(told if values.json else f"{made} for {values.to} in {target}\n")
    return 0


class _staged:
    """A directory beside the target, renamed to it at the end; nothing stays of it where that fails."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __enter__(self) -> Path:
        if self.target.exists() and (not self.target.is_dir() or any(self.target.iterdir())):
            raise Refused(f"{self.target} is there already, and an export is never written over something",
                          hint="labd-eval export --help")  # fmt: skip
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self.place = Path(tempfile.mkdtemp(prefix=f".{self.target.name}-", dir=self.target.parent))
        except OSError as error:
            raise LabdError(f"{self.target} can't be made: {error.strerror}") from error
        return self.place

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.place.chmod(0o755)
            self.place.rename(self.target)
        else:
            shutil.rmtree(self.place, ignore_errors=True)


def trials(directory: Path, manifest: dict[str, Any]) -> Iterator[Exported]:
    """Every trial that was planned, one after another: what its row says, and what its bundle holds where that is
    whole."""
    for row in rows.read_all(directory, manifest):
        if row["cause"] is None:  # no bundle, or one that is damaged
            yield Exported(row, manifest, None, None, None, "")
            continue
        bundle = directory / row["bundle"]
        goal = (bundle / "goal.txt").read_text("utf-8", "replace")
        yield Exported(row, manifest, files.read_json(bundle / "trial.json"), grading.kept(bundle),
                       transcript(bundle), goal)  # fmt: skip


def transcript(bundle: Path) -> Transcript | None:
    """What the agent said and did, with the exit codes that were recorded; None where nothing tells."""
    try:
        if (bundle / "transcript.json").is_file():
            told = transcripts.from_dict(files.read_json(bundle / "transcript.json"))
        else:
            told = transcripts.parse("scripted", transcript_command.read(bundle))
    except ValueError:  # a TranscriptError is one: a lost trial leaves bytes in no form
        return None
    with contextlib.suppress(LabdError):  # a record that an agent spoiled: its exit codes stay the transcript's word
        told = transcript_command.confirmed(bundle, told)
    return told if told.messages or told.calls or told.answer else None


# --- ATIF -----------------------------------------------------------------------------------------------------------


def _atif(place: Path, manifest: dict[str, Any], found: Iterator[Exported]) -> dict[str, Any]:
    """A trajectory a trial that has one; returns the index, which has all trials."""
    entries = []
    for one in found:
        name = None
        if one.transcript is not None:
            name = f"{one.row['id']}.atif.json"
            (place / name).write_bytes(encoded(trajectory(one)))
        entries.append({"file": name, "no_file": one.untold, **one.facts()})
    return _indexed(place, "atif", manifest, entries)


def trajectory(one: Exported) -> dict[str, Any]:
    """The trajectory of a trial, with the trial's facts in its `extra.labd`."""
    assert one.transcript is not None
    told = transcripts.to_atif(one.transcript)
    told["session_id"] = one.row["id"]
    told["extra"]["labd"] = {"schema": SCHEMA, **one.facts()}
    return told


# --- Inspect --------------------------------------------------------------------------------------------------------


def _inspect(place: Path, manifest: dict[str, Any], found: Iterator[Exported]) -> dict[str, Any]:
    """A log an agent and condition. Trials are read one by one, but a log is one JSON value: it is built in memory."""
    entries, held = [], list(found)
    cells = dict.fromkeys((one.row["agent"], one.row["condition"]) for one in held)
    for agent, condition in cells:
        mine = [one for one in held if (one.row["agent"], one.row["condition"]) == (agent, condition)]
        name = export_inspect.name_of(manifest, agent, condition)
        (place / name).write_bytes(encoded(export_inspect.log(manifest, mine)))
        for one in mine:
            told = {"file": name, "no_file": None} if one.row["bundle"] else {"file": None, "no_file": one.untold}
            entries.append({**told, **one.facts()})
    return _indexed(place, "inspect", manifest, entries)


_FORMS: dict[str, Callable[[Path, dict[str, Any], Iterator[Exported]], dict[str, Any]]]
_FORMS = {"atif": _atif, "inspect": _inspect}


def _indexed(place: Path, form: str, manifest: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
    index = {"schema": SCHEMA, "to": form, "run": manifest["id"], "created": manifest["created"], "trials": entries}
    (place / "index.json").write_bytes(encoded(index))
    return index


def encoded(value: Any) -> bytes:
    """JSON that any reader takes: half characters, which argv and output can hold, are replaced."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    return (text + "\n").encode("utf-8", "replace")
