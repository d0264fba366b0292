"""Grades an arm of a comparison by the one thing that all arms owe: the answer, which the trial's nonce makes a fact.

By which way it was found is not asked, and the board's own record tells whether it had said it at all. Pure function of
a bundle.
"""

import re

from graders import said_and_done
from graders.bundle_view import Bundle
from graders.verdict import Check, Verdict, conclude

NAME = "task"


def grade(bundle: Bundle) -> Verdict:
    """The verdict on one arm's trial. Raises BundleError if the directory is no bundle."""
    early = said_and_done.not_gradable(bundle, NAME)
    if early:
        return early
    checks = [asked(bundle), *said_and_done.answers(bundle), *said_and_done.ended(bundle)]
    return conclude(NAME, checks, [])


def asked(bundle: Bundle) -> Check:
    """Whether the board said what is looked for: else the task was never put, and nothing is found out."""
    loopback = bundle.scenario["loopback"]
    records = bundle.dut(loopback["target"], loopback["interface"])
    if records is None:
        return Check("the board said it", None, "the board left no record")
    text = "".join(str(record.get("data") or "") for record in records if record.get("kind") == "tx")
    found = re.search(bundle.scenario["task"]["look_for"], text)
    # A board that waits for a key never says it to those who do not press one: that is their failure, not the exam's.
    return Check("the board said it", bool(found), "" if found else "nobody brought it to")
