"""What went wrong in an attempt, as instructions for a fix: what was run, what came, what proves what, what is missing.

Pure function of a record. Everything that is said stands in the record; what agents and programs said is put on one
line and cut, and nothing of it can pass for a line of ours.
"""

import re
import shlex
from collections.abc import Iterator

from graders.contract import CLASSES, SUBTYPES, AgentSide, Call, Record

#: Class or kind of class C → the property of a command line that its failure shows to be missing.
MISSING = {
    "A": "name the fix, and one that works, not only the problem",
    "B": "nothing: the program said how to go on",
    "c-vocabulary": "never return nothing without saying why: name the values that exist",
    "c-wrong-column": "where a value exists in another field, say in which",
    "c-wrong-type": "where the data is under another verb or type, say under which",
    "c-dropped-input": "never drop a part of the question silently: use it or refuse it",
    "c-truncated": "never cut an answer off silently: say that there is more, and how to get it",
    "c-wrong-entity": "say what was resolved, not only that something was",
    "c-unknown": "never return nothing without saying why",
    "D": "tell of progress, and offer a way that does not take that long",
    "E": "nothing: not the program's doing",
    "F": "nothing that this call shows: a hint that was given and not heeded is told below",
}
#: Characters of an output's beginning, and of a probe's result, that are quoted.
_QUOTED, _RESULT = 200, 400
#: How evidence names the nearest value (graders/probe_read.py).
_NEAREST = re.compile(r"\bnearest(?: real value)?:? ([^;\n]+)")


def explain(record: Record) -> str:
    """All failures of an attempt and the hints that were ignored, with a final newline; empty if there is nothing."""
    program = program_of(record)
    parts = [explain_call(one, number, program) for number, one in enumerate(record.calls, 1) if one.cls]
    parts += [explain_hint(one) for one in record.agent_side]
    return "".join(f"{part}\n" for part in parts)


def program_of(record: Record) -> str:
    """The name of the program under test, as far as the record tells it."""
    name = record.subject.get("name")
    return name if isinstance(name, str) and name else "PROGRAM"


def explain_call(call: Call, number: int, program: str) -> str:
    """One failure, in lines. `number` is the call's place, from 1. Raises ValueError for a call without fault."""
    if call.cls is None:
        raise ValueError(f"call {number} has no fault to explain")
    return "\n".join([heading(call), *(f"  {line}" for line in _lines(call, number, program))])


def heading(call: Call) -> str:
    """Class and kind in words."""
    kind = f": {call.subtype} ({SUBTYPES[call.subtype]})" if call.subtype else ""
    return f"CLASS {call.cls} ({CLASSES[call.cls or '']}){kind}"


def _lines(call: Call, number: int, program: str) -> Iterator[str]:
    yield f"Call {number}, the agent ran: {command(call, program)}"
    yield f"Result: {_result(call)}"
    if call.evidence and not any(one.conclusive and one.result == call.evidence for one in call.probes):
        yield f"Evidence: {one_line(call.evidence, _RESULT)}"
    yield from _probes(call, program)
    if value := nearest(call):
        yield f"Nearest real value: {one_line(value, _QUOTED)}"
    yield knew(call)
    yield f"Missing: {MISSING[call.subtype or call.cls or '']}."


def _probes(call: Call, program: str) -> Iterator[str]:
    """The probes that prove something; where none does, all of them. The record has each."""
    proofs = [one for one in call.probes if one.conclusive]
    for probe in proofs or call.probes:
        ran = f"{program} {one_line(probe.ran, _RESULT)}" if probe.ran else "nothing was run"
        open_ = "" if probe.conclusive else " (inconclusive)"
        yield f"Probe {probe.kind}: {ran} → {one_line(probe.result, _RESULT)}{open_}"
    if others := [one.kind for one in call.probes if proofs and not one.conclusive]:
        yield f"Probes that proved nothing: {', '.join(others)}"


def command(call: Call, program: str) -> str:
    """The exact command, quoted for a shell; control characters are escaped, so that it stays one line."""
    return one_line(shlex.join([program, *call.argv]), None)


def _result(call: Call) -> str:
    out = f"printed {one_line(call.stdout_head, _QUOTED)}" if call.stdout_head.strip() else "nothing on stdout"
    code = "exit unknown" if call.exit_code is None else f"exit {call.exit_code}"
    err = f"on stderr {one_line(call.stderr_head, _QUOTED)}" if call.stderr_head.strip() else "nothing on stderr"
    took = "" if call.duration_s is None else f", {call.duration_s:.2f} s"
    return f"{out}, {code}, {err}{took}."


def knew(call: Call) -> str:
    """Whether the program had the information that the agent was missing, by what is proven."""
    if call.cls == "E":
        return "The tool had not the information: what it depends on failed."
    if call.cls in ("B", "F"):
        return "The tool had the information, and said it."
    if call.cls == "D":
        return "The tool had the information, and gave it in a way that nobody can use."
    if any(one.conclusive for one in call.probes):
        return "The tool had the information needed to say this, and did not."
    if asked := sum(bool(one.ran) for one in call.probes):
        return f"The tool had not the information, as far as {asked} probes of it could find."
    return "Whether the tool had the information is not known: no probe of it was run."


def nearest(call: Call) -> str:
    """The real value nearest to the one that was asked for, where a probe found one; else an empty text."""
    for text in (*(one.result for one in call.probes if one.conclusive), call.evidence):
        found = _NEAREST.search(text)
        if found:
            return found[1]
    return ""


def explain_hint(side: AgentSide) -> str:
    """One thing that the agent did with what it was told; never charged to the program."""
    return f"AGENT ({side.kind}), not charged\n  Call {side.at_call + 1}: {one_line(side.detail, _RESULT)}."


def one_line(text: str, most: int | None) -> str:
    """Text on one line with nothing that a terminal would act on, cut to `most` characters."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text.strip())
    return shown if most is None or len(shown) <= most else f"{shown[:most]}… ({len(text)} characters)"
