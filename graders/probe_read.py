"""What the answers to a probe's questions prove. Each kind is a generator: it yields a command and is sent its answer
until it returns its Probe. It runs nothing itself, so whoever asks may stop it, and a test may answer for the program.

Nothing is proved by silence: an answer that failed, can't be read, or would have come for any value at all leaves a
probe inconclusive, and so does a call that answers otherwise now than it did in the trial.
"""

import difflib
import re
import shlex
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace

from graders import reading
from graders.contract import Probe
from graders.joined import HEAD_BYTES
from graders.probe_combined import COMBINED
from graders.probe_plan import ORDER, Planned, fill, limit_of
from graders.reading import Read

#: A value that no data has: a question that finds something for it does not ask for the value.
NONSENSE = "zq7xnowhere"
#: From this likeness on (0 to 1) a value may have been meant.
_LIKE = 0.6
#: So many values are compared letter by letter.
_LOOKED_AT = 200
#: So many other values of a flag are tried.
_OTHERS = 6
#: So many of a list are shown.
_SHOWN = 8


@dataclass(frozen=True)
class Answer:
    """What one command gave. `code` is None where it has none; `trouble` says why the answer does not count."""

    code: int | None
    stdout: str
    stderr: str = ""
    trouble: str = ""

    @property
    def failed(self) -> str:
        """Why it is no answer; empty if it is one."""
        if self.trouble or self.code is None:
            return self.trouble or "it ended without an exit code"
        return f"exit {self.code}: {(self.stderr.strip() or self.stdout.strip())[:120]}" if self.code else ""


Asking = Generator[tuple[str, ...], Answer, Probe]


def asking(planned: Planned) -> Asking:
    """The questions of one probe, and in the end what they prove."""
    return _KINDS[planned.kind](planned)


def conclusion(probes: Iterable[Probe]) -> Probe | None:
    """The probe that explains a call: of those that are conclusive, the one whose kind explains most."""
    found = [one for one in probes if one.conclusive]
    return min(found, key=lambda one: ORDER.index(one.kind), default=None)


def nearest(value: str, known: Sequence[str], most: int = 3) -> list[str]:
    """The values that look most like it, best first: as a whole, by their parts (a path's name, an address's), or by
    the words that they are made of."""
    wanted = value.casefold().strip("^$.*\\")
    pairs = _pairs(wanted)
    near = sorted(dict.fromkeys(known), key=lambda one: len(pairs & _pairs(one.casefold())), reverse=True)[:_LOOKED_AT]
    scored = [(max(_likeness(wanted, part) for part in _parts(one.casefold())), one) for one in near]
    good = sorted((one for one in scored if one[0] >= _LIKE), key=lambda one: (-one[0], one[1]))
    return [one for _, one in good[:most]]


def _pairs(text: str) -> set[str]:
    """Its pairs of letters: comparing those of thousands of values is quick, and what shares none is not alike."""
    return {text[at : at + 2] for at in range(len(text) - 1)}


def _parts(value: str) -> list[str]:
    return [value, *(part.strip() for part in re.split("[/<>]", value) if part.strip())]


def _likeness(one: str, other: str) -> float:
    whole = difflib.SequenceMatcher(None, one, other)
    words, others = ([word for word in re.split(r"[\W_]+", text) if word] for text in (one, other))
    shared = len({*words} & {*others})
    return max(whole.ratio(), 0.5 + 0.5 * shared / max(len(words), len(others)) if shared else 0.0)


# -- the kinds -----------------------------------------------------------------------------------------------------


