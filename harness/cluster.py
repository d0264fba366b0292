"""A run's trials on the workers of a Dask cluster (the extra `cluster`): a trial is a task, a real board a resource.

The run's directory stays here: what a worker sends back is held against its hashes, sealed and renamed like any bundle.
A worker that dies costs the trial its number: what was begun is kept as lost (`worker_lost`), and a trial of a new
number takes its place. Values of variables are never sent; workers have their own. Starts no scheduler, no worker.
"""

import contextlib
import logging
import re
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness import cluster_worker, parcel, trial
from harness.agents import Agent
from harness.agents._program import Options
from harness.pool import NotServed, PoolLost
from harness.scenario import Scenario
from harness.trial import Order
from labd.errors import LabdError, NotFound, Unreachable, Usage, nearest

#: Seconds for a scheduler to answer.
CONNECT_S = 6.0

#: Seconds for all workers to say what they are, and by how much one's last sign is older when it is named as silent.
ASK_S, SILENT_S = 60.0, 2.0

#: Seconds for which a trial waits for a worker that could take it, when there is none any more: one may be restarted.
PATIENCE_S = 30.0

#: Seconds between two looks: at whether the run was stopped, and at who is still there.
LOOK_S, COUNT_S = 0.2, 1.0

#: The most trials at once, each of which is a thread here that waits.
MOST = 256

#: What has to be the same version on all machines, or they don't understand each other.
_PARTS = ("distributed", "dask", "cloudpickle", "msgpack", "python")

_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?[^\s/:]+:\d{1,5}|(?:tcp|tls)://\[[0-9a-fA-F:]+\]:\d{1,5}")


@contextlib.contextmanager
def connected(address: str, note: Callable[[str], None]) -> Iterator["Cluster"]:
    """The cluster behind the scheduler at `address`. Raises LabdError, Usage, Unreachable."""
    if not _ADDRESS.fullmatch(address):
        raise Usage(f"--cluster {address}: no address of a scheduler", hint="labd-eval run --cluster 127.0.0.1:8786")
    if find_spec("distributed") is None:
        raise LabdError("--cluster needs Dask distributed, which is not installed", hint="pip install 'labd[cluster]'")
    import distributed

    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # what goes wrong is told by us, in a sentence
    warnings.filterwarnings("ignore", module=r"distributed(\..*)?")
    note(f"asking the scheduler at {address}")
    try:
        client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False, name="labd-eval")
    except Exception as error:  # by the kind of address: OSError, ValueError, TypeError, what the other side sent
        why = str(error).strip().splitlines() or [type(error).__name__]
        raise Unreachable(f"no scheduler answers at {address}: {why[0]}", hint=_start(address)) from error
    try:
        found = Cluster(client, address)
        try:
            yield found
        finally:
            found.close()
    finally:
        with contextlib.suppress(Exception):
            client.close(timeout=2)


def _start(address: str) -> str:
    host, _, port = address.rpartition("/")[2].rpartition(":")
    return f"dask scheduler --host {host} --port {port}"


