"""A log in the normal form as sufficiency goes through it: its threads, what comes after a call in one. Pure.

However many calls wait for the same next action, nothing is gone through twice: what is stepped over is remembered.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graders.sufficiency_acts import Act

Entry = Mapping[str, Any]

MAIN = "main"


class Log:
    """What was called and said in each thread, in order, and how its threads end. `act`: what a call is."""

    def __init__(self, told: Mapping[str, Any], act: Callable[[Entry], Act]) -> None:
        self.told = told
        self.calls = sorted(_dicts(told.get("calls")), key=number)
        self.by_id = {str(call.get("id")): call for call in self.calls}
        entries: dict[str, list[Entry]] = defaultdict(list)
        for entry in sorted([*self.calls, *_dicts(told.get("messages"))], key=number):
            entries[thread(entry)].append(entry)
        self.threads = {name: Thread(found, act) for name, found in entries.items()}
        self.started_by = {str(one.get("by_call")): str(one.get("id")) for one in _dicts(told.get("threads"))
                           if one.get("by_call")}  # fmt: skip
        self.started = {name: call for call, name in self.started_by.items()}

    def behind(self, call: Entry) -> tuple[Entry | None, int]:
        """What the agent did next, and how many file accesses there were before the answer was there."""
        return self.threads[thread(call)].behind(call)

    def delegated(self, delegation: Entry) -> Entry | None:
        """The first thing that the subagent did itself."""
        found = self.threads.get(self.started_by.get(str(delegation.get("id")), ""))
        return found.first_own() if found else None

    def unfinished(self, call: Entry) -> str:
        """Why the end of the call's thread is no final answer; empty where it is one."""
        name = thread(call)
        said = self.threads[name].last_said > number(call)
        if name != MAIN:
            parent = self.by_id.get(self.started.get(name, ""))
            over = said or (parent is not None and parent.get("state") in ("done", "failed", "unknown"))
            return "" if over else "the log ends within the subagent's work"
        ended = self.told.get("ended")
        how = str(ended.get("how")) if isinstance(ended, dict) else "unknown"
        if self.told.get("truncated"):
            return "the log is cut off"
        if how == "completed" or (how == "unknown" and said):
            return ""
        return {"cut": "the log ends before the agent did", "unknown": "the log tells no end"}.get(
            how, f"the agent was ended: {how.replace('_', ' ')}"
        )

    def tells_of(self, delegation: Entry) -> bool:
        """Whether a delegation of which no thread is here ran no tool, and not only somewhere else."""
        stream = self.told.get("product") == "claude" and self.told.get("format") == "stream-json"
        return stream or str(delegation.get("id")) in self.started_by or delegation.get("state") == "denied"


class Thread:
    """The calls and words of one agent."""

    def __init__(self, entries: Sequence[Entry], act: Callable[[Entry], Act]) -> None:
        self.entries, self._act = entries, act
        self._numbers = [number(one) for one in entries]
        self._turns = _turns(entries)
        self.last_said = max((number(one) for one in entries if one.get("role") == "assistant"), default=-1)
        self._skips: dict[int, int] = {}
        self._after: dict[str, tuple[int, int, list[int]]] = {}
        self._window = 0, 0, 0

    def behind(self, call: Entry) -> tuple[Entry | None, int]:
        """The first call after the answer that means something, or the words with which a person went on; None at the
        thread's end. Calls of the same message were made before the answer was there: their file accesses are counted.
        """
        here = bisect_right(self._numbers, number(call))
        there = max(here, bisect_right(self._numbers, answered(call)))
        at, same = self._next(there, call.get("message_id"))
        early = self._accesses(here, there) + len(same) - bisect_left(same, there)
        return (self.entries[at] if at < len(self.entries) else None), early

    def first_own(self) -> Entry | None:
        """The first call that is neither bookkeeping nor handed on."""
        at = self._live(0)
        while at < len(self.entries) and (at in self._turns or self._act(self.entries[at]).kind == "delegate"):
            at = self._live(at + 1)
        return self.entries[at] if at < len(self.entries) else None

    def _next(self, there: int, message: Any) -> tuple[int, list[int]]:
        """(place of what comes at `there` or later and is of no such message, places of the message's accesses)."""
        if not isinstance(message, str):
            return self._live(there), []
        first, last, places = self._after.get(message, (1, 0, []))
        if not first <= there <= last:
            at, places = self._live(there), []
            while at < len(self.entries) and at not in self._turns and self.entries[at].get("message_id") == message:
                places += [at] if self._accesses_at(at) else []
                at = self._live(at + 1)
            first, last = there, at
            self._after[message] = first, last, places
        return last, places

    def _live(self, at: int) -> int:
        """The first place from there on with something that counts."""
        passed = []
        while at < len(self.entries):
            if at not in self._skips and (at in self._turns or self._means(self.entries[at])):
                break
            passed.append(at)
            at = self._skips.get(at, at + 1)
        self._skips.update(dict.fromkeys(passed, at))
        return at

    def _means(self, entry: Entry) -> bool:
        return "tool" in entry and self._act(entry).kind != "aside"

    def _accesses_at(self, at: int) -> bool:
        return "tool" in self.entries[at] and self._act(self.entries[at]).kind in ("read", "search")

    def _accesses(self, start: int, end: int) -> int:
        """How many file accesses there are in [start, end): the last such count, moved on."""
        first, last, count = self._window
        if not first <= start <= last <= end:
            first, last, count = start, start, 0
        count += sum(map(self._accesses_at, range(last, end))) - sum(map(self._accesses_at, range(first, start)))
        self._window = start, end, count
        return count


def _turns(entries: Sequence[Entry]) -> frozenset[int]:
    """The places of a person's words after the agent's answer: what it said last, with no call in it or behind it."""
    calling = {str(one.get("message_id")) for one in entries if "tool" in one}
    found, over = [], False
    for at, entry in enumerate(entries):
        if "tool" in entry:
            over = False
        elif entry.get("role") == "assistant":
            over = entry.get("id") is None or str(entry["id"]) not in calling
        elif entry.get("role") == "user" and over:
            found.append(at)
            over = False
    return frozenset(found)


def thread(entry: Entry) -> str:
    """The id of an entry's thread."""
    return str(entry.get("thread") or MAIN)


def number(entry: Entry) -> int:
    """An entry's place in the log."""
    n = entry.get("n")
    return n if isinstance(n, int) else 0


def answered(call: Entry) -> int:
    """The last entry that was told when the answer came; 0 where that is not known."""
    n = call.get("answered_n")
    return n if isinstance(n, int) else 0


def _dicts(value: Any) -> list[Entry]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
