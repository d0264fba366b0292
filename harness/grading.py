"""Has stored bundles graded. The graders are pure; this reads which one a trial names, and keeps what it found.

The same bundle and the same grader give the same bytes; a verdict that changes (a grader was mended) is put beside
the old one, never over it.
"""

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from graders.bundle_view import Bundle
from graders.verdict import Verdict, from_dict
from harness import files
from harness.causes import policy_of


def judge(directory: Path) -> Verdict:
    """The verdict on one bundle, not kept. What ended the trial comes first: its cause may leave nothing to grade."""
    try:
        trial = files.read_json(directory / "trial.json")
        name = str(trial["grader"])
        policy = policy_of(str(trial["ended_by"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Verdict("none", "harness_error", f"the bundle can't be read: {error}")
    changed = _changed(directory, trial)
    if changed:
        return Verdict(name, "harness_error", f"not the bundle that the trial left: {changed}")
    why = f"{policy.cause}: {trial.get('detail') or policy.meaning}"
    if not policy.valid:
        return Verdict(name, policy.verdict or "harness_error", why)
    found = _ask(name, directory)
    if policy.cause == "completed" or (policy.verdict is None and found.verdict == "pass"):
        return found
    if policy.verdict is None:
        return Verdict(found.grader, found.verdict, f"{why}; {found.reason}", found.checks, found.traps)
    return Verdict(found.grader, policy.verdict, why, found.checks, found.traps)


def _changed(directory: Path, trial: dict[str, Any]) -> str:
    """What of the evidence is not as trial.json says; empty if all is."""
    for name, wanted in sorted(trial.get("files", {}).items()):
        try:
            found = files.digest((directory / name).read_bytes())
        except OSError as error:
            return f"{name}: {error.strerror}"
        if found != wanted:
            return f"{name} has changed"
    return ""


def _ask(name: str, directory: Path) -> Verdict:
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
    try:
        old = path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(exist_ok=True)
        files.write_bytes(path, new)
        return verdict, False
    if old == new:
        return verdict, False
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
