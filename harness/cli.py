"""`labd-eval`: the exam's command line. Parses words, hands over to harness/commands.py, renders errors; no more.

The answer goes to stdout, alone; notes and progress go to stderr. Exit codes are those of labd, and 0 from `run`,
`loopback`, `versus`, `grade` and `check` only when all that ran ended as expected.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

try:
    from harness import (
        classify_command,
        compare_command,
        experiment_command,
        export,
        gate_command,
        journey_command,
        ledger_command,
        manpage,
        model_command,
        program_options,
        publish_command,
        readiness_command,
        scan_command,
        subject,
        sufficiency_command,
        transcript_command,
    )
    from harness.report import FORMATS
    from labd.errors import LabdError, Usage, nearest
except KeyboardInterrupt:  # in the first moment, when there is no `main` yet to tell it
    raise SystemExit(130) from None


DESCRIPTION = "The exam of the lab bench: run scenarios through the real labd, keep the evidence, grade it, report."

EXAMPLES = {
    "": """\
  labd-eval list                      what there is: scenarios and agents
  labd-eval run                       the reference answers of all executable scenarios; all must pass
  labd-eval run --all                 the same, and the negative controls, each of which must fail
  labd-eval report latest             the last run's report again""",
    "list": """\
  labd-eval list                      scenarios and agents, as tables
  labd-eval list --lane loopback      scenarios that run on simulated boards
  labd-eval list --subject git        the scenarios of another subject
  labd-eval list --json               all about them, for programs""",
    "check": """\
  labd-eval check                     schema, goals' wording, and references against the live command line
  labd-eval check --scenario C1       one scenario""",
    "run": """\
  labd-eval run                       the reference over all executable scenarios
  labd-eval run --agent controls      the negative controls; each must fail
  labd-eval run --all                 both, in one run with one report
  labd-eval run --scenario C1,S4 --trials 3
  labd-eval run --agent 'command:./my-agent --quiet' --time-limit 120
  labd-eval run --resume latest       go on with a run that was interrupted
  labd-eval run --cluster 127.0.0.1:8786   on the workers of a Dask scheduler""",
    "loopback": """\
  labd-eval loopback                  the reference over all scenarios with simulated boards
  labd-eval loopback --scenario S4 --agent hand-edit""",
    "versus": """\
  labd-eval versus                    the tasks T-*, by the bench, by pyserial, by socat into a file: who got it
  labd-eval versus --trials 5         the same five times; the bench must pass all, the others need not
  labd-eval versus --scenario T-DROP --agent raw""",
    "grade": """\
  labd-eval grade latest              grade the stored bundles of the last run again
  labd-eval grade runs/20261130T101500Z-all-1 --scenario C1""",
    "judge": """\
  labd-eval judge latest --judge 'claude -p'        any command: the question on its stdin, the answer on its stdout
  labd-eval judge latest --judge ./judge.sh --repeats 3 --scenario R4,M2""",
    "calibrate": """\
  labd-eval calibrate                               the graders against the sessions that come along
  labd-eval calibrate labels.toml --judge 'claude -p' --repeats 3""",
    "transcript": """\
  labd-eval transcript session.jsonl                what an agent ran, and how it ended, whatever program it was
  labd-eval transcript runs/R/trials/T --atif       a stored trial's, in the interchange form ATIF 1.8""",
    "classify": classify_command.EXAMPLES,
    "sufficiency": sufficiency_command.EXAMPLES,
    "compare": compare_command.EXAMPLES,
    "gate": gate_command.EXAMPLES,
    "journey": journey_command.EXAMPLES,
    "readiness": readiness_command.EXAMPLES,
    "scan": scan_command.EXAMPLES,
    "publish": publish_command.EXAMPLES,
    "verify": publish_command.EXAMPLES_VERIFY,
    "report": """\
  labd-eval report latest             the table; report.md and report.json are written beside the run
  labd-eval report latest --json      the whole report as one object""",
    "model": model_command.EXAMPLES,
    "ledger": ledger_command.EXAMPLES,
    "man": manpage.EXAMPLES,
    "export": export.EXAMPLES,
    "experiment": experiment_command.EXAMPLES,
}


class _Parser(argparse.ArgumentParser):
    """argparse whose mistakes are ours to tell: one line, near matches, the command that lists what exists."""

    def error(self, message: str) -> NoReturn:
        raise Usage(message, hint=f"{self.prog} --help")


