"""What can be asked of a subject after a trial, as its signs.toml says in [[probe]] and [words]: checked data.

A probe asks whether an answer survives a change that should not matter. The six kinds are ours (graders/probe_read.py
says what each concludes); on which commands and flags they make sense, and how the program is asked, is the subject's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from graders.contract import KINDS, OUTCOMES
from graders.reading import LINES, ROWS, Read
from graders.shape import Key, Report, Shape, each, is_a, one_of, pattern, table, text_or, told, whole_within

#: `field op value` in one word: the longest operator wins, so that x==y is no value that begins with =.
FILTER = r"^\s*(?P<field>[\w.-]+)\s*(?P<op>==|!=|>=|<=|=~|!~|=|<|>|~|:)\s*(?P<quote>[\"']?)(?P<value>.*?)(?P=quote)\s*$"
#: Patterns that have a name.
NAMED = {"filter": FILTER}

#: How a value is looked for in a vocabulary: as the whole entry, as a part of one, as a regular expression, or as a
#: path or one of its directories, from any directory on.
MATCHES = ("equal", "part", "pattern", "path")
#: What several values of one flag mean: any of them (the answers joined), all (narrowed down), or a sum of counts.
COMBINES = ("any", "all", "sum")

#: The outcomes at which each kind asks, if its entry says nothing else.
_EMPTY, _ANY = ("empty",), ("ok", "empty")
WHEN = {"vocabulary": _EMPTY, "column_swap": _EMPTY, "type_sweep": _EMPTY, "limit_raise": _ANY, "argv_echo": _ANY,
        "entity_check": _ANY}  # fmt: skip


@dataclass(frozen=True)
class Namespace:
    """One set of names that a qualifier may be of (regions, countries): `ask` lists all of them as `read` says, and
    `own` finds those of the thing that was resolved."""

    name: str
    ask: tuple[str, ...]
    read: Read
    own: tuple[Read, ...]


@dataclass(frozen=True)
class Witness:
    """The same question by a verb whose answer no limit cuts: `command` in the place of the command path ({path} is
    that), without the flags `without`, with the words `words` besides. `size`: how much it says there is."""

    command: str
    without: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    size: Read = LINES


@dataclass(frozen=True)
class ProbeSign:
    """One [[probe]].

    Trigger: one of the command paths `commands` (`command` in the file, one or several; empty: any), called `having`
    one of these flags (none: whatever it has) and `lacking` these, ended with one of `when`. What it is about is the
    value of one of `flags`, or the plain word at `position` behind the path (from 1), or with `rest` what stands behind
    `--`; `value` takes it apart into named groups. `optional`: also where the flag is not there. `told`: output that
    says it already; nothing is asked.

    Question: `ask` is a command that lists what there is (the vocabulary, or the candidates), or resolves a thing;
    `candidates` are the other fields, types, verbs. A candidate's question is the call with `replace` in the place of
    the flag and its value; without `replace`, with the candidate in the place of the command path. Words in braces
    are filled in: {value}, {candidate}, what `value` names, and {0}, {1}, … for the call's plain words.

    In `ask`, the word {call} stands for the call's own words. `besides` are words that every question has more than the
    call (no limit, say); a call that has their flag itself is not asked about.

    Answer: `read` finds the values of `ask`, `size` how much the call itself returned; `match`: how
    the value is looked for in a vocabulary; `clears`: a value that is there lets the silence be the answer (nothing
    differs there). A limit is the value of `flags`, or else `default`; each of `raised` cuts nothing off, and `witness`
    is another way to ask; `asked_for`: a limit that the call itself gives is its wish, and no fault; `loose`: what a
    limit counts may have no row, so that an answer shorter than its limit shows nothing. `combine`: what a repeated
    flag means; `apart`: the `flags` are several, not spellings of one. `nothing`: the entry is about flags that are
    given once, and this is a value that finds nothing; `candidates`, or what `ask` lists, exclude each other then.
    """

    kind: str
    commands: tuple[str, ...] = ("",)
    having: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    position: int = 0
    rest: bool = False
    optional: bool = False
    value: str = ""
    told: str = ""
    ask: tuple[str, ...] = ()
    read: Read = LINES
    candidates: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    size: Read = LINES
    match: str = "equal"
    default: int = 0
    raised: tuple[str, ...] = ()
    witness: Witness | None = None
    asked_for: bool = False
    loose: bool = False
    clears: bool = False
    nothing: str = ""
    combine: str = "any"
    apart: bool = False
    besides: tuple[str, ...] = ()
    namespaces: tuple[Namespace, ...] = ()


@dataclass(frozen=True)
class WordSigns:
    """[words]: further flags that take a value, those with which a call is never run again (they write), and those
    with which it answers in JSON and in nothing else."""

    valued: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    json: tuple[str, ...] = ()


_text = is_a(str, what="a text")
_texts = each(_text)
_flag = is_a(bool, what="true or false")


def _split(value: Any, key: str, report: Report) -> None:
    if value not in NAMED:
        pattern(value, key, report)
        if isinstance(value, str) and not _names_it(value):
            report(key, "has no group named value, name or field", [])


def _names_it(value: str) -> bool:
    """Whether a pattern names a group that says what is asked about (a pattern that is none was told already)."""
    try:
        return bool({"value", "name", "field"} & set(re.compile(value).groupindex))
    except re.error:
        return True


_READ: Shape = {
    "json": Key(_text),
    "rows": Key(one_of(*ROWS)),
    "header": Key(whole_within(0, 100)),
    "head": Key(pattern),
    "pattern": Key(pattern),
    "number": Key(pattern),
}


def _one_way(entry: dict[str, Any], key: str, report: Report) -> None:
    if not {"json", "rows", "number"} & set(entry):
        report(key, "expected json, rows or number, found none", [])
    if {"rows", "number"} <= set(entry):
        report(key, "rows and number are two ways to read a text; one is enough", [])


_read = table(_READ, _one_way)
_NAMESPACE: Shape = {
    "name": Key(_text, required=True),
    "ask": Key(_texts, required=True),
    "read": Key(_read, required=True),
    "own": Key(each(_read), required=True),
}
_WITNESS: Shape = {
    "command": Key(_text, required=True),
    "without": Key(_texts),
    "words": Key(_texts),
    "size": Key(_read, required=True),
}
_PROBE: Shape = {
    "kind": Key(one_of(*KINDS), required=True),
    "command": Key(text_or(_texts)),
    "having": Key(_texts),
    "lacking": Key(_texts),
    "when": Key(each(one_of(*OUTCOMES))),
    "flags": Key(_texts),
    "position": Key(whole_within(1, 20)),
    "rest": Key(_flag),
    "optional": Key(_flag),
    "value": Key(_split),
    "told": Key(pattern),
    "ask": Key(_texts),
    "read": Key(_read),
    "candidates": Key(_texts),
    "replace": Key(_texts),
    "size": Key(_read),
    "match": Key(one_of(*MATCHES)),
    "default": Key(whole_within(1, 10_000_000)),
    "raised": Key(text_or(_texts)),
    "witness": Key(table(_WITNESS)),
    "asked_for": Key(_flag),
    "loose": Key(_flag),
    "clears": Key(_flag),
    "nothing": Key(_text),
    "combine": Key(one_of(*COMBINES)),
    "apart": Key(_flag),
    "besides": Key(_texts),
    "namespaces": Key(each(table(_NAMESPACE))),
}

#: What a kind can't do without.
_NEEDS = {"vocabulary": ("ask", "read"), "column_swap": ("candidates", "replace"), "limit_raise": (),
          "argv_echo": ("size",), "entity_check": ("ask", "namespaces"), "type_sweep": ()}  # fmt: skip


def _complete(entry: dict[str, Any], key: str, report: Report) -> None:
    kind = entry.get("kind")
    for name in _NEEDS.get(kind, ()) if isinstance(kind, str) else ():
        if name not in entry:
            report(f"{key}.{name}", f"missing, and a {kind} needs it", [])
    if kind == "type_sweep" and not {"candidates", "ask"} & set(entry):
        report(f"{key}.candidates", "missing, and there is no ask that lists them", [])
    if kind == "limit_raise" and "witness" not in entry and not {"raised", "flags"} <= set(entry):
        report(f"{key}.raised", "missing (with flags), and there is no witness", [])
    places = [name for name in ("flags", "position", "rest") if name in entry]
    if len(places) > 1:
        report(key, f"what it is about stands in one place, not in {' and '.join(places)}", [])
    if kind in ("vocabulary", "column_swap", "argv_echo", "entity_check") and not places:
        report(f"{key}.flags", f"missing (or position, or rest): a {told(kind)} is about a value", [])


#: The tables of signs.toml that are made here.
PROBE = table(_PROBE, _complete)
WORDS = table({"valued": Key(_texts), "never": Key(_texts), "json": Key(_texts)})


def probe(entry: Mapping[str, Any]) -> ProbeSign:
    """A checked [[probe]]."""
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    for name in ("read", "size"):
        if name in plain:
            plain[name] = Read(**plain[name])
    if isinstance(raised := plain.get("raised"), str):
        plain["raised"] = (raised,)
    if witness := plain.get("witness"):
        plain["witness"] = _witness(witness)
    command = plain.pop("command", "")
    plain["commands"] = command if isinstance(command, tuple) else (command,)
    plain["value"] = NAMED.get(plain.get("value", ""), plain.get("value", ""))
    plain["when"] = plain.get("when") or WHEN[plain["kind"]]
    plain["namespaces"] = tuple(map(_namespace, plain.get("namespaces", ())))
    assert set(plain) <= {one.name for one in fields(ProbeSign)}
    return ProbeSign(**plain)


def _namespace(entry: Mapping[str, Any]) -> Namespace:
    own = tuple(Read(**one) for one in entry["own"])
    return Namespace(entry["name"], tuple(entry["ask"]), Read(**entry["read"]), own)


def _witness(entry: Mapping[str, Any]) -> Witness:
    return Witness(entry["command"], tuple(entry.get("without", ())), tuple(entry.get("words", ())),
                   Read(**entry["size"]))  # fmt: skip


def words(entry: Mapping[str, Any]) -> WordSigns:
    """A checked [words]."""
    return WordSigns(**{name: tuple(value) for name, value in entry.items()})
