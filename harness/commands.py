"""What the commands of labd-eval do: choose, run, grade, report. Words are parsed in harness/cli.py.

Each `do_NAME` takes the parsed values and the words as given, writes its answer to stdout, and returns an exit code.
"""

import argparse
import contextlib
import secrets
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness import (
    agents,
    files,
    gate,
    grading,
    journeys,
    mcp_condition,
    plan,
    pool,
    program_options,
    report,
    run,
    sandbox,
    scenario,
    selection,
    soundness,
    subject,
)
from harness.program_trial import options_of
from harness.scenario import Scenario
from harness.telling import note
from harness.trial import Order
from labd.errors import LabdError, NotFound, Usage, nearest

Values = argparse.Namespace


def _answer(text: str) -> None:
    sys.stdout.write(text)


def _json(value: Any) -> None:
    sys.stdout.write(files.canonical(value).decode())


def _choose(values: Values) -> list[Scenario]:
    """The scenarios that --scenario and --lane leave. Raises NotFound with near matches for a word that fits none."""
    known = scenario.load_all(values.subject)
    lane = getattr(values, "lane", None)
    meant = set(selection.chosen(values.scenario, [one.id for one in known]))
    return [one for one in known if one.id in meant and lane in (None, one.lane)]


# -- list, check ------------------------------------------------------------------------------------------------


def do_list(values: Values, words: Sequence[str]) -> int:
    """Scenarios of a subject, agents, subjects."""
    chosen = _choose(values)
    cast = [agents.find(name) for name in agents.names()]
    if values.json:
        _json({
            "scenarios": [{"id": s.id, "title": s.title, "tier": s.tier, "lane": s.lane, "core": s.core,
                           "grader": s.grader["type"], "goal": s.goal.strip(),
                           "conditions": list(s.conditions), "capabilities": list(s.capabilities)} for s in chosen],
            "agents": [{"name": a.name, "summary": a.summary, "expected": sorted(a.expected)} for a in cast],
            "subjects": [{"name": s.name, "title": s.title, "program": s.program} for s in subject.all_of_them()],
        })  # fmt: skip
        return 0
    width = max((len(one.id) for one in chosen), default=2)
    lines = [f"{'id'.ljust(width)}  lane      core  title"]
    lines += [f"{s.id.ljust(width)}  {s.lane.ljust(8)}  {'core' if s.core else '    '}  {s.title}" for s in chosen]
    if not chosen:
        lines.append(f"no scenario is in the lane {values.lane!r}")
    lines += ["", "agents"]
    lines += [f"{agent.name.ljust(16)}  {agent.summary}" for agent in cast]
    lines += [f"{agents.PREFIX.ljust(16)}  {agents.ANY_COMMAND}"]
    lines += ["", "subjects (--subject NAME)"]
    lines += [f"{one.name.ljust(16)}  {one.title}" for one in subject.all_of_them()]
    _answer("\n".join(lines) + "\n")
    return 0


def do_check(values: Values, words: Sequence[str]) -> int:
    """The exam against itself and against the live command line."""
    chosen = _choose(values)  # raises for schema mistakes
    chosen += [] if values.scenario else journeys.load(values.subject)
    problems = soundness.static(chosen) + soundness.live(chosen, whole=True)
    if values.json:
        _json({"scenarios": len(chosen), "problems": problems})
    else:
        verdict = f"{len(problems)} problems" if problems else "no problems"
        _answer("\n".join([*problems, f"{len(chosen)} scenarios checked: {verdict}"]) + "\n")
    return 1 if problems else 0


# -- run, loopback ----------------------------------------------------------------------------------------------


def do_loopback(values: Values, words: Sequence[str]) -> int:
    """`run` for simulated boards."""
    values.lane, values.subject = "loopback", subject.DEFAULT
    return do_run(values, words)


