"""Does nothing and says nothing. What passes with it asks for nothing."""

from harness.bench import Bench

SUMMARY = "does nothing; must fail"
EXPECTED = ("fail",)


def act(bench: Bench) -> str:
    """No words."""
    return ""
