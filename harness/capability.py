"""What a scenario needs of this machine beside the program under test: QEMU and a firmware, or a font for a screen.

Looks, starts nothing. Who lacks it has not failed: such a trial ends as `capability_missing`, with the package's name.
"""

import re

from harness.scenario import Scenario
from loopback import machinefile


def missing(scenario: Scenario) -> str:
    """What is not there, in words, with the packages that have it; empty if all is there."""
    lacks = [lack for name in boards(scenario) for lack in machinefile.find(name).missing()]
    if scenario.outside is not None and scenario.outside.serve == "picture":
        from harness import screen  # numpy and OpenCV: only trials with a screen pay for them

        if screen.font() is None:
            lacks.append({"what": "there is no console font to draw a screen with", "package": screen.PACKAGE})
    words = dict.fromkeys(f"{lack['what']} (package {lack['package']})" for lack in lacks)
    return "; ".join(words)


def boards(scenario: Scenario) -> list[str]:
    """The virtual boards that the scenario's lab names."""
    if scenario.loopback is None or not scenario.loopback.virtual:
        return []
    return sorted(set(re.findall(r'"board:([\w.-]+)"', scenario.seed_text({}) or "")))