def _vocabulary(planned: Planned) -> Asking:
    """Is the value in what the program says there is? That it is there proves nothing about the answer."""
    value = planned.given["value"]
    unlike = yield from _as_it_was(planned)
    if unlike:
        return unlike
    argv = planned.ask()
    answer = yield argv
    known = None if answer.failed else reading.values(planned.sign.read, answer.stdout)
    if not known:
        why = answer.failed or ("it lists nothing" if known is not None else "its answer can't be read")
        return _no(planned, argv, f"no vocabulary: {why}")
    if _is_in(value, known, planned.sign.match):
        told = f"{value} is one of the {len(set(known))} values that there are"
        return replace(_no(planned, argv, told), cleared=planned.sign.clears)
    near = nearest(value, known)
    told = f"nearest: {', '.join(near)}" if near else "nothing looks like it"
    return _yes(planned, argv, f"{value} is none of the {len(set(known))} values that there are; {told}")


def _is_in(value: str, known: Sequence[str], match: str) -> bool:
    wanted = value.casefold()
    if match == "part":
        return any(wanted in one.casefold() for one in known)
    if match == "pattern":
        try:
            return any(re.search(value, one) for one in known)
        except re.error:  # another dialect of patterns
            return any(wanted in one.casefold() for one in known)
    if match == "path":
        wanted = value.strip("/")
        return wanted in ("", ".") or any(f"/{wanted}/" in f"/{one}/" for one in known)
    return wanted in {one.casefold() for one in known}


def _column_swap(planned: Planned) -> Asking:
    """Does the same value find something in another field? Every candidate is tried, until one does."""
    field = planned.given["field"]
    others = [one for one in planned.sign.candidates if one.lstrip("-") != field]
    return (yield from _swap(planned, others, f"{field} {planned.given['value']}", control=True))


def _type_sweep(planned: Planned) -> Asking:
    """Does the same question find something under another type or verb?"""
    others: Sequence[str] = planned.sign.candidates
    if planned.sign.ask:
        argv = planned.ask()
        answer = yield argv
        listed = None if answer.failed else reading.values(planned.sign.read, answer.stdout)
        if not listed:
            return _no(planned, argv, f"no candidates: {answer.failed or 'it lists none'}")
        others = (*others, *listed)
    mine = planned.given.get("value", planned.path)
    return (yield from _swap(planned, [one for one in dict.fromkeys(others) if one != mine], mine, control=False))


def _swap(planned: Planned, others: Sequence[str], mine: str, *, control: bool) -> Asking:
    own = yield planned.own
    why = _unlike(planned, own)
    if not why and reading.size(planned.sign.size, own.stdout) != 0:
        why = f"it can't be read that nothing was found: {own.stdout.strip()[:80]}"
    if why:
        return _no(planned, planned.own, why)
    failed: list[str] = []
    argv = planned.own
    for candidate in others:
        argv = planned.with_candidate(candidate)
        answer = yield argv
        size = None if answer.failed else reading.size(planned.sign.size, answer.stdout)
        if size is None:
            failed.append(f"{candidate} ({answer.failed or 'can not be read'})")
        elif size > 0:
            for_nothing = (yield planned.with_candidate(candidate, NONSENSE)) if control else None
            same = (
                for_nothing and not for_nothing.failed and reading.size(planned.sign.size, for_nothing.stdout) == size
            )
            if not same:
                return _yes(planned, argv, f"0 vs {size}: none with {mine}, {size} with {candidate}")
            failed.append(f"{candidate} ({size} for any value)")
    told = f"none with {mine}, nor with {_some(others)}" if others else f"nothing else to try than {mine}"
    return _no(planned, argv, told + (f"; not answered: {_some(failed)}" if failed else ""))


def _limit_raise(planned: Planned) -> Asking:
    """Is there more than the answer has? Also where it is shorter than its limit: that may be another than is told."""
    limit = limit_of(planned)
    first = yield planned.own
    if why := _unlike(planned, first):
        return _no(planned, planned.own, why)
    size = reading.size(planned.sign.size, first.stdout)
    if size is None or (planned.sign.loose and size < limit):
        return _no(planned, planned.own, f"{'an unreadable answer' if size is None else size} of at most {limit}")
    argv, found = planned.own, ""
    for argv, read in planned.raised():
        answer = yield argv
        more = None if answer.failed else reading.size(read, answer.stdout)
        if more is not None and more > size:
            return _cut(planned, argv, size, more, limit)
        found += "; " if found else ""
        found += f"{size} and {more} by {shlex.join(argv)}" if more is not None else (
            f"no answer to {shlex.join(argv)}: {answer.failed or 'it can not be read'}"
        )  # fmt: skip
    return _no(planned, argv, found)


