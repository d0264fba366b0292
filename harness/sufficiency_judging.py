"""What is judged for sufficiency, and a stored trial judged: by its transcript, with the recorder's exit codes.

The rules are in graders/sufficiency.py; commands and reports share this.
"""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graders import joined, route
from graders.bundle_view import Bundle
from graders.sufficiency import Found, measure
from graders.sufficiency_acts import Thing
from harness import mcp_condition
from harness import subject as subjects


def thing_of(subject: str | None, tool: str | None, bundle: Bundle | None = None) -> Thing:
    """What to judge: a tool, a program that is one of our subjects, or any program."""
    if tool:
        return Thing(tool=tool)
    name = subject or (route.subject(bundle.trial) if bundle else subjects.DEFAULT)
    if name not in subjects.names():
        return Thing(program=name)
    known = subjects.load(name)
    paths = {*known.safe, *known.unsafe}
    surface = (bundle.surface if bundle else None) or {}
    table = [one for one in surface.get("commands", ()) if isinstance(one, dict)]
    paths |= {str(one.get("path")) for one in table}
    writes = {str(one.get("path")) for one in table if one.get("effect") not in (None, "observe", "help")}
    return Thing(program=known.program, commands=frozenset(tuple(path.split()) for path in paths),
                 writes=frozenset(tuple(path.split()) for path in writes),
                 programs=frozenset(known.around_programs), files=known.around_files,
                 skills=frozenset(known.skills))  # fmt: skip


def as_typed(told: dict[str, Any], name: str, program: str) -> dict[str, Any]:
    """The transcript with calls of the tools of the subject's own MCP server as the commands that they run."""
    named = re.compile(rf"(?:^|_|\.){re.escape(name)}_[a-z]+$")  # each product puts its own before it
    calls = [_typed(call, program) if named.search(str(call.get("tool"))) else call for call in told["calls"]]
    return {**told, "calls": calls}


def _typed(call: Mapping[str, Any], program: str) -> Mapping[str, Any]:
    """The call as a shell's; as it is where it runs nothing, like the one for the rest of an answer."""
    given = call.get("input")
    line = given.get("command", given.get("about")) if isinstance(given, dict) else None
    if call.get("kind") == "shell" or not isinstance(line, str):
        return call
    if "command" not in given:
        line = f"{shlex.join(line.split())} --help"
    return {**call, "kind": "shell", "command": line if line.split()[:1] == [program] else f"{program} {line}"}


def judged_bundle(place: Path, subject: str | None = None, tool: str | None = None
                  ) -> tuple[dict[str, Any], Found, str] | None:  # fmt: skip
    """(transcript, what is found, `agent condition`) of a stored trial; None where it has no transcript.

    The recorder's exit codes count, where it saw them. Raises BundleError.
    """
    bundle = Bundle(place)
    told = bundle.transcript
    if told is None:
        return None
    found = joined.join(told, route.subject_invocations(bundle), route.subject(bundle.trial))
    told = joined.confirmed(told, found)
    trial = bundle.trial
    thing = thing_of(subject, tool, bundle)
    served = thing.program and trial.get("condition") == mcp_condition.NAME
    seen = as_typed(told, subject or route.subject(trial), thing.program) if served else told
    return told, measure(seen, thing), f"{trial.get('agent')} {trial.get('condition')}"
