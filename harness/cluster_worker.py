"""What runs on a worker of a cluster: telling what it is, and conducting one trial, once.

A scheduler starts a task again when the worker that ran it is gone. A trial is not to be run again under its own
number, so each takes a claim with the scheduler before it begins, and who finds one says so instead. `dask worker
--preload harness.cluster_worker` also ends, as it starts, what a killed worker of this machine has left.
"""

import os
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import agents, data, files, sandbox, trial
from harness import subject as subjects
from harness.agents._program import Options
from harness.parcel import Parcel, pack
from harness.scenario import Scenario, scenarios_dir
from harness.trial import Order


@dataclass(frozen=True)
class Ask:
    """What has to be the same everywhere. `agents` are words for programs, `env` names of variables that they get."""

    subject: str
    agents: tuple[str, ...] = ()
    script: str | None = None
    env: tuple[str, ...] = ()


@dataclass(frozen=True)
class Told:
    """What a machine has. `same` is held against the caller's, by what it is; `lacks` are variables that it has not."""

    same: Mapping[str, str | None]
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """How a trial went there: a bundle; or somebody had begun it before (`begun_by`); or it could not be written
    (`problem`, `errno`); or the worker's code is not what the run asked for (`unfit`). None of these: it was ended
    because the worker was.
    """

    worker: Mapping[str, str]
    parcel: Parcel | None = None
    begun_by: str = ""
    problem: str = ""
    errno: int | None = None
    unfit: str = ""


def build() -> dict[str, str]:
    """The code that this process runs: what makes trials comparable."""
    versions = data.versions()
    return {"labd": versions["labd"], "Python": versions["python"]} | {
        f"the code of {name}" if name != "fixtures" else name: digest for name, digest in data.hashes().items()
    }


def describe(ask: Ask) -> Told:
    """What this machine is. Ends what a killed worker has left on it, too."""
    sandbox.reap_abandoned()
    examined = subjects.load(ask.subject)
    program = examined.find()
    same: dict[str, str | None] = {**build(), examined.program: program and "there"}
    same[f"the scenarios of {ask.subject}"] = files.tree_digest(scenarios_dir(ask.subject))
    if program and not examined.beside_python:  # of what stands beside this Python the code is known already
        same[examined.program] = examined.kind.build(program)
    for word in ask.agents:
        found = agents.find(word).program
        same[word] = agents.version_of(found) if found else None
    if ask.script not in (None, "reference"):
        same[f"the script {ask.script}"] = _digest(Path(str(ask.script)))
    return Told(same, tuple(name for name in ask.env if name not in os.environ))


def _digest(path: Path) -> str | None:
    try:
        return files.file_digest(path)
    except OSError:
        return None


def conduct(order: Order, scenario: Scenario, word: str, options: Options, facts: Mapping[str, Any],
            wanted: Mapping[str, str], claim: Sequence[str]) -> Answer:  # fmt: skip
    """Conduct the trial, as the task that this is, unless there is a `claim` to it. Whatever goes wrong is an answer:
    nothing is raised."""
    from distributed import get_worker

    worker = get_worker()
    me = {"name": str(worker.name), "address": str(worker.address), "host": socket.gethostname()}
    changed = [name for name, value in build().items() if wanted.get(name) != value]
    if changed:
        return Answer(me, unfit=changed[0])
    before = _claim(claim, me["address"])
    if before:
        return Answer(me, begun_by=before)
    sandbox.reap_abandoned()  # a killed worker's trial may still hold the board
    facts = {**facts, "versions": data.versions(), "worker": me}
    try:
        with tempfile.TemporaryDirectory(prefix="labd-trial-") as place:
            made = trial.conduct(order, scenario, agents.find(word), Path(place), facts=facts, options=options,
                                 cancelled=_cancelled(worker))  # fmt: skip
            return Answer(me, pack(made) if made is not None else None)
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        return Answer(me, problem=f"{type(error).__name__}: {error}", errno=number)


def _claim(place: Sequence[str], address: str) -> str:
    """Begin it: the address of who did so before, else empty, and nobody else will. The scheduler keeps
    it at `place`."""
    from distributed import get_client

    client = get_client()
    before = str(client.get_metadata(list(place), default=""))
    if not before:
        client.set_metadata(list(place), address)
    return before


def _cancelled(worker: Any) -> Callable[[], bool]:
    """Whether nobody waits for this task any more: it was taken back, its client is gone, or the scheduler is."""
    key = worker.get_current_task()

    def asked() -> bool:
        task = worker.state.tasks.get(key)
        gone = worker.status.name in ("closing", "closed", "failed")
        return gone or task is None or task.state != "executing"

    return asked


def dask_setup(worker: Any) -> None:
    """What `--preload` calls."""
    sandbox.reap_abandoned()
