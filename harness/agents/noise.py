"""An agent that makes no sense: ungrammatical words, invented commands, and it never finishes. It must pass nothing.

A real program with a seed of its own, so that limits, evidence and graders meet what a bad model does.
"""

import sys
import zlib
from pathlib import Path

from harness.agents._program import Command, Needs, Options, Ways
from harness.sandbox import Sandbox


class Noise:
    """The adapter. `--agent-arg N` is another seed."""

    name = "noise"
    product = "text"
    summary = "babble, invented commands, no end (a program of its own); must pass nothing"
    needs = Needs(sys.executable, "make setup")
    ways = Ways()
    expected = frozenset({"fail"})
    time_s = 5.0

    def version(self) -> str:
        """It has none apart from ours."""
        return "1"

    def prepare(self, place: Sandbox, options: Options) -> list[Path]:
        """Nothing."""
        return []

    def command(self, goal: str, place: Sandbox, options: Options) -> Command:
        """The babbler, seeded by the goal unless told otherwise."""
        script = Path(__file__).with_name("_babble.py")
        seed = options.extra or (str(zlib.crc32(goal.encode())),)
        return Command((sys.executable, "-IS", str(script), *seed), stdin=goal.encode())

    def collect(self, place: Sandbox) -> dict[str, Path]:
        """Nothing."""
        return {}


PROGRAM = Noise()
