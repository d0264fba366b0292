"""A run: many trials, side by side, into a directory of its own; it can be stopped at any time and gone on with.

Owns the run's directory: run.json (what is to be run, with which versions; written once), trials/ (a bundle a
finished trial, renamed into place), log.jsonl (what happened when). A trial is finished when its bundle is there;
nothing else remembers. Trials run in threads: each only waits for processes of its own, which end with it.
"""

import errno
import fcntl
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graders.verdict import Verdict
from harness import agents, data, files, grading, plan, sandbox, surface
from harness import pool as pools
from harness import subject as subjects
from harness.agents._program import Options
from harness.causes import as_expected
from harness.program_trial import options_of
from harness.scenario import Scenario
from harness.trial import Order
from labd.errors import Busy, LabdError, NotFound, nearest

SCHEMA = "labd-run/2"

#: Runs whose reports can still be read; they are not gone on with.
_OLDER = ("labd-run/1",)

#: What is meant by a full disk.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)

#: Seconds without news after which it is said what still runs.
QUIET_S = 2.0


class Run:
    """One run's directory, held by this process (a lock) from `create` or `resume` until `close`."""

    def __init__(self, directory: Path, manifest: dict[str, Any]) -> None:
        self.directory = directory
        self.manifest = manifest
        self.trials = directory / "trials"
        self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise Busy(f"{directory} is being run by another process", hint="wait for it, or stop it") from None
        _end_last_line(directory / "log.jsonl")
        for partial in self.trials.glob(".partial-*"):  # of a process that was killed: we hold the lock
            sandbox.remove(partial)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another process have it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    @property
    def orders(self) -> list[Order]:
        """All trials of the run, in order, and those in place of lost ones."""
        return plan.orders(self.manifest, self.cause)

    def cause(self, order: Order) -> str | None:
        """What ended a finished trial; None if it isn't finished."""
        return plan.cause_of(self.directory, order)

    def finished(self, order: Order) -> bool:
        """Whether the trial has its bundle. One that was damaged since is finished too: it is not tried again."""
        return (self.trials / order.identity).is_dir()

    @property
    def spent(self) -> float:
        """What its finished trials cost, lost ones too (US dollars), as far as their transcripts tell."""
        return round(sum(map(_cost, self.trials.glob("*/transcript.json"))), 6)

    @property
    def spent_up(self) -> bool:
        """Whether that is all that may be spent."""
        cap = self.manifest.get("spend_usd")
        return cap is not None and self.spent >= cap

    def seal(self, identity: str, digest: str) -> None:
        """Bind the bundle that is about to be put in place: the SHA-256 of its trial.json, which binds the rest."""
        self.log("sealed", id=identity, sha256=digest)

    def log(self, event: str, **fields: Any) -> None:
        """One line in log.jsonl."""
        line = json.dumps({"t": round(time.time(), 3), "event": event, **fields}, sort_keys=True)
        with (self.directory / "log.jsonl").open("a") as file:
            file.write(line + "\n")


