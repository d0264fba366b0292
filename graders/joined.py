"""Joins what an agent's transcript tells with what the recorder saw: every command of the subject in its calls with the
run that it was. What one says and the other denies is a finding. Pure function of a bundle.

A transcript is the agent's word, a shell's text only what was asked for: a command is held to have run only where its
call's exit code can be nobody else's, or vouches for it. Whatever else could be is no accusation but an open question.
"""

import posixpath
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graders import route, shell_words
from graders.argv_records import Invocation
from graders.bundle_view import Bundle
from graders.shell_found import Found
from graders.verdict import Check

RECORDED = "transcript: what it ran is recorded"
CODES = "transcript: exit codes"
OUTPUTS = "transcript: outputs"
_CHECKS = (RECORDED, CODES, OUTPUTS)

#: A record tells this much of an output's beginning (bytes); what is shorter is all of it.
HEAD_BYTES = 512
#: Comparisons of words that are not fully told, at most: a hostile transcript must not cost hours.
MOST_COMPARED = 200_000
#: Exit codes that a shell gives when it could not run the command, or when something ended it from outside.
_NOT_RUN = frozenset({126, 127})
_OUTSIDE = 124


@dataclass(frozen=True)
class Said:
    """One command of the subject in a call. `runs`: the recorded invocations that it was, none where it is not known.

    `candidates`: all recorded invocations of these words, whichever call they belong to.
    """

    call: Mapping[str, Any]
    found: Found
    runs: tuple[Invocation, ...] = ()
    candidates: tuple[Invocation, ...] = ()

    def __str__(self) -> str:
        return shlex.join(word for word in self.found.words if word)


@dataclass(frozen=True)
class Contradiction:
    """Something that the transcript says and the record denies. `check` is one of this module's names of checks."""

    check: str
    what: str


@dataclass(frozen=True)
class Join:
    """matched: commands with their runs. only_said: commands without. only_recorded: runs that no call told of (by a
    script, say). open: commands that may have run and of which there is no record."""

    matched: tuple[Said, ...]
    only_said: tuple[Said, ...]
    only_recorded: tuple[Invocation, ...]
    contradictions: tuple[Contradiction, ...]
    open: tuple[Said, ...]


def check(bundle: Bundle) -> list[Check]:
    """The checks of a trial that has a transcript and a record; none without."""
    if bundle.transcript is None or bundle.record is None:
        return []
    found = join(bundle.transcript, route.subject_invocations(bundle), route.subject(bundle.trial))
    against = {name: [one.what for one in found.contradictions if one.check == name] for name in _CHECKS}
    recorded, codes, outputs = (Check(name, not told, "; ".join(told[:3])) for name, told in against.items())
    if bundle.record.torn and not recorded.ok:
        recorded = Check(RECORDED, None, f"the record is damaged; {recorded.detail}")
    elif recorded.ok and found.open:
        what = f"nobody knows whether {found.open[0]} ran: the transcript tells its call, and there is no record"
        recorded = Check(RECORDED, None, what)
    if not outputs.ok:  # a product may sum outputs up: that is a question to a person
        outputs = Check(OUTPUTS, None, outputs.detail)
    return [recorded, codes, outputs]


def join(transcript: Mapping[str, Any], invocations: Sequence[Invocation], subject: str) -> Join:
    """Match the subject's commands in all calls with its recorded invocations."""
    said = _matched(list(_said(transcript, subject)), invocations)
    taken = {id(one) for each in said for one in each.runs}
    matched = tuple(one for one in said if one.runs)
    missing = tuple(one for one in said if not one.runs)
    against = [*_unrecorded(missing), *_other_codes(matched), *_other_outputs(matched)]
    unclear = tuple(one for one in missing if _may_have_run(one) and not _ran(one))
    rest = tuple(one for one in invocations if id(one) not in taken)
    return Join(matched, missing, rest, tuple(against), unclear)


def confirmed(transcript: Mapping[str, Any], found: Join) -> dict[str, Any]:
    """The transcript with the recorder's exit codes in the calls whose code is that of one matched command."""
    codes = {}
    for one in found.matched:
        code = one.runs[-1].code
        told = {candidate.code for candidate in one.candidates}
        if one.found.decides and one.found.certain and len(one.runs) == 1 and told == {code} and code is not None:
            codes[str(one.call.get("id"))] = code
    calls = []
    for call in _dicts(transcript.get("calls")):
        code = codes.get(str(call.get("id")))
        calls.append(call if code is None else {**call, "exit_code": code, "exit_source": "recorder"})
    return {**transcript, "calls": calls}


# -- what was said -----------------------------------------------------------------------------------------------


def _said(transcript: Mapping[str, Any], subject: str) -> Iterator[Said]:
    for call in sorted(_dicts(transcript.get("calls")), key=_number):
        if call.get("state") == "denied":
            continue
        words = _tool_words(call, subject)
        if words is not None:
            yield Said(call, _certain((subject, *words)))
        if call.get("kind") != "shell":
            continue
        command, argv = call.get("command"), call.get("argv")
        if isinstance(command, str):
            for found in shell_words.commands(command, subject):
                yield Said(call, found)
        elif isinstance(argv, list) and argv and posixpath.basename(str(argv[0])) == subject:
            yield Said(call, _certain(tuple(map(str, argv))))