class Cluster:
    """The workers of one scheduler, as a pool."""

    def __init__(self, client: Any, address: str) -> None:
        """Raises Unreachable where there is no worker, LabdError where the parts of Dask differ."""
        self.name = f"cluster {address}"
        self._client, self._address = client, address
        self._wanted = cluster_worker.build()
        self._claims = ["labd-eval", uuid.uuid4().hex]
        self._lock = threading.Lock()
        self._counted = 0.0
        self._known: dict[str, dict[str, Any]] = {}
        if not self._workers():
            raise Unreachable(f"the scheduler at {address} has no workers", hint=f"dask worker {address}")
        self._same_dask()

    @property
    def jobs(self) -> int:
        """The threads of all workers."""
        return max(1, min(MOST, sum(int(one["nthreads"]) for one in self._workers().values())))

    def boards(self, name: str) -> int:
        """What all workers have of it. One at least: a worker that is being restarted is waited for."""
        return max(1, int(sum(one["resources"].get(f"target:{name}", 0) for one in self._workers().values())))

    def prepare(self, scenarios: Sequence[Scenario], cast: Sequence[Agent], options: Options) -> None:
        """See that every worker is as this machine, and has what it is to give. Raises LabdError, NotFound."""
        programs = tuple(agent.word for agent in cast if agent.program is not None)
        ask = cluster_worker.Ask(scenarios[0].subject, programs, options.script, options.env)
        mine = cluster_worker.describe(ask)
        found = self._asked(lambda: self._client.run(cluster_worker.describe, ask, on_error="return"))
        for address, told in found.items():
            must_fit(self._called(address), mine, told)
        for board in dict.fromkeys(board for scenario in scenarios for board in scenario.boards):
            self._has(board)

    def conduct(self, order: Order, scenario: Scenario, agent: Agent, trials: Path, *, facts: Mapping[str, Any],
                options: Options, cancelled: Callable[[], bool], sealed: Callable[[str, str], None],
                ) -> Path | None:  # fmt: skip
        """Have a worker conduct it; see harness.pool.Pool."""
        started = time.time()
        key = f"{facts['run']}.{order.identity}.{uuid.uuid4().hex[:8]}"
        claim = [*self._claims, key]
        try:
            future = self._client.submit(
                cluster_worker.conduct, order, scenario, agent.word, options, facts, self._wanted, claim, key=key,
                pure=False, resources={f"target:{board}": 1 for board in scenario.boards} or None,
            )  # fmt: skip
        except Exception as error:
            raise self._gone(trials) from error
        try:
            answer = self._answer(future, claim, scenario, cancelled, trials)
        finally:
            self._forget(future)
        if answer is None:
            return None
        if answer.problem:
            raise _failure(answer)
        if answer.unfit:
            raise PoolLost(f"{answer.worker['name']} ({answer.worker['address']}): {answer.unfit} is not what this run "
                           "measures; what is finished is kept", hint=self._resume(trials))  # fmt: skip
        if answer.parcel is not None:
            return parcel.land(answer.parcel, trials, order.identity, sealed)
        lost = answer.begun_by or answer.worker["address"]
        detail = f"the worker {lost} was gone {time.time() - started:.1f} s after the trial was sent to it"
        return trial.lost(order, scenario, agent, trials, "worker_lost", detail, sealed=sealed, started=started,
                          facts={**facts, "worker": {"address": lost}})  # fmt: skip

    # -- one trial under way ------------------------------------------------------------------------------------------

    def _answer(self, future: Any, claim: Sequence[str], scenario: Scenario, cancelled: Callable[[], bool],
                trials: Path) -> cluster_worker.Answer | None:  # fmt: skip
        """What came of it; None if the run was stopped. Raises NotServed, PoolLost."""
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        begun_by, served = "", time.monotonic()
        while not done.wait(LOOK_S):
            if cancelled():
                return None
            begun_by = begun_by or self._begun_by(claim)
            there = self._workers()
            if begun_by and begun_by not in there and begun_by not in self._workers(0) and not done.wait(LOOK_S):
                return cluster_worker.Answer({}, begun_by=begun_by)
            if begun_by or any(_serves(one, scenario) for one in there.values()):
                served = time.monotonic()
            elif time.monotonic() - served > PATIENCE_S:
                if there:
                    raise NotServed(f"no worker with the board {', '.join(scenario.boards)} is left")
                raise PoolLost(f"no worker is left at {self._address}; what is finished is kept",
                               hint=self._resume(trials))  # fmt: skip
        if future.status == "finished":
            answer: cluster_worker.Answer = future.result()
            return answer
        if cancelled():
            return None
        if future.status == "error" and type(future.exception()).__name__ == "KilledWorker":
            return cluster_worker.Answer({}, begun_by=begun_by or "that had it")
        if future.status == "error":
            return cluster_worker.Answer({}, problem=f"{type(future.exception()).__name__}: {future.exception()}")
        raise self._gone(trials)

    def _begun_by(self, claim: Sequence[str]) -> str:
        """The address of the worker that began the task; empty while none did."""
        with contextlib.suppress(Exception):  # no scheduler: the future tells
            return str(self._client.get_metadata(list(claim), default=""))
        return ""

    def _forget(self, future: Any) -> None:
        """Take the task back, if it still runs, and let the scheduler forget it."""
        with contextlib.suppress(Exception):
            if future.status == "pending":
                future.cancel()
            else:
                future.release()

    def close(self) -> None:
        """Let the scheduler forget who began what."""
        with contextlib.suppress(Exception):
            self._client.set_metadata(self._claims, None)

    def _gone(self, trials: Path) -> PoolLost:
        return PoolLost(f"the scheduler at {self._address} is gone; what is finished is kept",
                        hint=self._resume(trials))  # fmt: skip

    def _resume(self, trials: Path) -> str:
        return f"labd-eval run --resume {trials.parent} --cluster {self._address}"

    # -- workers ------------------------------------------------------------------------------------------------------

    def _workers(self, age_s: float = COUNT_S) -> dict[str, dict[str, Any]]:
        """Address → what the scheduler knows of each worker, not older than `age_s`."""
        with self._lock:
            if time.monotonic() - self._counted > age_s:
                with contextlib.suppress(Exception):  # no scheduler: whoever waits for a trial is told
                    self._known = dict(self._client.scheduler_info(n_workers=-1)["workers"])
                self._counted = time.monotonic()
            return self._known

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """What all workers answer. Raises Unreachable, naming who does not: nobody is waited for without end."""
        found: list[Any] = []

        def wait() -> None:
            try:
                found.append(ask())
            except Exception as error:
                found.append(error)

        asking = threading.Thread(target=wait, daemon=True)
        asking.start()
        asking.join(ASK_S)
        if not found:
            seen = {address: float(one["last_seen"]) for address, one in self._workers(0).items()}
            late = [address for address, at in seen.items() if at < max(seen.values()) - SILENT_S] or list(seen)
            raise Unreachable(f"no answer within {ASK_S:g} s from {', '.join(map(self._called, late))}",
                              hint="end that worker, or start it again")  # fmt: skip
        if isinstance(found[0], Exception):
            raise Unreachable(f"the scheduler at {self._address} does not answer: {found[0]}") from found[0]
        return found[0]

    def _called(self, address: str) -> str:
        return f"the worker {self._known.get(address, {}).get('name', '')} ({address})"

    def _same_dask(self) -> None:
        """Raises LabdError where two of us, the scheduler and the workers have different versions."""
        found = self._asked(self._client.get_versions)
        mine = found["client"]["packages"]
        others = {f"the scheduler at {self._address}": found["scheduler"]}
        others |= {self._called(address): told for address, told in found["workers"].items()}
        for who, part in ((who, part) for who in others for part in _PARTS):
            theirs, ours = others[who]["packages"].get(part), mine.get(part)
            if theirs != ours:
                hint = f"pip install '{part}=={ours}'" if part != "python" else "use the same Python on all machines"
                raise LabdError(f"{who} has {part} {theirs}, this machine {ours}: they have to be the same", hint=hint)

    def _has(self, board: str) -> None:
        """Raises NotFound, telling what each worker has, where none has that board."""
        there = self._workers().values()
        if any(one["resources"].get(f"target:{board}", 0) >= 1 for one in there):
            return
        known = sorted({name.removeprefix("target:") for one in there for name in one["resources"]})
        told = "; ".join(f"{one['name']}: {', '.join(sorted(one['resources'])) or 'none'}" for one in there)
        raise NotFound(f"no worker at {self._address} has the board {board} ({told})", near=nearest(board, known),
                       hint=f'dask worker {self._address} --resources "target:{board}=1"')  # fmt: skip


