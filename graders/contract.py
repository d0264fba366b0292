"""What became of each command that an agent gave: the record `agenteval/2`, its writer, its reader, its one class.

A call is placed on three axes; its class follows from them in `derive` and is stored only for readers of the file:
where a file says otherwise, the axes win. Records of any subject are read, also of other makers (keys that we do not
know are left alone). Nothing here knows a subject; `validate` never raises, whatever it is given.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from graders.shape import (
    SHOWN,
    Key,
    Report,
    Shape,
    each,
    is_a,
    none_or,
    one_of,
    table,
    table_of,
    told,
    whole_within,
    within,
)

SCHEMA = "agenteval/2"

#: ok: it did what was asked. empty: it succeeded and returned nothing (or, as a probe proved, not all, or something
#: else). error: it refused, or nobody knows how it ended. degenerate: an answer came, by a way that nobody can use.
OUTCOMES = ("ok", "empty", "error", "degenerate")
#: Who could have done better.
BLAMES = ("tool", "agent", "environment")
#: Whether the program named a next action. `n/a` belongs to `ok` alone: there is nothing to recover from.
RECOVERIES = ("guided", "unguided", "n/a")

#: A class → what it says.
CLASSES = {
    "A": "hard failure: refused, and left to guess",
    "B": "soft failure: refused or empty, and said how to go on",
    "C": "silent wrong: succeeded, returned nothing or not all, and said nothing",
    "D": "degenerate: an unusable way to an answer",
    "E": "environment: nobody's fault here, not counted",
    "F": "agent: the program was right, and was not heeded",
}
#: A kind of class C → what went wrong.
SUBTYPES = {
    "c-vocabulary": "the value exists nowhere",
    "c-wrong-column": "the value exists in another field",
    "c-wrong-type": "the data is under another verb or type",
    "c-dropped-input": "a part of the question was silently dropped",
    "c-truncated": "the answer was cut off by a limit",
    "c-wrong-entity": "another thing was resolved than was named",
    "c-unknown": "empty, and nothing explained why",
}
#: The kinds of probes (graders/probe_plan.py).
KINDS = ("vocabulary", "column_swap", "type_sweep", "limit_raise", "argv_echo", "entity_check")
#: A kind → the kind of class C that it proves.
SUBTYPE = {
    "entity_check": "c-wrong-entity",
    "argv_echo": "c-dropped-input",
    "column_swap": "c-wrong-column",
    "type_sweep": "c-wrong-type",
    "limit_raise": "c-truncated",
    "vocabulary": "c-vocabulary",
}

#: Bounds of what is read at all: levels of nesting, values in one record, characters of one text.
DEEPEST, MOST, LONGEST = 32, 1_000_000, 1_000_000
#: More problems than this are not listed.
MOST_PROBLEMS = 50


class ContractError(ValueError):
    """Bytes that are no record. `problems` has one line a mistake."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def derive(outcome: str, blame: str, recovery: str) -> str | None:
    """The class of a call by its axes, None for a call without fault. The only place where a class comes from.

    Raises ValueError for a word that is on no axis and for axes that mean nothing together.
    """
    for word, axis in ((outcome, OUTCOMES), (blame, BLAMES), (recovery, RECOVERIES)):
        if word not in axis:
            raise ValueError(f"{told(word)} is none of {', '.join(axis)}")
    if outcome != "ok" and recovery == "n/a":
        raise ValueError(f"{outcome} leaves something to recover from: recovery is guided or unguided, not n/a")
    if blame == "environment":
        return "E"
    if blame == "agent":
        return "F"
    if outcome in ("ok", "degenerate"):
        return {"ok": None, "degenerate": "D"}[outcome]
    if recovery == "guided":
        return "B"  # an empty answer that says how to go on is a soft failure, too
    return "C" if outcome == "empty" else "A"


@dataclass(frozen=True)
class Probe:
    """One question that was put to the program after the trial: of KINDS, the command, what came, what it proves.

    `conclusive`: it proves what an answer lacked; `cleared`: it proves that there was nothing to tell.
    """

    kind: str
    ran: str
    result: str
    conclusive: bool
    cleared: bool = False


@dataclass(frozen=True)
class Call:
    """One command. `argv` is without the program's name; an exit code that nobody knows is None, never 0.

    Raises ValueError for axes that mean nothing (`derive`), and where a subtype is not class C's.
    """

    argv: tuple[str, ...]
    exit_code: int | None
    stdout_head: str
    stderr_head: str
    duration_s: float | None
    outcome: str
    blame: str
    recovery: str
    subtype: str | None = None
    evidence: str = ""
    probes: tuple[Probe, ...] = ()

    def __post_init__(self) -> None:
        if (derive(self.outcome, self.blame, self.recovery) == "C") != (self.subtype is not None):
            raise ValueError("a subtype belongs to class C, and class C has one")

    @property
    def cls(self) -> str | None:
        """A to F, or None: what the axes say."""
        return derive(self.outcome, self.blame, self.recovery)


@dataclass(frozen=True)
class AgentSide:
    """What the agent made of what it was told. `at_call` and `used_at` are places in `Record.calls`, from 0."""

    kind: str
    at_call: int
    detail: str
    suggestions: tuple[str, ...] = ()
    used_at: int | None = None


