"""`labd-eval experiment`: paired runs with one change and without, and what they show. Words are parsed in cli.py.

`run` ends with 0 whatever the verdict is (a refuted property is a result), with the signal where it was stopped.
"""

import argparse
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import experiment, files, program_options
from harness.telling import note
from labd.errors import Refused, Usage

HELP = "does a change make agents do better? the same questions with it and without, in pairs"

EXAMPLES = """\
  labd-eval experiment list                  the experiments, and what each one asks
  labd-eval experiment show say-why-zero     what differs between its arms, and how it is judged
  labd-eval experiment run say-why-zero --scripted
  labd-eval experiment run say-why-zero --agent claude --model NAME --trials 3
  labd-eval experiment run say-why-zero --before ./old/atlas --after ./new/atlas --agent claude
  labd-eval experiment run --resume latest   go on with one that was interrupted
  labd-eval experiment show latest           what a run of one has found"""


def options(parser: argparse.ArgumentParser, count: Any, seed: Any) -> None:
    """What the command takes. `count` and `seed` check numbers."""
    parser.add_argument("act", choices=("list", "show", "run"), metavar="list|show|run", help="what to do")
    parser.add_argument("name", nargs="?", metavar="NAME", help="an experiment; for show, also the run of one")
    parser.add_argument("-a", "--agent", metavar="NAME", help="who plays both arms (default: the experiment's)")
    parser.add_argument("--scripted", action="store_true",
                        help="the experiment's own scripted model plays; never confirms anything")  # fmt: skip
    parser.add_argument("--before", metavar="PROGRAM", help="another build for the arm before (lever tool)")
    parser.add_argument("--after", metavar="PROGRAM", help="another build for the arm after (lever tool)")
    parser.add_argument("-n", "--trials", type=count, metavar="N", help="trials a cell (default: the experiment's)")
    parser.add_argument(
        "--seed", type=seed, metavar="N", help="draws the order of arms and trials (default: a new one)"
    )
    parser.add_argument("-j", "--jobs", type=count, metavar="N", help="trials at once (default: the processors)")
    parser.add_argument("--resume", metavar="RUN", help="go on with an interrupted one (a path, a name, `latest`)")
    parser.add_argument(
        "-o", "--out", default="runs", metavar="DIR", help="where run directories are (default: ./runs)"
    )
    program_options.add(parser)


def do_experiment(values: argparse.Namespace, words: Sequence[str]) -> int:
    """List, show or run."""
    if values.act == "list":
        return _list(values)
    if values.act == "run":
        return _run(values)
    if values.name is None:
        raise Usage("show which? it takes a NAME", hint="labd-eval experiment list")
    return _show(values)


def _list(values: argparse.Namespace) -> int:
    known = [experiment.load(name) for name in experiment.names()]
    if values.json:
        _say(files.canonical({"experiments": [_data(one) for one in known]}).decode())
        return 0
    width = max((len(one.name) for one in known), default=0)
    _say("".join(f"{one.name.ljust(width)}  {one.lever:<12}  {one.title}\n" for one in known))
    return 0


def _data(one: experiment.Experiment) -> dict[str, Any]:
    return {
        "name": one.name, "title": one.title, "question": one.question, "subject": one.subject, "lever": one.lever,
        "scenarios": list(one.scenarios), "conditions": list(one.conditions), "agent": one.agent,
        "trials": one.trials, "fails_as": list(one.fails_as), "worth": one.worth, "scripted": bool(one.script),
        "before": vars(one.before), "after": vars(one.after),
    }  # fmt: skip


def _show(values: argparse.Namespace) -> int:
    """An experiment's definition, or what a run of one has found."""
    from harness import experiment_page

    if values.name in experiment.names():
        one = experiment.load(values.name)
        _say(files.canonical(_data(one)).decode() if values.json else _told(one))
        return 0
    if values.name != "latest" and not (Path(values.name).exists() or (Path(values.out) / values.name).exists()):
        experiment.load(values.name)  # raises with near matches
    found = experiment.found(experiment.find(Path(values.out), values.name))
    _say(files.canonical(found).decode() if values.json else experiment_page.text(found))
    return 0


