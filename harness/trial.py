"""One trial from its sandbox to its bundle: one agent, one scenario, one condition, once. Grades nothing.

Whatever goes wrong in it stays in it: every end has a cause (harness/causes.py) and leaves a bundle, except an
interruption, of which nothing is kept so that it can be run again.
"""

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import bundle, capability, execute, files, program_trial, replay, sandbox, witness
from harness import subject as subjects
from harness.agents import Agent
from harness.agents._program import Options, Program
from harness.bench import Bench, GaveUp, Interrupted, TimeIsUp, Unavailable
from harness.causes import policy_of
from harness.outside import OutsideError
from harness.played import Played
from harness.scenario import Scenario


@dataclass(frozen=True)
class Order:
    """What is to be run. `number` counts the trials of one scenario, condition and agent from 1."""

    scenario: str
    condition: str
    agent: str
    number: int

    @property
    def identity(self) -> str:
        """The trial's name, also its bundle's."""
        return f"{self.scenario}.{self.condition}.{self.agent}.{self.number}"


def conduct(
    order: Order,
    scenario: Scenario,
    agent: Agent,
    trials: Path,
    *,
    facts: Mapping[str, Any],
    options: Options | None = None,
    programs: Mapping[str, str] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    sealed: Callable[[str, str], None] | None = None,
) -> Path | None:
    """Run the trial and write its bundle under `trials`; returns its directory, None if it was interrupted.

    `facts` go into trial.json as they are (run, versions, hashes). `options` are for agents that are programs.
    `sealed` is told the trial's name and the SHA-256 of its trial.json just before the bundle is put in place. Raises
    OSError if the bundle can't be written.
    """
    started = time.time()
    examined = subjects.load(scenario.subject)
    subject = examined.find()
    if subject is None:
        played = Played("subject_missing", examined.missing, "", [])
        return _bare(order, scenario, trials, agent, played, facts, started, sealed)
    lacks = capability.missing(scenario)
    if lacks:
        played = Played("capability_missing", lacks, "", [])
        return _bare(order, scenario, trials, agent, played, facts, started, sealed)
    try:
        place = sandbox.create(scenario, subject, programs=programs)
    except sandbox.SandboxError as error:
        played = Played("sandbox_failed", str(error), "", [])
        return _bare(order, scenario, trials, agent, played, facts, started, sealed)
    looking = witness.Witness(place)
    try:
        before: dict[str, str] = {}
        attending = examined.kind.attend(place)
        bench = Bench(scenario, place, cancelled=cancelled)
        try:
            played = _play(bench, agent, options or Options(), before)
        finally:
            acted = time.time()
            at_end = examined.kind.at_end(place)
            left, alive = place.stop()
            if place.desk is not None:
                place.desk.stop()
            stopped = time.time()
            seen = looking.finish()
            received = attending.finish() if attending is not None else None
        if played.cause == "interrupted" or (cancelled() and played.cause != "completed"):
            return None
        if alive:
            named = ", ".join(f"{process.pid} ({process.command})" for process in alive)
            played = replace(played, cause="processes_left", detail=f"could not be ended: {named}")
        gathered = bundle.Bundle(trials, order.identity)
        try:
            gathered.put_scenario(scenario, place.values)
            gathered.put_evidence(place)
            gathered.put("witness.jsonl", seen)
            gathered.put("received.jsonl", received)
            if scenario.journey is not None:
                gathered.put("state.json", files.canonical(replay.states(place, scenario.journey, before)))
            _put_words(gathered, played)
            record = _record(order, scenario, agent, played, facts, started, acted)
            if agent.program is not None:
                record["limits"] |= _granted(options or Options(), agent.program)
                record |= {"program": dict(played.facts), "options": asdict(options or Options())}
                record["scripted_model"] = options.script if options else None
            record |= _whereabouts(place, left) | {"stop_s": round(stopped - acted, 4), "at_end": at_end}
            record["evidence"] = [*examined.kind.evidence, *(["witness"] if seen is not None else [])]
            return gathered.finish(record, sealed)
        except BaseException:
            gathered.discard()
            raise
    finally:
        place.close()


def _play(bench: Bench, agent: Agent, options: Options, before: dict[str, str]) -> Played:
    """Prepare, then let the agent act. `before` gets the state that it finds, where the scenario is of a journey."""
    try:
        _prepare(bench, agent)
        if bench.scenario.journey:
            before |= bench.sandbox.examined.kind.state(bench.sandbox)
        if agent.program is not None:
            played = program_trial.play(bench, agent.program, options)
        else:
            assert agent.act is not None
            played = Played("completed", "", agent.act(bench), bench.calls)
        problem = bench.sandbox.desk.problem if bench.sandbox.desk is not None else ""
        if problem:
            return replace(played, cause="sandbox_failed", detail=problem)
        if options.isolation == "light" and agent.program is not None and policy_of(played.cause).valid:
            return replace(played, cause="smoke", detail=f"light isolation; {played.cause} {played.detail}".strip())
        return played
    except (OutsideError, sandbox.SandboxError) as error:
        return Played("sandbox_failed", str(error), "", bench.calls)
    except Unavailable as error:
        return Played("capability_missing", str(error), "", bench.calls)
    except TimeIsUp as error:
        return Played("time_limit", str(error), "", bench.calls)
    except GaveUp as error:
        return Played("agent_stopped", str(error), "", bench.calls)
    except Interrupted:
        return Played("interrupted", "", "", bench.calls)
    except Exception as error:
        trace = traceback.format_exc()
        return Played("agent_crashed", f"{type(error).__name__}: {error}", "", bench.calls, trace)


