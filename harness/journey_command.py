"""`labd-eval journey`: list the journeys, play their controls, run them with an agent. Words are parsed in cli.py.

`controls` ends with 0 when every control went as it must, `run` as `labd-eval run` does.
"""

import argparse
import secrets
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import agents, controls, files, gate, journeys, pool, program_options, report, run, sandbox, subject
from harness.agents._program import Options
from harness.journey_parts import Journey
from harness.scenario import Scenario
from harness.telling import note
from labd.errors import Usage, nearest

HELP = "jobs that people do with a program, in three scenarios each, with controls and an outside verifier"

EXAMPLES = """\
  labd-eval journey list                     the jobs of all subjects, and whether their controls hold on this build
  labd-eval journey controls                 play the six controls of every scenario; each has to go as it must
  labd-eval journey controls git --job publish
  labd-eval journey run git --agent claude --env ANTHROPIC_API_KEY
  labd-eval run --resume latest              go on with one that was interrupted"""

#: The limits of a trial where nothing else is asked for: the model's turns, tokens over all requests, seconds.
TURNS, TOKENS, TIME_S = 40, 500_000, 900.0

#: How a model is to draw where its program hands that on, and what a run may cost in all (US dollars).
TEMPERATURE, SPEND_USD = 0.6, 20.0

#: Trials of a scenario.
TRIALS = 3


def options(parser: argparse.ArgumentParser, count: Any, seed: Any) -> None:
    """What the command takes. `count` and `seed` check numbers."""
    parser.add_argument("act", choices=("list", "controls", "run"), metavar="list|controls|run", help="what to do")
    parser.add_argument("subject", nargs="?", metavar="SUBJECT", help="whose journeys (default: every subject's)")
    parser.add_argument("--job", action="append", default=[], metavar="JOB", help="only this job; repeatable")
    parser.add_argument("-a", "--agent", action="append", default=[], metavar="NAME",
                        help="run: who acts; repeatable (controls are played by `journey controls`)")  # fmt: skip
    parser.add_argument("-n", "--trials", type=count, default=TRIALS, metavar="N",
                        help=f"run: trials a scenario (default: {TRIALS})")  # fmt: skip
    parser.add_argument("--seed", type=seed, metavar="N", help="draws the order of the trials (default: a new one)")
    parser.add_argument("--spend", type=program_options.amount, default=SPEND_USD, metavar="USD",
                        help="run: nothing more is begun once all trials together have cost that (default: "
                             f"{SPEND_USD:g})")  # fmt: skip
    parser.add_argument("--replace", type=seed, metavar="N",
                        help="at most N new trials a scenario in place of those that the exam lost")  # fmt: skip
    parser.add_argument("--cluster", metavar="ADDRESS", help="run: on the workers of a Dask scheduler")
    parser.add_argument("-j", "--jobs", type=count, metavar="N", help="trials at once (default: the processors)")
    parser.add_argument(
        "-o", "--out", default="runs", metavar="DIR", help="where run directories are (default: ./runs)"
    )
    program_options.add(parser)


def do_journey(values: argparse.Namespace, words: Sequence[str]) -> int:
    """List, play the controls, or run."""
    if values.subject is not None and values.subject not in journeys.subjects():
        known = journeys.subjects()
        subject.load(values.subject)
        raise Usage(f"{values.subject} has no journeys", near=nearest(values.subject, known),
                    hint="labd-eval journey list")  # fmt: skip
    return {"list": _list, "controls": _controls, "run": _run}[values.act](values, words)


def _chosen(values: argparse.Namespace) -> list[Scenario]:
    """The scenarios that are meant, those of one subject behind those of another."""
    names = [values.subject] if values.subject else journeys.subjects()
    if values.job and not values.subject:
        names = [name for name in names if {*values.job} & {_of(one).job for one in journeys.load(name)}] or names[:1]
    return [one for name in names for one in journeys.chosen(name, values.job)]


def _of(one: Scenario) -> Journey:
    assert one.journey is not None, "all of these are journeys"
    return one.journey


# -- list -------------------------------------------------------------------------------------------------------------


def _list(values: argparse.Namespace, words: Sequence[str]) -> int:
    jobs = controls.by_job(_chosen(values))
    told = [_told(name, mine) for (name, _), mine in jobs.items()]
    if values.json:
        sys.stdout.write(files.canonical({"journeys": told}).decode())
        return 0
    lines = []
    for group in dict.fromkeys(one["group"] for one in told):
        lines.append(group)
        lines += [f"  {one['subject'].ljust(6)} {one['job'].ljust(14)} {one['controls'].ljust(26)} {one['title']}"
                  for one in told if one["group"] == group]  # fmt: skip
    sys.stdout.write("\n".join(lines or ["there are no journeys"]) + "\n")
    return 0


def _told(name: str, mine: Sequence[Scenario]) -> dict[str, Any]:
    journey, stored = _of(mine[0]), controls.stamped(name, mine)
    state = "controls not played" if stored is None else "controls hold" if stored["ok"] else "controls WRONG"
    return {
        "subject": name, "job": journey.job, "title": journey.title, "group": journey.group, "controls": state,
        "reviewed": journey.reviewed,
        "scenarios": [{"id": one.id, "variant": _of(one).variant, "goal": one.goal.strip(), "lane": one.lane,
                       "stages": [stage.name for stage in _of(one).stages],
                       "fault": _of(one).fault.text if _of(one).fault else None}  # type: ignore[union-attr]
                      for one in mine],
    }  # fmt: skip


