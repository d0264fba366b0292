"""Reaches the right end past the bench's door: writes the lab file by hand. What passes doesn't check the route."""

from harness.agents._script import play
from harness.bench import Bench

SUMMARY = "gets the right end around the tool's back; must fail"
EXPECTED = ("fail",)


def act(bench: Bench) -> str:
    """The scenario's own lines; without any, the lab that the reference ends with, put in place byte for byte."""
    steps = bench.scenario.control("hand-edit")
    if steps:
        return play(bench, steps)
    answer, lab = bench.rehearse(lambda other: play(other, other.scenario.reference))
    if lab is not None:
        bench.sandbox.lab.write_bytes(lab)
    return answer
