"""One rule for each check of the readiness rubric: evidence → (verdict, reason). Pure; a table from ids to rules.

Missing evidence never passes, and never fails either: `unknown` is a command without an exit code, a stream that was
cut, a state that could not be observed, an error that never came about, a page of help where an act was wanted.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from graders.readiness_evidence import Evidence, NotParsed, Step, moved, records, unobserved
from graders.verdict import Outcome


@dataclass(frozen=True)
class Found:
    """What a rule says: a word of the closed vocabulary, and why."""

    verdict: Outcome
    reason: str


@dataclass(frozen=True)
class Rule:
    """A check's rule, and the roles of the steps that it looks at."""

    roles: tuple[str, ...]
    judge: Callable[[Evidence], Found]


def _first(found: Iterable[Found], held: str) -> Found:
    """What failed first, else what is unknown first, else a pass because of `held`."""
    every = list(found)
    worst = ("fail", "harness_error", "blocked", "not_reached", "unknown")
    return next((one for word in worst for one in every if one.verdict == word), Found("pass", held))


def _unknown(step: Step, why: str = "") -> Found:
    return Found("unknown", f"{step.run}: {why or step.end}")


def _fail(step: Step, why: str) -> Found:
    return Found("fail", f"{step.run}: {why}")


def _nothing(what: str) -> Found:
    return Found("unknown", f"unmeasured: {what}")


# -- discovery ------------------------------------------------------------------------------------------------------


def _help(evidence: Evidence) -> Found:
    steps = evidence.of("discover")
    if not steps:
        return _nothing("no help was asked for")
    return _first(map(_told, steps), "what the task begins with is named by " + "; ".join(step.run for step in steps))


def _told(step: Step) -> Found:
    if not step.known or step.code in step.wanted.get("refused", ()):
        return _unknown(step, "" if not step.known else f"refused (exit {step.code})")
    if step.cut and step.lacking:
        return _unknown(step, "what it printed was cut")
    return _fail(step, step.lacking[0]) if step.lacking else Found("pass", step.run)


def _discovery(evidence: Evidence) -> Found:
    steps = evidence.of("discover")
    if not steps:
        return _nothing("nothing was asked about what has to be configured")
    found = [one for step in steps for one in (_told(step), _still(evidence, step))]
    return _first(found, "what has to be configured is named, and nothing was changed")


# -- output ---------------------------------------------------------------------------------------------------------


def _structured(evidence: Evidence) -> Found:
    steps = evidence.of("read")
    if not steps:
        return _nothing("no output for machines was taken")
    return _first(
        map(_parsed, steps), "parsed whole, with all that was planted: " + "; ".join(step.run for step in steps)
    )


def _parsed(step: Step) -> Found:
    if not step.known:
        return _unknown(step)
    if step.cut:
        return _unknown(step, f"the stream was cut: {step.cut} bytes are missing")
    if not step.ok:
        return _fail(step, step.end)
    try:
        missing = _missing(step.wanted.get("planted", ()), records(step))
    except NotParsed as error:
        return _fail(step, str(error))
    return _fail(step, f"{missing[0]!r} is missing") if missing else Found("pass", step.run)


def _missing(planted: Iterable[str], found: Iterable[str]) -> list[str]:
    there = set(found)
    return [one for one in planted if one not in there]


def _clean(evidence: Evidence) -> Found:
    steps = evidence.of("read")
    if not steps:
        return _nothing("nothing was read without a terminal")
    return _first(map(_unpaged, steps), "parsed with nothing taken away: " + "; ".join(step.run for step in steps))


def _unpaged(step: Step) -> Found:
    return _fail(step, f"it waited in {step.paging}") if step.paging else _parsed(step)


def _pagination(evidence: Evidence) -> Found:
    pages = evidence.of("page")
    planted = pages[0].wanted.get("planted", ()) if pages else ()
    if not planted:
        return _nothing("nobody went through pages of something planted")
    ended = _first(map(_whole, pages), "")
    if ended.verdict != "pass":
        return ended
    try:
        found = [records(page) for page in pages]
    except NotParsed as error:
        return Found("fail", str(error))
    if len([page for page in found if page]) < 2:
        return _nothing("there was no second page, so that nothing was gone through")
    missing = _missing(planted, (one for page in found for one in page))
    if missing:
        return Found("fail", f"{len(missing)} of {len(planted)} are on none of {len(pages)} pages: {missing[0]!r}")
    return Found("pass", f"all {len(planted)} planted are on {len(pages)} pages")


def _whole(step: Step) -> Found:
    if not step.known or step.cut:
        return _unknown(step, "the stream was cut" if step.known else "")
    return Found("pass", step.run) if step.ok else _fail(step, step.end)


# -- headless -------------------------------------------------------------------------------------------------------