def _cut(planned: Planned, argv: tuple[str, ...], size: int, more: int, limit: int) -> Probe:
    """There is more."""
    if size < limit or not limit:
        return _yes(
            planned, argv, f"{size} vs {more}: cut off, and {f'its limit is {limit}' if limit else 'by no limit'}"
        )
    asked = bool(planned.items)
    told = f"{size} vs {more}: cut off at {'its limit of' if asked else 'an unspoken limit of'} {limit}"
    if asked and planned.sign.asked_for:
        return _no(planned, argv, f"{told}, which was asked for")
    return _yes(planned, argv, told)


def _argv_echo(planned: Planned) -> Asking:
    """Did each of the repeated values, or the one value, have its part in the answer?"""
    if planned.sign.nothing:
        return (yield from _heeded(planned))
    whole = yield planned.own
    if why := _unlike(planned, whole):
        return _no(planned, planned.own, why)
    alone: list[tuple[str, str]] = []
    for item in planned.items:
        answer = yield planned.with_only(item)
        if answer.failed:
            return _no(planned, planned.with_only(item), f"no answer with {item.value} alone: {answer.failed}")
        alone.append((str(item.value), answer.stdout))
    dropped = COMBINED[planned.sign.combine](planned.sign.size, whole.stdout, alone)
    if dropped is None:
        return _no(planned, planned.own, "an answer that can't be read")
    if not dropped:
        return _no(planned, planned.own, f"{len(alone)} values, and the answer is what they make together")
    return _yes(planned, planned.own, dropped)


def _heeded(planned: Planned) -> Asking:
    """Did the one value have a part in the answer? Not if one that finds nothing gives the same; nor if it is the same
    without any, and for two others of which a row has one at most."""
    read = planned.sign.size
    own = yield planned.own
    mine, item = _what(read, own.stdout), planned.items[0]
    if (why := _unlike(planned, own)) or not mine:
        return _no(planned, planned.own, why or "nothing was found that could be compared")
    said = f"{item.name} {item.value}"
    argv = planned.with_value(planned.sign.nothing)
    answer = yield argv
    if not answer.failed:
        if _what(read, answer.stdout) == mine:
            return _yes(planned, argv, f"{said} was dropped: a value that nothing has gives the same answer")
        return _no(planned, argv, f"{said} is heeded: a value that nothing has gives another answer")
    argv = planned.without()
    answer = yield argv
    if answer.failed or _what(read, answer.stdout) != mine:
        return _no(planned, argv, f"without {said} there is {answer.failed or 'another answer'}")
    return (yield from _for_others(planned, mine, said))


def _for_others(planned: Planned, mine: int | tuple[str, ...], said: str) -> Asking:
    """Is the answer the same for two values that exclude each other, too?"""
    others = list(planned.sign.candidates)
    if planned.sign.ask:
        listed = yield planned.ask()
        others += [] if listed.failed else reading.values(planned.sign.read, listed.stdout) or []
    same: list[str] = []
    argv = planned.without()
    for other in [one for one in dict.fromkeys(others) if one != planned.items[0].value][:_OTHERS]:
        argv = planned.with_value(other)
        answer = yield argv
        if answer.failed:
            continue
        if _what(planned.sign.size, answer.stdout) != mine:
            return _no(planned, argv, f"{said} makes no difference, but {other} does")
        same.append(other)
        if len(same) > 1:
            told = f"{said} was dropped: it is the same without, with {' and with '.join(same)}"
            return _yes(planned, argv, told)
    return _no(planned, argv, f"{said} makes no difference, and there are no two other values to compare with")


