"""Writes what one trial left behind. A bundle is complete or isn't there, and nothing after it can change it.

It is gathered in a directory that nobody reads and renamed into place; a name that is taken stays as it is. Verdicts
go into `grades/` inside it, later, and by others. The reader is graders/bundle_view.py.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import files
from harness.bench import Call, as_text
from harness.sandbox import Sandbox, desk_record
from harness.scenario import Scenario

SCHEMA = "labd-trial/1"

#: The most that is copied of a trial's journals and records (bytes); what is left out is named in trial.json.
COPY_LIMIT = 512 << 20


class Bundle:
    """One bundle while it is gathered. `finish` puts it in place; leaving it out leaves nothing."""

    def __init__(self, trials: Path, identity: str) -> None:
        self.final = trials / identity
        self.directory = Path(tempfile.mkdtemp(prefix=".partial-", dir=trials))
        self.left_out: list[str] = []
        self._room = COPY_LIMIT

    def discard(self) -> None:
        """Forget it."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def put(self, name: str, data: bytes | None) -> None:
        """One file; None puts none (a lab that isn't there)."""
        if data is not None:
            (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / name).write_bytes(data)

    def put_scenario(self, scenario: Scenario, values: Mapping[str, str]) -> None:
        """The scenario as it was run, and its goal."""
        frozen = scenario.frozen(values)
        self.put("scenario.json", files.canonical(frozen))
        self.put("goal.txt", str(frozen["goal"]).encode())

    def put_calls(self, calls: Sequence[Call]) -> None:
        """calls.jsonl: what the scripted agent ran, one line a command."""
        lines = [json.dumps(_call(call), sort_keys=True) + "\n" for call in calls]
        self.put("calls.jsonl", "".join(lines).encode())

    def put_evidence(self, sandbox: Sandbox) -> None:
        """What the sandbox holds at the end: the argv record, the subject's evidence, the record of a board outside."""
        self.copy(sandbox.argv_log, "argv.jsonl")
        sandbox.examined.kind.gather(sandbox, self)
        if sandbox.line is not None:
            (self.directory / "dut").mkdir(exist_ok=True)
            self._copy(desk_record(sandbox.root), self.directory / "dut" / f"{sandbox.line}.jsonl")

    def copy(self, source: Path, name: str) -> None:
        """A plain file, if it is there."""
        if source.is_file():
            self._copy(source, self.directory / name)

    def copy_tree(self, source: Path, name: str) -> None:
        """Copy plain files. Links are left out: they may lead anywhere."""
        target = self.directory / name
        if not source.is_dir():
            return
        for place, folders, names in os.walk(source):
            folders[:] = sorted(name for name in folders if not os.path.islink(os.path.join(place, name)))
            into = target / os.path.relpath(place, source)
            into.mkdir(parents=True, exist_ok=True)
            for name in sorted(names):
                self._copy(Path(place) / name, into / name)

    def _copy(self, source: Path, target: Path) -> None:
        try:
            plain = source.is_file() and not source.is_symlink()
            size = source.stat().st_size if plain else 0
            if not plain or size > self._room:
                self.left_out.append(f"{target.relative_to(self.directory)}: {'too big' if plain else 'no plain file'}")
                return
            shutil.copyfile(source, target)
            self._room -= size
        except OSError as error:
            self.left_out.append(f"{target.relative_to(self.directory)}: {error.strerror}")

    def finish(self, trial: Mapping[str, Any], sealed: Callable[[str, str], None] | None = None) -> Path:
        """Write trial.json with the hash of every file, sync, and rename into place; returns the bundle's directory.

        `sealed` is told the bundle's name and the SHA-256 of its trial.json before that.

        Raises FileExistsError if a bundle of that name is there; it stays untouched.
        """
        hashes = {
            str(path.relative_to(self.directory)): files.digest(path.read_bytes())
            for path in sorted(self.directory.rglob("*"))
            if path.is_file()
        }
        record = {"schema": SCHEMA, **trial, "files": hashes, "left_out": self.left_out}
        files.write_json(self.directory / "trial.json", record)
        return self.place(sealed)

    def place(self, sealed: Callable[[str, str], None] | None = None) -> Path:
        """Rename what is whole, with its trial.json, into place, as `finish` does; returns the bundle's directory."""
        os.chmod(self.directory, 0o755)
        if sealed and not self.final.exists():
            sealed(self.final.name, files.digest((self.directory / "trial.json").read_bytes()))
        try:
            os.rename(self.directory, self.final)
        except OSError as error:
            if self.final.exists():
                raise FileExistsError(f"{self.final} exists; a finished trial is never overwritten") from error
            raise
        files.sync_directory(self.final.parent)
        return self.final


def _call(call: Call) -> dict[str, Any]:
    ended = call.ended
    record: dict[str, Any] = {
        "step": call.step, "argv": list(ended.argv), "code": ended.code, "signal": ended.signal,
        "ended_by": ended.ended_by, "error": ended.error, "tries": call.tries, "cut": ended.cut,
        "t": round(ended.started, 6), "duration_s": ended.duration_s,
        "spent_s": round(call.spent_s, 6),
    }  # fmt: skip
    for name, raw in (("stdout", ended.stdout), ("stderr", ended.stderr)):
        told = as_text(raw)
        record[name] = told["text"]
        if "b64" in told:
            record[f"{name}_b64"] = told["b64"]
    return record
