"""What a cluster costs a trial beside the local pool: the target is a median of at most 50 ms more.

The same trials, one at a time, by a scripted agent that does nothing: in this process, and on one worker with one
thread on loopback. `way` is all that is not the trial itself (its duration_s): grading, and on the cluster the task,
the claim, the bundle's way back and its hashes. Rounds take turns, so that a busy machine is busy for both.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from harness import agents, cluster, files, pool, run, scenario
from harness.agents._program import Options
from tests.harness.cluster_rig import a_rig

TARGET_MS = 50
IDS = ("C2", "C4", "S4")


def way(out: Path, known: list[scenario.Scenario], place: pool.Pool, trials: int) -> list[float]:
    """Milliseconds of each trial that were not its own."""
    found: list[float] = []
    with run.create(out, known, agents.select(["noop"]), trials=trials) as held:
        (held.directory / "surface.json").write_text("{}")  # taken once a run: not a trial's
        began = time.perf_counter()

        def on_result(result: run.Result) -> None:
            nonlocal began
            now = time.perf_counter()
            told = files.read_json(held.trials / result.order.identity / "trial.json")
            found.append((now - began - told["duration_s"]) * 1e3)
            began = now

        run.carry_out(held, known, jobs=1, on_result=on_result, pool=place)
    return found


def show(title: str, found: list[float]) -> None:
    print(f"  {title:28}{statistics.median(found):8.1f}{max(found):8.1f}{len(found):8}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    rounds = 2 if parser.parse_args().quick else 7
    known = [one for one in scenario.load_all() if one.id in IDS]
    here, there = [], []
    print(f"{'beside the trial, ms':30}{'median':>8}{'most':>8}{'trials':>8}  target {TARGET_MS} more")
    with tempfile.TemporaryDirectory() as root, a_rig(Path(root) / "rig") as rig:
        rig.workers("one", preload=None)
        with cluster.connected(rig.address, lambda _: None) as place:
            place.prepare(known, agents.select(["noop"]), Options())
            way(Path(root), known, place, 1)  # the worker imports what it needs
            for _ in range(rounds):
                here += way(Path(root), known, pool.Here(), 3)
                there += way(Path(root), known, place, 3)
    show("in this process", here)
    show("on a worker", there)
    print(f"  {'more':28}{statistics.median(there) - statistics.median(here):8.1f}")


if __name__ == "__main__":
    main()
