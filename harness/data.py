"""Where the exam's parts are on this machine, and what they are exactly: programs, versions, hashes.

Pure look-ups; starts nothing. The hashes go into every run's manifest and every bundle, so that a verdict can be
traced to the very code that made it.
"""

import platform
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from harness.files import tree_digest


def versions() -> dict[str, str]:
    """What a verdict may depend on: our version, Python, the system."""
    from labd import __version__

    return {
        "labd": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


#: What of the fixtures is found by measuring, and measures nothing.
RESULTS = "ledger"


@cache
def hashes() -> dict[str, str]:
    """One digest for the code of each package and for the fixtures: the exact bench, exam, graders and boards."""
    from harness.scenario import fixtures_dir

    found = {}
    for name in ("labd", "harness", "graders", "loopback"):
        spec = find_spec(name)
        if spec and spec.origin:
            found[name] = tree_digest(Path(spec.origin).parent, "*.py")
    if fixtures_dir().is_dir():
        found["fixtures"] = tree_digest(fixtures_dir(), without=RESULTS)
    return found
