"""Grades a trial in which a question was answered by asking a program: the answer is right, and it was asked for.

Pure function of a bundle. Right words that no recorded command of the program gave are a guess, whoever knew them.
"""

from graders import route, said_and_done, witness
from graders.bundle_view import Bundle
from graders.verdict import Check, Verdict, conclude

NAME = "answer"


def grade(bundle: Bundle) -> Verdict:
    """The verdict on one trial. Raises BundleError if the directory is no bundle."""
    early = said_and_done.not_gradable(bundle, NAME)
    if early:
        return early
    checks = [
        *said_and_done.answers(bundle),
        *said_and_done.had_to_run(bundle),
        *said_and_done.central(bundle),
        *way(bundle),
        *said_and_done.ended(bundle),
        said_and_done.exit_codes(bundle),
    ]
    return conclude(NAME, checks, said_and_done.traps(bundle))


def way(bundle: Bundle) -> list[Check]:
    """Whether the record is whole, nobody's forgery, and of the sandbox's program."""
    record = bundle.record
    if record is None:
        return [Check(name, None, "the trial left no argv record") for name in ("record whole", "program")]
    whole = Check("record whole", None if record.torn else True, "; ".join(record.torn[:3]))
    checks = [whole, route.program(bundle.trial, record.invocations)]
    return [*checks, witness.record_kept(bundle)] if "witness" in (bundle.trial.get("evidence") or ()) else checks
