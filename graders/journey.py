"""Grades one scenario of a journey: the right resource changed as intended, all else as it was, nothing forbidden done.

Any commands that lead there are right. The end state is read by the grader of its kind (`grader.state`), from what the
harness itself took before and after; servers beside the sandbox's work by graders/remotes.py. Beside the verdict, each
stage of the journey is told: whether it was reached and was right, by its own evidence. Pure function of a bundle.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from graders import remotes, route, said_and_done, when
from graders.argv_records import Invocation
from graders.bundle_view import Bundle
from graders.verdict import Check, Stage, Verdict, conclude

NAME = "journey"

#: Which stage a stage stands on: what was never applied can't be looked at again or done twice. Looking first, or not,
#: is the agent's own affair, and stops nothing behind it.
STANDS_ON = {"verify": "apply", "replay": "apply"}

#: A check of the state's graders that a journey does not ask: any commands are right, also those that failed first.
_NOT_ASKED = "exit codes"


def grade(bundle: Bundle) -> Verdict:
    """The verdict on one trial, with its stages. Raises BundleError if the directory is no bundle."""
    early = said_and_done.not_gradable(bundle, NAME)
    if early:
        return early
    checks = [*end(bundle), *remotes.check(bundle), *forbidden(bundle), ends_known(bundle)]
    found = conclude(NAME, checks, said_and_done.traps(bundle))
    return replace(found, stages=stages(bundle, checks))


def end(bundle: Bundle) -> list[Check]:
    """What the grader of the state's kind asks."""
    kind = import_module(f"graders.{bundle.scenario['grader']['state']}")
    asked: list[Check] = kind.checks(bundle)
    return [check for check in asked if check.name != _NOT_ASKED]


def forbidden(bundle: Bundle) -> list[Check]:
    """Whether the record has none of what must not be done on the way, whatever the end looks like."""
    checks = []
    for entry in bundle.scenario["grader"].get("forbidden", ()):
        name = f"not done: {entry['text']}"
        if bundle.record is None:
            checks.append(Check(name, None, "the trial left no argv record"))
        else:
            done = when.compile_when(entry["when"])(route.subject_invocations(bundle))
            checks.append(Check(name, not done, "it was done" if done else ""))
    return checks


def ends_known(bundle: Bundle) -> Check:
    """Whether it is known how each command ended: a missing exit code is unknown, never 0."""
    open_ = [one for one in route.subject_invocations(bundle) if one.code is None and one.signal is None]
    return Check("ends known", None if open_ else True, f"nobody knows how {open_[0]} ended" if open_ else "")


# -- stages -----------------------------------------------------------------------------------------------------------


def stages(bundle: Bundle, checks: Sequence[Check]) -> tuple[Stage, ...]:
    """What each stage came to, in order."""
    found: dict[str, Stage] = {}
    for told in bundle.scenario["journey"]["stages"]:
        name = told["name"]
        below = found.get(STANDS_ON.get(name, ""))
        if below is not None and below.verdict == "not_reached":
            found[name] = Stage(name, "not_reached", f"{below.name} was not reached")
        else:
            found[name] = _stage(told, bundle, checks)
    return tuple(found.values())


def _stage(told: dict[str, Any], bundle: Bundle, checks: Sequence[Check]) -> Stage:
    name = told["name"]
    reached, those = _reached(told, bundle)
    if not reached:
        missing = "evidence is missing" if reached is None else f"not seen: {told['shows']}"
        return Stage(name, "unknown" if reached is None else "not_reached", missing)
    asked = _RIGHT[told["right"]](bundle, checks, those)
    found = conclude(name, asked)
    return Stage(name, found.verdict, found.reason)


def _reached(told: dict[str, Any], bundle: Bundle) -> tuple[bool | None, list[Invocation]]:
    """Whether it was reached (None: nobody knows), and by which recorded commands."""
    state = bundle.facts("state.json")
    if told["reached"] == "changed":
        return (None if state is None else state["before"] != state["after"]), []
    if told["reached"] == "replayed":
        return (None if state is None else bool(state["ran"])), []
    if bundle.record is None:
        return None, []
    satisfies = when.compile_when(told["reached"])
    runs = _at_its_time(told["name"], bundle)
    those = [one for one in runs if satisfies([one])]
    return bool(those), those


