"""What the scripted model says next: a pure function of the script and of one request.

Every request carries its whole conversation, so where a thread stands is read from it (how many turns the model has
taken, what came of their calls) and never counted here: threads may run side by side, and a request that is sent again
gets the same answer.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from harness.model_server.script import Script, Thread, Turn
from harness.scenario import fill

#: Seconds between two tries of a turn that waits for something.
PAUSE_S = 0.2

#: What a request without any tool gets: titles, summaries, "who speaks next?". One text that suits all of them.
SIDE_ANSWER = '{"title": "A session", "reasoning": "scripted", "next_speaker": "user"}'


@dataclass(frozen=True)
class Exchange:
    """A request in the form that all APIs share.

    `first` is the text that tells its thread; `taken` has the results of the calls of each turn that the model has
    taken so far; `offered` are the names of the tools it may call.
    """

    model: str
    first: str
    taken: tuple[tuple[str, ...], ...]
    offered: frozenset[str]
    stream: bool


@dataclass(frozen=True)
class Next:
    """The turn to take, placeholders filled; `key` names its place in the script, for whoever counts faults."""

    turn: Turn
    key: str


def next_turn(script: Script, exchange: Exchange) -> Next:
    """What comes now in the thread that this request belongs to."""
    if not exchange.offered:
        return Next(Turn(text=SIDE_ANSWER), "side")
    thread = script.thread(exchange.first)
    at, tries, values = 0, 0, dict(script.values)
    for results in exchange.taken:
        at = _applying(thread, at, exchange.first, values)
        if at >= len(thread.turns):
            break
        turn = thread.turns[at]
        if results:
            values["output"] = results[-1].rstrip("\n")
        if turn.repeat:
            continue
        if turn.until and not _found(turn.until, values):
            tries += 1
            if tries < turn.tries:
                continue
            return Next(Turn(text=f"I give up: {turn.until!r} did not come."), _key(thread, at))
        values |= _saved(turn, values)
        at, tries = at + 1, 0
    at = _applying(thread, at, exchange.first, values)
    if at >= len(thread.turns):
        return Next(_filled(Turn(text=thread.turns[-1].text), values), _key(thread, at))
    turn = thread.turns[at]
    return Next(_filled(replace(turn, delay_s=max(turn.delay_s, PAUSE_S)) if tries else turn, values), _key(thread, at))


def _key(thread: Thread, at: int) -> str:
    return f"{thread.match or 'main'} {at + 1}"


def _applying(thread: Thread, at: int, first: str, values: Mapping[str, str]) -> int:
    """The first turn from `at` on that is for this case."""
    while at < len(thread.turns):
        turn = thread.turns[at]
        if (
            (not turn.when or _found(turn.when, values))
            and not (turn.unless and _found(turn.unless, values))
            and (not turn.told or re.search(turn.told, first))
        ):
            break
        at += 1
    return at


def _found(pattern: str, values: Mapping[str, str]) -> bool:
    return re.search(fill(pattern, values, pattern=True), values.get("output", ""), re.MULTILINE) is not None


def _saved(turn: Turn, values: Mapping[str, str]) -> dict[str, str]:
    """What later turns need of the last output; a name that nothing fits stays a hole, for all to see."""
    saved = {}
    for name, pattern in turn.save.items():
        found = re.search(pattern, values.get("output", ""), re.MULTILINE)
        if found:
            saved[name] = found[1] if found.re.groups else found[0]
    return saved


def _filled(turn: Turn, values: Mapping[str, str]) -> Turn:
    calls = tuple(
        replace(call, shell=fill(call.shell, values), agent=fill(call.agent, values), input=_deep(call.input, values))
        for call in turn.calls
    )
    return replace(turn, text=fill(turn.text, values), message=fill(turn.message, values), calls=calls)


def _deep(value: Mapping[str, object], values: Mapping[str, str]) -> dict[str, object]:
    return {name: fill(one, values) if isinstance(one, str) else one for name, one in value.items()}


@dataclass(frozen=True)
class Item:
    """A piece of a conversation: the model's words or call, a call's result, or what anybody else said.

    `call` is the call's id where there is one. Ours end in `_K`, and what stands before that is their turn's.
    """

    kind: Literal["model", "result", "other"]
    call: str = ""
    text: str = ""


def turns_taken(items: Iterable[Item]) -> tuple[tuple[str, ...], ...]:
    """The results of each turn of the model, from a conversation in order.

    Pieces of the model's that follow each other are one turn; so are calls whose ids say that they are of one, though
    a product tells each with its result.
    """
    turns: list[list[str]] = []
    known: dict[str, list[str]] = {}
    speaking = False
    for item in items:
        name = item.call.rpartition("_")[0]
        if item.kind == "model":
            if name not in known and not speaking:
                turns.append([])
            if name:
                known.setdefault(name, turns[-1])
        elif item.kind == "result" and turns:
            known.get(name, turns[-1]).append(item.text)
        speaking = item.kind == "model"
    return tuple(tuple(results) for results in turns)
