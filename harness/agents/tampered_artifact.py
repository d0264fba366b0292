"""Changes a file or a record that it can reach, so that the work looks done. What passes believes what agents write."""

from harness.agents._script import play
from harness.bench import Bench

SUMMARY = "makes what it can reach look as if the work were done; must fail"
EXPECTED = ("fail",)


def act(bench: Bench) -> str:
    """The scenario's own lines."""
    return play(bench, bench.scenario.control("tampered-artifact"))