@dataclass(frozen=True)
class Answer:
    """What the agent said in the end; `verified`: whether it is true, None where nobody said."""

    text: str
    verified: bool | None = None


@dataclass(frozen=True)
class Record:
    """One attempt. `program_calls` counts the subject's invocations, `tools_used` the agent's own tools by name.

    `subject` has name, version and sha256 of the program; `config` the flags, model, setting sources and tools of the
    agent; `env` what it ran on. They are empty where the maker of a record tells nothing of the kind.
    """

    question_id: str
    repeat: int
    calls: tuple[Call, ...]
    agent_side: tuple[AgentSide, ...]
    tools_used: dict[str, int]
    program_calls: int
    answer: Answer
    subject: dict[str, Any] = field(default_factory=dict)
    condition: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    env: dict[str, Any] = field(default_factory=dict)
    trial: str = ""
    agent: str = ""


# -- writing -------------------------------------------------------------------------------------------------------


def write(record: Record) -> bytes:
    """The record's file: keys in order, the same bytes for the same record, with a final newline."""
    told = asdict(record)
    told["schema"] = SCHEMA
    name = record.subject.get("name")
    told[f"{name if isinstance(name, str) and name else 'program'}_calls"] = told.pop("program_calls")
    for raw, call in zip(told["calls"], record.calls, strict=True):
        raw["class"] = call.cls
        raw["probes"] = [{name: value for name, value in one.items() if name != "cleared" or value}
                         for one in raw["probes"]]  # fmt: skip
    return (json.dumps(told, indent=1, sort_keys=True, allow_nan=False) + "\n").encode("ascii")


# -- reading -------------------------------------------------------------------------------------------------------


