"""Records of attempts, made in a line: a call by its class, an attempt by its calls."""

import shlex
from typing import Any

from graders.contract import Answer, Call, Probe, Record

PROOF = Probe("vocabulary", "atlas categories", "absent; nearest bus_station", True)

_AXES: dict[str, dict[str, Any]] = {
    "ok": {"outcome": "ok", "blame": "tool", "recovery": "n/a", "exit_code": 0},
    "A": {"outcome": "error", "blame": "tool", "recovery": "unguided", "exit_code": 1},
    "B": {"outcome": "error", "blame": "tool", "recovery": "guided", "exit_code": 2},
    "C": {"outcome": "empty", "blame": "tool", "recovery": "unguided", "exit_code": 0, "subtype": "c-unknown"},
    "D": {"outcome": "degenerate", "blame": "tool", "recovery": "unguided", "exit_code": 0},
    "E": {"outcome": "error", "blame": "environment", "recovery": "unguided", "exit_code": 7},
    "F": {"outcome": "error", "blame": "agent", "recovery": "guided", "exit_code": 2},
}


def call(name: str, line: str = "count", **more: Any) -> Call:
    """A call of class `name` (`ok` for none) with these words, quoted as for a shell."""
    told = {"stdout_head": "", "stderr_head": "", "duration_s": 0.1, **_AXES[name], **more}
    return Call(tuple(shlex.split(line)), **told)


def attempt(*calls: Call | str, answer: str = "", **more: Any) -> Record:
    """An attempt with these calls; a text is the classes of calls: `attempt("ok", "A")`."""
    made = tuple(one if isinstance(one, Call) else call(one) for one in calls)
    told = {"agent_side": (), "tools_used": {}, "subject": {"name": "atlas"}, "condition": "cold",
            "trial": "A1-cold-reference-1", "agent": "reference", **more}  # fmt: skip
    return Record("A1", 1, made, program_calls=len(made), answer=Answer(answer), **told)
