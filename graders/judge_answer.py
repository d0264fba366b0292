"""Reads what a judge said, believing nothing that is not there in full. Pure; a judge is a stranger on a pipe.

Judges write prose around their verdict, with braces in it; they are cut off; they write "false" for false. The last
whole object that has the verdict's shape counts, nothing inside another object does, and whatever is missing, out of
range or of another kind is an error of the judge, never a point against the agent (requirement 003-14).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graders import rubric

#: More than any judge has to say; the prompt asks for one object.
LONGEST = 1 << 20

#: The longest piece of a word (`false`, `\\u2019`) that can stand at the end of a text that was cut off.
_WORD = 6

#: Judges break lines inside their quotes; that alone makes nothing unclear.
_DECODER = json.JSONDecoder(strict=False)


class JudgeError(ValueError):
    """The judge's answer can't be used; says why in a line."""


@dataclass(frozen=True)
class TrapSaid:
    """What a judge said of one trap, and the words that it quoted for it."""

    respected: bool
    evidence: str


@dataclass(frozen=True)
class Answer:
    """A judge's whole verdict. `scores` has every dimension that arises in the condition, 0 to 2.

    `invented`: the commands or flags that it says do not exist; `why`: its reason a dimension.
    """

    scores: Mapping[str, int]
    why: Mapping[str, str]
    traps: tuple[TrapSaid, ...]
    invented: tuple[str, ...]


def read(text: str, condition: str, traps: int) -> Answer:
    """The verdict in `text`, for a scenario with that many traps. Raises JudgeError."""
    found = _last_verdict(text)
    for key in ("pass", "hard_fail"):
        if key in found and not isinstance(found[key], bool):
            raise JudgeError(f"{key} is {_shown(found[key])}, not true or false")
    scores = {one.key: _score(found, one.key) for one in rubric.asked(condition)}
    invented = _texts(found.get("invented", []), "invented")
    if scores["d4"] == 0 and not invented:
        raise JudgeError("d4 is 0, but no invented command is named")
    return Answer(scores, _reasons(found.get("justifications", {})), _traps(found["traps_eval"], traps), invented)


def _last_verdict(text: str) -> dict[str, Any]:
    if len(text) > LONGEST:
        raise JudgeError(f"the answer has {len(text)} characters; one object was asked for")
    last: dict[str, Any] | None = None
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            if _ran_out(text, error):
                if last is None or '"d2"' in text[at:]:
                    raise JudgeError("the verdict is cut off") from None
                break  # an unfinished afterthought, after a whole verdict
            end = at + 1
        except RecursionError:
            raise JudgeError("the answer is nested too deeply") from None
        else:
            if _shaped(value):
                last = value
        at = text.find("{", end)
    if last is None:
        raise JudgeError("the answer has no verdict" if text.strip() else "the judge said nothing")
    return last


def _ran_out(text: str, error: json.JSONDecodeError) -> bool:
    """Whether the object is broken only in that the text ends: what follows can't be another object then."""
    rest = text[error.pos :].strip()
    return error.msg.startswith("Unterminated string") or (len(rest) <= _WORD and "}" not in rest)


def _shaped(value: Any) -> bool:
    """Whether it is meant as the verdict: the scores and the traps, side by side."""
    return isinstance(value, dict) and "traps_eval" in value and {"d2", "d3", "d4", "d6"} <= value.keys()


def _score(found: Mapping[str, Any], key: str) -> int:
    if key not in found:
        raise JudgeError(f"there is no score {key}")
    score = found[key]
    if isinstance(score, bool) or not isinstance(score, int) or not 0 <= score <= 2:
        raise JudgeError(f"{key} is {_shown(score)}, not 0, 1 or 2")
    return score


def _traps(entries: Any, wanted: int) -> tuple[TrapSaid, ...]:
    if not isinstance(entries, list) or len(entries) != wanted:
        count = len(entries) if isinstance(entries, list) else "no list"
        raise JudgeError(f"traps_eval has {count} entries for {wanted} traps")
    said: dict[int, TrapSaid] = {}
    for place, entry in enumerate(entries, 1):
        if not isinstance(entry, dict) or not isinstance(entry.get("respected"), bool):
            raise JudgeError(f"traps_eval[{place}] does not say true or false")
        evidence = entry.get("evidence")
        if not isinstance(evidence, str) or not evidence.strip():
            raise JudgeError(f"traps_eval[{place}] quotes nothing")
        number = entry.get("trap", place)
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= wanted or number in said:
            raise JudgeError(f"traps_eval[{place}] is about trap {_shown(number)}")
        said[number] = TrapSaid(entry["respected"], evidence)
    return tuple(said[number] for number in sorted(said))


def _reasons(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise JudgeError(f"justifications is {_shown(value)}, not an object")
    return {str(key).lower(): str(reason) for key, reason in value.items()}


def _texts(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise JudgeError(f"{name} is {_shown(value)}, not a list of texts")
    return tuple(item.strip() for item in value if item.strip())


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "…"
