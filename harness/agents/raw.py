"""The arm that has pyserial and nothing else: it opens the port itself when it is asked to look (harness/arms)."""

from harness.agents._arm import look
from harness.bench import Bench

SUMMARY = "a task by a careful pyserial script, opened when asked; an arm of `versus`, may fail"
EXPECTED = ("pass", "fail")


def act(bench: Bench) -> str:
    """What the script found."""
    return look(bench, "raw")
