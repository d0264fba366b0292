"""Which class of failure a command of the program was: three axes, from how it ended, what it printed, and what probes
found. What an empty answer or a hint looks like is the program's own signs (graders/signs.py). Pure.

Nothing is fine for want of knowledge: an exit code that nobody knows is an error, an empty answer that nothing explains
is c-unknown. And nothing is read where it does not belong: what a program prints as its answer is data, which neither
fails, nor guides, nor says anything of the environment.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graders import agent_side, parsed, reading
from graders.argv_words import Words, take_apart
from graders.contract import SUBTYPE, Call, Probe, Record
from graders.probe_read import conclusion
from graders.signs import EmptySign, EnvironmentSign, HintSigns, Signs

#: Characters of each stream that a record keeps.
HEAD = 4000
#: Characters of each stream in which guidance and markers are looked for.
_LOOKED_THROUGH = 200_000
#: Characters of a line that evidence quotes.
_QUOTED = 160
#: What stands in quotes, to the line's end where they are not closed; an apostrophe in a word opens none.
_QUOTE = re.compile(r"""(?<!\w)(['"`])(?:\\.|(?!\1(?!\w)).)*(?:\1|$)""", re.S)
#: Signals that somebody else sends a program: its reader left, its caller stopped it.
_FROM_OUTSIDE = frozenset({"SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGQUIT"})


@dataclass(frozen=True)
class Facts:
    """What is known of one command. `argv` is without the program's name, `code` None where nobody knows it.

    `whole`: stdout and stderr are all that was printed, not their beginning. `silent_s`: how long it was surely silent,
    None where nobody measured. `left`: its caller had gone before it ended, and nobody was there to take a code.
    `operation`: the command path, where the program's own parser told it. `valued`: flags that take a value, besides
    those that the signs name. `merged`: both streams were one file, and `stdout` is of both; `stderr` is the same text
    then in a refusal, else nothing: data is in it too.
    """

    argv: tuple[str, ...]
    code: int | None
    stdout: str = ""
    stderr: str = ""
    whole: bool = True
    signal: str | None = None
    left: bool = False
    duration_s: float | None = None
    silent_s: float | None = None
    operation: str | None = None
    valued: frozenset[str] = frozenset()
    merged: bool = False


@dataclass(frozen=True)
class Guidance:
    """That a program said how to go on: the words of it, and what they suggest (which may be nothing but prose)."""

    line: str
    suggestions: tuple[str, ...]


# -- one call ------------------------------------------------------------------------------------------------------


def classify(facts: Facts, signs: Signs, probes: Sequence[Probe] = ()) -> Call:
    """The call with its axes, by itself: what came before and after it is `classified`'s to see."""
    guided = guidance(facts.stdout, facts.stderr, signs.hint, failed=facts.code != 0)
    outcome, blame, evidence = _outcome(facts, signs)
    recovery = "guided" if guided else "n/a" if outcome == "ok" else "unguided"
    if guided and outcome != "ok":
        evidence += _as_told(guided, evidence)
    subtype = "c-unknown" if (outcome, blame, recovery) == ("empty", "tool", "unguided") else None
    call = Call(facts.argv, facts.code, facts.stdout[:HEAD], facts.stderr[:HEAD], facts.duration_s, outcome, blame,
                recovery, subtype, evidence)  # fmt: skip
    return explained(call, probes)


def _as_told(guided: Guidance, evidence: str) -> str:
    if guided.suggestions:
        return f"; it suggests {', '.join(map(_quoted, guided.suggestions[:3]))}"
    return "" if _quoted(guided.line) in evidence else f"; it said: {_quoted(guided.line)}"


def explained(call: Call, probes: Sequence[Probe]) -> Call:
    """The call with what its probes found: one that is conclusive says what an answer lacked, also one that came."""
    if not probes:
        return call
    call = replace(call, probes=tuple(probes))
    found = conclusion(probes)
    if call.outcome not in ("ok", "empty") or call.blame != "tool":
        return call
    if found is None:
        return _cleared(call)
    recovery = "guided" if call.recovery == "guided" else "unguided"
    subtype = SUBTYPE[found.kind] if recovery == "unguided" else None
    return replace(call, outcome="empty", recovery=recovery, subtype=subtype, evidence=found.result)


def _cleared(call: Call) -> Call:
    """The call, without fault where every value that it is about was shown to be there and its silence says enough."""
    looked_up = [one for one in call.probes if one.kind == "vocabulary"]
    if call.subtype != "c-unknown" or not looked_up or not all(one.cleared for one in looked_up):
        return call
    return replace(call, outcome="ok", recovery="n/a", subtype=None, evidence=looked_up[0].result)


def _outcome(facts: Facts, signs: Signs) -> tuple[str, str, str]:
    """Outcome, blame and the evidence for it."""
    words = take_apart(facts.argv, facts.valued | signs.valued)
    sign = next((one for one in signs.empty if _fits(one, words, facts.operation)), EmptySign())
    answered = _answered(facts, sign)
    limit = signs.degenerate.silent_s
    if facts.silent_s is not None and facts.silent_s >= limit and (answered or facts.code is None):
        return "degenerate", "tool", f"no sign of life for {facts.silent_s:.1f} s (at most {limit:g} s are bearable)"
    if facts.code is None:
        return ("error", *_no_code(facts, signs))
    if not answered:
        if marker := _environment(facts, signs):
            return "error", "environment", marker
        return "error", "tool", f"exit {facts.code}: {_quoted(_telling(facts, signs))}"
    if sign.never:
        return "ok", "tool", ""
    if empty := _empty(facts, sign, in_json=words.has(signs.words.json)):
        return "empty", "tool", empty
    if waste := _waste(words, facts.stdout, signs):
        return "degenerate", "tool", waste
    return "ok", "tool", ""


def _no_code(facts: Facts, signs: Signs) -> tuple[str, str]:
    if marker := _environment(facts, signs):
        return "environment", marker
    if facts.signal in _FROM_OUTSIDE or facts.left:
        return "agent", f"stopped from outside by {facts.signal or 'its caller, who had gone'}"
    return "tool", f"ended by {facts.signal}" if facts.signal else "exit code unknown"


def _fits(sign: EmptySign, words: Words, operation: str | None) -> bool:
    if sign.commands and operation not in sign.commands and not any(map(words.is_of, sign.commands)):
        return False
    if sign.rest is not None and sign.rest != bool(words.rest()):
        return False
    return (not sign.having or words.has(sign.having)) and not words.has(sign.lacking)


def _answered(facts: Facts, sign: EmptySign) -> bool:
    """Whether it came to an answer: exit 0, or a code that is one here."""
    if facts.code is None or facts.code == 0:
        return facts.code == 0
    if sign.refused and re.search(sign.refused, facts.stderr, re.M):
        return False
    return sign.exit is None or facts.code in sign.exit


def _empty(facts: Facts, sign: EmptySign, *, in_json: bool) -> str:
    """What makes an answer empty; "" if it is not. One in which nothing can be read is, too. `in_json`: it was asked
    for as JSON. Where a text's end is not known, its rows are not counted."""
    text = facts.stdout
    if not text.strip():
        return "nothing on stdout"
    in_json = in_json and sign.json is not None
    told = sign.text or reading.Read()
    rows = None if in_json or not facts.whole else told.rows
    read = replace(told, json=sign.json, rows=rows)
    size = reading.size(read, text)
    if in_json and not _is_json(text):
        beside = reading.json_in(text)  # both streams in one
        size = None if beside is None else reading.size(read, beside)
    if size is None:
        wanted = "JSON" if in_json else None if sign.text is None else "rows" if told.number is None else "count"
        return f"no {wanted} can be read in it: {_quoted(text.strip())}" if wanted and facts.whole else ""
    if size > 0:
        return ""
    if told.number is not None:
        return "a count of 0"
    return "0 rows" if told.rows else f"{sign.json} is empty" if sign.json else f"the answer is {_quoted(text.strip())}"


def _is_json(text: str) -> bool:
    return reading.size(reading.Read(json=""), text) is not None


def _waste(words: Words, stdout: str, signs: Signs) -> str:
    """An answer many times as large as what its limit asked for; "" if it is not."""
    for sign in signs.probes:
        if sign.kind != "limit_raise" or not sign.flags or not any(map(words.is_of, sign.commands)):
            continue
        asked = [int(one.value) for one in words.flags(sign.flags) if one.value and one.value.isdecimal()]
        size = reading.size(sign.size, stdout)
        if asked and asked[-1] > 0 and size is not None and size >= signs.degenerate.waste * asked[-1]:
            return f"asked for {asked[-1]}, got {size}"
    return ""


def _environment(facts: Facts, signs: Signs) -> str:
    """Why a refusal is nobody's fault here; "" if nothing says so. Looks at stderr and the exit code alone."""
    return next(filter(None, (_marker(facts, one, signs) for one in signs.environment)), "")


def _marker(facts: Facts, sign: EnvironmentSign, signs: Signs) -> str:
    """What of a refusal is as one entry says. What the program quotes (a pattern that it waited for, a board's last
    line), and words that it was given, say nothing of the environment."""
    if sign.exit and facts.code is not None and facts.code not in sign.exit:
        return ""
    if not sign.stderr:
        return "" if facts.code is None else f"exit {facts.code}: {_quoted(_telling(facts, signs))}"
    if facts.merged and not sign.exit:  # a line of data would be believed
        return ""
    stderr = facts.stderr[:_LOOKED_THROUGH]
    lines = [*_lines(stderr), *(text for text, _ in _at_paths(stderr, sign.json))]
    given = sorted(filter(_phrase, (part for word in facts.argv for part in (word, word.partition("=")[2]))), key=len)
    for line in lines:
        own = _own_words(line, given)
        if any(re.search(one, own) for one in sign.stderr):
            return _quoted(line)
    return ""


def _phrase(word: str) -> bool:
    """Whether a word of the command is a text in which a marker could stand: one word alone is none."""
    return len(word.split()) > 1


def _own_words(line: str, given: Sequence[str]) -> str:
    """A line without what it quotes and without these texts, the longest of which are the last."""
    line = _QUOTE.sub("…", line)
    for text in reversed(given):
        line = line.replace(text, "…")
    return line


# -- guidance ------------------------------------------------------------------------------------------------------


def guidance(stdout: str, stderr: str, signs: HintSigns, *, failed: bool) -> Guidance | None:
    """The guidance in what a call printed: on stderr, at the JSON paths of its error or answer, and, where a program
    explains its refusals on stdout, there."""
    stdout, stderr = stdout[:_LOOKED_THROUGH], stderr[:_LOOKED_THROUGH]
    found = [one for one in (_hint(line, signs.stderr) for line in _lines(stderr)) if one is not None]
    for text, listed in (one for stream in (stderr, stdout) for one in _at_paths(stream, signs.json)):
        plain = (text.strip(),) if listed or not re.search(r"\s", text.strip()) else ()
        found.append(_hint(text, (*signs.text, *signs.stderr)) or Guidance(text.strip(), plain))
    if failed:
        found += [one for one in (_hint(line, signs.stdout) for line in stdout.split("\n")) if one is not None]
    if not found:
        return None
    return Guidance(found[0].line, tuple(dict.fromkeys(word for one in found for word in one.suggestions)))


def _hint(line: str, patterns: Sequence[str]) -> Guidance | None:
    """What a line suggests, if it guides."""
    matches = [found for one in patterns for found in re.finditer(one, line)]
    words = [found.groupdict().get(name) for found in matches for name in ("word", "command")]
    return Guidance(line.strip(), tuple(word.strip() for word in words if word and word.strip())) if matches else None


def _lines(stderr: str) -> list[str]:
    """The lines of stderr; of what is JSON there, the texts in it."""
    if (whole := _object(stderr)) is not None:
        return list(_texts(whole))
    told: list[str] = []
    for line in stderr.split("\n"):
        found = _object(line)
        told += [line] if found is None else _texts(found)
    return told


def _texts(value: Any) -> Iterator[str]:
    """The texts in a document, but for those nested so deep that no message is."""
    level = [value]
    for _ in range(5):
        yield from (one for one in level if isinstance(one, str))
        parts = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [one for part in parts for one in part]


def _at_paths(text: str, paths: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """What stands at these paths of the JSON object that a text is, or of those that its lines are, and whether it is
    one of a list."""
    if not paths or "{" not in text:
        return
    whole = _object(text)
    for document in [whole] if whole is not None else filter(None, map(_object, text.split("\n"))):
        for path in paths:
            found: Any = document
            for step in path.split("."):
                found = found.get(step) if isinstance(found, dict) else None
            for one in found if isinstance(found, list) else [found]:
                if isinstance(one, str) and one.strip():
                    yield one, isinstance(found, list)


def _object(text: str) -> dict[str, Any] | None:
    return parsed.object_in(text) if text.lstrip().startswith("{") else None


# -- all calls of an attempt ---------------------------------------------------------------------------------------


def classified(record: Record, signs: Signs, probes: Mapping[int, Sequence[Probe]] | None = None) -> Record:
    """The record with what its probes found (by the call's place), what became of hints, and who was at fault.

    A hint that was followed and led nowhere was none. The same refused words again, straight after guidance against
    them, are the agent's doing, and so is the same mistake made again beside the hint's own words.
    """
    calls = [explained(call, (probes or {}).get(at, ())) for at, call in enumerate(record.calls)]
    told = [guidance(one.stdout_head, one.stderr_head, signs.hint, failed=one.exit_code != 0) for one in calls]
    offered = [one.suggestions if one else () for one in told]
    program = str(record.subject.get("name", ""))
    for at in range(len(calls) - 1):
        here, after = calls[at], calls[at + 1]
        if here.recovery != "guided" or here.outcome == "ok" or here.blame == "environment":
            continue
        used = agent_side.uses(after.argv, offered[at], program)
        if used and _leads_nowhere(after, offered[at], offered[at + 1]):
            calls[at] = _unguided(here, at + 1)
        elif not used and _again(here, after, offered[at], offered[at + 1], signs.hint):
            evidence = f"what call {at + 1} was told was not heeded; {after.evidence}"
            calls[at + 1] = replace(after, blame="agent", subtype=None, evidence=evidence)
    sides = agent_side.ignored(calls, offered, record.answer.text, program)
    return replace(record, calls=tuple(calls), agent_side=sides)


def _leads_nowhere(after: Call, before: Sequence[str], now: Sequence[str]) -> bool:
    """Whether a call that did as it was told failed all the same: without guidance, or with the same once more."""
    if after.outcome == "ok" or after.blame == "environment":
        return False
    return after.recovery == "unguided" or (bool(before) and tuple(before) == tuple(now))


def _unguided(call: Call, place: int) -> Call:
    subtype = "c-unknown" if call.outcome == "empty" and call.blame == "tool" else None
    found = conclusion(call.probes)
    if subtype and found:
        subtype = SUBTYPE[found.kind]
    evidence = f"{call.evidence}; its advice was followed by call {place + 1} and led nowhere"
    return replace(call, recovery="unguided", subtype=subtype, evidence=evidence)


def _again(here: Call, after: Call, before: Sequence[str], now: Sequence[str], signs: HintSigns) -> bool:
    """Whether a call repeats the mistake of the guided one before it."""
    if after.outcome not in ("error", "empty") or after.blame != "tool" or here.exit_code in signs.retry:
        return False
    if after.argv == here.argv and (before or here.outcome == "error"):
        return True  # an empty answer that suggests nothing else may be asked for again: there may be more by then
    return bool(before) and tuple(before) == tuple(now)


# -- words ---------------------------------------------------------------------------------------------------------


def _telling(facts: Facts, signs: Signs) -> str:
    """The line that says what went wrong: a JSON error's message, a line that calls itself an error, or the last."""
    for text, _ in _at_paths(facts.stderr, signs.messages):
        return text
    lines = [line.strip() for line in (facts.stderr if facts.stderr.strip() else facts.stdout).split("\n")]
    named = (line for line in lines if re.match(r"(?:error|fatal)\b", line, re.I))
    return next(named, next((line for line in reversed(lines) if line), ""))


def _quoted(text: str) -> str:
    return "nothing was said" if not text else text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"