def _completes(evidence: Evidence) -> Found:
    steps = evidence.of("discover")
    if not steps:
        return _nothing("nothing was asked")
    found = [Found("pass", step.run) if step.known else _unknown(step) for step in steps]
    return _first(found, "ended by themselves: " + "; ".join(step.run for step in steps))


def _task(evidence: Evidence) -> Found:
    steps, looks = evidence.of("apply", "read"), evidence.behind("apply")
    if not evidence.of("apply"):
        return _nothing("the work was not tried")
    ended = _first(map(_carried, steps), "")
    if ended.verdict != "pass":
        return ended
    if not looks:
        return _nothing("nothing looked at what came of it")
    return _first(map(_seen, looks), f"{len(steps)} commands ended with success, and the change is there")


def _carried(step: Step) -> Found:
    """How a command of the work ended. Memory and time are no verdict about the program."""
    if step.signal == "SIGKILL" or step.code == 137:
        return Found("harness_error", f"{step.run}: killed, as where memory runs out")
    if step.ended_by == "time_limit":
        return Found("blocked", f"{step.run}: its time was up")
    if step.ended_by in ("cancelled", "not_started", "output_limit"):
        return Found("harness_error", f"{step.run}: {step.end}")
    if not step.known:
        return _unknown(step)
    if not step.ok:
        return _fail(step, step.end)
    return _fail(step, step.lacking[0]) if step.lacking else Found("pass", step.run)


def _seen(step: Step) -> Found:
    """What the harness's own look says."""
    if not step.known or step.cut:
        return _unknown(step, "what was looked at was cut" if step.known else "")
    return _fail(step, step.lacking[0] if step.lacking else step.end) if step.lacking or not step.ok else Found(
        "pass", step.run
    )  # fmt: skip


# -- state ----------------------------------------------------------------------------------------------------------


def _still(evidence: Evidence, step: Step) -> Found:
    """Whether a command left all declared states as they were."""
    if not evidence.states:
        return _unknown(step, "no state is declared that could be observed")
    dark = unobserved(evidence.states, step.before, step.after)
    changed = [name for name in moved(evidence.states, step.before, step.after) if name not in dark]
    if changed:
        return _fail(step, f"it changed {', '.join(changed)}")
    return _unknown(step, f"{dark[0]} could not be observed") if dark else Found("pass", step.run)


def _reading(evidence: Evidence) -> Found:
    steps = evidence.of("read")
    if not steps:
        return _nothing("nothing was read")
    found = [_still(evidence, step) for step in steps]
    found += [_unknown(step) for step in steps if not step.ok]
    return _first(found, f"{', '.join(evidence.states)} as before, by {'; '.join(step.run for step in steps)}")


def _preview(evidence: Evidence) -> Found:
    steps = evidence.of("preview")
    if not steps:
        return _nothing("nothing was previewed; a flag in a help page is no preview")
    found = []
    for step in steps:
        found.append(_still(evidence, step))  # first: to do the work is worse than to say too little of it
        if not step.known:
            found.append(_unknown(step))
        elif not step.ok or step.lacking:
            found.append(_fail(step, step.lacking[0] if step.ok else step.end))
    found += [_applied(evidence, step) for step in evidence.of("apply")]
    found += map(_seen, evidence.behind("apply"))
    if not evidence.of("apply"):
        found.append(_nothing("what was previewed was not applied afterwards, so that nothing says what it showed"))
    return _first(found, "the preview told the change and changed nothing; applied, it came about")


def _applied(evidence: Evidence, step: Step) -> Found:
    """Whether a change went through, on its target alone."""
    carried = _carried(step)
    if carried.verdict != "pass":
        return carried
    dark = unobserved(evidence.states, step.before, step.after)
    if dark or not evidence.target:
        return _unknown(step, f"{dark[0]} could not be observed" if dark else "no state is said to be its target")
    if not moved(evidence.target, step.before, step.after):
        return _unknown(step, "it changed nothing, so that it was no change")
    strayed = moved(evidence.unrelated(), step.before, step.after)
    return _fail(step, f"it changed {', '.join(strayed)} too") if strayed else Found("pass", step.run)


def _replay(evidence: Evidence) -> Found:
    firsts, again = evidence.of("apply"), evidence.of("again")
    if not firsts or not again:
        return _nothing("the change was not made twice")
    other = next((step for step in again if step.run not in {one.run for one in firsts}), None)
    if other is not None:
        return _unknown(other, "that is another command than the first time")
    looks = evidence.behind("again")
    if not looks:
        return _nothing("nothing looked at the state after the second time")
    found = [_applied(evidence, step) for step in firsts]
    for step in again:
        found.append(Found("pass", step.run) if step.known else _carried(step))
        dark = unobserved(evidence.states, step.before, step.after)
        strayed = moved(evidence.unrelated(), step.before, step.after)
        found.append(_unknown(step, f"{dark[0]} could not be observed") if dark else
                     _fail(step, f"it changed {strayed[0]}") if strayed else Found("pass", step.run))  # fmt: skip
    return _first([*found, *map(_seen, looks)], "made twice, it is there once, and all else is as it was")


