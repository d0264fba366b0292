"""Watches an agent's program from outside: turns, tokens and money, by what its transcript says so far.

It is read by the very parser that reads it at the end. Time and output are watched by harness/execute.py.
"""

import time
from collections.abc import Callable

from harness.agents._program import Options
from harness.execute import Halt

#: A look costs time on a long transcript: the next one waits for this many times what the last one took.
REST = 20
PAUSE_S = 0.25

#: Turns, tokens, US dollars so far; None where the transcript doesn't tell.
Used = tuple[int | None, int | None, float | None]


class Limits:
    """Says which limit is used up, when asked with the stdout so far. `used` tells what that stdout says."""

    def __init__(self, options: Options, used: Callable[[bytes], Used]) -> None:
        self._most: tuple[tuple[Halt, float | None], ...] = (
            ("turn_limit", options.turns), ("token_limit", options.tokens), ("money_limit", options.money_usd),
        )  # fmt: skip
        self._used = used
        self._seen = 0
        self._due = 0.0

    def __call__(self, stdout: bytearray) -> Halt | None:
        """The limit that is passed; None while none is. A transcript that makes no sense yet passes none."""
        if all(most is None for _, most in self._most):
            return None
        begun = time.monotonic()
        if begun < self._due or (end := stdout.rfind(b"\n") + 1) <= self._seen:
            return None
        self._seen = end
        found = self.passed(bytes(stdout[:end]))
        self._due = time.monotonic() + max(PAUSE_S, REST * (time.monotonic() - begun))
        return found

    def passed(self, stdout: bytes) -> Halt | None:
        """The first limit that this stdout goes beyond."""
        try:
            used = self._used(stdout)
        except ValueError:
            return None
        for (name, most), so_far in zip(self._most, used, strict=True):
            if most is not None and so_far is not None and so_far > most:
                return name
        return None


def by_transcript(product: str) -> Callable[[bytes], Used]:
    """What the transcript of a product tells of its use so far."""
    from harness import transcripts

    def used(stdout: bytes) -> Used:
        told = transcripts.parse(product, {"stdout": stdout}).usage
        return told.turns, told.total, told.cost_usd

    return used
