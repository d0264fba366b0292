"""A scenario's reference answer as a script: each line one call of the shell, then the answer.

So the whole exam runs through a real agent program with nothing written by hand. Where commands are only stated, the
answer states them.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence

from harness import subject as subjects
from harness.agents._script import stated
from harness.model_server.script import Call, Script, Thread, Turn
from harness.scenario import Scenario, Step, fill


def from_scenario(scenario: Scenario, values: Mapping[str, str]) -> Script:
    """The script of one trial; `values` are what its placeholders stand for."""
    if scenario.lane == "stated":
        turns = [Turn(text=stated(scenario.reference, values))]
    else:
        tool_for = subjects.load(scenario.subject).kind.tool_for
        lines = [step for step in scenario.reference if not step.stated and not step.prose]
        turns = [_turn(step, values, tool_for) for step in lines] + [
            Turn(text="{output}" if lines else "There is nothing to do.")
        ]
    return Script((Thread("", tuple(turns)),), f"the reference answer of {scenario.id}", dict(values))


def _turn(step: Step, values: Mapping[str, str], tool_for: Callable[[Sequence[str]], str]) -> Turn:
    """One line; what is filled in later stands inside quotes, as one word."""
    line = step.run if step.shell else shlex.join(fill(word, values) for word in shlex.split(step.run))
    by = "" if step.shell else tool_for(shlex.split(line))
    return Turn(calls=(Call(shell=line, by=by),), until=step.until or "", save=dict(step.save))
