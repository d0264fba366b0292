"""Reads the bundle of one trial. Never writes, never reads outside its directory, never fills in what is missing.

What is not there is None: graders turn that into `unknown`. The writer is harness/bundle.py; its schema is named in
trial.json and checked here.
"""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from graders import argv_records, journal_view, parsed

SCHEMA = "labd-trial/1"


class BundleError(ValueError):
    """The directory is no bundle of a known schema."""


@dataclass(frozen=True)
class Bundle:
    """One trial's directory. All properties are read once, on demand."""

    directory: Path

    @cached_property
    def trial(self) -> dict[str, Any]:
        """trial.json. Raises BundleError if it is missing or of another schema."""
        data = self._json("trial.json")
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise BundleError(f"{self.directory}: trial.json is not of schema {SCHEMA}")
        return data

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """scenario.json: the scenario as it was run. Raises BundleError if it is missing."""
        data = self._json("scenario.json")
        if not isinstance(data, dict):
            raise BundleError(f"{self.directory}: no scenario.json")
        return data

    @cached_property
    def record(self) -> argv_records.Record | None:
        """The argv record; None if the trial left none (an empty file is a record of nothing)."""
        data = self._bytes("argv.jsonl")
        return None if data is None else argv_records.read(data)

    @cached_property
    def own(self) -> argv_records.Record | None:
        """The record that the bench kept by itself in its state directory; None if there was none."""
        data = self._bytes("own.jsonl")
        return None if data is None else argv_records.read(data)

    @cached_property
    def seen(self) -> list[dict[str, Any]]:
        """What was seen from outside while the trial ran (harness/witness.py), in order."""
        data = self._bytes("witness.jsonl") or b""
        return [entry for entry in map(parsed.object_in, data.split(b"\n")) if entry]

    @cached_property
    def received(self) -> list[dict[str, Any]] | None:
        """What servers beside the sandbox's work received, as the harness heard of it; None where there were none."""
        data = self._bytes("received.jsonl")
        return None if data is None else [entry for entry in map(parsed.object_in, data.split(b"\n")) if entry]

    @cached_property
    def calls(self) -> list[dict[str, Any]]:
        """What a scripted agent ran; empty for other agents."""
        data = self._bytes("calls.jsonl") or b""
        return [parsed.from_json(line) for line in data.split(b"\n") if line.strip()]

    @cached_property
    def answer(self) -> str | None:
        """What the agent said at the end; None if that was not kept."""
        data = self._bytes("answer.txt")
        return None if data is None else data.decode("utf-8", "replace")

    @cached_property
    def lab_before(self) -> bytes | None:
        """The seed lab's bytes; None: there was no lab."""
        return self._bytes("lab.before.toml")

    @cached_property
    def lab_after(self) -> bytes | None:
        """The lab's bytes at the end; None: there was no lab."""
        return self._bytes("lab.after.toml")

    @cached_property
    def journals(self) -> dict[tuple[str, str], Path]:
        """(target, interface) → its copied journal."""
        return journal_view.interfaces(self.directory / "journal")

    @cached_property
    def benches(self) -> dict[str, list[dict[str, Any]]]:
        """target → what its journal tells of channels other than serial lines, oldest first."""
        found = journal_view.benches(self.directory / "journal")
        return {target: journal_view.events(path) for target, path in found.items()}

    @cached_property
    def boards(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """(target, interface) → what the simulated board there wrote down."""
        names = {path.stem for path in (self.directory / "dut").rglob("*.jsonl")}
        lines = [(name.rpartition(".")[0], name.rpartition(".")[2]) for name in sorted(names) if "." in name]
        return {line: self.dut(*line) or [] for line in lines}

    @cached_property
    def board_starts(self) -> list[dict[str, Any]]:
        """The start records of all simulated boards."""
        return [record for records in self.boards.values() for record in records if record.get("kind") == "start"]

    def dut(self, target: str, interface: str) -> list[dict[str, Any]] | None:
        """What the simulated board on an interface wrote down; None if it left no record."""
        name = f"{target}.{interface}.jsonl"
        found = sorted(path for path in (self.directory / "dut").rglob("*.jsonl") if path.name == name)
        if not found:
            return None
        lines = [line for path in found for line in path.read_bytes().split(b"\n")]
        return [record for record in map(parsed.object_in, lines) if record]

    def facts(self, name: str) -> dict[str, Any] | None:
        """Plain facts that were taken of a subject's state, from a JSON file of the bundle; None if it has none."""
        data = self._json(name)
        return data if isinstance(data, dict) else None

    @cached_property
    def transcript(self) -> dict[str, Any] | None:
        """What the agent said and did, in the normal form (labd-transcript/1); None where it left none."""
        data = self._json("transcript.json")
        return data if isinstance(data, dict) else None

    @cached_property
    def surface(self) -> dict[str, Any] | None:
        """The subject's live command reference, taken when the run began: the bundle's own, else the run's, which
        counts only if it is the one that trial.json names by its hash."""
        own = self._json("surface.json")
        if isinstance(own, dict):
            return own
        try:
            data = (self.directory.parent.parent / "surface.json").read_bytes()
        except OSError:
            return None
        told = parsed.object_in(data)
        return told if told and sha256(data).hexdigest() == self.trial.get("surface") else None

    @cached_property
    def judged(self) -> list[dict[str, Any]]:
        """What a judge answered about the trial, in order of its repeats (written by harness/judging.py)."""
        found = [parsed.object_in(path.read_bytes()) for path in sorted((self.directory / "judge").glob("*.json"))]
        return [entry for entry in found if entry]

    def _bytes(self, name: str) -> bytes | None:
        try:
            return (self.directory / name).read_bytes()
        except FileNotFoundError:
            return None

    def _json(self, name: str) -> Any:
        data = self._bytes(name)
        try:
            return None if data is None else parsed.from_json(data)
        except ValueError as error:
            raise BundleError(f"{self.directory}: {name}: {error}") from error
