"""A power hook through labd beside the bare command, in one run: through a client's connection, and as a whole command.

Targets: overhead of the hook's road (permitted, recorded, run, read back into the journal) at most 10 ms; a whole
`labd power on` costs the start of a Python besides, which is shown for comparison.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from labd.client import Client
from tests.conftest import LABD, BenchInAFolder, a_bench

HOOK = "sh -c 'echo on'"
LAB = f"""[targets.dut]
[targets.dut.power]
on_cmd = "{HOOK}"
state_cmd = "{HOOK}"
"""


def rounds(cases: dict[str, Callable[[], object]], count: int) -> dict[str, list[float]]:
    """Seconds of each case, all of them once in each round."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(count + 2):
        for name, act in cases.items():
            began = time.perf_counter()
            act()
            if number >= 2:  # the first ones find everything cold
                times[name].append(time.perf_counter() - began)
    return times


def measure(bench: BenchInAFolder, count: int) -> dict[str, list[float]]:
    quiet = {"env": bench.env, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
    with Client(bench.env) as client:

        def ask(method: str, **params: object) -> object:
            return client.request(method, {"target": "dut", **params}, lab=str(bench.lab))

        return rounds(
            {
                "the bare command": lambda: subprocess.run(["sh", "-c", "echo on"], capture_output=True, check=True),
                "power on, over a connection": lambda: ask("power.on", verify="none"),
                "power-state, over a connection": lambda: ask("power-state"),
                "python -c pass": lambda: subprocess.run([sys.executable, "-c", "pass"], **quiet),  # type: ignore[call-overload]
                "labd power on": lambda: subprocess.run([LABD, "power", "on", "dut", "--verify", "none"], **quiet),  # type: ignore[call-overload]
            },
            count,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    count = 20 if parser.parse_args().quick else 100
    with tempfile.TemporaryDirectory() as root, a_bench(Path(root)) as bench:
        bench.env.pop("LABD_ARGV_LOG")
        bench.lab.write_text(LAB)
        bench("power-state", "dut")
        times = measure(bench, count)
    bare = statistics.median(times["the bare command"])
    print(f"{'':32}{'p50 ms':>8}{'p90 ms':>8}{'over the bare':>15}")
    for name, found in times.items():
        middle, late = statistics.median(found), sorted(found)[int(len(found) * 0.9)]
        more = f"{(middle - bare) * 1e3:+.1f} ms" if "power" in name else ""
        print(f"{name:32}{middle * 1e3:8.1f}{late * 1e3:8.1f}{more:>15}")


if __name__ == "__main__":
    main()
