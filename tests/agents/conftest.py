"""Runs the lane's cases with `labd-eval run`, each once, and prints the table of programs and cases at the end."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("claude", "codex", "gemini", "opencode")
SCRIPTS = Path(__file__).parent / "scripts"

#: Longer than any run takes, unless it hangs (seconds).
RUN_S = 1200


@dataclass(frozen=True)
class Trial:
    """A finished trial's bundle, and the verdict on it."""

    directory: Path

    def read(self, name: str) -> Any:
        return json.loads((self.directory / name).read_bytes())

    @property
    def record(self) -> Any:
        return self.read("trial.json")

    @property
    def verdict(self) -> str:
        (graded,) = (self.directory / "grades").glob("*.json")
        return str(json.loads(graded.read_bytes())["verdict"])

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What reached the model in the agent's own threads: no titles."""
        lines = (self.directory / "raw" / "requests.jsonl").read_bytes().splitlines()
        return [one for one in map(json.loads, lines) if one.get("turn", "side") != "side"]

    @property
    def calls(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.read("transcript.json")["calls"]
        return found

    def why(self) -> str:
        """For a failed assertion: all that tells what went wrong."""
        told = self.record
        errors = (self.directory / "raw" / "stderr").read_text("utf-8", "replace")[-600:]
        return f"{self.directory}: {told['ended_by']}: {told['detail']}; {self.verdict}\n{errors}"


#: (case, program) → (version, cause, verdict, seconds).
TABLE: dict[tuple[str, str], tuple[str, str, str, float]] = {}

Run = Callable[..., dict[str, Trial]]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """`run("endless", "--turns", "3")` → program → its trial. The same call twice is one run."""
    if os.environ.get("LABD_AGENTS_LANE") != "1":
        pytest.skip("real agent programs run in a network namespace of their own: make test-agents")
    done: dict[tuple[str, ...], dict[str, Trial]] = {}

    def once(case: str, script: str, *words: str, scenario: str = "C1", programs: tuple[str, ...] = PROGRAMS
             ) -> dict[str, Trial]:  # fmt: skip
        key = (script, scenario, *words)
        if key not in done:
            out = tmp_path_factory.mktemp("runs")
            path = script if script == "reference" else str(SCRIPTS / f"{script}.toml")
            argv = [sys.executable, "-m", "harness.cli", "run", "-q", "--agent", ",".join(programs), "--jobs", "2",
                    "--replace", "0", "--scenario", scenario, "--scripted-model", path, "--out", str(out),
                    *words]  # fmt: skip
            told = subprocess.run(argv, capture_output=True, text=True, timeout=RUN_S)
            assert "never a model's skill" in told.stdout, told.stdout + told.stderr
            trials = [Trial(path.parent) for path in out.glob("*/trials/*/trial.json")]
            done[key] = {trial.record["agent"]: trial for trial in trials}
            assert set(done[key]) == set(programs), told.stdout + told.stderr
        for name, trial in done[key].items():
            told_of = trial.record
            TABLE[case, name] = (str(told_of["program"].get("version")), told_of["ended_by"], trial.verdict,
                                 told_of["agent_s"])  # fmt: skip
        return done[key]

    yield once


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table: what ended each trial, and what the graders found."""
    if not TABLE:
        return
    write = terminalreporter.write_line
    write("\nreal agent programs against a scripted model: proves the harness, never a model's skill")
    names = [name for name in PROGRAMS if any(name == program for _, program in TABLE)]
    for name in names:
        versions = sorted({told[0] for (_, program), told in TABLE.items() if program == name})
        write(f"  {name.ljust(10)} {', '.join(versions)}")
    for line in _lines(names):
        write(f"  {line}")


def _lines(names: list[str]) -> list[str]:
    """Cases by programs, in columns."""
    rows = [["case", *names]]
    for case in dict.fromkeys(case for case, _ in TABLE):
        told = [TABLE.get((case, name)) for name in names]
        rows.append([case, *(f"{one[1]}: {one[2]} ({one[3]:.0f} s)" if one else "–" for one in told)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
