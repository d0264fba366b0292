"""Has a judge asked about stored trials, and keeps its answers word for word. Weighs nothing: graders/judge.py does.

A judge is any command: the question on its stdin, the answer on its stdout. What it costs and where it runs is its
owner's business. An answer is kept with the hashes of the question and of the rubric, so that a later rubric is never
mixed with it; answers of an earlier time are put aside, not over.
"""

import os
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graders import judge_prompt
from graders.bundle_view import Bundle
from graders.judge import SCHEMA
from harness import execute, files
from labd.errors import LabdError, NotFound, Usage

#: A judge that takes longer has hung.
LIMIT_S = 300.0

SCRIPTED = "scripted:"


@dataclass(frozen=True)
class Said:
    """What came back: the words, or why there are none."""

    raw: str
    problem: str = ""


@dataclass(frozen=True)
class Judge:
    """Somebody to ask. `name` is how it was asked for and is stored; `model` is what its owner says it is."""

    name: str
    ask: Callable[[str], Said]
    model: str | None = None


def find(words: str, model: str | None = None, limit_s: float = LIMIT_S) -> Judge:
    """The judge that `words` name: a command line, or `scripted:FILE` (for tests: answers by pattern, no model).

    Raises Usage for words that are no command line, LabdError for a script that can't be read.
    """
    if words.startswith(SCRIPTED):
        return Judge(words, _scripted(Path(words.removeprefix(SCRIPTED))), model)
    try:
        argv = shlex.split(words)
    except ValueError as error:
        raise Usage(f"--judge {words!r}: {error}", hint="labd-eval judge --help") from error
    if not argv:
        raise Usage("--judge names no command", hint="labd-eval judge --help")
    if shutil.which(argv[0]) is None:
        raise NotFound(f"--judge: there is no program {argv[0]!r} that can be run; nothing was asked",
                       hint="labd-eval judge --help")  # fmt: skip
    return Judge(words, lambda prompt: _command(argv, prompt, limit_s), model)


def _command(argv: list[str], prompt: str, limit_s: float) -> Said:
    ended = execute.run(argv, env=os.environ, cwd=os.getcwd(), limit_s=limit_s, stdin=prompt.encode("utf-8", "replace"))
    raw = ended.stdout.decode("utf-8", "replace")
    if ended.ended_by == "not_started":
        return Said(raw, f"the judge could not be started: {ended.error}")
    if ended.ended_by == "time_limit":
        return Said(raw, f"the judge gave no answer within {limit_s:g} s")
    if not ended.ok:
        first = ended.stderr.decode("utf-8", "replace").strip().split("\n")[0][:200]
        how = ended.signal or f"exit {ended.code}"
        return Said(raw, f"the judge ended with {how}" + (f": {first}" if first else ""))
    return Said(raw)


def _scripted(path: Path) -> Callable[[str], Said]:
    """Answers from a file: `[[answer]]` with `match` (a pattern on the question) and `text`; the first that fits."""
    entries = files.read_toml(path).get("answer", [])
    try:
        known = [(re.compile(entry["match"]), str(entry["text"])) for entry in entries]
    except (re.error, KeyError, TypeError) as error:
        raise LabdError(f"{path}: no script of a judge: {error}") from error

    def answer(prompt: str) -> Said:
        fitting = (text for pattern, text in known if pattern.search(prompt))
        return Said(next(fitting, ""))

    return answer


def ask(directory: Path, judge: Judge, repeats: int = 1) -> list[dict[str, Any]]:
    """Ask about one trial `repeats` times and keep the answers in its judge/; returns what was kept.

    Earlier answers are put aside first. Raises BundleError if the directory is no bundle, OSError if it can't be
    written.
    """
    prompt = judge_prompt.prompt(Bundle(directory))
    place = directory / "judge"
    answers = [_record(judge, prompt, number) for number in range(1, repeats + 1)]
    place.mkdir(exist_ok=True)
    _put_aside(place)
    for answer in answers:
        files.write_json(place / f"{answer['number']:03d}.json", answer)
    return answers


def _record(judge: Judge, prompt: str, number: int) -> dict[str, Any]:
    said = judge.ask(prompt)
    return {
        "schema": SCHEMA,
        "number": number,
        "judge": judge.name,
        "model": judge.model,
        "rubric": judge_prompt.digest(),
        "prompt_sha256": files.digest(prompt.encode("utf-8", "surrogatepass")),
        "asked": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "raw": said.raw,
        "problem": said.problem,
    }


def _put_aside(place: Path) -> None:
    """Move answers of an earlier time into superseded/N: the first N that nobody has."""
    old = sorted(place.glob("*.json"))
    if not old:
        return
    number = 1
    while (place / "superseded" / str(number)).exists():
        number += 1
    aside = place / "superseded" / str(number)
    aside.mkdir(parents=True)
    for path in old:
        path.rename(aside / path.name)
