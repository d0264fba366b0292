"""The seven questions a judge is asked, and our own arithmetic over the answers. Pure values; asks nobody.

The dimensions, the weights, the bar and the hard fail are those of the discoverability suite (requirements 003-10 to
003-12): each is scored 0, 1 or 2; D4 counts twice; D7 is told and never counted; D1 does not arise where the skill
was put in front of the agent. The most is therefore 14 (12 when preloaded), and three quarters of it is the bar.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

#: The share of the most that has to be reached.
BAR = 0.75


@dataclass(frozen=True)
class Dimension:
    """One question: what earns 2, what earns 0 (1 lies between), how much it counts, whether a 0 in it ends all."""

    key: str
    name: str
    good: str
    bad: str
    weight: int = 1
    least: int = 0


DIMENSIONS = (
    Dimension("d1", "discovery", "looked it up (help, skill, documents) before it acted or answered",
              "guessed, and looked nothing up"),
    Dimension("d2", "capability", "went to the part of the tool that does this", "went to a part that cannot do it",
              least=1),
    Dimension("d3", "formation", "every command is well formed: verb, flags, where the target's name goes",
              "commands are malformed, or use flags where they do not belong", least=1),
    Dimension("d4", "nothing invented", "every command and flag it ran or recommended is in the COMMAND REFERENCE",
              "it ran or recommended a command or flag that is not in the COMMAND REFERENCE", weight=2, least=1),
    Dimension("d5", "traps", "walked into none of the TRAPS", "walked into one that is marked central"),
    Dimension("d6", "goal", "what it did or proposes reaches the user's goal, whole", "the goal would not be reached",
              least=1),
    Dimension("d7", "economy", "went straight there", "wandered, repeated itself, read the same help again", weight=0),
)  # fmt: skip
KEYS = tuple(dimension.key for dimension in DIMENSIONS)


def asked(condition: str) -> tuple[Dimension, ...]:
    """The dimensions that arise in a condition: with the skill in front of it, there was nothing to discover."""
    return tuple(one for one in DIMENSIONS if not (condition == "preloaded" and one.key == "d1"))


@dataclass(frozen=True)
class Score:
    """The arithmetic on one set of scores. `short` names in words each rule that it breaks; none: it passes."""

    weighted: int
    most: int
    bar: float
    short: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.short


def most(condition: str) -> int:
    """The highest weighted sum: 14, or 12 when preloaded."""
    return 2 * sum(one.weight for one in asked(condition))


def weigh(scores: Mapping[str, int | None], condition: str, *, central: bool = False) -> Score:
    """What follows from the scores (0 to 2 each; those that do not arise are ignored).

    `central`: whether a central trap was walked into, by whoever found it. Raises KeyError for a missing score.
    """
    counted = {one: _score(scores, one.key) for one in asked(condition)}
    weighted = sum(one.weight * score for one, score in counted.items())
    top = most(condition)
    short = [f"{one.key.upper()} ({one.name}) is {score}" for one, score in counted.items() if score < one.least]
    if central:
        short.append("a central trap was walked into")
    if weighted < BAR * top:
        short.append(f"{weighted} of {top} is under the bar of {BAR * top:g}")
    return Score(weighted, top, BAR * top, tuple(short))


def _score(scores: Mapping[str, int | None], key: str) -> int:
    score = scores[key]
    if score is None:
        raise KeyError(key)
    return score


def text() -> str:
    """The rubric as a judge reads it."""
    lines = [f"- {one.key.upper()} {one.name}: 2 = {one.good}; 0 = {one.bad}; 1 = between." for one in DIMENSIONS]
    return "\n".join(lines)


def digest(*more: str) -> str:
    """What a verdict by this rubric (and these texts around it) is stored with: other words are another measure."""
    return sha256("\0".join((text(), *more)).encode()).hexdigest()
