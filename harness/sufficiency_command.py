"""`labd-eval sufficiency`: was an answer enough? Read off what the agent did next, from any log, bundle or run.

Here is what is read and what is judged; the rules are in graders/sufficiency*.py, the words in sufficiency_text.py.
"""

import argparse
import gc
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graders.bundle_view import BundleError
from graders.shell_lex import Unclear
from graders.sufficiency import Found, measure
from graders.sufficiency_arms import Arm, cautions, compare
from graders.sufficiency_shell import accesses
from harness import files, run, sufficiency_text, transcript_command, transcript_files, transcripts
from harness.sufficiency_judging import judged_bundle, thing_of
from labd.errors import LabdError, NotFound, Usage

SCHEMA = "labd-sufficiency/1"

HELP = "was an answer enough? what the agent did next, for each call of a program or tool"

EXAMPLES = """\
  labd-eval sufficiency session.jsonl                     each call of labd in a log of any known agent program
  labd-eval sufficiency session.jsonl --tool explore      of a tool (also an MCP server's), by its name; * allowed
  labd-eval sufficiency session.jsonl --subject kubectl   of any program in the shell
  labd-eval sufficiency latest                            all trials of a run, an arm for each agent and condition
  labd-eval sufficiency --arm with a1.jsonl a2.jsonl --arm without b1.jsonl b2.jsonl
  labd-eval sufficiency --selftest                        known answers for every rule, in every format"""

#: The arm of logs of which nobody said whose they are.
ALL = "all"


@dataclass(frozen=True)
class Log:
    """One log that was judged. `told`: its normal form, without what was called and said."""

    arm: str
    name: str
    told: Mapping[str, Any]
    found: Found