def _told(one: experiment.Experiment) -> str:
    sides = [", ".join(f"{key} {value!r}" for key, value in vars(one.arm(name)).items() if value) or "as it is"
             for name in experiment.ARMS]  # fmt: skip
    return f"""\
{one.name}: {one.title}
{one.question}
subject    {one.subject}: {", ".join(one.scenarios)}; {", ".join(one.conditions)}; {one.trials} trials a cell
lever      {one.lever}
before     {sides[0]}
after      {sides[1]}
mends      failures of class {" or ".join(one.fails_as)}; without any before the change there is nothing to mend
confirmed  if agents are right more often, or as often with fewer commands (exact paired tests over scenarios)
refuted    if they are right less often, or a gain of {one.worth * 100:.0f} points can be ruled out
agent      {one.agent}{"; --scripted plays " + Path(one.script).name if one.script else ""}
"""


def _run(values: argparse.Namespace) -> int:
    from harness import commands, experiment_arms, experiment_page, gate, sandbox

    one, directory = _resumed(values) if values.resume else (_chosen(values), None)
    if not gate.passed():
        raise Refused("nothing is measured before this build has shown that it finds what goes wrong",
                      hint="labd-eval gate")  # fmt: skip
    directory = directory or _begun(one, values)
    for root in sandbox.reap_abandoned():
        note(values, f"removed what a killed run had left: {root}")
    note(values, f"experiment {directory}")
    with commands.room(directory, f"labd-eval experiment run --resume {directory}"):
        told = experiment_arms.carry_out(one, directory, lambda held: commands.carry_out(held, values),
                                         lambda line: note(values, line))  # fmt: skip
        if isinstance(told, int):
            note(values, f"stopped; go on with: labd-eval experiment run --resume {directory}")
            return 128 + told
        files.write_bytes(directory / experiment.PAGE, experiment_page.page(told).encode("utf-8", "backslashreplace"))
    _say(files.canonical(told).decode() if values.json else
         f"{experiment_page.text(told)}\nresult: {directory / experiment.PAGE}\n")  # fmt: skip
    return 0


def _chosen(values: argparse.Namespace) -> experiment.Experiment:
    """The experiment, with the builds that the command line names. Raises Usage."""
    if values.name is None:
        raise Usage("run which? it takes a NAME", hint="labd-eval experiment list")
    one = experiment.load(values.name)
    given = {name: program for name in experiment.ARMS if (program := getattr(values, name))}
    if given and one.lever != "tool":
        raise Usage(f"--{next(iter(given))}: the lever of {one.name} is the instructions, not the tool",
                    hint=f"labd-eval experiment show {one.name}")  # fmt: skip
    return experiment.with_builds(one, given)


def _resumed(values: argparse.Namespace) -> tuple[experiment.Experiment, Path]:
    """The experiment that was begun, and where. Raises Usage, NotFound, LabdError."""
    if values.name or values.agent or values.scripted or values.before or values.after:
        raise Usage("--resume runs what was begun", hint="leave out all that chooses")
    directory = experiment.find(Path(values.out), values.resume)
    plan = experiment.plan_of(directory)
    return experiment.with_builds(experiment.load(plan["experiment"]), plan["builds"]), directory


def _begun(one: experiment.Experiment, values: argparse.Namespace) -> Path:
    """The directory of a new run of it; the exam's own check comes first."""
    from harness import agents, commands, experiment_arms, scenario

    agent = values.agent or one.agent
    cast = agents.select([agent])
    if len(cast) != 1:
        raise Usage(f"{agent} is several agents, and both arms have to be played by one", hint="labd-eval list")
    if values.scripted:
        if not one.script:
            raise Usage(f"{one.name} has no script", hint=f"labd-eval experiment show {one.name}")
        if values.scripted_model:
            raise Usage("--scripted and --scripted-model say different things", hint="labd-eval experiment --help")
        values.scripted_model = one.script
    asked = program_options.read(values, cast)
    commands.must_be_sound([each for each in scenario.load_all(one.subject) if each.id in one.scenarios])
    seed = secrets.randbelow(2**32) if values.seed is None else values.seed
    return experiment_arms.begin(one, Path(values.out), agent=cast[0].word, options=asked,
                                 trials=values.trials or one.trials, seed=seed)  # fmt: skip


def _say(text: str) -> None:
    sys.stdout.write(text)