def _certain(words: tuple[str, ...]) -> Found:
    """A command of which nothing is unsure: the call is this command and no more."""
    return Found(words, True, reach="always", decides=True, needed=True, whole=True)


def _tool_words(call: Mapping[str, Any], subject: str) -> list[str] | None:
    """The words that a call of a tool of the subject's MCP server runs; None of any other call.

    Each product puts a prefix of its own before the tool's name, which begins with the program's.
    """
    line = (call.get("input") or {}).get("command") if isinstance(call.get("input"), dict) else None
    if not isinstance(line, str) or not re.search(rf"(?:^|[_.]){re.escape(subject)}_[a-z]+$", str(call.get("tool"))):
        return None
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    return words[1:] if words[:1] == [subject] else words


def _dicts(told: Any) -> list[dict[str, Any]]:
    return [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []


def _number(call: Mapping[str, Any]) -> float:
    n = call.get("n")
    return n if isinstance(n, (int, float)) else 0


def _matched(said: list[Said], invocations: Sequence[Invocation]) -> list[Said]:
    """Each with its runs: first those that surely ran, in their order, then those of which less is known."""
    by_words: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, one in enumerate(invocations):
        by_words[tuple(one.argv[1:])].append(at)
    budget = [MOST_COMPARED]
    places = [_places(one.found, invocations, by_words, budget) for one in said]
    free = set(range(len(invocations)))
    runs: dict[int, tuple[Invocation, ...]] = {}
    for number in sorted(range(len(said)), key=lambda number: _doubt(said[number])):
        here = [at for at in places[number] if at in free]
        mine = here if said[number].found.repeats else here[:1]
        free.difference_update(mine)
        runs[number] = tuple(invocations[at] for at in mine)
    return [replace(one, runs=runs[number], candidates=tuple(invocations[at] for at in places[number]))
            for number, one in enumerate(said)]  # fmt: skip


def _places(
    found: Found, invocations: Sequence[Invocation], by_words: Mapping[tuple[str, ...], list[int]], budget: list[int]
) -> list[int]:
    if not found.holes:
        return by_words.get(found.words[1:], [])
    budget[0] -= len(invocations) * len(found.words)
    if budget[0] < 0:
        return []
    return [at for at, one in enumerate(invocations) if found.matches(one.argv)]


def _doubt(one: Said) -> tuple[int, bool, bool]:
    order = 0 if _ran(one) else 1 if one.found.certain else 2
    return order, one.found.repeats, bool(one.found.holes)


# -- what it says of what ran ------------------------------------------------------------------------------------


def _ran(one: Said) -> bool:
    """Whether the call's end proves that the command ran: its exit code is this command's, or needed this one."""
    call, found = one.call, one.found
    if call.get("background") or call.get("state") not in ("done", "failed"):
        return False
    code = _code(call)
    if code is None:  # an end that the product calls a success, and tells no number
        return call.get("is_error") is False and found.needed
    if code == 0:
        return found.needed
    return found.decides and found.reach == "always" and code not in _NOT_RUN and 0 < code < _OUTSIDE and code != 2


def _may_have_run(one: Said) -> bool:
    """Whether a command without a record is a question: it should have run by its text, and nothing says it didn't."""
    call, found = one.call, one.found
    if not found.certain or call.get("background") or call.get("state") not in ("done", "failed", "unknown"):
        return False
    code = _code(call)
    if code is None and call.get("is_error") is True:
        return False  # refused before it ran, or ended by the product
    return not (found.decides and code in _NOT_RUN)


def _code(call: Mapping[str, Any]) -> int | None:
    code = call.get("exit_code")
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def _unrecorded(missing: Sequence[Said]) -> Iterator[Contradiction]:
    for one in missing:
        if _ran(one):
            yield Contradiction(
                RECORDED, f"unobserved route: the transcript says that {one} ran, and nothing recorded it"
            )


def _other_codes(matched: Sequence[Said]) -> Iterator[Contradiction]:
    """A code that no run of these words ended with."""
    for one in matched:
        code = _code(one.call)
        if code is None or one.found.repeats or not _ran(one):
            continue
        seen = [run.code for run in one.candidates]
        if None not in seen and code not in seen:
            yield Contradiction(CODES, f"the transcript says that {one} exited {code}, the recorder saw {seen[-1]}")


_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f]")


def _other_outputs(matched: Sequence[Said]) -> Iterator[Contradiction]:
    """An output of which no line is what any run of these words printed, where all that was printed is known."""
    for one in matched:
        told = one.call.get("output")
        if not one.found.whole or not isinstance(told, str) or not told.strip() or not _ran(one):
            continue
        printed = [_printed(run) for run in one.candidates]
        if all(lines and not any(line in _clean(told) for line in lines) for lines in printed):
            yield Contradiction(OUTPUTS, f"the transcript shows an output of {one} that it never printed")


def _printed(run: Invocation) -> list[str]:
    """The lines that a run printed; none where that is not known to be all."""
    heads = [(run.end or {}).get(name) for name in ("stdout_head", "stderr_head")]
    if any(not isinstance(head, str) or len(head.encode("utf-8", "replace")) >= HEAD_BYTES for head in heads):
        return []
    return [line for head in heads for line in map(str.strip, _clean(str(head)).split("\n")) if line]


def _clean(text: str) -> str:
    return _ESCAPES.sub("", text)
