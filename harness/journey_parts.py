"""What a journey is made of, as frozen values: its stages, its planted fault. Loaded by harness/journeys.py.

A journey is one job that people do with a program, in three scenarios: normal, ambiguous (more of the same kind around
it), recovery (something is broken first). Each scenario is an ordinary one that knows the job it belongs to.
"""

from dataclasses import dataclass

#: The three scenarios of a job, in this order. The fault is planted in the last alone.
VARIANTS = ("normal", "ambiguous", "recovery")

#: The stages of a journey, in order.
STAGES = ("discover", "preview", "apply", "verify", "replay", "recover")

#: What `reached` may say instead of a predicate over the recorded commands.
CHANGED, REPLAYED = "changed", "replayed"

#: What `right` may say: what the harness's digests show around those commands, the end state, the answer, a second run.
RIGHT = ("unchanged", "end state", "answered", "same", "repaired")


@dataclass(frozen=True)
class Stage:
    """One stage, and the evidence for it.

    `reached`: a predicate (graders/when.py) that one recorded command has to satisfy, or `changed` (the state differs
    from the start), or `replayed`. `right`: a word of RIGHT. `run`: of `replay` alone, the lines that the harness runs
    once more after the agent.
    """

    name: str
    shows: str
    reached: str
    right: str
    run: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fault:
    """What is planted in the recovery scenario. `seed`: a file under fixtures/ that is put behind the seed; `gone`: the
    paths whose assertions say that nothing of it is left."""

    text: str
    seed: str | None
    gone: tuple[str, ...]


@dataclass(frozen=True)
class Journey:
    """Which job and which of its three scenarios one is."""

    job: str
    title: str
    group: str
    variant: str
    stages: tuple[Stage, ...]
    fault: Fault | None = None
    reviewed: str = ""