def _at_its_time(stage: str, bundle: Bundle) -> list[Invocation]:
    """The commands among which a stage is looked for: a look ahead before the first change, a look back after the
    last. A change is a command's, by its digests, or what a server received, whoever sent it. What was changed by
    nobody knows whom, nobody can have looked ahead of."""
    runs = route.subject_invocations(bundle)
    changing = [number for number, one in enumerate(runs) if _changed(one)]
    heard = [entry["t"] for entry in bundle.received or ()]
    if stage in ("discover", "preview"):
        if not changing and not heard:
            return [] if bundle.received is not None and _differs(bundle) else runs
        first = min(heard, default=float("inf"))
        return [one for one in runs[: changing[0] + 1 if changing else None] if one.start.get("t", 0) <= first]
    if stage == "verify":
        last = max(heard, default=0.0)
        return [one for one in runs[changing[-1] + 1 if changing else 0 :] if one.start.get("t", 0) > last]
    return runs


def _differs(bundle: Bundle) -> bool:
    state = bundle.facts("state.json")
    return state is not None and bool(state["before"] != state["after"])


def _changed(one: Invocation) -> bool:
    before, after = _digests(one)
    return bool(before != after)


def _digests(one: Invocation) -> tuple[Any, Any]:
    """The digests of the state before and after a command, as its record has them."""
    told = one.end or {}
    return told.get("lab_before"), told.get("lab_after")


def _unchanged(bundle: Bundle, checks: Sequence[Check], those: list[Invocation]) -> list[Check]:
    """By digests of the state around each of these commands. State that nobody observed is unknown, not unchanged."""
    return [_left_alone(one, checks) for one in those]


def _left_alone(one: Invocation, checks: Sequence[Check]) -> Check:
    """Of a command that only reads, a program may keep no digests; then it takes a witness of every change."""
    before, after = _digests(one)
    if before is None and after is None and _all_changes_known(checks):
        return Check("state unchanged", True, "every change that was seen is another command's")
    ok = None if before is None or after is None else before == after
    detail = "nobody took the state's digests" if ok is None else "" if ok else f"{one} changed the state"
    return Check("state unchanged", ok, detail)


def _all_changes_known(checks: Sequence[Check]) -> bool:
    """Whether recorded edits lead from the seed to the end, and the harness saw no others while they did."""
    found = {check.name: check.ok for check in checks}
    return found.get("lab route") is True and found.get("lab history") is True


def _end_state(bundle: Bundle, checks: Sequence[Check], those: list[Invocation]) -> list[Check]:
    return [check for check in checks if not check.name.startswith("answer [")]


def _answered(bundle: Bundle, checks: Sequence[Check], those: list[Invocation]) -> list[Check]:
    """The answer, where one is asked for; and that one of those commands ended well, or nothing was learned of it."""
    codes = [one.code for one in those]
    well = any(code == 0 for code in codes) or (None if None in codes else False)
    looked = Check("looked", well, "" if well else "no such command ended well")
    return [*(check for check in checks if check.name.startswith("answer [")), *([looked] if those else [])]


def _same(bundle: Bundle, checks: Sequence[Check], those: list[Invocation]) -> list[Check]:
    """By digest, part by part: the second time left no extra copy, and damaged nothing."""
    state = bundle.facts("state.json") or {}
    after, again = state.get("after") or {}, state.get("replayed") or {}
    hung = [ran["run"] for ran in state.get("ran", ()) if ran["ended_by"] != "exit"]
    found = [Check("second time ended", not hung, f"{hung[0]} did not end by itself" if hung else "")]
    for part in sorted({*after, *again}):
        same = after.get(part) == again.get(part)
        found.append(Check(f"second time: {part}", same, "" if same else "it is not as the first time left it"))
    return found if after else [Check("second time", None, "nobody took the state's digests")]


def _repaired(bundle: Bundle, checks: Sequence[Check], those: list[Invocation]) -> list[Check]:
    """Nothing of the fault is left (its assertions are among the verifier's), and the end is what it must be."""
    return _end_state(bundle, checks, those)


_RIGHT = {"unchanged": _unchanged, "end state": _end_state, "answered": _answered, "same": _same,
          "repaired": _repaired}  # fmt: skip