# -- controls ---------------------------------------------------------------------------------------------------------


def _controls(values: argparse.Namespace, words: Sequence[str]) -> int:
    """A run a subject, of the reference and the five that must fail; the table, and a stamp a job."""
    found: dict[str, Any] = {}
    cast = [agents.find(name) for name in agents.JOURNEY]
    stopped = 0
    for name, mine in _by_subject(_chosen(values)).items():
        here = pool.Here()
        with _new(values, words, mine, cast, here, trials=1, seed=None, replace=0) as held:
            stopped = _carry_out(held, values, here)
            found |= controls.cells(held)
            for path in [] if stopped else controls.stamp(held, mine):
                note(values, f"stamp of {name}: {path}")
        if stopped:
            break
    bad = [why for row in found.values() for agent, cell in row.items()
           if not controls.lacking(cell) and (why := controls.wrong(agent, cell))]  # fmt: skip
    if values.json:
        told = {name: {agent: {"verdict": cell.verdict if cell else "not_run", "reason": cell.reason if cell else "",
                               "wrong": controls.wrong(agent, cell)} for agent, cell in row.items()}
                for name, row in found.items()}  # fmt: skip
        sys.stdout.write(files.canonical({"ok": not bad, "controls": told}).decode())
    else:
        sys.stdout.write(controls.table(found))
    return 128 + stopped if stopped else 1 if bad else 0


def _by_subject(chosen: Sequence[Scenario]) -> dict[str, list[Scenario]]:
    return {name: [one for one in chosen if one.subject == name] for name in dict.fromkeys(s.subject for s in chosen)}


# -- run --------------------------------------------------------------------------------------------------------------


def _run(values: argparse.Namespace, words: Sequence[str]) -> int:
    """Run a subject's journeys; refused without controls that hold and a gate that was passed on this build."""
    if not values.subject:
        raise Usage("run whose journeys? it takes a SUBJECT", hint="labd-eval journey list")
    cast = agents.select([name for entry in values.agent for name in _names(entry)])
    if not cast or any(agent.control or agent.name in agents.ARMS for agent in cast):
        raise Usage("run takes --agent NAME of somebody who is there to pass", hint="labd-eval list")
    chosen = _chosen(values)
    held_stamps = controls.must_have_held(chosen)
    given = program_options.read(values, cast)
    wanted = replace(given, turns=given.turns or TURNS, tokens=given.tokens or TOKENS, time_s=given.time_s or TIME_S)
    if given.temperature is None and all(agent.program and agent.program.ways.sampling for agent in cast):
        wanted = replace(wanted, temperature=TEMPERATURE)
    gate.must_have_passed(cast, wanted)
    with (
        pool.at(values.cluster, lambda text: note(values, text)) as place,
        _new(values, words, chosen, cast, place, trials=values.trials, options=wanted, seed=_seed(values),
             replace=values.replace, controls=held_stamps, spend_usd=values.spend) as held,
    ):  # fmt: skip
        stopped = _carry_out(held, values, place)
        told = report.write(held.directory)
    if values.json:
        sys.stdout.write(files.canonical(told).decode())
    else:
        sys.stdout.write(report.table_text(told, color=sys.stdout.isatty()))
        sys.stdout.write(f"\nreport: {held.directory / 'report.md'}\n")
    if stopped:
        note(values, f"stopped; go on with: labd-eval run --resume {held.directory}")
        return 128 + stopped
    if held.spent_up:
        note(values, f"the trials cost {held.spent:g} US dollars, all that may be spent: what was not begun is not run")
    return 0 if told["as_expected"] else 1


def _names(entry: str) -> list[str]:
    return [entry] if entry.startswith(agents.PREFIX) else [word.strip() for word in entry.split(",") if word.strip()]


def _seed(values: argparse.Namespace) -> int:
    return secrets.randbelow(2**32) if values.seed is None else int(values.seed)


def _new(values: argparse.Namespace, words: Sequence[str], chosen: list[Scenario], cast: Sequence[agents.Agent],
         place: pool.Pool, *, replace: int | None, options: Options | None = None,
         controls: dict[str, Any] | None = None, **more: Any) -> run.Run:  # fmt: skip
    """A new run of these scenarios in `place`, once they are known to be sound. Its manifest has the stamps of their
    controls."""
    from harness import commands

    checked = commands.must_be_sound(chosen)
    place.prepare(chosen, cast, options or Options())
    for root in sandbox.reap_abandoned():
        note(values, f"removed what a killed run had left: {root}")
    held = run.create(Path(values.out), chosen, cast, replacements=replace, words=words, checked=checked,
                      options=options, journeys=journeys.facts(chosen, controls), **more)  # fmt: skip
    note(values, f"run {held.directory} ({len(held.orders)} trials)")
    return held


def _carry_out(held: run.Run, values: argparse.Namespace, place: pool.Pool) -> int:
    from harness import commands

    with commands.room(held.directory, f"labd-eval run --resume {held.directory}"):
        return commands.carry_out(held, values, place)
