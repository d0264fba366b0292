"""What the harness asks of a subject, with answers that do for any command-line program that keeps nothing itself.

The program is recorded on PATH, has no state of its own, and its commands are known from its help pages. A module
of this package says otherwise where its kind does.
"""

import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from graders import drift
from harness import execute, files, helpwalk, recorder
from harness.scenario_fill import fill
from labd.errors import LabdError

if TYPE_CHECKING:
    from harness.bundle import Bundle
    from harness.sandbox import Sandbox
    from harness.scenario import Scenario
    from harness.subject import Subject


class Attendant(Protocol):
    """Somebody of ours who looks on."""

    def finish(self) -> bytes:
        """Look no more; what was seen, as JSON Lines (the bundle's received.jsonl)."""


class Kind:
    """One subject's doings. Made anew for each subject; holds nothing but its facts."""

    #: Which of its evidence the graders may ask for (trial.json's `evidence`).
    evidence: tuple[str, ...] = ()

    def __init__(self, subject: "Subject") -> None:
        self.subject = subject

    # -- the bench of one trial ----------------------------------------------------------------------------------

    def values(self, root: Path) -> dict[str, str]:
        """What placeholders stand for in a sandbox at `root`, besides those that every subject has."""
        return {name: fill(text, {"root": str(root), "home": str(root / "home"), "work": str(root / "work")})
                for name, text in self.subject.state.items()}  # fmt: skip

    def install(self, root: Path, program: str) -> None:
        """Put the program on the sandbox's PATH: behind a recorder, as it keeps no record of its own."""
        recorder.install(str(root / "bin"), self.subject.program, program, str(root / "rec" / "argv.jsonl"))

    def kept(self, root: Path, program: str) -> bool:
        """Whether what stands in the program's place leads to the program still (its identity is checked beside)."""
        return (root / "bin" / self.subject.program).is_file()

    def furnish(self, root: Path, scenario: "Scenario", values: Mapping[str, str], env: Mapping[str, str],
                program: str) -> bytes | None:  # fmt: skip
        """Lay out what the agent finds; returns the seed's bytes, which are kept. Raises OSError or ValueError."""
        return None

    def attend(self, place: "Sandbox") -> "Attendant | None":
        """Who looks on from outside while the trial runs, besides the witness. Raises OSError."""
        return None

    def state(self, place: "Sandbox") -> dict[str, str]:
        """What the subject's state is like now: a digest for each part of it. Nothing of it changes by being asked."""
        return {}

    def gather(self, place: "Sandbox", bundle: "Bundle") -> None:
        """Copy the subject's evidence into the bundle, once all processes have ended."""

    def build(self, program: str) -> str:
        """The SHA-256 of what is installed: where it differs, what the program says now is said by another one."""
        return files.file_digest(Path(program).resolve())

    @cache  # noqa: B019  a kind lives as long as the process, and programs are few
    def version(self, program: str) -> str:
        """What the program says of its version, in a line; empty if it says nothing. `build` is what it is exactly."""
        with tempfile.TemporaryDirectory(prefix="labd-ask-") as home:
            env = {"PATH": "/usr/bin:/bin", "HOME": home, "XDG_RUNTIME_DIR": home, **self.subject.asking}
            ran = execute.run([program, "--version"], env=env, cwd=home, limit_s=10.0)
        return (ran.stdout.decode("utf-8", "replace").strip().splitlines() or [""])[0][:200]

    # -- its state once more, for questions after the trial --------------------------------------------------------

    def restore(self, bundle: Path, root: Path) -> tuple[Path, ...]:
        """Lay out the final state of a trial from its bundle in an empty sandbox; returns the paths that are the state.

        Raises OSError or ValueError if the bundle does not have it.
        """
        return ()

    def asking(self, root: Path) -> dict[str, str]:
        """Variables that keep a question from changing anything, as far as the program has such."""
        return {}

    # -- what a trial's record says besides ------------------------------------------------------------------------

    def facts(self, place: "Sandbox") -> dict[str, Any]:
        """What trial.json says about the subject's state besides."""
        return {"allowlist": {"safe": list(self.subject.safe), "unsafe": list(self.subject.unsafe)}}

    def at_end(self, place: "Sandbox") -> dict[str, int]:
        """What has to be measured before anything is stopped."""
        return {}

    def ask_to_stop(self, place: "Sandbox") -> int:
        """Ask what the subject left running to end; the session that asked (0: nobody did)."""
        return 0

    def tool_for(self, words: Sequence[str]) -> str:
        """The tool of its MCP server that runs a command of these words; empty where it has none."""
        return ""

    # -- the exam itself -----------------------------------------------------------------------------------------

    def vocabulary(self) -> frozenset[str]:
        """The words of the tool that a user does not say: those of the commands of its allowlist."""
        return frozenset(word for path in (*self.subject.safe, *self.subject.unsafe) for word in path.split())

    def effects(self) -> dict[str, str]:
        """What its commands do, as far as the allowlist says: help pages don't."""
        return dict.fromkeys(self.subject.unsafe, "admin")

    def reference(self, ask: helpwalk.Ask) -> dict[str, Any]:
        """The live command reference. Raises LabdError if it can't be had."""
        walk = helpwalk.walk_git if self.subject.layout == "git" else helpwalk.walk
        told = walk(ask, self.subject.program, effects=self.effects(), opaque=self.subject.opaque)
        return told | {"sha256": files.digest(files.canonical(told))}

    def problems(self, chosen: Sequence["Scenario"], ask: helpwalk.Ask, *, whole: bool) -> list[str]:
        """What of the scenarios no longer fits the installed program; `whole`: the allowlist too."""
        try:
            surface = self.reference(ask)
        except LabdError as error:
            return [error.message]
        found = drift.against(chosen, surface)
        if whole:
            names = {entry["path"] for entry in surface["commands"]}
            found += [f"allowlist: {self.subject.program} {path} does not exist"
                      for path in (*self.subject.safe, *self.subject.unsafe) if path not in names]  # fmt: skip
        return found
