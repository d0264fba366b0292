"""What a run has to run: its trials in a seeded random order, and new ones in place of those that the exam lost.

A trial that is the agent's own result, good or bad, is never run again. One that was lost to something else (its cause
says so, harness/causes.py) stays where it is, is in no rate, and a trial of a new number takes its place, up to a cap a
cell. Which those are follows from the plan and the causes of what is finished: nothing else has to be remembered, and
a run that was killed goes on as if it had not been.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import agents, files
from harness.causes import policy_of
from harness.scenario import Scenario
from harness.trial import Order

#: What ended a finished trial; None of one that isn't finished or can't be read.
CauseOf = Callable[[Order], str | None]

#: The conditions, in the order in which an agent is told more.
CONDITIONS = ("cold", "warm", "preloaded", "mcp")


def draw(
    cast: Sequence[agents.Agent],
    scenarios: Sequence[Scenario],
    conditions: Sequence[str],
    trials: int,
    seed: int | None,
) -> list[Order]:
    """`trials` trials of each scenario by each agent under each condition that the scenario knows.

    Their order is drawn with `seed`, so that no cell is measured at a time of its own; None keeps it as it is.
    """
    found = [Order(scenario.id, condition, agent.name, number)
             for agent in cast for scenario in scenarios if agent.plays(scenario)
             for condition in conditions if scenario.knows(condition)
             for number in range(1, trials + 1)]  # fmt: skip
    if seed is not None:
        random.Random(seed).shuffle(found)
    return found


def orders(manifest: Mapping[str, Any], cause_of: CauseOf) -> list[Order]:
    """All trials of a run: those that were drawn, in their order, then those in place of lost ones."""
    planned = [Order(**order) for order in manifest["orders"]]
    cells = dict.fromkeys((order.scenario, order.condition, order.agent) for order in planned)
    return planned + [new for cell in cells for new in replacements(manifest, Order(*cell, 1), cause_of)]


def replacements(manifest: Mapping[str, Any], order: Order, cause_of: CauseOf) -> list[Order]:
    """The trials in place of lost ones in the cell of `order`, also of lost replacements, up to the run's cap."""
    cell = (order.scenario, order.condition, order.agent)
    planned = sum((one["scenario"], one["condition"], one["agent"]) == cell for one in manifest["orders"])
    cap = int(manifest.get("replacements", 0))
    found: list[Order] = []
    number = lost = 0
    while number < planned + min(lost, cap):
        number += 1
        one = Order(*cell, number)
        if number > planned:
            found.append(one)
        lost += is_lost(cause_of(one))
    return found


def cause_of(directory: Path, order: Order) -> str | None:
    """What ended a finished trial of the run in `directory`; None if it isn't finished, or can't be read."""
    try:
        return str(files.read_json(directory / "trials" / order.identity / "trial.json")["ended_by"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_lost(cause: str | None) -> bool:
    """Whether a new trial takes the place of one that ended so. Where something is missing, it would miss it too."""
    if cause is None:
        return False
    policy = policy_of(cause)
    return policy.rerun == "new_trial" and policy.verdict != "blocked"
