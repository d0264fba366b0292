"""The agents, found by name: one small file each (`printed_success.py` is `printed-success`).

A module has `SUMMARY`, `EXPECTED` (the verdicts that say it did what it is there for) and `act(bench)`, which returns
the agent's last words. Adding an agent is adding a file. Modules whose names start with `_` are no agents.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from harness.bench import Bench
from labd.errors import NotFound, nearest

#: Agents that must not pass; `--agent controls` runs them all.
CONTROLS = ("noop", "printed-success", "wrong-resource", "partial", "hand-edit")


@dataclass(frozen=True)
class Agent:
    """One way to go about a scenario. `expected`: the verdicts that it is there to get."""

    name: str
    summary: str
    expected: frozenset[str]
    act: Callable[[Bench], str]

    @property
    def control(self) -> bool:
        """Whether it must not pass."""
        return "pass" not in self.expected


def names() -> list[str]:
    """All agents: the reference first, then the controls, then others by name."""
    found = [info.name.replace("_", "-") for info in iter_modules(__path__) if not info.name.startswith("_")]
    order = ["reference", *CONTROLS]
    return sorted(found, key=lambda name: (order.index(name) if name in order else len(order), name))


def find(name: str) -> Agent:
    """The agent of that name. Raises NotFound with near matches."""
    known = names()
    if name not in known:
        raise NotFound(f"no agent {name!r}", near=nearest(name, [*known, "controls", "all"]), hint="labd-eval list")
    module = import_module(f"harness.agents.{name.replace('-', '_')}")
    return Agent(name, module.SUMMARY, frozenset(module.EXPECTED), module.act)


def select(words: list[str]) -> list[Agent]:
    """The agents that `--agent` names; `controls` and `all` stand for several. Each once, in the order of `names`."""
    wanted: set[str] = set()
    for word in words:
        group = {"controls": list(CONTROLS), "all": ["reference", *CONTROLS]}.get(word)
        wanted |= set(group if group is not None else [find(word).name])
    return [find(name) for name in names() if name in wanted]
