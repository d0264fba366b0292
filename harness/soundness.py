"""Is the exam itself fit to be run? What `check` says at length and `run` asks before its first trial.

The part that needs nothing but the files is asked always. The part that asks the installed program is asked once for
one build of it and one set of scenarios within a run: `key` names the two. Starts the program only to ask it about
itself (harness/surface.py).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from graders import drift
from harness import data, files, surface
from harness.scenario import Scenario, lint

#: Questions to the program at once: each is a process that mostly waits for its own start.
AT_ONCE = 4


def static(chosen: Sequence[Scenario]) -> list[str]:
    """What is wrong with the scenarios by themselves. Loading them has already found what the files say."""
    return [problem for one in chosen for problem in lint(one)]


def live(chosen: Sequence[Scenario], *, whole: bool = False) -> list[str]:
    """What of the scenarios no longer fits the installed program; `whole`: also its help and the allowlist.

    Nothing is wrong where no program is installed: then trials are blocked, each by itself.
    """
    if data.subject_program() is None:
        return []
    with surface.live() as ask, ThreadPoolExecutor(AT_ONCE) as pool:
        questions = drift.questions(chosen)
        answers = dict(zip(map(tuple, questions), pool.map(ask, questions), strict=True))
        return (drift.check if whole else drift.fit)(chosen, lambda words: answers.get(tuple(words)) or ask(words))


def key(chosen: Sequence[Scenario]) -> str:
    """A digest of all that the answer of `live` depends on."""
    from harness.run import fingerprint

    parts = [data.hashes().get("labd"), data.hashes().get("graders"), *(fingerprint(one) for one in chosen)]
    return files.digest(files.canonical([data.subject_program(), *parts]))
