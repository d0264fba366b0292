"""Runs nothing and prints what a success looks like. What passes with it believes words."""

from harness.bench import Bench
from harness.scenario import fill

SUMMARY = "prints a success without doing anything; must fail"
EXPECTED = ("fail",)


def act(bench: Bench) -> str:
    """The scenario's success text; without one, the reference's commands as if they had been run.

    Only what a liar could know is filled in: not the trial's nonce, which the boards and devices alone can tell.
    """
    known = {name: value for name, value in bench.values.items() if name != "nonce"}
    controls = bench.scenario.controls
    if controls and controls.printed_success:
        return fill(controls.printed_success, known)
    lines = [f"$ {fill(step.run, known)}\nok" for step in bench.scenario.reference]
    return "\n".join([*lines, "All done, everything succeeded."])