def _cost(transcript: Path) -> float:
    """What a transcript tells to have cost (US dollars); 0 where it tells nothing."""
    try:
        told = files.read_json(transcript)["usage"]["cost_usd"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
    return float(told) if isinstance(told, int | float) and told > 0 else 0.0


def _end_last_line(path: Path) -> None:
    """A log that a killed process left in the middle of a line gets that line's end."""
    if path.is_file() and path.stat().st_size and not path.read_bytes().endswith(b"\n"):
        with path.open("a") as file:
            file.write("\n")


def create(out: Path, scenarios: Sequence[Scenario], cast: Sequence[agents.Agent], *,
           conditions: Sequence[str] = ("cold",), trials: int = 1, seed: int | None = None,
           replacements: int | None = None, words: Sequence[str] = (), checked: str = "",
           options: Options | None = None, name: str | None = None,
           journeys: Mapping[str, Any] | None = None, spend_usd: float | None = None) -> Run:  # fmt: skip
    """A new run in a new directory under `out` (of that `name`): `trials` trials of each scenario by each agent.

    `seed` draws their order; None keeps it. At most `replacements` trials a cell (as many as `trials`, if not given)
    take the place of lost ones. `options` are for agents that are programs. A scenario that knows none of the
    `conditions` is left out. `journeys`: what of the scenarios is of which job (harness/journeys.py), kept as it is.
    Nothing more is begun once the trials together have cost `spend_usd` US dollars.
    """
    fitting = [scenario for scenario in scenarios if set(conditions) & set(scenario.conditions)]
    if not fitting or not cast:
        raise LabdError(f"nothing to run: no scenario is for {', '.join(conditions)}", hint="labd-eval list")
    orders = plan.draw(cast, fitting, conditions, trials, seed)
    directory = _new_directory(out, cast) if name is None else out / name
    directory.mkdir(exist_ok=name is None)
    (directory / "trials").mkdir()
    manifest = {
        "schema": SCHEMA,
        "id": directory.name,
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "subject": fitting[0].subject,
        "words": list(words),
        "checked": checked,
        "agents": {agent.name: {"expected": sorted(agent.expected), "summary": agent.summary, "word": agent.word}
                   for agent in cast},
        "options": asdict(options or Options()),
        "scenarios": {scenario.id: {"title": scenario.title, "lane": scenario.lane, "sha256": fingerprint(scenario)}
                      for scenario in fitting},
        "order": {"agent": [agent.name for agent in cast], "scenario": [scenario.id for scenario in fitting],
                  "condition": list(conditions)},
        "trials": trials,
        "seed": seed,
        "replacements": trials if replacements is None else replacements,
        "orders": [asdict(order) for order in orders],
        "versions": data.versions(),
        "hashes": data.hashes(),
        **({"journeys": dict(journeys)} if journeys else {}),
        **({"spend_usd": spend_usd} if spend_usd is not None else {}),
    }  # fmt: skip
    files.write_json(directory / "run.json", manifest)
    return Run(directory, manifest)


_GROUPS = {agents.CONTROLS: "controls", agents.ARMS: "versus", agents.JOURNEY: "journey-controls"}


def _new_directory(out: Path, cast: Sequence[agents.Agent]) -> Path:
    """`OUT/<UTC time>-<agent>-<n>`: the first n that nobody has."""
    names = [agent.name for agent in cast]
    who = names[0] if len(names) == 1 else _GROUPS.get(tuple(names), "all")
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    out.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        directory = out / f"{stamp}-{who}-{number}"
        try:
            directory.mkdir()
            return directory
        except FileExistsError:
            number += 1


def fingerprint(scenario: Scenario) -> str:
    """A digest of all that a scenario is: its file's meaning, its seed and its boards."""
    parts = [scenario.frozen({}), scenario.seed_text({}), scenario.files({})]
    return files.digest(files.canonical(parts))


def subject_of(manifest: Mapping[str, Any]) -> str:
    """What a run examines."""
    return str(manifest.get("subject", subjects.DEFAULT))


def find(out: Path, name: str) -> Path:
    """The directory of a run: a path, a name under `out`, or `latest`. Raises NotFound with near matches."""
    known = sorted(path.parent.name for path in out.glob("*/run.json"))
    if name == "latest" and known:
        return out / known[-1]
    for path in (Path(name), out / name):
        if (path / "run.json").is_file():
            return path
    raise NotFound(f"no run {name!r}", near=nearest(name, known), hint=f"ls {out}")


def load(directory: Path) -> dict[str, Any]:
    """The manifest of a run. Raises LabdError if it can't be read."""
    try:
        manifest: dict[str, Any] = files.read_json(directory / "run.json")
    except (OSError, ValueError) as error:
        raise LabdError(f"{directory / 'run.json'}: {error}") from error
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema not in (SCHEMA, *_OLDER):
        raise LabdError(f"{directory / 'run.json'}: of schema {schema!r}, not {SCHEMA}")
    kinds = {"id": str, "agents": dict, "scenarios": dict, "orders": list, "versions": dict, "hashes": dict}
    wrong = [name for name, kind in kinds.items() if not isinstance(manifest.get(name), kind)]
    if wrong:
        raise LabdError(f"{directory / 'run.json'}: it is damaged: {wrong[0]} is missing or of another kind")
    return manifest


def resume(directory: Path, scenarios: Sequence[Scenario]) -> Run:
    """Take up an interrupted run. Raises LabdError if what it measures has changed since: a run is one measurement."""
    manifest = load(directory)
    present = {scenario.id: scenario for scenario in scenarios}
    changed = [name for name, told in manifest["scenarios"].items()
               if name not in present or fingerprint(present[name]) != told["sha256"]]  # fmt: skip
    now = data.hashes()
    changed += [name for name in sorted({*now, *manifest["hashes"]}) if manifest["hashes"].get(name) != now.get(name)]
    changed += [name for name, version in data.versions().items() if manifest["versions"].get(name) != version]
    changed += [manifest["schema"]] if manifest["schema"] != SCHEMA else []
    if changed:
        names = ", ".join(dict.fromkeys(changed))
        raise LabdError(
            f"{names} changed since {manifest['id']} began; its trials would not be comparable",
            hint="start a new run: labd-eval run",
        )
    return Run(directory, manifest)


@dataclass(frozen=True)
class Result:
    """One trial that is over. `verdict` is None when it was interrupted or its bundle couldn't be written.

    `again`: how many new trials take the place of this one, which the exam lost.
    """

    order: Order
    verdict: Verdict | None
    expected: bool
    duration_s: float
    problem: str = ""
    again: int = 0


def carry_out(
    run: Run,
    scenarios: Iterable[Scenario],
    *,
    jobs: int,
    on_result: Callable[[Result], None],
    on_quiet: Callable[[list[tuple[Order, float]]], None] = lambda _: None,
    stop: threading.Event | None = None,
    pool: pools.Pool | None = None,
) -> None:
    """Run what isn't finished in `pool` (None: in this process), `jobs` at a time, and have each trial graded as it
    ends. A trial waits until the real boards that its scenario names are free.

    Raises PoolLost. Ends early when `stop` is set: what is finished stays, what is being run is stopped and leaves
    nothing.
    """
    stop, pool = stop or threading.Event(), pool or pools.Here()
    known = {scenario.id: scenario for scenario in scenarios}
    waiting = [order for order in run.orders if not run.finished(order)]
    ordered = {order.identity for order in run.orders}
    running: dict[Future[Result], tuple[Order, float]] = {}
    facts = {"run": run.manifest["id"], "versions": data.versions(), "hashes": data.hashes()}
    if waiting and subjects.load(subject_of(run.manifest)).find() is not None:
        facts["surface"] = _command_reference(run)
    run.log("started", trials=len(waiting), jobs=jobs, pool=pool.name)
    with ThreadPoolExecutor(jobs, thread_name_prefix="trial") as threads:
        try:
            while waiting or running:
                if waiting and run.spent_up:
                    run.log("spent", usd=run.spent, left=len(waiting))
                    waiting.clear()
                while len(running) < jobs and not stop.is_set():
                    order = _next(waiting, [order for order, _ in running.values()], known, pool)
                    if order is None:
                        break
                    waiting.remove(order)
                    task = threads.submit(copy_context().run, _one, run, order, known[order.scenario], facts, pool,
                                          stop.is_set)  # fmt: skip
                    running[task] = (order, time.monotonic())
                if not running:
                    break
                done, _ = wait(running, timeout=QUIET_S, return_when=FIRST_COMPLETED)
                if not done:
                    on_quiet([(order, time.monotonic() - since) for order, since in running.values()])
                for task in done:
                    running.pop(task)
                    result = task.result()
                    run.log("trial", id=result.order.identity, verdict=result.verdict and result.verdict.verdict,
                            problem=result.problem)  # fmt: skip
                    again = [order for order in plan.replacements(run.manifest, result.order, run.cause)
                             if order.identity not in ordered]  # fmt: skip
                    ordered |= {order.identity for order in again}
                    waiting += again
                    on_result(replace(result, again=len(again)))
        except BaseException:
            stop.set()
            raise
    run.log("stopped" if stop.is_set() else "finished")


def _next(waiting: list[Order], running: list[Order], known: Mapping[str, Scenario], pool: pools.Pool) -> Order | None:
    """The first trial whose real boards nobody has; None if there is none."""
    taken = Counter(board for order in running for board in known[order.scenario].boards)
    free = (order for order in waiting
            if all(taken[board] < pool.boards(board) for board in known[order.scenario].boards))  # fmt: skip
    return next(free, None)


def _command_reference(run: Run) -> str:
    """The digest of the run's surface.json, which is taken from the live program when there is none yet."""
    path = run.directory / "surface.json"
    if not path.is_file():
        name = subject_of(run.manifest)
        with surface.live(name) as ask:
            files.write_json(path, subjects.load(name).kind.reference(ask))
    return files.digest(path.read_bytes())


def _one(run: Run, order: Order, scenario: Scenario, facts: dict[str, Any], pool: pools.Pool,
         cancelled: Callable[[], bool]) -> Result:  # fmt: skip
    """One trial and its verdict. Raises OSError when there is no room for evidence, and PoolLost; else a trial breaks
    alone."""
    started = time.monotonic()

    def result(verdict: Verdict | None, problem: str = "") -> Result:
        wanted = run.manifest["agents"][order.agent]["expected"]
        good = verdict is not None and as_expected(verdict.verdict, run.cause(order), wanted)
        return Result(order, verdict, good,
                      round(time.monotonic() - started, 3), problem)  # fmt: skip

    try:
        agent = agents.find(run.manifest["agents"][order.agent].get("word", order.agent))
        options = options_of(run.manifest.get("options", {}), order.condition)
        directory = pool.conduct(order, scenario, agent, run.trials, facts=facts, options=options,
                                 cancelled=cancelled, sealed=run.seal)  # fmt: skip
        if directory is None:
            return result(None, "interrupted")
        return result(grading.grade(directory)[0])
    except pools.NotServed as error:
        return result(None, error.message)
    except Exception as error:
        if isinstance(error, pools.PoolLost) or (isinstance(error, OSError) and error.errno in _FULL):
            raise  # the next one would not fare better
        return result(None, f"bundle_failed: {type(error).__name__}: {error}")
