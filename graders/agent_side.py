"""What the agent made of the hints it was given: recorded beside the classes, never charged. Pure functions.

A hint is offered by a call and taken by the next one, or ignored: then it is told in which calls, and whether it was
used later. After the last call there is only the answer left to use it in. What was suggested are the words that the
program's signs name (graders/signs.py), never the prose around them.
"""

import re
import shlex
from collections.abc import Sequence

from graders.contract import AgentSide, Call

IGNORED = "ignored_hint"

#: What stands for something to be filled in: <name>, [flag], NAME, …
_PLACEHOLDER = re.compile(r"<.*>|\[.*\]|\{.*\}|[A-Z][A-Z0-9_-]+|\.\.\.|…")


def ignored(
    calls: Sequence[Call], offered: Sequence[Sequence[str]], answer: str, program: str
) -> tuple[AgentSide, ...]:
    """The hints that the call after them did not use. `offered`: what each call's output suggested, empty for none.

    Advice beside an answer that was whole is none that anybody needs: only what a failure came with is told.
    """
    found = []
    for at, suggestions in enumerate(offered):
        meant = suggestions and calls[at].outcome != "ok"
        entry = _ignored(calls, at, tuple(suggestions), answer, program) if meant else None
        found += [entry] if entry else []
    return tuple(found)


def _ignored(
    calls: Sequence[Call], at: int, suggestions: tuple[str, ...], answer: str, program: str
) -> AgentSide | None:
    later = range(at + 1, len(calls))
    used = next((number for number in later if uses(calls[number].argv, suggestions, program)), None)
    in_answer = said(answer, suggestions)
    if used == at + 1 or (not later and in_answer):
        return None
    return AgentSide(IGNORED, at, _detail(at, len(calls), suggestions, used, in_answer), suggestions, used)


def _detail(at: int, count: int, suggestions: tuple[str, ...], used: int | None, in_answer: bool) -> str:
    """The hint, the window in which it was not used, and what became of it. Calls are counted from 1 for people."""
    last = (count if used is None else used) - 1
    if last == at:
        return f"hint offered {', '.join(suggestions)}; no call came after it, and the answer does not use it"
    window = f"call {at + 2}" if last == at + 1 else f"calls {at + 2} to {last + 1}"
    after = f"call {used + 1} did" if used is not None else "the answer does" if in_answer else "nothing did later"
    return f"hint offered {', '.join(suggestions)}; {window} did not use it; {after}"


def uses(argv: Sequence[str], suggestions: Sequence[str], program: str) -> bool:
    """Whether a call has one of the suggested words as an argument or a value, or all words of a suggested command."""
    return any(_uses(argv, suggestion, program) for suggestion in suggestions)


def _uses(arguments: Sequence[str], suggestion: str, program: str) -> bool:
    wanted = [word for word in _words(suggestion) if not _PLACEHOLDER.fullmatch(word)]
    if wanted[:1] == [program]:
        wanted = wanted[1:]
    left = iter(arguments)
    return bool(wanted) and all(any(_is(argument, word) for argument in left) for word in wanted)


def _words(suggestion: str) -> list[str]:
    """The words of a suggested command, as a shell reads them."""
    try:
        return shlex.split(suggestion)
    except ValueError:
        return suggestion.split()


def _is(argument: str, word: str) -> bool:
    """Whether an argument is the word: itself, a flag with its value, or what stands behind = or between commas."""
    return argument == word or word in re.split(r"[=,]+", argument)


def said(answer: str, suggestions: Sequence[str]) -> bool:
    """Whether an answer has one of the suggestions, as whole words."""
    text = " ".join(answer.split())
    bounded = (rf"(?<![\w-]){re.escape(' '.join(one.split()))}(?![\w-])" for one in suggestions if one.strip())
    return any(re.search(pattern, text) for pattern in bounded)
