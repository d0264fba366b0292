"""What is judged for sufficiency, and a stored trial judged: by its transcript, with the recorder's exit codes.

The rules are in graders/sufficiency.py; commands and reports share this.
"""

from pathlib import Path
from typing import Any

from graders import joined, route
from graders.bundle_view import Bundle
from graders.sufficiency import Found, measure
from graders.sufficiency_acts import Thing
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
    return told, measure(told, thing_of(subject, tool, bundle)), f"{trial.get('agent')} {trial.get('condition')}"