def do_run(values: Values, words: Sequence[str]) -> int:
    """Run, grade, report."""
    out, address = Path(values.out), getattr(values, "cluster", None)
    where = f" --cluster {address}" if address else ""
    with (
        pool.at(address, lambda text: note(values, text)) as place,
        _held(values, words, out, place) as held,
        room(held.directory, f"labd-eval run --resume {held.directory}{where}"),
    ):
        for root in sandbox.reap_abandoned():
            note(values, f"removed what a killed run had left: {root}")
        note(values, f"run {held.directory} ({len(held.orders)} trials)")
        stopped = carry_out(held, values, place)
        told = report.write(held.directory)
    if values.json:
        _json(told)
    else:
        _answer(report.table_text(told, color=sys.stdout.isatty()) + f"\nreport: {held.directory / 'report.md'}\n")
    if stopped:
        note(values, f"stopped; go on with: labd-eval run --resume {held.directory}{where}")
        return 128 + stopped
    return 0 if told["as_expected"] else 1


def do_versus(values: Values, words: Sequence[str]) -> int:
    """The tasks that all arms can go about, beside each other. Only the bench's arm has to pass."""
    values.lane, values.all, values.subject = "loopback", False, subject.DEFAULT
    if not values.resume:
        values.agent = _names(values.agent) or list(agents.ARMS)
        strange = [name for name in values.agent if agents.find(name).name not in agents.ARMS]
        if strange:
            raise Usage(f"{strange[0]} is no arm", near=nearest(strange[0], list(agents.ARMS)), hint="labd-eval list")
    return do_run(values, words)


def _held(values: Values, words: Sequence[str], out: Path, place: pool.Pool) -> run.Run:
    """The run to carry out in `place`: a new one, or the one to go on with."""
    if values.resume:
        chosen = (values.scenario, values.agent, values.all, values.condition, values.seed is not None, values.replace)
        if any(chosen):
            raise Usage("--resume runs what its run was begun with", hint="leave out all that chooses trials")
        directory = run.find(out, values.resume)
        manifest = run.load(directory)
        known = journeys.of_run(manifest)
        meant = [one for one in known if one.id in manifest["scenarios"]]
        must_be_sound(meant, str(manifest.get("checked")))
        cast = [agents.find(told.get("word", name)) for name, told in manifest["agents"].items()]
        place.prepare(meant, cast, options_of(manifest.get("options", {}), "cold"))
        return run.resume(directory, known)
    if values.all and values.agent:
        raise Usage("--all and --agent say different things", hint="labd-eval run --help")
    cast = agents.select(["all"] if values.all else _names(values.agent) or ["reference"])
    meant = _choose(values)
    if not meant:
        raise Usage(f"none of these scenarios is in the lane {values.lane!r}", hint="labd-eval list")
    chosen = [one for one in meant if any(agent.plays(one) for agent in cast)]
    if not chosen:
        names = ", ".join(agent.name for agent in cast)
        raise Usage(f"{names}: for tasks alone, and none of these scenarios is one", hint="labd-eval versus")
    mcp_condition.must_be_possible(chosen, cast, _conditions(values))
    options = program_options.read(values, cast)
    gate.must_have_passed(cast, options)
    checked = must_be_sound(chosen)
    place.prepare(chosen, cast, options)
    return run.create(out, chosen, cast, conditions=_conditions(values), trials=values.trials,
                      seed=_seed(values), replacements=values.replace, words=words, checked=checked,
                      options=options)  # fmt: skip


def _conditions(values: Values) -> list[str]:
    """Those that were asked for, in the order in which an agent is told more; cold if none was."""
    wanted = set(values.condition or ["cold"])
    return [name for name in plan.CONDITIONS if name in wanted or ("all" in wanted and name != mcp_condition.NAME)]


def _seed(values: Values) -> int:
    """The seed of the trials' order: the one given, else a new one; the manifest keeps it."""
    return secrets.randbelow(2**32) if values.seed is None else int(values.seed)


def must_be_sound(chosen: list[Scenario], checked: str = "") -> str:
    """Raises LabdError when the exam's own check of these scenarios fails: nothing that they measure would count.

    Returns the key of what the program was asked; if that is `checked`, it is not asked again.
    """
    problems = soundness.static(chosen)
    key = soundness.key(chosen)
    if not problems and key != checked:
        problems = soundness.live(chosen)
    if problems:
        told = [*problems[:8], *([f"and {len(problems) - 8} more"] if len(problems) > 8 else [])]
        text = "\n".join(["the exam does not pass its own check, nothing is run", *told])
        raise LabdError(text, hint="labd-eval check")
    return key


