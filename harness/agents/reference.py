"""Runs the scenario's reference answer, as an expert would. If it doesn't pass, the exam or the bench is broken."""

from harness.agents._script import act_out
from harness.bench import Bench

SUMMARY = "the scenario's own reference answer; must pass"
EXPECTED = ("pass",)


def act(bench: Bench) -> str:
    """The stdout of the reference's last command."""
    return act_out(bench, bench.scenario.reference)