def _what(read: Read, text: str) -> int | tuple[str, ...] | None:
    """The rows of an answer, or how many it says that there are; empty for none, None where it can't be read."""
    rows = None if reading.is_count(read, text) else reading.values(read, text)
    return reading.size(read, text) if rows is None else tuple(rows)


def _entity_check(planned: Planned) -> Asking:
    """Is what was resolved of the region that was named? A qualifier may be of several sets of names (MA is a state
    and a country): it fits if it fits in one, and belies only as a name that is known, and not the thing's own."""
    qualifier = planned.given.get("qualifier", "")
    argv = planned.ask()
    answer = yield argv
    if answer.failed:
        return _no(planned, argv, f"not resolved: {answer.failed}")
    own = {one.name: _own_names(one.own, answer.stdout) for one in planned.sign.namespaces}
    wanted = qualifier.casefold()
    if fitting := [name for name, names in own.items() if wanted in {one.casefold() for one in names}]:
        return _no(planned, argv, f"{qualifier} fits what was resolved, as its {' and '.join(fitting)}")
    if not any(own.values()):
        return _no(planned, argv, "the answer does not say what was resolved")
    known = []
    for one in planned.sign.namespaces:
        listed = yield tuple(fill(word, planned.given) for word in one.ask)
        names = None if listed.failed else reading.values(one.read, listed.stdout)
        known += [one.name] if wanted in {name.casefold() for name in names or ()} else []
    if not known:
        return _no(planned, argv, f"{qualifier} is no name that is known")
    told = "; ".join(f"{name} {', '.join(names)}" for name, names in own.items() if names)
    return _yes(planned, argv, f"{qualifier} ({' or '.join(known)}) was named, and what was resolved is of {told}")


def _own_names(reads: Sequence[Read], text: str) -> list[str]:
    return [name for read in reads for name in reading.values(read, text) or () if name.strip()]


_KINDS: dict[str, Callable[[Planned], Asking]] = {
    "vocabulary": _vocabulary, "column_swap": _column_swap, "type_sweep": _type_sweep, "limit_raise": _limit_raise,
    "argv_echo": _argv_echo, "entity_check": _entity_check,
}  # fmt: skip


# -- what they share -----------------------------------------------------------------------------------------------


def _as_it_was(planned: Planned) -> Generator[tuple[str, ...], Answer, Probe | None]:
    """Ask the call itself again: a probe of an empty answer proves something only if it is empty still."""
    again = yield planned.own
    why = _unlike(planned, again)
    return _no(planned, planned.own, why) if why else None


def _unlike(planned: Planned, again: Answer) -> str:
    """How the call's answer differs now; empty if it is the same, as far as the record tells it."""
    call = planned.call
    if again.trouble or again.code != call.exit_code:
        return f"the same call ends otherwise now: {again.failed or f'exit {again.code}'}"
    if planned.sign.besides:
        return ""  # another question than the call's: its words are compared with each other alone
    head = call.stdout_head.encode("utf-8", "replace")
    now = again.stdout.encode("utf-8", "replace")
    same = now == head if len(head) < HEAD_BYTES else now[: HEAD_BYTES - 8] == head[: HEAD_BYTES - 8]
    if same or (call.outcome == "empty" and reading.size(planned.sign.size, again.stdout) == 0):
        return ""
    return "the same call answers otherwise now than in the trial: its state has changed since"


def _some(listed: Sequence[str]) -> str:
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def _yes(planned: Planned, argv: Sequence[str], result: str) -> Probe:
    return Probe(planned.kind, shlex.join(argv), result, True)


def _no(planned: Planned, argv: Sequence[str], result: str) -> Probe:
    return Probe(planned.kind, shlex.join(argv), result, False)
