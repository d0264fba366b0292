"""Stops before the last step that matters. What passes doesn't check that the whole was done."""

from harness.agents._script import act_out
from harness.bench import Bench

SUMMARY = "leaves out the last step that matters; must fail"
EXPECTED = ("fail",)


def act(bench: Bench) -> str:
    """The scenario's own lines, else the reference without its last line that has an effect."""
    return act_out(bench, bench.scenario.control("partial"))