def load(data: bytes) -> Record:
    """The record in a file's bytes. Raises ContractError with every problem, but for a label that belies its axes:
    there the axes win."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ContractError([f"not JSON: {told(str(error))}"]) from error
    if problems := _unsound(raw):
        raise ContractError(problems)
    return _record(raw)


def validate(raw: object) -> list[str]:
    """What is wrong with a record as plain data; an empty list if nothing is. Never raises."""
    return _unsound(raw) or list(_lies(raw))[:MOST_PROBLEMS]


def _unsound(raw: object) -> list[str]:
    """What keeps a record from being read at all."""
    if unfit := _not_plain(raw):
        return [unfit]
    found: list[str] = []

    def report(key: str, message: str, near: list[str]) -> None:
        found.append(
            f"{key[:SHOWN] or 'the record'}: {message}" + (f"; did you mean {', '.join(near)}?" if near else "")
        )

    table(_RECORD, _counted, open_=True)(raw, "", report)
    return found if len(found) <= MOST_PROBLEMS else [*found[:MOST_PROBLEMS], f"and {len(found) - MOST_PROBLEMS} more"]


def _not_plain(raw: object) -> str:
    """Why this is not what JSON can hold within our bounds; empty if it is. Walks without recursion."""
    stack, seen = [(raw, 0)], 0
    while stack:
        value, depth = stack.pop()
        seen += 1
        kind = type(value)
        if depth > DEEPEST or seen > MOST:
            return f"nested deeper than {DEEPEST}" if depth > DEEPEST else f"more than {MOST} values"
        if kind is dict:
            stack += [(part, depth + 1) for pair in value.items() for part in pair]  # type: ignore[attr-defined]
            if any(type(name) is not str for name in value):  # type: ignore[attr-defined]
                return "a key that is no text"
        elif kind is list:
            stack += [(part, depth + 1) for part in value]  # type: ignore[attr-defined]
        elif kind is str and len(value) > LONGEST:  # type: ignore[arg-type]
            return f"a text of {len(value)} characters, which is more than {LONGEST}"  # type: ignore[arg-type]
        elif kind is float and not math.isfinite(value):  # type: ignore[arg-type]
            return "a number that is not finite"
        elif kind is int and value.bit_length() > 64:  # type: ignore[attr-defined]
            return "a number beyond 64 bits"
        elif kind not in (str, float, int, bool, type(None)):
            return f"a value of type {kind.__name__}, which JSON does not have"
    return ""


_AXES = ("outcome", "blame", "recovery")
_text = is_a(str, what="a text")
_count = whole_within(0, 2**53)
_free = is_a(dict, what="a table")

_PROBE: Shape = {
    "kind": Key(one_of(*KINDS), required=True),
    "ran": Key(_text, required=True),
    "result": Key(_text, required=True),
    "conclusive": Key(is_a(bool, what="true or false"), required=True),
    "cleared": Key(is_a(bool, what="true or false")),
}
_CALL: Shape = {
    "argv": Key(each(_text), required=True),
    "exit_code": Key(none_or(whole_within(-(2**31), 2**32))),
    "stdout_head": Key(_text, required=True),
    "stderr_head": Key(_text, required=True),
    "duration_s": Key(none_or(within(0, 1e9, "seconds"))),
    "outcome": Key(one_of(*OUTCOMES), required=True),
    "blame": Key(one_of(*BLAMES), required=True),
    "recovery": Key(one_of(*RECOVERIES), required=True),
    "class": Key(none_or(one_of(*CLASSES))),
    "subtype": Key(none_or(one_of(*SUBTYPES))),
    "evidence": Key(_text),
    "probes": Key(each(table(_PROBE, open_=True))),
}
_AGENT_SIDE: Shape = {
    "kind": Key(_text, required=True),
    "at_call": Key(_count, required=True),
    "detail": Key(_text, required=True),
    "suggestions": Key(each(_text)),
    "used_at": Key(none_or(_count)),
}
_ANSWER: Shape = {"text": Key(_text, required=True), "verified": Key(none_or(is_a(bool, what="true, false or null")))}


def _call_makes_sense(call: dict[str, Any], key: str, report: Report) -> None:
    axes = (OUTCOMES, BLAMES, RECOVERIES)
    if any(call.get(name) not in axis for name, axis in zip(_AXES, axes, strict=True)):
        return  # told by the axes' own checkers
    try:
        cls = _class_of(call)
    except ValueError as error:
        report(key, str(error), [])
        return
    if call["outcome"] == "ok" and call.get("exit_code") is None:
        report(f"{key}.exit_code", "unknown, and then the outcome can't be ok", [])
    if cls == "C":
        _explained(call, key, report)


def _explained(call: dict[str, Any], key: str, report: Report) -> None:
    subtype, probes = call.get("subtype"), call.get("probes")
    if subtype is None:
        report(f"{key}.subtype", "missing, and the class is C", [])
        return
    led = [one for one in probes if _conclusive(one)] if isinstance(probes, list) else []
    if subtype != "c-unknown" and not any(SUBTYPE.get(str(one.get("kind"))) == subtype for one in led):
        report(f"{key}.subtype", f"{told(subtype)} without a conclusive probe that led to it", [])


def _conclusive(probe: object) -> bool:
    return isinstance(probe, dict) and probe.get("conclusive") is True


def _class_of(call: dict[str, Any]) -> str | None:
    return derive(*(call[name] for name in _AXES))


def _counted(raw: dict[str, Any], key: str, report: Report) -> None:
    counts = _counts(raw)
    if len(counts) != 1:
        named = ", ".join(name if len(name) <= 40 else f"{name[:40]}…" for name in counts[:4])
        report("PROGRAM_calls", f"one count of the program's calls is needed, found {named or 'none'}", [])
    elif counts:
        _count(raw[counts[0]], counts[0][:40], report)


def _counts(raw: dict[str, Any]) -> list[str]:
    return [name for name in raw if name.endswith("_calls") and name != "_calls"]


_RECORD: Shape = {
    "schema": Key(one_of(SCHEMA), required=True),
    "question_id": Key(_text, required=True),
    "repeat": Key(_count, required=True),
    "calls": Key(each(table(_CALL, _call_makes_sense, open_=True)), required=True),
    "agent_side": Key(each(table(_AGENT_SIDE, open_=True)), required=True),
    "tools_used": Key(table_of(_count), required=True),
    "answer": Key(table(_ANSWER, open_=True), required=True),
    "subject": Key(_free),
    "condition": Key(_text),
    "config": Key(_free),
    "env": Key(_free),
    "trial": Key(_text),
    "agent": Key(_text),
}


def _lies(raw: Any) -> Iterator[str]:
    """Labels of a sound record that its axes belie."""
    for number, call in enumerate(raw["calls"]):
        cls = _class_of(call)
        if call.get("class", cls) != cls:
            yield f"calls[{number}].class: {told(call['class'])}, and the axes say {cls or 'none'}"
        if call.get("subtype") is not None and cls != "C":
            yield f"calls[{number}].subtype: {told(call['subtype'])}, and the class is {cls or 'none'}, not C"


def _record(raw: dict[str, Any]) -> Record:
    plain = {name: raw[name] for name in ("question_id", "repeat", "tools_used")}
    extra = {name: raw[name] for name in ("subject", "condition", "config", "env", "trial", "agent") if name in raw}
    sides = tuple(
        AgentSide(one["kind"], one["at_call"], one["detail"], tuple(one.get("suggestions", ())), one.get("used_at"))
        for one in raw["agent_side"]
    )
    return Record(
        **plain,
        **extra,
        calls=tuple(map(_call, raw["calls"])),
        agent_side=sides,
        program_calls=raw[_counts(raw)[0]],
        answer=Answer(raw["answer"]["text"], raw["answer"].get("verified")),
    )


def _call(raw: dict[str, Any]) -> Call:
    probes = tuple(Probe(**{name: one[name] for name in _PROBE if name in one}) for one in raw.get("probes", ()))
    subtype = raw.get("subtype") if _class_of(raw) == "C" else None
    told = {name: raw[name] for name in ("stdout_head", "stderr_head", "outcome", "blame", "recovery")}
    return Call(
        tuple(raw["argv"]), raw.get("exit_code"), duration_s=raw.get("duration_s"), subtype=subtype,
        evidence=raw.get("evidence", ""), probes=probes, **told,
    )  # fmt: skip
