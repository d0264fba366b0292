"""The reference and the five controls of all journeys of all subjects: at most 90 s on two processors.

Beside the wall clock it says how many processors the machine could really give, and the processor time of all trials.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

from harness import agents, controls, journeys, run

TARGET_S = 90.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one job a subject")
    quick = parser.parse_args().quick
    cast = [agents.find(name) for name in agents.JOURNEY]
    whole = own = 0.0
    for name in journeys.subjects():
        chosen = journeys.load(name)
        if quick:
            chosen = [one for one in chosen if one.journey and chosen[0].journey and
                      one.journey.job == chosen[0].journey.job]  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="labd-bench-") as place:
            began, used = time.perf_counter(), _processor()
            with run.create(Path(place), chosen, cast, journeys=journeys.facts(chosen, None)) as held:
                run.carry_out(held, chosen, jobs=2, on_result=lambda result: None)
                found = controls.cells(held)
            spent, used = time.perf_counter() - began, _processor() - used
        bad = [f"{one} {agent}" for one, row in found.items() for agent, cell in row.items()
               if not controls.lacking(cell) and controls.wrong(agent, cell)]  # fmt: skip
        trials = sum(map(len, found.values()))
        print(f"  {name:8} {len(found):3} scenarios, {trials:3} trials  {spent:7.1f} s  ({used:.1f} s of a processor, "
              f"{used / trials:.2f} s a trial)  went wrong: {', '.join(bad) or 'none'}")  # fmt: skip
        whole, own = whole + spent, own + used
    print(f"  all {whole:.1f} s, {own:.1f} s of a processor; load {os.getloadavg()[0]:.1f}  target {TARGET_S:g} s")


def _processor() -> float:
    """Seconds of processor time that this process and all that it waited for have used."""
    told = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in told)


if __name__ == "__main__":
    main()
