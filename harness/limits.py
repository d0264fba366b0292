"""Watches an agent's program from outside: turns, tokens and money, by what its transcript and its logs say so far.

They are read by the very parsers that read them at the end. What a product tells only in its last record (most tell
money there, if at all) is found used up when it ends. Time and output are watched by harness/execute.py.
"""

import time
from collections.abc import Callable, Iterable, Mapping

from harness import transcripts
from harness.agents._program import Options
from harness.execute import Halt
from harness.transcripts.model import MAIN

#: A look costs time on a long transcript: the next one waits for this many times what the last one took.
REST = 20
PAUSE_S = 0.25

#: Turns, tokens, US dollars so far; None where nothing tells.
Used = tuple[int | None, int | None, float | None]


class Limits:
    """Says which limit is used up. `read` is shown the stdout and gives the transcripts so far, of it and of logs."""

    def __init__(self, options: Options, read: Callable[[bytes], Iterable[transcripts.Transcript]]) -> None:
        self._most: tuple[tuple[Halt, float | None], ...] = (
            ("turn_limit", options.turns), ("token_limit", options.tokens), ("money_limit", options.money_usd),
        )  # fmt: skip
        self._read = read
        self._seen = 0
        self._due = 0.0

    def __call__(self, stdout: bytearray) -> Halt | None:
        """The limit that is passed; None while none is, and until there is something new to read."""
        if all(most is None for _, most in self._most):
            return None
        begun = time.monotonic()
        if begun < self._due or (end := stdout.rfind(b"\n") + 1) <= self._seen:
            return None
        self._seen = end
        found = self.passed(self._read(bytes(stdout[:end])))
        self._due = time.monotonic() + max(PAUSE_S, REST * (time.monotonic() - begun))
        return found

    def passed(self, told: Iterable[transcripts.Transcript]) -> Halt | None:
        """The first limit that one of these goes beyond."""
        found = [used(one) for one in told]
        for at, (name, most) in enumerate(self._most):
            if most is not None and any((so_far[at] or 0) > most for so_far in found):
                return name
        return None


def used(told: transcripts.Transcript) -> Used:
    """What a transcript tells of its use. Turns are counted the same for all products: answers of the model to the
    agent that was asked, by their ids; where answers have none, those that use a tool."""
    parts = [part for part in [*told.calls, *(one for one in told.messages if one.role == "assistant")]
             if part.thread == MAIN]  # fmt: skip
    answers = {part.id if isinstance(part, transcripts.model.Message) else part.message_id for part in parts} - {None}
    unnamed = sum(call.thread == MAIN and call.message_id is None for call in told.calls)
    return len(answers) + unnamed, told.usage.total, told.usage.cost_usd


def by_transcript(product: str, logs: Callable[[], Mapping[str, bytes]]
                  ) -> Callable[[bytes], list[transcripts.Transcript]]:  # fmt: skip
    """Reads a product's stdout and, apart, its `logs`: some products tell tokens only there while they run."""

    def read(stdout: bytes) -> list[transcripts.Transcript]:
        found = []
        for raw in ({"stdout": stdout}, logs()):
            try:
                found += [transcripts.parse(product, raw)] if raw else []
            except transcripts.TranscriptError:
                continue
        return found

    return read
