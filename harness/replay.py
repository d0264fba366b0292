"""After a journey's agent has ended and its evidence is in the bundle: the last act once more, and what that changed.

The lines of the stage `replay` run in the same sandbox. What the state was like at the start, at the agent's end and
after the second time goes into the bundle as state.json: a digest for each part of it. Judges nothing.
"""

import shlex
from collections.abc import Mapping
from typing import Any

from harness import execute
from harness.journey_parts import Journey
from harness.sandbox import Sandbox
from harness.scenario import fill

#: Seconds that a line may take.
LIMIT_S = 60.0


def states(place: Sandbox, journey: Journey, before: Mapping[str, str]) -> dict[str, Any]:
    """The three states, and how the lines of the second time ended. What it leaves running is ended."""
    after = place.examined.kind.state(place)
    lines = [line for stage in journey.stages for line in stage.run]
    ran = [_run(place, fill(line, place.values)) for line in lines]
    place.stop()
    return {"before": dict(before), "after": after, "replayed": place.examined.kind.state(place), "ran": ran}


def _run(place: Sandbox, line: str) -> dict[str, Any]:
    ended = execute.run(shlex.split(line), env=place.env, cwd=place.work, limit_s=LIMIT_S, mark=place.mark)
    if ended.session:
        place.sessions.add(ended.session)
    return {"run": line, "code": ended.code, "ended_by": ended.ended_by,
            "stderr": ended.stderr.decode("utf-8", "replace")[:500]}  # fmt: skip