class _Once(argparse.Action):
    """A flag with one value; given twice it would drop one silently."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        given: set[str] = getattr(namespace, "_given", set())
        if self.dest in given:
            raise Usage(f"{option_string} is given twice", hint=f"{parser.prog} --help")
        namespace._given = given | {self.dest}
        setattr(namespace, self.dest, values)


def build() -> tuple[_Parser, dict[str, _Parser]]:
    """The parser, and the parsers of its commands by name."""
    shared = _Parser(add_help=False)
    shared.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="answer in JSON; errors too")
    shared.add_argument("-q", "--quiet", action="store_true", default=argparse.SUPPRESS, help="no progress, no notes")
    plain = argparse.RawDescriptionHelpFormatter
    top = _Parser(prog="labd-eval", description=DESCRIPTION, parents=[shared], allow_abbrev=False,
                  formatter_class=plain, epilog=f"examples:\n{EXAMPLES['']}")  # fmt: skip
    commands = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    made: dict[str, _Parser] = {}
    for name, summary in (
        ("list", "scenarios and agents"),
        ("check", "check the exam itself: schema, wording, references against the live command line"),
        ("run", "run scenarios with agents, grade them, write the report"),
        ("loopback", "run the scenarios with simulated boards only"),
        ("versus", "tasks by the bench beside other ways to go about them; the bench must pass all"),
        ("grade", "grade the stored bundles of a run again; nothing is run"),
        ("judge", "ask a judge about the stated answers of a run, and grade them again by what it says"),
        ("calibrate", "hold the graders, and a judge, against sessions that people have scored"),
        ("transcript", "what an agent said and did, from the transcript of any known program"),
        ("report", "the report of a run"),
        ("classify", classify_command.HELP),
        ("sufficiency", sufficiency_command.HELP),
        ("compare", compare_command.HELP),
        ("gate", gate_command.HELP),
        ("journey", journey_command.HELP),
        ("model", model_command.HELP),
        ("experiment", experiment_command.HELP),
        ("ledger", ledger_command.HELP),
        ("man", manpage.HELP),
        ("export", export.HELP),
        ("readiness", readiness_command.HELP),
        ("scan", scan_command.HELP),
        ("publish", publish_command.HELP),
        ("verify", publish_command.HELP_VERIFY),
    ):
        made[name] = commands.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + ".", parents=[shared],
            formatter_class=plain, epilog=f"examples:\n{EXAMPLES[name]}",
            allow_abbrev=False,
        )  # fmt: skip
    _options(made)
    model_command.options(made["model"])
    ledger_command.options(made["ledger"])
    manpage.options(made["man"])
    export.options(made["export"], _Once)
    experiment_command.options(made["experiment"], _count, _seed)
    journey_command.options(made["journey"], _count, _seed)
    return top, made


_WHO = dict.fromkeys(
    ("run", "loopback"), "who acts: a name from `labd-eval list`, `controls` or `all`; repeatable (default: reference)"
) | {"versus": "only these arms: labd, raw, socat-log; repeatable (default: all three)"}


def _options(made: dict[str, _Parser]) -> None:
    program_options.add(made["run"])
    made["run"].add_argument("--cluster", action=_Once, metavar="ADDRESS",
                             help="conduct the trials on the workers of the Dask scheduler there (HOST:PORT); the run "
                                  "stays here (needs the extra `cluster`)")  # fmt: skip
    for name in ("list", "check", "run", "loopback", "versus", "grade", "judge", "classify", "compare"):
        made[name].add_argument("-s", "--scenario", action="append", default=[], metavar="ID",
                                help="only these scenarios: ids, comma-separated, * allowed; repeatable")  # fmt: skip
    for name in ("list", "check", "run"):
        made[name].add_argument("--subject", action=_Once, default=subject.DEFAULT, metavar="NAME",
                                help="what sits the exam: a folder of scenarios/ (default: labd)")  # fmt: skip
    for name in ("list", "run"):
        made[name].add_argument("--lane", action=_Once, choices=("config", "loopback", "virtual", "local", "stated"),
                                help="only scenarios whose commands run there")  # fmt: skip
    for name in ("run", "loopback", "versus"):
        # fmt: off
        add = made[name].add_argument
        add("-a", "--agent", action="append", default=[], metavar="NAME",
            help=_WHO[name])
        if name != "versus":
            add("--all", action="store_true", help="the reference and all controls (the same as --agent all)")
        add("--condition", action="append", default=[], choices=("cold", "warm", "preloaded", "mcp", "all"),
            help="what the agent starts with; repeatable (default: cold; makes no difference to scripted agents)")
        add("-n", "--trials", action=_Once, type=_count, default=1, metavar="N", help="trials a cell (default: 1)")
        add("--seed", action=_Once, type=_seed, metavar="N", help="draws the order of the trials (default: a new one)")
        add("--replace", action=_Once, type=_seed, metavar="N",
            help="at most N new trials a cell in place of those that the exam lost (default: as many as --trials)")
        add("-j", "--jobs", action=_Once, type=_count, metavar="N", help="trials at once (default: the processors)")
        add("--resume", action=_Once, metavar="RUN", help="go on with an interrupted run (a path, a name, `latest`)")
        # fmt: on
    for name in ("run", "loopback", "versus", "grade", "judge", "report", "classify", "compare", "sufficiency",
                 "readiness", "scan"):  # fmt: skip
        made[name].add_argument("-o", "--out", action=_Once, default="runs", metavar="DIR",
                                help="where run directories are (default: ./runs)")  # fmt: skip
    for name in ("judge", "calibrate"):
        # fmt: off
        add = made[name].add_argument
        add("--judge", action=_Once, required=name == "judge", metavar="COMMAND",
            help="who is asked: a command line, or scripted:FILE (answers by pattern, for tests)")
        add("--judge-model", action=_Once, metavar="NAME", help="what model that is; kept with each answer")
        add("--repeats", action=_Once, type=_count, default=1, metavar="K",
            help="ask K times; the majority counts (default: 1)")
        # fmt: on
    told = "a file of scored sessions, or a directory of such (default: those that come along)"
    made["calibrate"].add_argument("labels", nargs="?", metavar="LABELS", help=told)
    transcript_command.options(made["transcript"])
    sufficiency_command.options(made["sufficiency"])
    classify_command.options(made["classify"], _Once)
    compare_command.options(made["compare"])
    gate_command.options(made["gate"])
    readiness_command.options(made["readiness"], _Once)
    scan_command.options(made["scan"])
    publish_command.options(made["publish"], _Once)
    publish_command.verify_options(made["verify"])
    made["report"].add_argument("--format", action=_Once, default="table", choices=FORMATS,
                                help="the form of the answer (default: table)")  # fmt: skip
    for name in ("grade", "judge", "report"):
        made[name].add_argument("run", metavar="RUN", help="the run: a path, a name under --out, or `latest`")


def _seed(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise argparse.ArgumentTypeError(f"expected a whole number, found {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to 9999, found {text!r}")
    return int(text)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The words as values. Raises Usage with near matches; --help prints and exits."""
    top, made = build()
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in made:
        raise Usage(f"no command {command!r}", near=nearest(command, list(made)), hint="labd-eval --help")
    values, unknown = top.parse_known_args(list(words))
    if unknown:
        parser = made.get(values.command or "", top)
        flags = [flag for action in parser._actions for flag in action.option_strings
                 if flag.startswith("--")]  # fmt: skip
        word = unknown[0].partition("=")[0]
        kind = "option" if word.startswith("-") else "argument"
        near = nearest(word, flags) if kind == "option" else []
        raise Usage(f"{parser.prog}: unknown {kind} {word!r}", near=near, hint=f"{parser.prog} --help")
    if values.command is None:
        top.print_help()
        raise SystemExit(0)
    values.json = getattr(values, "json", False)
    values.quiet = getattr(values, "quiet", False)
    return values


