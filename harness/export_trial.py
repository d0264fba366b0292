"""One trial as it is handed on to other tools: its facts in one dict, the same whatever the form. Pure values."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from graders.verdict import Verdict
from harness import run
from harness.causes import policy_of
from harness.transcripts import Transcript


@dataclass(frozen=True)
class Exported:
    """A trial that was planned. `trial`, `verdict`, `transcript` and `goal` are there only as far as its bundle is."""

    row: Mapping[str, Any]
    manifest: Mapping[str, Any]
    trial: Mapping[str, Any] | None
    verdict: Verdict | None
    transcript: Transcript | None
    goal: str

    @property
    def lost(self) -> str | None:
        """Why the exam lost it, in a line; None for the agent's own result, and for what was never begun."""
        if self.row["bundle"] is None:
            return None
        if self.trial is None:
            return f"harness_error: the bundle is damaged: {self.row['reason']}"
        cause = policy_of(str(self.row["cause"]))
        verdict = self.verdict.verdict if self.verdict is not None else cause.verdict
        broken = ("harness_error", "provider_error", "blocked")
        if cause.verdict not in broken and verdict not in broken:
            return None
        return f"{verdict}: {self.row['reason']}"

    @property
    def untold(self) -> str | None:
        """Why nothing can be written of what it said and did, in a line; None where it can."""
        if self.trial is None:
            return self.lost or str(self.row["reason"])
        if self.transcript is not None:
            return None
        if "program" not in self.trial:
            return "no transcript: a scripted agent, which said and ran nothing"
        return "no transcript: its program left none that can be read"

    @property
    def model(self) -> str | None:
        """The model by its name as the run or the transcript tells it; None where neither does."""
        asked = (self.manifest.get("options") or {}).get("model")
        return asked or (self.transcript.model if self.transcript is not None else None)

    def facts(self) -> dict[str, Any]:
        """All that is known of it beside what was said and done; what is not known is None."""
        row, trial = self.row, self.trial or {}
        return {
            **{key: row[key] for key in ("id", "scenario", "condition", "agent", "number", "lane", "verdict", "valid",
                                         "reason", "cause", "replaced_by", "isolation", "scripted_model")},
            "subject": run.subject_of(self.manifest),
            "cause_detail": trial.get("detail") or None,
            "lost": self.lost,
            "grader": self.verdict.grader if self.verdict else None,
            "checks": [asdict(check) for check in self.verdict.checks] if self.verdict else [],
            "stages": [asdict(stage) for stage in self.verdict.stages] if self.verdict else [],
            "traps": [asdict(trap) for trap in self.verdict.traps] if self.verdict else [],
            "model": self.model,
            "usage": asdict(self.transcript.usage) if self.transcript else None,
            "started": trial.get("started"),
            "ended": trial.get("ended"),
            "duration_s": trial.get("duration_s"),
        }  # fmt: skip
