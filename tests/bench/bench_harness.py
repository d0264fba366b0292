"""What the harness costs a trial beside its agent and its commands: the target is a median of at most 150 ms.

Trials are run one after another, by a scripted agent and by a program. `stop` is the part of it in which what the trial
left running is ended (the daemon is asked first, by a command of its own); `own` is this process's processor time.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import tempfile
import time
from pathlib import Path

from harness import agents, conditions, files, scenario, trial
from harness.agents._program import Condition, Options

TARGET_MS = 150
PROGRAM = "command:" + shlex.join(["/bin/sh", "-c", "labd target list; cat"])
CASES: tuple[tuple[str, str, Condition], ...] = (
    ("reference", "C1", "cold"), ("reference", "S4", "cold"), ("reference", "R1", "cold"),
    (PROGRAM, "C1", "cold"), (PROGRAM, "C1", "warm"), (PROGRAM, "S4", "preloaded"), (PROGRAM, "R1", "preloaded"),
)  # fmt: skip

Costs = tuple[float, float, float]


def costs(directory: Path, name: str, one: scenario.Scenario, condition: Condition, number: int) -> Costs:
    """One trial's milliseconds: the wall clock around it less what commands and program took; its stop; our own."""
    agent = agents.find(name)
    order = trial.Order(one.id, condition, agent.name, number)
    began, own = time.perf_counter(), time.process_time()
    bundle = trial.conduct(order, one, agent, directory, facts={}, options=Options(condition=condition))
    spent, own = time.perf_counter() - began, time.process_time() - own
    assert bundle is not None
    told = files.read_json(bundle / "trial.json")
    return (spent - told["commands_s"]) * 1e3, told["stop_s"] * 1e3, own * 1e3


def show(title: str, found: list[Costs]) -> None:
    overhead, stop, own = ([one[at] for one in found] for at in range(3))
    print(f"  {title:34}{statistics.median(overhead):8.1f}{max(overhead):8.1f}"
          f"{statistics.median(stop):8.1f}{statistics.median(own):8.1f}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    rounds = 5 if parser.parse_args().quick else 21
    known = {one.id: one for one in scenario.load_all()}
    conditions.live_guides()
    print(f"{'overhead of a trial, ms':36}{'median':>8}{'most':>8}{'stop':>8}{'own':>8}  target {TARGET_MS}")
    every: list[Costs] = []
    with tempfile.TemporaryDirectory() as place:
        for name, identity, condition in CASES:
            title = f"{identity} {condition} {name.partition(':')[0]}"
            found = [costs(Path(place), name, known[identity], condition, n) for n in range(1, rounds + 1)]
            show(title, found)
            every += found
    show("all", every)


if __name__ == "__main__":
    main()
