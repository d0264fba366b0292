"""Recommends a command or flag that does not exist, all else as it should be. What passes with it believes names."""

from harness.agents._script import say
from harness.bench import Bench

SUMMARY = "says what to run, with a command that does not exist; must fail"
EXPECTED = ("fail",)


def act(bench: Bench) -> str:
    """The scenario's own lines, said."""
    return say(bench, bench.scenario.control("invented"))
