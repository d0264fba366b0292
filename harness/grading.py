"""Has stored bundles graded. The graders are pure; this reads which one a trial names, and keeps what it found.

The same bundle and the same grader give the same bytes; a verdict that changes (a grader was mended) is put beside
the old one, never over it.
"""

import os
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from graders import parsed
from graders.bundle_view import SCHEMA, Bundle
from graders.verdict import Verdict, from_dict
from harness import files
from harness.causes import policy_of


def judge(directory: Path) -> Verdict:
    """The verdict on one bundle, not kept. What ended the trial comes first: its cause may leave nothing to grade."""
    try:
        trial = _trial(directory)
    except (OSError, ValueError) as error:
        return Verdict("none", "harness_error", f"the bundle can't be read: {error}")
    name, policy = trial["grader"], policy_of(trial["ended_by"])
    changed = _changed(directory, trial) or _unsealed(directory)
    if changed:
        return Verdict(name, "harness_error", f"not the bundle that the trial left: {changed}")
    why = f"{policy.cause}: {trial.get('detail') or policy.meaning}"
    if not policy.valid:
        return Verdict(name, policy.verdict or "harness_error", why)
    found = by_grader(name, directory)
    if policy.cause == "completed" or (policy.verdict is None and found.verdict == "pass"):
        return found
    if policy.verdict is None:
        return replace(found, reason=f"{why}; {found.reason}")
    return replace(found, verdict=policy.verdict, reason=why)


def damage(directory: Path) -> str:
    """What is wrong with a bundle, in a line, so that nothing said about it may be believed; empty if nothing is."""
    try:
        return _changed(directory, _trial(directory)) or _unsealed(directory)
    except (OSError, ValueError) as error:
        return f"the bundle can't be read: {error}"


def _trial(directory: Path) -> dict[str, Any]:
    """trial.json. Raises OSError, or ValueError if it is no record of a trial."""
    trial = files.read_json(directory / "trial.json")
    if not isinstance(trial, dict) or trial.get("schema") != SCHEMA:
        raise ValueError(f"trial.json is not of schema {SCHEMA}")
    if not all(isinstance(trial.get(key), str) for key in ("grader", "ended_by", "id")):
        raise ValueError("trial.json does not say which trial it was, how it ended, or what grades it")
    if trial["id"] != directory.name:
        raise ValueError(f"trial.json is of another trial, {trial['id']}")
    return trial


#: Directories of a bundle that are written after the trial: findings about the evidence, not evidence.
_LATER = ("grades/", "judge/")

#: Files that every trial leaves.
_ALWAYS = frozenset({"scenario.json", "goal.txt", "calls.jsonl", "answer.txt", "stderr.txt"})


def _sealed(log: Path, identity: str) -> str:
    """The last digest that the log has for a trial; empty if it has none. A line that was torn by a crash is none."""
    found = ""
    try:
        lines = log.read_bytes().split(b"\n")
    except OSError:
        return ""
    for line in lines:
        if b'"sealed"' not in line:
            continue
        try:
            entry = parsed.from_json(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("event") == "sealed" and entry.get("id") == identity:
            found = str(entry.get("sha256"))
    return found


def _unsealed(directory: Path) -> str:
    """Whether the run's log binds this very trial.json. A bundle that is in no run has nothing that binds it."""
    home = directory.parent.parent
    if not (home / "run.json").is_file():
        return ""
    sealed = _sealed(home / "log.jsonl", directory.name)
    if not sealed:
        return "the run's log does not know it"
    found = files.digest((directory / "trial.json").read_bytes())
    return "" if found == sealed else "trial.json is not the one that the run's log knows"


def _changed(directory: Path, trial: dict[str, Any]) -> str:
    """What of the evidence is not as trial.json says; empty if all is."""
    told = trial.get("files")
    if not isinstance(told, dict):
        return "trial.json has no hashes"
    gathered = {f"{name}.jsonl" for name in trial.get("evidence") or () if name == "witness"}
    lost = sorted((_ALWAYS | gathered) - set(told))
    if lost:
        return f"trial.json has no hash of {lost[0]}"
    there = {str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir()}
    more = sorted(name for name in there - set(told) if name != "trial.json" and not name.startswith(_LATER))
    if more:
        return f"{more[0]} is not of the trial"
    for name, wanted in sorted(told.items()):
        try:
            found = files.digest((directory / name).read_bytes())
        except OSError as error:
            return f"{name}: {error.strerror}"
        if found != wanted:
            return f"{name} has changed"
    return ""


def by_grader(name: str, directory: Path) -> Verdict:
    """What the grader of that name finds in a bundle; one that raises is an error of the harness."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        return Verdict("none", "harness_error", f"{name!r} is no grader's name")
    try:
        grader = import_module(f"graders.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"graders.{name}":
            raise
        return Verdict(name, "not_run", f"there is no grader {name!r} in this version")
    try:
        found: Verdict = grader.grade(Bundle(directory))
        return found
    except Exception as error:
        return Verdict(name, "harness_error", f"the grader raised {type(error).__name__}: {error}")


def grade(directory: Path) -> tuple[Verdict, bool]:
    """The verdict on a bundle, kept in its grades/; returns it, and whether it differs from what was kept before."""
    verdict = judge(directory)
    path = directory / "grades" / f"{verdict.grader}.json"
    new = verdict.dumps().encode()
    others = [other for other in path.parent.glob("*.json") if other != path]
    for other in others:
        _put_aside(other)
        other.unlink()
    try:
        old = path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(exist_ok=True)
        files.write_bytes(path, new)
        return verdict, bool(others)
    if old == new:
        return verdict, bool(others)
    _put_aside(path)
    files.write_bytes(path, new)
    return verdict, True


def _put_aside(path: Path) -> None:
    """Keep a superseded verdict: grades/superseded/NAME.1.json, .2.json and so on."""
    aside = path.parent / "superseded"
    aside.mkdir(exist_ok=True)
    number = 1
    while (aside / f"{path.stem}.{number}.json").exists():
        number += 1
    os.link(path, aside / f"{path.stem}.{number}.json")


def kept(directory: Path) -> Verdict | None:
    """The verdict that is kept in a bundle; None if it was never graded (or what is there is unreadable)."""
    for path in sorted((directory / "grades").glob("*.json")):
        try:
            stored: Any = files.read_json(path)
            return from_dict(stored)
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None
