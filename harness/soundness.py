"""Is the exam itself fit to be run? What `check` says at length and `run` asks before its first trial.

The part that needs nothing but the files is asked always. The part that asks the installed program is asked once for
one build of it and one set of scenarios within a run: `key` names the two. Starts the program only to ask it about
itself (harness/surface.py).
"""

from collections.abc import Sequence
from itertools import groupby

from harness import classifying, data, files, surface
from harness import subject as subjects
from harness.scenario import Scenario, lint
from labd.errors import LabdError


def static(chosen: Sequence[Scenario]) -> list[str]:
    """What is wrong with the scenarios by themselves. Loading them has already found what the files say."""
    return [problem for one in chosen for problem in lint(one)]


def live(chosen: Sequence[Scenario], *, whole: bool = False) -> list[str]:
    """What of the scenarios no longer fits the installed program; `whole`: also its help, the allowlist and its signs.

    Nothing is wrong where no program is installed: then trials are blocked, each by itself.
    """
    found: list[str] = []
    for name, group in groupby(sorted(chosen, key=_subject), key=_subject):
        examined = subjects.load(name)
        found += _signs(name) if whole else []
        if examined.find() is not None:
            with surface.live(name) as ask:
                found += examined.kind.problems(list(group), ask, whole=whole)
    return found


def _signs(name: str) -> list[str]:
    """What is wrong with the file that says how the subject's answers look."""
    try:
        classifying.signs_of(name)
    except LabdError as error:
        return error.message.split("\n")
    return []


def _subject(one: Scenario) -> str:
    return one.subject


def key(chosen: Sequence[Scenario]) -> str:
    """A digest of all that the answer of `live` depends on."""
    from harness.run import fingerprint

    programs = [subjects.load(name).find() for name in sorted({one.subject for one in chosen})]
    parts = [data.hashes().get("labd"), data.hashes().get("graders"), *(fingerprint(one) for one in chosen)]
    return files.digest(files.canonical([*programs, *parts]))