def must_fit(who: str, mine: cluster_worker.Told, told: Any) -> None:
    """Raises LabdError where a worker is not as this machine, or lacks a variable."""
    if isinstance(told, Exception) and "ModuleNotFoundError" in repr(told):  # Dask may wrap it as text
        raise LabdError(f"{who} has no labd-eval: {told}", hint="pip install 'labd[cluster]', and start it again")
    if isinstance(told, Exception):
        raise LabdError(f"{who} does not say what it is: {type(told).__name__}: {told}", hint="start it again")
    for name, wanted in mine.same.items():
        found = told.same.get(name)
        if found is None and wanted is not None:
            has = "has not" if name.startswith("the ") else "has no"
            raise LabdError(f"{who} {has} {name}", hint="install it there, and start the worker again")
        if found != wanted:
            shown = ", ".join(str(value)[:12] for value in (found, wanted))
            raise LabdError(
                f"{who} and this machine differ in {name} ({shown}): their trials would not be comparable",
                hint="install the same there, and start the worker again",
            )
    if told.lacks:
        raise LabdError(f"{who} has no variable {told.lacks[0]}; its value is not sent",
                        hint=f"start that worker with {told.lacks[0]} in its environment")  # fmt: skip


def _serves(worker: Mapping[str, Any], scenario: Scenario) -> bool:
    return all(worker["resources"].get(f"target:{board}", 0) >= 1 for board in scenario.boards)


def _failure(answer: cluster_worker.Answer) -> Exception:
    """Why a trial could not be conducted, as it would have been raised here."""
    who = f"on {answer.worker.get('name', 'a worker')}: {answer.problem}"
    return RuntimeError(who) if answer.errno is None else OSError(answer.errno, who)
