"""The bench's arm of a comparison: the scenario's reference, on a bench that was capturing already."""

from harness.agents._script import play
from harness.bench import Bench

SUMMARY = "a task by the bench, capture running as always; an arm of `versus`, must pass"
EXPECTED = ("pass",)


def act(bench: Bench) -> str:
    """The stdout of the reference's last command."""
    return play(bench, bench.scenario.reference)
