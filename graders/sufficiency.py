"""Was an answer enough? Read off what the agent did next, for every answered call of the thing under test. Pure.

The thing is a tool or a program of the shell; the log is in the normal form (labd-transcript/1). Each answered call
gets one bucket; one whose next action nobody can know (the log is cut, say) gets none and says why. **Sufficient is
not correct**: that an agent moved on says that it had enough to go on, not that it was right.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from graders import sufficiency_acts as acts
from graders.shell_found import Found as Command
from graders.sufficiency_acts import Act, Thing
from graders.sufficiency_log import Log, number, thread
from graders.sufficiency_returned import Answer, Shelf, telling

Bucket = Literal["again", "help_again", "around", "read_returned", "read_not_returned", "search", "moved_on"]

#: Every bucket, with what it means for who answers.
BUCKETS: dict[str, str] = {
    "again": "not enough: it was asked again",
    "help_again": "not enough: its help was asked",
    "around": "gone around: another program, or its files by hand",
    "read_returned": "allocation: the right file, the wrong part of it",
    "read_not_returned": "recall: a file that it did not return",
    "search": "recall, a weaker sign: still looking",
    "moved_on": "enough: it did something else, or answered",
}
#: Those that only a program of the shell can have.
OF_PROGRAMS = frozenset({"help_again", "around"})

#: How it is known which calls were made before the answer was there.
Concurrency = Literal["messages", "order", "unknowable"]


@dataclass(frozen=True)
class Judged:
    """One answered call. bucket: None where nobody can know, `next` then says why. n: its place in the log.

    returned: files of which the answer shipped the content. lines: how long it is. note: what else is to be said.
    concurrent: files accessed before the answer was there.
    """

    n: int
    thread: str
    query: str
    bucket: Bucket | None
    next: str
    note: str = ""
    returned: tuple[str, ...] = ()
    lines: int = 0
    concurrent: int = 0


@dataclass(frozen=True)
class Found:
    """What one log tells of one thing. failed, unanswered: calls with no answer to judge. other_route: calls that
    reached the thing by another way, and how many of them brought something back."""

    thing: Thing
    judged: tuple[Judged, ...]
    failed: tuple[str, ...]
    unanswered: tuple[str, ...]
    concurrency: Concurrency
    other_route: int = 0
    other_route_answered: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """How many calls each bucket has; those of programs only for a program."""
        told = Counter(str(one.bucket) for one in self.judged)
        return {name: told[name] for name in buckets(self.thing)}

    @property
    def answered(self) -> int:
        """How many answered calls have a bucket: what percentages are of."""
        return sum(self.counts.values())

    @property
    def open(self) -> int:
        """How many answered calls have none."""
        return len(self.judged) - self.answered

    @property
    def concurrent(self) -> int:
        """How many file accesses were stepped over, since they were made before the answer was there."""
        return sum(one.concurrent for one in self.judged)

    def data(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "of": str(self.thing),
            "counts": self.counts,
            "answered": self.answered,
            "open": self.open,
            "failed": list(self.failed),
            "unanswered": list(self.unanswered),
            "concurrent": self.concurrent,
            "concurrency": self.concurrency,
            "other_route": {"calls": self.other_route, "answered": self.other_route_answered},
            "calls": [asdict(one) | {"returned": list(one.returned)} for one in self.judged],
        }


def buckets(thing: Thing) -> list[str]:
    """The buckets that there are for the thing."""
    return [name for name in BUCKETS if thing.program or name not in OF_PROGRAMS]


def measure(transcript: Mapping[str, Any], thing: Thing) -> Found:
    """Judge every answered call of the thing in a log. Never raises, whatever the calls are."""
    judge = _Judge(transcript, thing)
    for call in judge.log.calls:
        judge.take(call)
    return judge.found()


class _Judge:
    """Goes through the calls of a log in order."""

    def __init__(self, transcript: Mapping[str, Any], thing: Thing) -> None:
        self._acts: dict[int, Act] = {}
        self.log = Log(transcript, self._act)
        asked = ((id(call), acts.asks(call, thing)) for call in self.log.calls)
        self.asked = {name: found for name, found in asked if found is not None}
        self.thing = self._learned(thing)
        self.judged: list[Judged] = []
        self.failed: list[str] = []
        self.unanswered: list[str] = []
        self.earlier: dict[str, Shelf] = defaultdict(Shelf)
        self.routes = self.routes_answered = 0
        self.known: set[Concurrency] = set()
        self._last: tuple[Mapping[str, Any], frozenset[str]] = {}, frozenset()

    def _learned(self, thing: Thing) -> Thing:
        """With what the log itself tells: the servers of the tool, the program's first words."""
        if thing.tool:
            mine = {acts.server(str(call.get("tool"))) for call in self.log.calls if id(call) in self.asked}
            return replace(thing, servers=frozenset(mine - {""}))
        return replace(thing, first=frozenset(
            found.words[1] for every in self.asked.values() for found in every
            if len(found.words) > 1 and acts.may_be_verb(found.words[1])
        ))  # fmt: skip

    def _act(self, call: Mapping[str, Any]) -> Act:
        """What a call is, found out once."""
        known = self._acts.get(id(call))
        if known is None:
            known = self._acts[id(call)] = acts.act(call, self.thing)
        return known

    def take(self, call: Mapping[str, Any]) -> None:
        """One call: the thing's own is judged."""
        found = self.asked.get(id(call))
        if found is None:
            if acts.routes(call, self.thing):
                self.routes += 1
                self.routes_answered += bool((_output(call) or "").strip())
            return
        commands = [one.words for one in found]
        asked = acts.query(call, commands)
        if _refused(call) and not (found and _of_another(call, found)):
            self.failed.append(asked)
        elif not isinstance(call.get("output"), str) or call.get("state") == "pending" or call.get("background"):
            self.unanswered.append(asked)
        else:
            answer = Answer(call["output"])
            bucket, shown, note, concurrent = self._next(call, commands, answer)
            self.known.add(_known_by(call))
            self.judged.append(Judged(number(call), thread(call), asked, bucket, shown, note, answer.shipped,
                                      answer.size, concurrent))  # fmt: skip
            self.earlier[thread(call)].add(answer)

    def _next(
        self, call: Mapping[str, Any], commands: Sequence[tuple[str, ...]], answer: Answer
    ) -> tuple[Bucket | None, str, str, int]:
        """(bucket, the next action for a person, what else is to be said, concurrent file accesses)."""
        one, concurrent = self.log.behind(call)
        if one is None:
            unfinished = self.log.unfinished(call)
            return (None, unfinished, "", concurrent) if unfinished else ("moved_on", "(final answer)", "", concurrent)
        if "tool" not in one:
            return "moved_on", "(answered; then the user went on)", "", concurrent
        act = self._act(one)
        if act.kind == "delegate":
            return (*self._delegated(one, act, call, commands, answer), concurrent)
        return (*self._bucket(act, one, call, commands, answer), concurrent)

    def _delegated(
        self, delegation: Mapping[str, Any], act: Act, call: Mapping[str, Any],
        commands: Sequence[tuple[str, ...]], answer: Answer,
    ) -> tuple[Bucket | None, str, str]:  # fmt: skip
        """By the first thing that the subagent did. What it delegates itself is stepped over."""
        inner = self.log.delegated(delegation)
        if inner is not None:
            bucket, shown, note = self._bucket(self._act(inner), inner, call, commands, answer)
            return bucket, f"{act.shown} → {shown}", note
        if not self.log.tells_of(delegation):
            return None, f"{act.shown}: what the subagent did is not in this log", ""
        return "moved_on", f"{act.shown} (ran no tool)", ""

    def _bucket(
        self, act: Act, one: Mapping[str, Any], call: Mapping[str, Any],
        commands: Sequence[tuple[str, ...]], answer: Answer,
    ) -> tuple[Bucket | None, str, str]:  # fmt: skip
        if act.kind == "unclear":
            return None, f"{act.shown}: no shell text that is understood", ""
        if act.kind == "again":
            return self._again(act, one, call, commands)
        if act.kind == "help":
            return "help_again", act.shown, ""
        if act.kind == "read":
            return self._read(act, one, call, answer)
        if act.kind == "search":
            return (
                "search",
                act.shown,
                "what it found had been returned" if answer.shelf.shows(self._lines(one)) else "",
            )
        around = act.kind == "write" and self.thing.program and any(map(answer.shelf.names, act.paths))
        if act.kind == "around" or around:
            return "around", act.shown, "by hand" if around else ""
        return "moved_on", act.shown, ""

    def _again(
        self, act: Act, one: Mapping[str, Any], call: Mapping[str, Any], commands: Sequence[tuple[str, ...]]
    ) -> tuple[Bucket, str, str]:
        """For a program, another command of it is a next step; the same one is asking again."""
        if self.thing.tool:
            same = one.get("input") == call.get("input") and one.get("tool") == call.get("tool")
            return "again", f"{act.shown} {acts.query(one, ())}", "the same words" if same else ""
        asked = [words for words in commands if not acts.is_help(words)]
        if not asked:
            return "moved_on", act.shown, "what its help was for"
        ours = self.thing.verbs(act.words)
        if not any(self.thing.verbs(words) & ours for words in asked):
            return "moved_on", act.shown, "another command of it"
        same = any(tuple(words[1:]) == act.words[1:] for words in asked)
        if not same and ours & self.thing.writes:
            return "moved_on", act.shown, "the next change"
        return "again", act.shown, "the same words" if same else "other words"

    def _read(
        self, act: Act, one: Mapping[str, Any], call: Mapping[str, Any], answer: Answer
    ) -> tuple[Bucket | None, str, str]:
        """Whether what is read was returned: by this answer, or by an earlier one of this thread."""
        if not act.known or not act.paths:
            return None, f"{act.shown}: which files, its text does not tell", ""
        shown = self._lines(one) if len(act.paths) == 1 else frozenset()
        now, before = answer.shelf, self.earlier[thread(call)]
        missed = [path for path in act.paths if not (now.ships(path, shown) or before.ships(path, shown))]
        if missed:
            named = now.names(missed[0]) or before.names(missed[0])
            return "read_not_returned", act.shown, "named, not returned" if named else ""
        late = any(not now.ships(path, shown) for path in act.paths)
        return "read_returned", act.shown, "returned by an earlier call" if late else ""

    def _lines(self, call: Mapping[str, Any]) -> frozenset[str]:
        """The lines that a read or a search showed: those of the last one that was asked for are kept."""
        if self._last[0] is not call:
            self._last = call, telling(_output(call) or "")
        return self._last[1]

    def found(self) -> Found:
        """All that was found."""
        order: tuple[Concurrency, ...] = ("unknowable", "order", "messages")
        known: Concurrency = next((one for one in order if one in self.known), "messages")
        return Found(self.thing, tuple(self.judged), tuple(self.failed), tuple(self.unanswered), known,
                     self.routes, self.routes_answered)  # fmt: skip


def _refused(call: Mapping[str, Any]) -> bool:
    """Whether the call came back as an error."""
    if call.get("state") in ("denied", "failed") or call.get("kind") == "invented" or call.get("is_error") is True:
        return True
    code = call.get("exit_code")
    return isinstance(code, int) and not isinstance(code, bool) and code != 0


def _of_another(call: Mapping[str, Any], found: Sequence[Command]) -> bool:
    """Whether the error is another command's: a shell's code behind a pipe or a later command says nothing of ours."""
    return call.get("state") != "denied" and bool(call.get("output")) and not any(one.decides for one in found)


def _known_by(call: Mapping[str, Any]) -> Concurrency:
    message = call.get("message_id")
    if not isinstance(message, str):
        return "unknowable"
    return "order" if message.endswith("(by order)") else "messages"


def _output(call: Mapping[str, Any]) -> str | None:
    told = call.get("output")
    return told if isinstance(told, str) and call.get("state") != "failed" else None
