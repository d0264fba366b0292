"""The arm that has the console written to a file by socat, from when it is asked to look (harness/arms)."""

import shutil

from harness.agents._arm import look
from harness.bench import Bench, Unavailable

SUMMARY = "a task by socat into a file, started when asked; an arm of `versus`, may fail, blocked without socat"
EXPECTED = ("pass", "fail", "blocked")


def act(bench: Bench) -> str:
    """What was found in the file. Raises Unavailable without socat."""
    if shutil.which("socat", path=bench.sandbox.env["PATH"]) is None:
        raise Unavailable("socat is not installed (apt install socat)")
    return look(bench, "socat_log")
