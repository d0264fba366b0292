"""Which questions could tell what a call's answer meant: from a record and the subject's signs, nothing is run.

Every candidate is planned, and every probe that fits a call and is not to be run is named with its reason: a probe that
is left out in silence would read like one that found nothing. harness/probing.py asks, graders/probe_read.py concludes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from graders import reading
from graders.argv_words import Item, Words, take_apart
from graders.contract import Call, Record
from graders.joined import HEAD_BYTES
from graders.probe_signs import ProbeSign, WordSigns

#: The kinds in the order in which they are asked: what explains more comes first, and the first that concludes holds.
#: That a value is in no vocabulary counts only once it was not found anywhere else either; answers that are cut off
#: are alike whatever is asked, so that a cut comes before what was dropped.
ORDER = ("entity_check", "limit_raise", "argv_echo", "column_swap", "type_sweep", "vocabulary")

#: Characters of a value; what is longer is a text, and none that a list could have.
LONGEST = 1000

_BRACES = re.compile(r"\{(\w+)\}")
_EQUALS = ("=", "==")


class Signs(Protocol):
    """What this needs of a subject's signs (graders/signs.py)."""

    @property
    def probes(self) -> Sequence[ProbeSign]: ...

    @property
    def words(self) -> WordSigns: ...


@dataclass(frozen=True)
class Planned:
    """One probe of the call `at`: the command's `path`, the `items` that it is about, what `given` names stand for."""

    at: int
    call: Call
    sign: ProbeSign
    words: Words
    path: str = ""
    items: tuple[Item, ...] = ()
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """One of contract.KINDS."""
        return self.sign.kind

    @property
    def own(self) -> tuple[str, ...]:
        """The call itself, as it is asked again."""
        return self._besides(self.words.argv)

    def ask(self) -> tuple[str, ...]:
        """The command that lists, or resolves."""
        found: list[str] = []
        for word in self.sign.ask:
            found += self.words.argv if word == "{call}" else [fill(word, self.given)]
        return tuple(found)

    def with_candidate(self, candidate: str, value: str | None = None) -> tuple[str, ...]:
        """The call with another field, type or verb; `value`: with this value as well."""
        given = {**self.given, "candidate": candidate, **({"value": value} if value is not None else {})}
        words = [fill(word, given) for word in self.sign.replace]
        if not words:
            return self._besides(self.words.with_path(self.path, candidate))
        if not self.items:
            return self._besides(self.words.with_more(words))
        return self._besides(self.words.instead([(self.items[0], words)]))

    def with_only(self, kept: Item) -> tuple[str, ...]:
        """The call with one of the repeated flags alone."""
        return self._besides(self.words.instead([(one, ()) for one in self.items if one is not kept]))

    def with_value(self, value: str) -> tuple[str, ...]:
        """The call with another value of the flag that it is about."""
        item = self.items[0]
        return self._besides(self.words.instead([(item, [*filter(None, [item.name]), value])]))

    def without(self) -> tuple[str, ...]:
        """The call without the flag that it is about."""
        return self._besides(self.words.instead([(self.items[0], ())]))

    def raised(self) -> list[tuple[tuple[str, ...], reading.Read]]:
        """What asks for more than the call does, and how each answer is read: the call with a limit that cuts nothing
        off, and the witness."""
        item = self.items[0] if self.items else None
        asked = []
        for value in [one for one in self.sign.raised if item is None or one != item.value][:1]:
            words = [fill(word, {"value": value}) for word in self.sign.replace] or [self.sign.flags[0], value]
            argv = self.words.instead([(item, words)]) if item else self.words.with_more(words)
            asked.append((argv, self.sign.size))
        if witness := self.sign.witness:
            first, *more = self.words.plain[: len(self.path.split())]
            gone = [(one, list[str]()) for one in (*more, *self.words.flags(witness.without))]
            named = fill(witness.command, {"path": self.path}).split()
            argv = take_apart(self.words.instead([(first, named), *gone]), ()).with_more(witness.words)
            asked.append((argv, witness.size))
        return asked

    def _besides(self, argv: Sequence[str]) -> tuple[str, ...]:
        return take_apart(argv, ()).with_more(self.sign.besides)


@dataclass(frozen=True)
class Skip:
    """A probe of the call `at` that fits and is not asked, and why."""

    at: int
    kind: str
    why: str


@dataclass(frozen=True)
class Plan:
    """What to ask, in order, and what not."""

    planned: tuple[Planned, ...]
    skipped: tuple[Skip, ...]


def fill(word: str, given: Mapping[str, str]) -> str:
    """A template's word with the names in braces that are given; other braces stay."""
    return _BRACES.sub(lambda found: given.get(found[1], found[0]), word)


