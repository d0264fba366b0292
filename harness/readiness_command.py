"""`labd-eval readiness`: exercise the rubric's checks against a subject, and show what they came to.

Parsed in harness/cli.py like all commands; here is what it does.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graders import readiness as grader
from graders.readiness_rules import RULES
from harness import files, readiness, readiness_plan, sandbox
from harness.telling import note
from labd.errors import LabdError, NotFound, Usage, nearest

HELP = "what a program shows of help, output, headless use, previews, errors and authentication, by being used"

EXAMPLES = """\
  labd-eval readiness labd            all checks that apply, each in a sandbox of its own; kept under ./runs
  labd-eval readiness git --json      the same as one object
  labd-eval readiness git --check preview --check replay
  labd-eval readiness --grade runs/readiness-git-20261130T141500Z-1a2b3c    judge what was kept once more
  labd-eval readiness labd --keep docs/readiness
  labd-eval readiness --history labd  earlier measurements, each by its own version of the rubric"""


def options(parser: argparse.ArgumentParser, once: type[argparse.Action]) -> None:
    """What the command takes, besides what all take."""
    parser.add_argument("subject", nargs="?", metavar="SUBJECT", help="what is measured: a folder of scenarios/")
    parser.add_argument("--check", action="append", default=[], metavar="ID",
                        help="only this check; repeatable. There is no overall number then")  # fmt: skip
    parser.add_argument("--grade", action=once, metavar="DIR", help="a measurement that was kept, judged once more")
    parser.add_argument("--keep", action=once, metavar="DIR",
                        help="put the result there as well, among earlier ones: a file a measurement")  # fmt: skip
    parser.add_argument("--history", action="store_true", help="the measurements that are under --out")


def do_readiness(values: argparse.Namespace, words: Sequence[str]) -> int:
    """Measure, or look at what was measured. 0 also where checks failed: that is an answer, not an error;
    1 where none could be exercised."""
    if values.history:
        return _history(values)
    if values.grade:
        if values.subject or values.check:
            raise Usage(
                "--grade judges what was kept: leave out SUBJECT and --check", hint="labd-eval readiness --help"
            )
        return _grade(values, Path(values.grade))
    if not values.subject:
        raise Usage("which subject?", hint="labd-eval readiness labd")
    unknown = next((one for one in values.check if one not in RULES), None)
    if unknown is not None:
        raise Usage(f"there is no check {unknown!r}", near=nearest(unknown, list(RULES)),
                    hint="labd-eval readiness --help")  # fmt: skip
    plan = readiness_plan.load(values.subject)
    for root in sandbox.reap_abandoned():
        note(values, f"removed what a killed run had left: {root}")
    begun = time.monotonic()
    directory = readiness.measure(plan, Path(values.out), values.check, lambda text: note(values, text))
    note(values, f"{time.monotonic() - begun:.1f} s; kept in {directory}")
    if values.keep:
        note(values, f"result: {readiness.keep(directory, Path(values.keep))}")
    told = files.read_json(directory / "result.json")
    _show(values, told)
    return _unmeasured(told)


def _unmeasured(told: dict[str, Any]) -> int:
    """1, with the reason, where not one of the checks that were to be exercised could be: that is no answer."""
    tried = [one for one in told["checks"] if one["verdict"] not in ("not_run", "not_applicable")]
    if not tried or any(one["verdict"] not in ("blocked", "harness_error") for one in tried):
        return 0
    sys.stderr.write(f"labd-eval: nothing could be measured: {tried[0]['reason']}\n")
    return 1


def _grade(values: argparse.Namespace, directory: Path) -> int:
    if not (directory / "manifest.json").is_file():
        raise NotFound(f"{directory} is no measurement of readiness", hint="labd-eval readiness --history")
    try:
        wrong = readiness.touched(directory)
        told = grader.grade(directory)
    except (grader.NotReadiness, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabdError(f"{directory}: {error}", hint="labd-eval readiness --history") from error
    code = _show(values, told)
    for name in wrong:
        sys.stderr.write(f"labd-eval: {directory / name}: not what was measured\n")
    return 1 if wrong else code


def _history(values: argparse.Namespace) -> int:
    found = readiness.history(Path(values.out), values.subject or "")
    if values.json:
        sys.stdout.write(files.canonical(found).decode())
        return 0
    for one in found:
        told = (one["measured"], f"{one['subject']:<6}", f"rubric {one['rubric']['version']}", f"{_whole(one):<12}")
        sys.stdout.write("  ".join((*told, one["from"])) + "\n")
    if not found:
        sys.stdout.write(f"no measurement is under {values.out}; labd-eval readiness labd makes one\n")
    return 0


def _show(values: argparse.Namespace, told: dict[str, Any]) -> int:
    sys.stdout.write(files.canonical(told).decode() if values.json else table(told))
    return 0


def _whole(told: dict[str, Any]) -> str:
    return "not measured" if told["overall"] is None else f"{100 * told['overall']:.1f} %"


def table(told: dict[str, Any]) -> str:
    """A result for people: the checks by domain, with what each came to and why."""
    lines = [f"{told['program']} ({told['version']}), rubric {told['rubric']['version']}, {told['measured']}"]
    for domain in told["domains"]:
        share = "not measured" if domain["score"] is None else f"{domain['passed']} of {domain['applicable']}"
        lines += ["", f"{domain['title']}: {share if domain['applicable'] else 'not applicable'}"]
        for one in told["checks"]:
            if one["domain"] == domain["name"]:
                beside = "  (documented)" if one.get("documented") and one["verdict"] != "pass" else ""
                lines.append(f"  {one['id']:<18} {one['verdict'].replace('_', ' '):<14} {one['reason']}{beside}")
    lines += ["", f"overall: {_whole(told)}"]
    if told["missing"]:
        lines[-1] += f"; without evidence: {', '.join(told['missing'])}"
    return "\n".join(lines) + "\n"