def main(words: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    words = list(sys.argv[1:] if words is None else words)
    try:
        values = parse(words)
        from harness import commands, judge_commands

        owners = {"judge": judge_commands, "calibrate": judge_commands, "model": model_command,
                  "transcript": transcript_command, "classify": classify_command, "compare": compare_command,
                  "gate": gate_command, "ledger": ledger_command, "experiment": experiment_command,
                  "journey": journey_command,
                  "export": export, "man": manpage, "sufficiency": sufficiency_command, "readiness": readiness_command,
                  "scan": scan_command, "publish": publish_command, "verify": publish_command}  # fmt: skip
        module = owners.get(values.command, commands)
        code: int = getattr(module, f"do_{values.command}")(values, words)
        sys.stdout.flush()
        return code
    except LabdError as error:
        _tell(error, as_json="--json" in words)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if os.environ.get("LABD_DEBUG"):
            raise
        where = f": {error.filename}" if error.filename else ""
        _tell(LabdError(f"{error.strerror or error}{where}"), as_json="--json" in words)
        return 1


def _tell(error: LabdError, *, as_json: bool) -> None:
    if as_json:
        told = {"code": error.name, "message": error.message, "hint": error.hint, "near": error.near}
        sys.stderr.write(json.dumps({"error": told}) + "\n")
        return
    lines = [f"labd-eval: {error.message}"]
    if error.near:
        lines.append(f"  did you mean: {', '.join(error.near)}")
    if error.hint:
        lines.append(f"  try: {error.hint}")
    sys.stderr.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
