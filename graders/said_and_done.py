"""Checks that several graders share: how commands ended, what had to be run, what was answered, traps walked into.

Pure functions of a bundle. Evidence that is missing gives None, never a pass.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from graders import route, when, witness
from graders.argv_records import Invocation
from graders.bundle_view import Bundle
from graders.verdict import Check, Verdict
from harness.causes import policy_of

CENTRAL = "central trap: "


def not_gradable(bundle: Bundle, grader: str) -> Verdict | None:
    """The verdict of a trial whose end says nothing about the agent (harness/causes.py), else None."""
    policy = policy_of(str(bundle.trial.get("ended_by")))
    if policy.valid:
        return None
    assert policy.verdict is not None, "the table says so"
    lacks = str(bundle.trial.get("detail") or "") if policy.cause == "capability_missing" else ""
    return Verdict(grader, policy.verdict, f"{policy.cause}: {lacks or policy.meaning}")


def ended(bundle: Bundle) -> list[Check]:
    """Whether the agent came to an end of its own, if the trial's end is its business."""
    policy = policy_of(str(bundle.trial.get("ended_by")))
    return [Check("ended in time", policy.verdict != "fail", "" if policy.verdict != "fail" else policy.meaning)]


def exit_codes(bundle: Bundle) -> Check:
    """Whether every command ended well, or was made good later.

    Well: an exit code of `grader.exits` (0 if it says none). A command that failed is made good by a later success
    of the same operation; a read, a request for help or words that were no command, by any later success. A command
    whose end nobody recorded leaves the question open: a missing exit code is unknown, never 0.
    """
    if bundle.record is None:
        return Check("exit codes", None, "the trial left no argv record")
    allowed = bundle.scenario["grader"].get("exits") or [0]
    runs = route.subject_invocations(bundle)
    unknown = [one for one in runs if not one.ended or (one.code is None and one.signal is None)]
    bad = [one for n, one in enumerate(runs) if one not in unknown and one.code not in allowed
           and not _made_good(one, runs[n + 1 :], allowed)]  # fmt: skip
    if bad:
        ended = f"ended by signal {bad[0].signal}" if bad[0].code is None else f"exited {bad[0].code}"
        return Check("exit codes", False, f"{bad[0]} {ended}, and nothing later made that good")
    if unknown:
        return Check("exit codes", None, f"nobody knows how {unknown[0]} ended")
    return Check("exit codes", True, f"{len(runs)} commands, each ended in {_words(allowed)} or was made good")


def _made_good(one: Invocation, later: Sequence[Invocation], allowed: Sequence[int]) -> bool:
    exploring = one.operation is None or one.effect in ("help", "observe") or one.decision == "invalid"
    return any(
        other.code in allowed and (other.operation == one.operation or (exploring and one.code is not None))
        for other in later
    )


def _words(codes: Sequence[int]) -> str:
    return " or ".join(map(str, codes))


def had_to_run(bundle: Bundle) -> list[Check]:
    """One check a `[[grader.ran]]` predicate."""
    checks = []
    for entry in bundle.scenario["grader"].get("ran", ()):
        ok = None if bundle.record is None else when.compile_when(entry["when"])(_permitted(bundle))
        detail = "" if ok else "no recorded command did" if ok is False else "the trial left no argv record"
        checks.append(Check(f"ran: {entry['text']}", ok, detail))
    return checks


def _permitted(bundle: Bundle) -> list[Invocation]:
    """The invocations that count as done: permitted, about the sandbox's own lab, and read if reading was all of it."""
    return [
        one
        for one in route.subject_invocations(bundle)
        if one.decision == "permitted"
        and route.this_lab(bundle.trial, one)
        and not (one.effect == "observe" and witness.thrown_away(bundle, one))
    ]


def central(bundle: Bundle) -> list[Check]:
    """The central traps that the record decides: who walks into one has failed."""
    return [trap for trap in traps(bundle) if trap.name.startswith(CENTRAL) and trap.ok is not None]


def answers(bundle: Bundle) -> list[Check]:
    """One check a `[[grader.answer]]`: what the agent finally said."""
    entries = bundle.scenario["grader"].get("answer", ())
    return [
        said(f"answer [{number}]", entry, bundle.answer, "no answer was kept") for number, entry in enumerate(entries)
    ]


def said(name: str, entry: Mapping[str, Any], text: str | None, missing: str, *, absent: bool | None = None) -> Check:
    """One check of a text against an entry with `contains`, `matches` or `lacks`.

    `absent` is the finding when there is no text, which `missing` explains.
    """
    kind, wanted = next((kind, entry[kind]) for kind in ("contains", "matches", "lacks") if kind in entry)
    name = f"{name} {kind}"
    if text is None:
        return Check(name, absent, missing)
    found = wanted in text if kind == "contains" else re.search(wanted, text) is not None
    ok = found != (kind == "lacks")
    return Check(name, ok, "" if ok else f"{wanted!r} is {'there' if found else 'not there'}")


def traps(bundle: Bundle) -> list[Check]:
    """One entry a trap of the scenario: ok means not walked into; None where only a judge can say."""
    found = []
    for trap in bundle.scenario.get("traps", ()):
        name = (CENTRAL if trap.get("central") else "trap: ") + trap["text"]
        if bundle.record is None:
            found.append(Check(name, None, "no argv record"))
        else:
            found.append(trapped(name, trap, route.subject_invocations(bundle)))
    return found


def trapped(name: str, trap: Mapping[str, Any], lines: Sequence[when.Record]) -> Check:
    """Whether these commands walked into a trap; None where only a judge can say."""
    if trap.get("when") is None:
        return Check(name, None, "for a judge to say")
    walked = when.compile_when(trap["when"])(lines)
    return Check(name, not walked, "walked into" if walked else "")