def plan(record: Record, signs: Signs) -> Plan:
    """Every probe of every call, in the order of calls and of kinds."""
    ordered = sorted(signs.probes, key=lambda sign: ORDER.index(sign.kind))
    valued = {*signs.words.valued, *(flag for sign in ordered for flag in sign.flags)}
    planned: list[Planned] = []
    skipped: list[Skip] = []
    for at, call in enumerate(record.calls):
        words = take_apart(call.argv, valued)
        for sign in ordered:
            for one in _of(at, call, sign, words):
                why = _why_not(one, signs.words)
                if why:
                    skipped.append(Skip(at, sign.kind, why))
                else:
                    planned.append(one)
    return Plan(tuple(planned), tuple(skipped))


def _of(at: int, call: Call, sign: ProbeSign, words: Words) -> Iterator[Planned]:
    """The probes of one entry that fit a call."""
    path = next((one for one in sign.commands if words.is_of(one)), None)
    if call.outcome not in sign.when or path is None:
        return
    if (sign.having and not words.has(sign.having)) or words.has(sign.lacking):
        return
    items = [item for item in _items(sign, words, path) if item.value is not None]
    if sign.kind == "argv_echo":
        names = dict.fromkeys(item.name for item in items) if sign.apart else (None,)
        for same in (tuple(item for item in items if name in (None, item.name)) for name in names):
            if sign.nothing and len(same) == 1 and call.outcome == "ok":
                yield Planned(at, call, sign, words, path, same, _given(sign, same[0], words) or {})
            elif not sign.nothing and len({item.value for item in same}) > 1:
                yield Planned(at, call, sign, words, path, same)
    elif sign.kind == "limit_raise":
        one = Planned(at, call, sign, words, path, tuple(items[-1:]))
        if (
            (items or sign.default or sign.witness)
            and one.raised()
            and (not sign.loose or _may_be_at(limit_of(one), call, sign))
        ):
            yield one
    elif items:
        given = [_given(sign, item, words) for item in items]
        if sign.clears and None in given:
            return  # what is not looked up can't be cleared
        for item, known in zip(items, given, strict=True):
            if known is not None:
                yield Planned(at, call, sign, words, path, (item,), known)
    elif sign.optional or not (sign.flags or sign.position or sign.rest):
        yield Planned(at, call, sign, words, path)


def _items(sign: ProbeSign, words: Words, path: str) -> list[Item]:
    if sign.rest:
        return words.rest()
    if sign.position:
        at = len(path.split()) + sign.position - 1
        return words.plain[at : at + 1]
    return words.flags(sign.flags)


def _given(sign: ProbeSign, item: Item, words: Words) -> dict[str, str] | None:
    """What the names in braces stand for; None if the value is not of the form that the entry is about."""
    assert item.value is not None
    if len(item.value) > LONGEST:
        return None
    plain = {str(at): str(one.value) for at, one in enumerate(words.plain)}
    plain |= {"value": item.value, "field": item.name.lstrip("-"), "flag": item.name}
    if not sign.value:
        return plain
    found = re.search(sign.value, item.value)
    if not found:
        return None
    return plain | {name: text for name, text in found.groupdict().items() if text is not None}


def limit_of(planned: Planned) -> int:
    """The limit that the call gives, or else the one that it has; 0 where there is none (0 itself is none)."""
    if not planned.items:
        return planned.sign.default
    value = planned.items[0].value or ""
    return int(value) if re.fullmatch(r"\d{1,12}", value) else 0


def _may_be_at(limit: int, call: Call, sign: ProbeSign) -> bool:
    """Whether the answer may be as long as its limit: where its whole text is told, that is known. 0 is no limit."""
    if not limit:
        return False
    if len(call.stdout_head.encode("utf-8", "surrogatepass")) >= HEAD_BYTES:
        return True
    size = reading.size(sign.size, call.stdout_head)
    return size is None or size >= limit


def _why_not(one: Planned, words: WordSigns) -> str:
    """Why a probe that fits is not asked; empty if it is."""
    call, sign = one.call, one.sign
    if call.blame != "tool":
        return f"nothing to ask the program: the call failed by the {call.blame}"
    if call.outcome != "ok" and call.recovery == "guided":
        return "the answer itself says how to go on"
    if one.words.has(words.never):
        return f"never run again: it has {' or '.join(words.never)}"
    if sign.told and re.search(sign.told, f"{call.stdout_head}\n{call.stderr_head}", re.M):
        return "the output says it already"
    if sign.kind in ("vocabulary", "column_swap") and one.given.get("op", "=") not in _EQUALS:
        return f"a comparison by {one.given['op']} names no value that could be looked up"
    if sign.besides and one.words.has([word for word in sign.besides if word.startswith("-")]):
        return f"it has {sign.besides[0]} itself"
    return ""
