"""The record of one attempt, from its bundle: the commands that the recorder saw, each with its class. Pure.

Which commands ran, in which order and how they ended is the recorder's word alone; the agent's prose is never asked.
The recorder keeps the beginning of what was printed; where a call of the transcript (or of a scripted agent's own list)
is surely that command and goes on as the record begins, its text is taken, so that an answer is judged whole.
"""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graders import joined, route
from graders.argv_records import Invocation
from graders.bundle_view import Bundle
from graders.contract import Answer, Record
from graders.joined import HEAD_BYTES
from graders.signs import Signs
from graders.taxonomy import Facts, classified, classify

#: What trial.json says of the run that a record carries along.
_CONFIG = ("options", "scripted_model", "limits", "policy", "lane", "hashes", "allowlist")
#: No trial lasts as long (milliseconds).
_LONGEST_MS = 1e11
#: Characters of an answer that are kept.
_ANSWER = 100_000
#: What the agent's own first record lists.
_FIRST = ("tools", "skills", "agents", "mcp_servers", "memory")


@dataclass(frozen=True)
class _Told:
    """What somebody else than the recorder says that a command printed, the whole of it."""

    stdout: str
    stderr: str


def attempt(bundle: Bundle, signs: Signs) -> Record:
    """The attempt, classified by what it left; what probes find comes to it by `taxonomy.classified`.

    Raises BundleError for a bundle that can't be read.
    """
    trial = bundle.trial
    runs = acted(bundle)
    record = Record(
        question_id=str(trial.get("scenario") or ""),
        repeat=_whole(trial.get("number")),
        calls=tuple(classify(one, signs) for one in facts(bundle, runs)),
        agent_side=(),
        tools_used=tools_used(bundle.transcript),
        program_calls=len(runs),
        answer=Answer((bundle.answer or "")[:_ANSWER]),
        subject=_subject(bundle),
        condition=str(trial.get("condition") or ""),
        config=_config(bundle),
        env=_env(bundle),
        trial=str(trial.get("id") or ""),
        agent=str(trial.get("agent") or ""),
    )
    return classified(record, signs)


def acted(bundle: Bundle) -> list[Invocation]:
    """The subject's recorded invocations, without those by which the harness laid the desk for the agent."""
    runs = route.subject_invocations(bundle)
    begun = _begun(bundle)
    return [one for one in runs if begun is None or not _before(one, begun)]


def _begun(bundle: Bundle) -> float | None:
    """When the last of the prepared steps had ended (seconds since 1970); None where nothing was prepared."""
    desk = bundle.scenario.get("loopback") or bundle.scenario.get("virtual") or {}
    prepared = len(desk.get("prepared") or ())
    if not prepared or len(bundle.calls) < prepared:
        return None
    last = bundle.calls[prepared - 1]
    return float(last["t"]) + float(last["duration_s"])


def _before(one: Invocation, moment: float) -> bool:
    at = one.start.get("t")
    return isinstance(at, int | float) and at < moment


# -- what is known of each command -----------------------------------------------------------------------------------


def facts(bundle: Bundle, runs: Sequence[Invocation]) -> Iterator[Facts]:
    """What is known of each of these invocations."""
    told = _told(bundle, runs)
    valued = _valued(bundle.surface)
    for one in runs:
        yield _facts(one, told.get(id(one)), valued)


def _facts(one: Invocation, told: _Told | None, valued: frozenset[str]) -> Facts:
    end = one.end or {}
    heads = [end.get(name) for name in ("stdout_head", "stderr_head")]
    out, err = (head if isinstance(head, str) else "" for head in heads)
    whole = one.ended and all(isinstance(head, str) and not _cut(head) for head in heads)
    if told is not None:
        out, err, whole = told.stdout, told.stderr, True
    merged = end.get("merged") is True
    if merged:
        whole = False  # there is more in it than the answer
        err = out if one.code else ""  # a refusal's words are somewhere in it
    lasted = _seconds(end.get("duration_ms"))
    return Facts(
        tuple(one.argv[1:]),
        _code(one),
        out,
        err,
        whole,
        signal=one.signal,
        left=_left(one),
        duration_s=lasted,
        silent_s=_silent(end, lasted),
        operation=one.operation,
        valued=valued,
        merged=merged,
    )


def _left(one: Invocation) -> bool:
    """Whether the bench itself tells an end without any code: what it does where the caller hangs up on a command."""
    asked = one.start.get("face") in ("cli", "mcp")
    return asked and one.end is not None and one.end.get("code") is None and not one.signal


def _silent(end: Mapping[str, Any], lasted: float | None) -> float | None:
    """How long it was surely silent: until its first byte, or all the time where none came."""
    if (first := _seconds(end.get("first_byte_ms"))) is not None:
        return first
    heads = [end.get("stdout_head"), *([] if end.get("merged") is True else [end.get("stderr_head")])]
    return lasted if all(head == "" for head in heads) else None


