"""Did the trial go through the bench's door? The lab may change only by recorded invocations of the sandbox's program.

Three ways around it, each with its own words in the verdict: a hand edit (bytes that no recorded command wrote, or a
command that met other bytes than the last one left), an absolute path to another installed program, a copied
binary. Pure function of a bundle.
"""

import hashlib
import posixpath
from collections.abc import Sequence
from typing import Any

from graders import witness
from graders.argv_records import Invocation
from graders.bundle_view import Bundle
from graders.verdict import Check


def check(bundle: Bundle) -> list[Check]:
    """The checks of the route, in a fixed order."""
    record = bundle.record
    if record is None:
        names = ("record whole", "program", "lab route")
        return [Check(name, None, "the trial left no argv record") for name in names] + witness.check(bundle)
    whole = Check("record whole", None if record.torn else True, "; ".join(record.torn[:3]))
    checks = [whole, program(bundle.trial, record.invocations), lab_route(bundle, record.ends)]
    if bundle.trial.get("condition") == "mcp":
        checks.append(by_tools(record.invocations))
    return checks + witness.check(bundle)


def subject_invocations(bundle: Bundle) -> list[Invocation]:
    """The recorded invocations of the subject's program, whatever path it was started by; others are left out."""
    record = bundle.record
    name = subject(bundle.trial)
    return [one for one in record.invocations if posixpath.basename(_first(one)) == name] if record else []


def subject(trial: dict[str, Any]) -> str:
    """The name of the program under test."""
    return str(trial.get("subject") or "labd")


def _first(one: Invocation) -> str:
    return one.argv[0] if one.argv else ""


def program(trial: dict[str, Any], invocations: Sequence[Invocation]) -> Check:
    """Whether every invocation was of the sandbox's own program."""
    allowed, installed = _route(trial)
    if not allowed:
        return Check("program", None, "trial.json does not say which program the sandbox offered")
    if isinstance(trial.get("route"), dict) and trial["route"].get("kept") is False:
        return Check("program", False, "replaced: what the sandbox offered as the program is not what it offers now")
    for one in invocations:
        used = str(one.start.get("program") or "")
        if one.start.get("face") == "recorder" and posixpath.basename(_first(one)) != subject(trial):
            continue
        if used in installed and used not in allowed:
            return Check("program", False, f"absolute path: {one} was run as {used}, around the sandbox's program")
        if used not in allowed:
            return Check("program", False, f"copied binary: {one} was run as {used or 'an unknown program'}")
    return Check("program", True, f"{len(invocations)} invocations, all of the sandbox's program")


def by_tools(invocations: Sequence[Invocation]) -> Check:
    """Whether every invocation came through the MCP server, where that is the way that was given."""
    typed = [one for one in invocations if one.start.get("face") not in ("mcp", "recorder")]
    if typed:
        return Check("by tools", False, f"typed: {typed[0]} did not come through the MCP server")
    return Check("by tools", True, f"{len(invocations)} invocations, all through the MCP server")


def _route(trial: dict[str, Any]) -> tuple[set[str], set[str]]:
    """(the sandbox's program, by all its names; the installed programs that it stands for)."""
    route = trial.get("route")
    if isinstance(route, str):
        return {route}, set()
    if not isinstance(route, dict):
        return set(), set()
    return _set(route.get("program")), _set(route.get("installed"))


def _set(value: Any) -> set[str]:
    values = value if isinstance(value, list) else [value]
    return {str(item) for item in values if item}


def digest(data: bytes | None) -> str | None:
    """What labd records of a lab's bytes: their SHA-256 in hex; None for no lab."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def lab_route(bundle: Bundle, ends: Sequence[Invocation]) -> Check:
    """Whether recorded edits lead, one from the other, from the seed's bytes to the final bytes.

    Ends are tried in the order in which they were written; two commands at once may have written theirs in the other
    order, so a later one may be taken first if it fits.
    """
    here, final = digest(bundle.lab_before), digest(bundle.lab_after)
    left = [one for one in ends if _changed(one) and this_lab(bundle.trial, one)]
    steps = len(left)
    while left:
        fitting = next((one for one in left if _digest(one, "lab_before") == here), None)
        if fitting is None:
            break
        here = _digest(fitting, "lab_after")
        left.remove(fitting)
    if left:
        return Check("lab route", False, f"hand edit: {left[0]} met a lab that no recorded command had left")
    if here != final:
        return Check("lab route", False, "hand edit: the lab ends with bytes that no recorded command wrote")
    return Check("lab route", True, f"{steps} recorded edits lead from the seed to the end")


def _changed(one: Invocation) -> bool:
    return bool(one.end) and _digest(one, "lab_before") != _digest(one, "lab_after")


def _digest(one: Invocation, name: str) -> str | None:
    return (one.end or {}).get(name)


def this_lab(trial: dict[str, Any], one: Invocation) -> bool:
    """Whether the invocation was about the sandbox's lab; edits of another file are not links of this chain."""
    lab = trial.get("lab") or (trial.get("values") or {}).get("lab")
    named = one.start.get("lab")
    return not lab or not named or named == lab