def options(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    # fmt: off
    add = parser.add_argument
    add("logs", nargs="*", metavar="LOG",
        help="a transcript (- for standard input), a directory of them (a log a session), a trial, or a run")
    add("--arm", action="append", nargs="+", default=[], metavar=("NAME", "LOG"),
        help="the logs of one arm, one a pass; repeatable: arms are compared with the first")
    add("--subject", metavar="NAME", help="judge this program of the shell (default: a run's own; else labd)")
    add("--tool", metavar="NAME",
        help="judge this tool instead: its name, or that behind its MCP server's; '*NAME' where a product makes one "
             "name of both (cg_NAME)")
    add("--product", choices=transcripts.PRODUCTS, help="whose the logs are (default: what their records say)")
    add("--selftest", action="store_true", help="hold the rules against made logs with known answers; 1 if one fails")
    # fmt: on


def do_sufficiency(values: argparse.Namespace, words: Sequence[str]) -> int:
    """Judge, and say it."""
    if values.selftest:
        return _selftest(values)
    wanted = [(ALL, name) for name in values.logs]
    for name, *logs in values.arm:
        wanted += [(name, log) for log in logs]
        if not logs:
            raise Usage(f"--arm {name} names no log", hint="labd-eval sufficiency --help")
    if not wanted:
        raise Usage("no log is named", hint="labd-eval sufficiency --help")
    if values.subject and values.tool:
        raise Usage("--subject and --tool say different things", hint="labd-eval sufficiency --help")
    collecting = gc.isenabled()
    gc.disable()  # millions of values and no circle among them: to look for some costs a third of the time
    try:
        told = projected(*_judged(wanted, values))
        sys.stdout.write(files.canonical(told).decode() if values.json else sufficiency_text.text(told))
    finally:
        if collecting:
            gc.enable()
    return 0


def _selftest(values: argparse.Namespace) -> int:
    from harness import sufficiency_selftest

    done = [(case.rule, form, problems) for case, form, problems in sufficiency_selftest.run()]
    failed = [one for one in done if one[2]]
    if values.json:
        told = [{"rule": rule, "form": form, "problems": problems} for rule, form, problems in done]
        sys.stdout.write(files.canonical({"cases": told, "failed": len(failed)}).decode())
    else:
        sys.stdout.write(sufficiency_text.selftest(done))
    return 1 if failed else 0


# -- what is judged ------------------------------------------------------------------------------------------------


def _judged(
    wanted: Sequence[tuple[str, str]], values: argparse.Namespace
) -> tuple[list[Log], list[dict[str, str]], Counter[str]]:
    """The logs, those that could not be judged, and which tools and programs they call."""
    logs: list[Log] = []
    skipped: list[dict[str, str]] = []
    seen: Counter[str] = Counter()
    for arm, name in wanted:
        place = Path(name)
        run_ = _run(place, Path(values.out))
        if run_ is None and not (place / "trial.json").is_file():
            several = transcript_files.logs(place)
            for one, raw in several.items():
                try:
                    told = parsed(one, transcript_files.read(raw), values.product)
                except Usage as error:
                    if len(several) == 1:
                        raise
                    skipped.append({"log": str(one), "why": error.message.removeprefix(f"{one}: ")})
                    continue
                logs.append(Log(arm, str(one), _about(told), measure(told, thing_of(values.subject, values.tool))))
                seen.update(_called(told) if _nothing(logs[-1].found) else ())
            continue
        for bundle in [place] if run_ is None else sorted(one.parent for one in run_.glob("trials/*/trial.json")):
            try:
                made = judged_bundle(bundle, values.subject, values.tool)
            except (BundleError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                skipped.append({"log": str(bundle), "why": f"damaged: {error}"})
                continue
            if made is None:
                skipped.append({"log": str(bundle), "why": "no transcript"})
                continue
            told, found, own = made
            logs.append(Log(own if arm == ALL else arm, str(bundle), _about(told), found))
            seen.update(_called(told) if _nothing(found) else ())
    return logs, skipped, seen


def _run(place: Path, out: Path) -> Path | None:
    """The run of that name, if it is one."""
    if transcript_files.is_file(place) or (place.is_dir() and not (place / "run.json").is_file()):
        return None
    try:
        return run.find(out, str(place))
    except NotFound as error:
        raise NotFound(f"no transcript, trial or run {place}", near=error.near,
                       hint="labd-eval sufficiency --help") from error  # fmt: skip


def parsed(place: Path, raw: Mapping[str, bytes], product: str | None = None) -> dict[str, Any]:
    """The normal form of a log as plain data, of which nothing is copied. Raises Usage where its format is unknown."""
    try:
        told = transcripts.parse(product or transcript_command.product_of(raw) or "atif", raw)
    except transcripts.TranscriptError as error:
        raise Usage(
            f"{place}: {transcript_command.senseless(raw, error)}", hint="labd-eval sufficiency --help"
        ) from error
    parts = {name: [vars(one) for one in getattr(told, name)] for name in ("threads", "messages", "calls")}
    return vars(told) | parts | {"ended": vars(told.ended)}


def _nothing(found: Found) -> bool:
    """Whether the log has no call at all of what is judged."""
    return not (found.judged or found.failed or found.unanswered or found.other_route)


def _about(told: Mapping[str, Any]) -> dict[str, Any]:
    return {key: told.get(key) for key in ("product", "format", "truncated")} | {"problems": len(told["problems"])}


def _called(told: Mapping[str, Any]) -> Iterator[str]:
    """The names of tools, and of programs in the shell, that a log's calls use."""
    for call in told["calls"]:
        yield f"--tool {call['tool']}"
        if call["kind"] == "shell" and call["command"]:
            try:
                programs = {one.program for one in accesses(call["command"])}
            except Unclear:
                continue
            yield from (f"--subject {name}" for name in programs if re.fullmatch(r"[\w.+-]+", name))


# -- the answer as data --------------------------------------------------------------------------------------------


def projected(logs: Sequence[Log], skipped: list[dict[str, str]], seen: Counter[str]) -> dict[str, Any]:
    """The whole answer. `others`: what else could be judged, told where nothing was."""
    if not logs and skipped:
        raise LabdError(f"nothing to judge: {skipped[0]['log']}: {skipped[0]['why']}"
                        + (f", and {len(skipped) - 1} more" if len(skipped) > 1 else ""),
                        hint="labd-eval list: agents that are programs leave transcripts")  # fmt: skip
    names = list(dict.fromkeys(one.arm for one in logs))
    arms = [Arm(name, tuple(one.found for one in logs if one.arm == name)) for name in names]
    nothing = all(_nothing(one.found) for one in logs)
    return {
        "schema": SCHEMA,
        "of": list(dict.fromkeys(str(one.found.thing) for one in logs)),
        "arms": {arm.name: arm.data() for arm in arms},
        "comparisons": [vars(compare(arms[0], arm)) for arm in arms[1:]],
        "logs": [{"arm": one.arm, "log": one.name, **one.told, **one.found.data()} for one in logs],
        "skipped": skipped,
        "others": dict(seen.most_common(12)) if nothing else {},
        "notes": cautions(arms),
    }
