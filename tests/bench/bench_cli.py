"""Whole processes of the installed program beside `python -c pass`, interleaved, with the daemon up and down.

Targets: 1.6× with the daemon up, 2.5× for --version and `serial log` with it down, 5× for any other verb.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

from tests.conftest import LABD, BenchInAFolder, a_board, until

UP = {
    "serial log --tail 20": ("serial", "log", "dut", "--tail", "20"),
    "serial send": ("serial", "send", "dut", "x"),
    "serial show": ("serial", "show", "dut"),
    "target list": ("target", "list"),
}
DOWN = {
    "--version": ("--version",),
    "serial log --tail 20": ("serial", "log", "dut", "--tail", "20"),
    "serial show": ("serial", "show", "dut"),
    "target list": ("target", "list"),
    "target set": ("target", "set", "dut", "--description", "x"),
    "commands --json": ("commands", "--json"),
    "a Tab for a board's name": ("__complete", "zsh", "serial", "log", "-t", ""),
    "a Tab for a command": ("__complete", "zsh", "ser"),
}


def rounds(bench: BenchInAFolder, cases: dict[str, tuple[str, ...]], count: int) -> dict[str, float]:
    """Median wall seconds of each case and of the bare start, all of them once in each round."""
    commands = {"python -c pass": [sys.executable, "-c", "pass"], **{k: [LABD, *v] for k, v in cases.items()}}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(count):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, env=bench.env, cwd=bench.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def show(title: str, medians: dict[str, float]) -> None:
    bare = medians["python -c pass"]
    print(f"{title:28}{'ms':>8}{'ratio':>8}")
    for name, seconds in medians.items():
        print(f"  {name:26}{seconds * 1e3:8.1f}{seconds / bare:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    count = 7 if parser.parse_args().quick else 31
    with a_board() as bench:
        bench("serial", "watch", "dut")
        until("the login prompt", lambda: "login:" in bench.out("serial", "log", "dut"))
        show("daemon up", rounds(bench, UP, count))
        bench("daemons", "stop")
        bench("serial", "log", "dut")
        show("daemon down", rounds(bench, DOWN, count))


if __name__ == "__main__":
    main()
