"""Where the trials of a run are conducted: in this process, or on a cluster (harness/cluster.py). The choice between
them is made once, behind one small interface; harness/run.py knows neither.

A pool conducts what it is given and says where the bundle lies. It decides nothing about order, replacements, verdicts.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from harness import trial
from harness.agents import Agent
from harness.agents._program import Options
from harness.scenario import Scenario
from harness.trial import Order
from labd.errors import LabdError, Unreachable


class PoolLost(Unreachable):
    """Nobody is left who could conduct trials. What is finished is kept; the run can be gone on with."""


class NotServed(LabdError):
    """Nobody took this one trial: it has not begun, and can be run later."""


class Pool(Protocol):
    """One place for trials. `conduct` is called from several threads at once, a call a trial."""

    @property
    def name(self) -> str:
        """What the run's log says."""

    @property
    def jobs(self) -> int:
        """How many trials fit in it at once."""

    def boards(self, name: str) -> int:
        """How many real boards of that name it has: as many trials of that board may run at once."""

    def prepare(self, scenarios: Sequence[Scenario], cast: Sequence[Agent], options: Options) -> None:
        """See that it can conduct all of them. Raises LabdError, naming what is missing where, before anything runs."""

    def conduct(self, order: Order, scenario: Scenario, agent: Agent, trials: Path, *, facts: Mapping[str, Any],
                options: Options, cancelled: Callable[[], bool], sealed: Callable[[str, str], None],
                ) -> Path | None:  # fmt: skip
        """Conduct the trial; its bundle's directory, in place under `trials`, or None if it was interrupted.

        Raises NotServed, PoolLost, and OSError if the bundle can't be written.
        """


class Here:
    """This process. A real board that a scenario names is the one on this machine."""

    name = "this process"

    @property
    def jobs(self) -> int:
        """As many as there are processors, at most eight: a trial mostly waits."""
        usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 2
        return max(2, min(8, usable))

    def boards(self, name: str) -> int:
        """One of each."""
        return 1

    def prepare(self, scenarios: Sequence[Scenario], cast: Sequence[Agent], options: Options) -> None:
        """Nothing: what is missing here ends a trial as blocked, and says so."""

    conduct = staticmethod(trial.conduct)


@contextlib.contextmanager
def at(address: str | None, note: Callable[[str], None]) -> Iterator[Pool]:
    """The pool at a scheduler's address; this process if there is none. Raises LabdError."""
    if address is None:
        yield Here()
        return
    from harness import cluster  # the extra `cluster`: only who names a scheduler pays for it

    with cluster.connected(address, note) as found:
        yield found
