"""The agents, found by name: one small file each (`printed_success.py` is `printed-success`).

A module has `SUMMARY`, `EXPECTED` (the verdicts that say it did what it is there for) and `act(bench)`, which returns
the agent's last words; or `PROGRAM`, the adapter of an agent that is a program (_program.py). `command:PROGRAM ARGS` is
an agent too. Adding an agent is adding a file. Modules whose names start with `_` are no agents.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from harness.agents._command import ANY_COMMAND, PREFIX, AnyCommand
from harness.agents._program import Program
from harness.bench import Bench
from harness.scenario import Scenario
from labd.errors import NotFound, nearest

__all__ = ["ANY_COMMAND", "ARMS", "CONTROLS", "JOURNEY", "PREFIX", "Agent", "find", "names", "select", "version_of"]

#: The arms of a comparison: the bench, and how one goes about it without.
ARMS = ("labd", "raw", "socat-log")

#: Agents that must not pass; `--agent controls` runs them all.
CONTROLS = ("noop", "printed-success", "wrong-resource", "partial", "hand-edit", "invented")

#: The agents that a journey's verifier is held against: what must pass, then what must not, in this order.
JOURNEY = ("reference", "noop", "printed-success", "wrong-resource", "partial", "tampered-artifact")

#: Controls for one kind of lane: what is only said can't be done around the tool, and what is run can't be made up.
_ONLY = {"hand-edit": ("config", "loopback", "virtual", "local"), "invented": ("stated",)}


@dataclass(frozen=True)
class Agent:
    """One way to go about a scenario. `expected`: the verdicts that it is there to get.

    `bench`: whether it finds the bench as its user left it (capture running), or none. `grader`: what grades it instead
    of the scenario's own; an arm of a comparison is graded by the same for all (graders/task.py), and plays only tasks.
    `program` is the adapter of one that is a program, which is started instead. `word` is what `--agent` says.
    """

    name: str
    summary: str
    expected: frozenset[str]
    act: Callable[[Bench], str] | None
    program: Program | None = None
    word: str = ""
    bench: bool = True
    grader: str | None = None

    @property
    def control(self) -> bool:
        """Whether it must not pass."""
        return "pass" not in self.expected

    def plays(self, scenario: Scenario) -> bool:
        """Whether there is anything for it to do in this scenario."""
        if self.name in ARMS:
            return scenario.task is not None
        if scenario.journey is not None or self.name == "tampered-artifact":
            return scenario.journey is not None and (self.name in JOURNEY or not self.control)
        return scenario.lane in _ONLY.get(self.name, (scenario.lane,))


def names() -> list[str]:
    """All agents: the reference first, then the controls, then others by name."""
    found = [info.name.replace("_", "-") for info in iter_modules(__path__) if not info.name.startswith("_")]
    order = ["reference", *CONTROLS, *ARMS]
    return sorted(found, key=lambda name: (order.index(name) if name in order else len(order), name))


def find(name: str) -> Agent:
    """The agent of that name, or of that command. Raises NotFound with near matches."""
    if name.startswith(PREFIX):
        return _of_program(AnyCommand(name.removeprefix(PREFIX)), name)
    known = names()
    if name not in known:
        near = nearest(name, [*known, "controls", "all", PREFIX])
        raise NotFound(f"no agent {name!r}", near=near, hint="labd-eval list")
    module = import_module(f"harness.agents.{name.replace('-', '_')}")
    if hasattr(module, "PROGRAM"):
        return _of_program(module.PROGRAM, name)
    arm = name in ARMS
    return Agent(name, module.SUMMARY, frozenset(module.EXPECTED), module.act, word=name,
                 bench=not arm or name == ARMS[0], grader="task" if arm else None)  # fmt: skip


def _of_program(program: Program, word: str) -> Agent:
    return Agent(program.name, program.summary, program.expected, None, program, word)


@functools.cache
def version_of(program: Program) -> str | None:
    """The version of an agent's program; it is asked once, then remembered."""
    return program.version()


def select(words: list[str]) -> list[Agent]:
    """The agents that `--agent` names; `controls` and `all` stand for several. Each once: those of `names`, in that
    order, then commands as they were given."""
    wanted: dict[str, None] = {}
    for word in words:
        group = {"controls": list(CONTROLS), "all": ["reference", *CONTROLS]}.get(word)
        wanted |= dict.fromkeys(group if group is not None else [find(word).word])
    return [find(name) for name in [*(n for n in names() if n in wanted), *(w for w in wanted if w.startswith(PREFIX))]]
