"""How an agent's part of a trial went: what ended it, its last words, and what there is of it to keep."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.bench import Call


@dataclass(frozen=True)
class Played:
    """`cause` is one of harness/causes.py. Of an agent that is a program there is more to keep:

    `raw` are the files under raw/, `transcript` and `condition` the files of those names, `facts` what trial.json says
    of the program.
    """

    cause: str
    detail: str
    answer: str
    calls: list[Call]
    trace: str = ""
    raw: Mapping[str, bytes] = field(default_factory=dict)
    transcript: bytes | None = None
    condition: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def program_s(self) -> float:
        """How long the agent's own program ran (seconds)."""
        return float(self.facts.get("duration_s", 0.0))