# -- errors ---------------------------------------------------------------------------------------------------------


def _mistake(evidence: Evidence) -> Found:
    steps = evidence.of("mistake")
    if not steps:
        return _nothing("no error was brought about")
    return _first(
        [_refused(evidence, step) for step in steps], "refused, with words: " + "; ".join(step.run for step in steps)
    )


def _refused(evidence: Evidence, step: Step) -> Found:
    if not step.known:
        return _unknown(step)
    if step.code == 0:
        return _unknown(step, "no error came about")
    if not step.said.strip():
        return _fail(step, f"{step.end}, without a word")
    if step.lacking:
        return _fail(step, step.lacking[0])
    changed = _still(evidence, step) if evidence.states else None
    return changed if changed is not None and changed.verdict == "fail" else Found("pass", step.run)


def _recovery(evidence: Evidence) -> Found:
    faults, repairs = evidence.of("fault"), evidence.of("repair")
    if not faults:
        return _nothing("no fault was planted")
    first = evidence.steps.index(repairs[0]) if repairs else len(evidence.steps)
    planted = [*faults, *(step for step in evidence.steps[:first] if step.role == "look")]
    wrong = next((step for step in planted if not step.ok or step.lacking), None)
    if wrong is not None:
        return _unknown(wrong, "the fault is not there")
    if all(step.ended_by == "not_started" for step in repairs):
        return Found("not_reached", "the fault was planted, and mending it was never tried")
    looks = evidence.behind("repair")
    if not looks:
        return _nothing("nothing looked at what mending came to")
    start, end = faults[0].before, repairs[-1].after
    dark = unobserved(evidence.unrelated(), start, end)
    strayed = [name for name in moved(evidence.unrelated(), start, end) if name not in dark]
    found = [*map(_carried, repairs), *map(_seen, looks)]
    found += [Found("fail", f"mending changed {name} too") for name in strayed]
    found += [Found("unknown", f"{name} could not be observed") for name in dark]
    return _first(found, "the fault is gone, the wanted state is there, the rest is as it was")


# -- authentication -------------------------------------------------------------------------------------------------


def _denial(evidence: Evidence) -> Found:
    steps = evidence.of("denied")
    if not steps:
        return _nothing("it was not tried")
    return _first([one for step in steps for one in _denied(evidence, step)], "denied, and nothing was changed")


def _denied(evidence: Evidence, step: Step) -> list[Found]:
    if not step.known:
        return [_unknown(step)]
    if step.code == 0:
        return [_fail(step, "it was not denied")]
    return [_fail(step, step.lacking[0]) if step.lacking else Found("pass", step.run), _still(evidence, step)]


def _scope(evidence: Evidence) -> Found:
    """A credential that is good for something else: else its denial would say nothing about its limits."""
    denial = _denial(evidence)
    if denial.verdict != "pass":
        return denial
    steps = evidence.of("permitted")
    if not steps:
        return _nothing("nothing shows that the limited credential is good for anything")
    return _first((_carried(step) for step in steps), "good for what it is limited to, and denied what goes beyond")


def _permitted(evidence: Evidence) -> Found:
    steps = evidence.of("permitted")
    if not steps:
        only = evidence.of("login")
        return _nothing("a login is no operation of the task" if only else "no operation was tried")
    found = [*map(_carried, evidence.of("login", "permitted")), *map(_seen, evidence.behind("permitted"))]
    return _first(found, "the operation was permitted, and did its work")


RULES: dict[str, Rule] = {
    "help": Rule(("discover",), _help),
    "discovery": Rule(("discover",), _discovery),
    "structured-output": Rule(("read",), _structured),
    "clean-streams": Rule(("read",), _clean),
    "pagination": Rule(("page",), _pagination),
    "help-completion": Rule(("discover",), _completes),
    "task-completion": Rule(("apply", "read"), _task),
    "read-safety": Rule(("read",), _reading),
    "preview": Rule(("preview", "apply"), _preview),
    "replay": Rule(("apply", "again"), _replay),
    "invalid-command": Rule(("mistake",), _mistake),
    "invalid-flag": Rule(("mistake",), _mistake),
    "recovery": Rule(("fault", "repair"), _recovery),
    "missing-auth": Rule(("denied",), _denial),
    "invalid-auth": Rule(("denied",), _denial),
    "valid-auth": Rule(("login", "permitted"), _permitted),
    "scope-auth": Rule(("denied", "permitted"), _scope),
}