def _prepare(bench: Bench, agent: Agent) -> None:
    """Bring the desk to where the agent finds it: the bench as its user left it, and what has happened already.

    An agent without the bench finds none that runs. Raises OutsideError.
    """
    loopback = bench.scenario.loopback
    for step in loopback.prepared if loopback is not None and agent.bench else ():
        ended = bench.run(step)
        if ended.code != step.expect_exit:
            raise OutsideError(f"{step.run}: exit {ended.code}: {ended.stderr.decode('utf-8', 'replace')[:200]}")
    if bench.sandbox.desk is not None:
        bench.sandbox.desk.before()
        bench.sandbox.desk.asked()


def _put_words(gathered: bundle.Bundle, played: Played) -> None:
    gathered.put_calls(played.calls)
    gathered.put("answer.txt", played.answer.encode("utf-8", "surrogatepass"))
    errors = b"".join(call.ended.stderr for call in played.calls)
    gathered.put("stderr.txt", errors + played.trace.encode("utf-8", "replace"))
    for name, raw in played.raw.items():
        gathered.put(f"raw/{name}", raw)
    gathered.put("transcript.json", played.transcript)
    if played.condition is not None:
        gathered.put("condition.json", files.canonical(played.condition))


def lost(
    order: Order, scenario: Scenario, agent: Agent, trials: Path, cause: str, detail: str, *, facts: Mapping[str, Any],
    sealed: Callable[[str, str], None] | None = None, started: float | None = None,
) -> Path:  # fmt: skip
    """The bundle of a trial that was begun elsewhere and of which nothing came back. `started`: seconds since 1970."""
    played = Played(cause, detail, "", [])
    return _bare(order, scenario, trials, agent, played, facts, started or time.time(), sealed)


def _bare(
    order: Order, scenario: Scenario, trials: Path, agent: Agent, played: Played, facts: Mapping[str, Any],
    started: float, sealed: Callable[[str, str], None] | None,
) -> Path:  # fmt: skip
    """The bundle of a trial that never had a sandbox."""
    gathered = bundle.Bundle(trials, order.identity)
    try:
        gathered.put_scenario(scenario, {})
        _put_words(gathered, played)
        return gathered.finish(_record(order, scenario, agent, played, facts, started, started), sealed)
    except BaseException:
        gathered.discard()
        raise


def _record(
    order: Order,
    scenario: Scenario,
    agent: Agent,
    played: Played,
    facts: Mapping[str, Any],
    started: float,
    acted: float,
) -> dict[str, Any]:
    return {
        **facts,
        "id": order.identity,
        "scenario": order.scenario,
        "condition": order.condition,
        "agent": order.agent,
        "number": order.number,
        "lane": scenario.lane,
        "grader": agent.grader or scenario.grader["type"],
        "limits": {"time_s": scenario.timeout_s, "output_bytes": execute.KEPT_BYTES},
        "started": _utc(started),
        "ended": _utc(acted),
        "agent_s": round(acted - started, 4),
        "commands_s": round(sum(call.spent_s for call in played.calls) + played.program_s, 4),
        "duration_s": round(time.time() - started, 4),
        "ended_by": played.cause,
        "detail": played.detail,
    }


def _granted(options: Options, program: Program) -> dict[str, Any]:
    """What the agent could use up, and how its model was asked to draw; None: no limit, or the product decides."""
    asked = {"temperature": options.temperature, "seed": options.model_seed} if program.ways.sampling else {}
    return {"turns": options.turns, "tokens": options.tokens, "money_usd": options.money_usd, "temperature": None,
            "seed": None, **asked, "sampling": "as asked" if program.ways.sampling else "the product decides",
            **({"time_s": options.time_s} if options.time_s is not None else {})}  # fmt: skip


def _whereabouts(place: sandbox.Sandbox, left: list[execute.Process]) -> dict[str, Any]:
    """Where things were while the trial ran: the route check goes by these."""
    installed = [place.subject, str(Path(place.subject).resolve())]
    return {
        "subject": place.examined.program,
        "build": place.examined.kind.build(place.subject),
        "package": {"program": place.examined.program, "version": place.examined.kind.version(place.subject)},
        "route": {
            "program": [place.program],
            "installed": list(dict.fromkeys(installed)),
            "kept": place.program_kept(),
        },
        "values": place.values,
        **place.examined.kind.facts(place),
        "outside": place.desk.facts if place.desk is not None else None,
        "left_running": [process.command for process in left],
    }


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