@contextlib.contextmanager
def room(directory: Path, go_on: str) -> Iterator[None]:
    """A disk that is full, or a directory that can't be written, ends the run and says how to go on."""
    try:
        yield
    except OSError as error:
        where = error.filename or directory
        why = error.strerror or str(error)
        raise LabdError(f"{where}: {why}; what is finished is kept", hint=go_on) from error


def _names(given: list[str]) -> list[str]:
    entries = [[entry] if entry.startswith(agents.PREFIX) else entry.split(",") for entry in given]
    return [name.strip() for entry in entries for name in entry if name.strip()]


def carry_out(held: run.Run, values: Values, place: pool.Pool | None = None) -> int:
    """Run it in `place` (None: in this process) with progress on stderr. Returns the number of the signal that stopped
    it, 0 if none did."""
    place = place or pool.Here()
    stop = threading.Event()
    caught: list[int] = []

    def ask_to_stop(number: int, frame: object) -> None:
        if caught:
            raise KeyboardInterrupt
        caught.append(number)
        stop.set()
        note(values, "stopping: what is finished is kept; once more to hurry")

    left = sum(not held.finished(order) for order in held.orders)
    done = 0

    def on_result(result: run.Result) -> None:
        nonlocal done, left
        done += 1
        left += result.again
        word = result.verdict.verdict if result.verdict else result.problem
        mark = "" if result.expected else "  NOT EXPECTED" if result.verdict else ""
        why = f": {report.plain(result.verdict.reason)}" if result.verdict and not result.expected else ""
        note(values, f"[{done:>{len(str(left))}}/{left}] {result.order.identity}  {word}  "
                      f"{result.duration_s:.2f} s{mark}{why}")  # fmt: skip

    def on_quiet(running: list[tuple[Order, float]]) -> None:
        told = ", ".join(f"{order.identity} ({seconds:.0f} s)" for order, seconds in running)
        note(values, f"running: {told}")

    before = {number: signal.signal(number, ask_to_stop) for number in _stop_signals()}
    try:
        known = journeys.of_run(held.manifest)
        run.carry_out(held, known, jobs=values.jobs or place.jobs, on_result=on_result, on_quiet=on_quiet, stop=stop,
                      pool=place)  # fmt: skip
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return caught[0] if caught else 0


def _stop_signals() -> tuple[int, ...]:
    main = threading.current_thread() is threading.main_thread()
    return (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if main else ()


# -- grade, report ----------------------------------------------------------------------------------------------


def do_grade(values: Values, words: Sequence[str]) -> int:
    """Grade stored bundles again."""
    directory = run.find(Path(values.out), values.run)
    with run.Run(directory, run.load(directory)) as held:
        meant = selection.chosen(values.scenario, held.manifest["scenarios"])
        orders = [order for order in held.orders if held.finished(order) and order.scenario in meant]
        if not orders:
            raise NotFound(f"{directory} has no finished trial of that kind", hint=f"labd-eval report {directory}")
        changed = [order.identity for order in orders if grading.grade(held.trials / order.identity)[1]]
        told = report.write(directory)
    if values.json:
        _json({"graded": len(orders), "changed": changed, "as_expected": told["as_expected"], "counts": told["counts"]})
    else:
        for identity in changed:
            _answer(f"changed: {identity}\n")
        _answer(f"{len(orders)} bundles graded, {len(changed)} verdicts changed\n{report.table_text(told)}")
    return 0 if told["as_expected"] else 1


def do_report(values: Values, words: Sequence[str]) -> int:
    """Show, and write again, the report of a run."""
    directory = run.find(Path(values.out), values.run)
    told = report.write(directory)
    if values.json and values.format not in ("table", "json"):
        raise Usage(f"--json and --format {values.format} say different things", hint="labd-eval report --help")
    form = "json" if values.json else values.format
    _answer(report.text(directory, told, form, color=sys.stdout.isatty()))
    return 0
