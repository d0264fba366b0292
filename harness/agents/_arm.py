"""How an arm without the bench goes about a task: one script, started when it is asked, told what the goal says."""

import json
import shlex
import sys
from pathlib import Path

from harness.bench import Bench, GaveUp
from harness.scenario import Step, fill

_ARMS = Path(__file__).resolve().parent.parent / "arms"


def look(bench: Bench, script: str) -> str:
    """Run `harness/arms/SCRIPT.py` in the sandbox on the task; returns what it says to have found."""
    task = bench.scenario.task
    if task is None:
        raise GaveUp("the scenario is no task for everybody")
    told = {
        "device": bench.values["device"],
        "look_for": fill(task.look_for, bench.values, pattern=True),
        "type": task.type,
        "see": task.see,
        "press": task.press,
        "patience_s": task.patience_s,
    }
    words = [sys.executable, str(_ARMS / f"{script}.py"), json.dumps(told)]
    ended = bench.run(Step(shlex.join(words)), {})
    return ended.stdout.decode("utf-8", "replace")
