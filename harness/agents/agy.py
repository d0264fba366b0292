"""Antigravity, as `agy -p`: by what is documented of 1.1.8 and later. It was never run here: no registry has it.

It makes a PATH of its own from login shells, which the profiles in a sandbox's home lead back to the bench's door. What
it reads at its start is not known for sure, so a condition's texts go before the goal.
"""

from pathlib import Path

from harness.agents._product import asked_version, logs, start
from harness.agents._program import RATED, Command, Needs, Options, Ways
from harness.sandbox import Sandbox


class Agy:
    """Its own timeout would end it with SUCCESS and half an answer: it gets one that never comes first."""

    name = "agy"
    product = "agy"
    summary = "Antigravity (agy -p), by its documents; never run by us"
    needs = Needs("agy", "see https://antigravity.google/download")
    ways = Ways()
    expected = RATED
    time_s = None

    def version(self) -> str | None:
        """As `agy --version` tells it."""
        return asked_version("agy")

    def prepare(self, place: Sandbox, options: Options) -> list[Path]:
        """Nothing: all is on its command line."""
        return []

    def command(self, goal: str, place: Sandbox, options: Options) -> Command:
        """The goal is the value of -p. It has no flag for turns, tokens or money: they are watched from outside."""
        words = [*start("agy"), "--dangerously-skip-permissions", "--output-format", "stream-json",
                 "--print-timeout", "24h"]  # fmt: skip
        words += ["--model", options.model] if options.model else []
        return Command((*words, *options.extra, "-p", goal))

    def collect(self, place: Sandbox) -> dict[str, Path]:
        """The logs of its session that are whole; those beside them are cut."""
        return logs(place.home / ".gemini" / "antigravity-cli" / "brain", "**/transcript_full.jsonl")


PROGRAM = Agy()