def _seconds(milliseconds: Any) -> float | None:
    """None for what no clock says: an agent can write to the record, too."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return None
    return milliseconds / 1000 if 0 <= milliseconds < _LONGEST_MS else None


def _code(one: Invocation) -> int | None:
    return one.code if one.code is not None and 0 <= one.code <= 255 else None


def _valued(surface: Mapping[str, Any] | None) -> frozenset[str]:
    """The flags that may stand before a command and take a value, by the live command reference."""
    known = (surface or {}).get("globals") or ()
    return frozenset(flag for entry in known if entry.get("takes_value") for flag in entry.get("flags") or ())


# -- the whole of what it printed ------------------------------------------------------------------------------------


def _told(bundle: Bundle, runs: Sequence[Invocation]) -> dict[int, _Told]:
    """By the invocation's identity: what a call that is surely it shows of its output."""
    if bundle.transcript is not None:
        return _by_transcript(bundle.transcript, runs, route.subject(bundle.trial))
    return _by_list(bundle.calls, runs, route.subject(bundle.trial))


def _by_transcript(transcript: Mapping[str, Any], runs: Sequence[Invocation], subject: str) -> dict[int, _Told]:
    found = {}
    for said in joined.join(transcript, runs, subject).matched:
        text = said.call.get("output")
        if len(said.runs) != 1 or not said.found.whole or not isinstance(text, str):
            continue
        out, err = _heads(said.runs[0])
        if not err.strip() and _goes_on(out, text):  # both streams in one text: only where the other is blank
            found[id(said.runs[0])] = _Told(text, err)
        elif not out.strip() and _goes_on(err, text):
            found[id(said.runs[0])] = _Told(out, text)
    return found


def _by_list(calls: Sequence[Mapping[str, Any]], runs: Sequence[Invocation], subject: str) -> dict[int, _Told]:
    """A scripted agent's list: the first command that is left, of the same words and with the same beginnings."""
    found: dict[int, _Told] = {}
    left = list(runs)
    for call in calls:
        words = [str(word) for word in call.get("argv") or ()]
        out, err = call.get("stdout"), call.get("stderr")
        if not words or posixpath.basename(words[0]) != subject or call.get("cut"):
            continue
        if not isinstance(out, str) or not isinstance(err, str):
            continue
        at = next((at for at, run in enumerate(left) if run.argv[1:] == words[1:] and _is(run, out, err)), None)
        if at is not None:
            found[id(left[at])] = _Told(out, err)
            del left[: at + 1]
    return found


def _is(run: Invocation, out: str, err: str) -> bool:
    heads = _heads(run)
    return _goes_on(heads[0], out) and _goes_on(heads[1], err)


def _heads(one: Invocation) -> tuple[str, str]:
    end = one.end or {}
    out, err = (str(end.get(name) or "") for name in ("stdout_head", "stderr_head"))
    return out, err


def _goes_on(head: str, text: str) -> bool:
    """Whether a text is what the record has, or begins so where the record has only the beginning (of which a character
    that was cut in two is left out)."""
    if not _cut(head):
        return text.strip() == head.strip()
    return text.startswith(head.encode("utf-8", "surrogateescape").decode("utf-8", "ignore"))


def _cut(head: str) -> bool:
    """Whether there may be more than the head."""
    return len(head.encode("utf-8", "surrogatepass")) >= HEAD_BYTES


# -- what it ran with ------------------------------------------------------------------------------------------------


def tools_used(transcript: Mapping[str, Any] | None) -> dict[str, int]:
    """The agent's own tools, by name, as its transcript lists its calls; empty without one."""
    counts: dict[str, int] = {}
    for call in (transcript or {}).get("calls") or ():
        name = call.get("tool") if isinstance(call, dict) else None
        if isinstance(name, str):
            counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))


def _subject(bundle: Bundle) -> dict[str, Any]:
    name = route.subject(bundle.trial)
    version = (bundle.trial.get("versions") or {}).get(name) or (bundle.surface or {}).get("version")
    return {"name": name, "version": version, "sha256": bundle.trial.get("build")}


def _env(bundle: Bundle) -> dict[str, Any]:
    """What it ran on, and what is wrong with the record of its commands, if anything is."""
    told = dict(bundle.trial.get("versions") or {})
    if bundle.record is None:
        told["record"] = "the trial left no record of commands"
    elif bundle.record.torn:
        told["record"] = "; ".join(bundle.record.torn[:3])[:500]
    return told


def _config(bundle: Bundle) -> dict[str, Any]:
    """Flags, model, limits of the run, and what the agent's own first record and the condition's checks say."""
    trial, transcript = bundle.trial, bundle.transcript or {}
    told = {name: trial[name] for name in _CONFIG if trial.get(name) is not None}
    program = trial.get("program") or {}
    told |= {name: program[name] for name in ("product", "version", "argv") if program.get(name) is not None}
    if transcript.get("model"):
        told["model"] = transcript["model"]
    first = transcript.get("first") or {}
    told |= {name: first[name] for name in _FIRST if first.get(name) is not None}
    if (condition := bundle.facts("condition.json")) is not None:
        told["condition"] = condition
    return told


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
