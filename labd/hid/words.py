"""The words that say what to type, press, move or click, and what they come to. Pure.

    type TEXT · key K · combo K… · down K · up K · releaseall · move DX DY · moveabs X Y · click [B] [N] · mdown [B] ·
    mup [B] · scroll N · ping · version · delay MS · sleep S · run FILE|-

All of it is checked before anything is sent: `parse` gives all steps or raises. A command file has one command a line;
lines that begin with `#` and blank ones count for nothing, and behind `type ` all that follows is the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from labd.errors import Usage, nearest
from labd.hid import keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BUTTONS = ("left", "right", "middle")

#: The far corner of `moveabs`, whatever the screen's resolution.
FAR = 32767

#: The longest that one `delay` or `sleep` may be, seconds.
WAIT_MAX_S = 600.0

#: How far one `scroll` or `move` may go.
SCROLL_MAX, MOVE_MAX = 1000, 32767


class Step(NamedTuple):
    """One thing to do. `chords` are keys to press together, one group after the other (`type`, `key`, `combo`; `down`
    and `up` have one group). `x`, `y`: where to, or by how much (`scroll`: `y`). `times`: how often."""

    verb: str
    chords: tuple[tuple[int, ...], ...] = ()
    x: int = 0
    y: int = 0
    button: str = ""
    times: int = 1
    seconds: float = 0.0


def parse(words: Sequence[str], read: Callable[[str], str]) -> list[Step]:
    """The steps that `words` (a verb and its arguments) mean; `read` gives the text of a command file.

    Raises Usage for what can't be done, naming the line of a command file.
    """
    if not words:
        raise Usage(f"say what to do: {', '.join(VERBS)} or run", hint="labd hid send --help")
    if words[0].lower() != "run":
        return [_step(words[0], list(words[1:]))]
    if len(words) != 2:
        raise Usage("run takes one command file, or - for stdin", hint="labd hid send --help")
    return script(read(words[1]), "stdin" if words[1] == "-" else words[1])


def script(text: str, name: str = "the command file") -> list[Step]:
    """The steps of a command file. Raises Usage, naming the line, where one is wrong or there is none."""
    steps = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            steps.append(_line(line.lstrip()))
        except Usage as error:
            raise Usage(f"{name}, line {number}: {error.message}", hint=error.hint, near=error.near) from None
    if not steps:
        raise Usage(f"{name} has no command in it", hint="labd hid send --help")
    return steps


def lines_of(steps: Sequence[Step]) -> str:
    """What the steps press, for a person: `type 5 characters`, `key ctrl-c`."""
    return ", ".join(_shown(step) for step in steps[:3]) + (f" and {len(steps) - 3} more" if len(steps) > 3 else "")


def _shown(step: Step) -> str:
    if step.verb == "type":
        return f"type {len(step.chords)} character{'s' if len(step.chords) != 1 else ''}"
    if step.chords:
        return f"{step.verb} " + "-".join(keys.name_of(key) for key in step.chords[0])
    if step.verb in ("move", "moveabs"):
        return f"{step.verb} {step.x} {step.y}"
    return f"{step.verb} {step.button or step.y or step.seconds or ''}".rstrip()


def _line(line: str) -> Step:
    verb, _, rest = line.partition(" ")
    if verb.lower() == "type":
        return _step(verb, [rest] if rest else [])
    return _step(*_split(line))


def _split(line: str) -> tuple[str, list[str]]:
    verb, *rest = line.split()
    return verb, rest


def _step(verb: str, rest: list[str]) -> Step:
    named = verb.lower()
    if named == "run":
        raise Usage("a command file can't run another one")
    if named not in VERBS:
        near = list(dict.fromkeys([*([_MEANT[named]] if named in _MEANT else []), *nearest(named, list(VERBS))]))
        raise Usage(f"no input command {verb!r}", near=near, hint="labd hid send --help")
    usage, make = VERBS[named]
    try:
        return make(named, rest)
    except (ValueError, IndexError):
        said = " ".join([named, *rest])
        raise Usage(f"{said!r} is not {usage}", hint="labd hid send --help") from None


def _type(verb: str, rest: list[str]) -> Step:
    text = " ".join(rest)
    if not text:
        raise IndexError
    return Step(verb, chords=keys.chords(text))


def _key(verb: str, rest: list[str]) -> Step:
    (name,) = rest
    return Step(verb, chords=(keys.chord(name),))


def _one(verb: str, rest: list[str]) -> Step:
    (name,) = rest
    return Step(verb, chords=((keys.key(name),),))


def _combo(verb: str, rest: list[str]) -> Step:
    if not rest:
        raise IndexError
    pressed = [key for name in rest for key in keys.chord(name)]
    return Step(verb, chords=(tuple(dict.fromkeys(pressed)),))


def _bare(verb: str, rest: list[str]) -> Step:
    () = rest  # raises ValueError unless it is empty
    return Step(verb)


def _move(verb: str, rest: list[str]) -> Step:
    x, y = (_number(word, -MOVE_MAX, MOVE_MAX, verb) for word in rest)
    return Step(verb, x=x, y=y)


def _moveabs(verb: str, rest: list[str]) -> Step:
    x, y = (_number(word, 0, FAR, verb, " (the whole screen's width and height, not pixels)") for word in rest)
    return Step(verb, x=x, y=y)


def _click(verb: str, rest: list[str]) -> Step:
    button, count = [*rest, *("left", "1")[len(rest) :]]
    return Step(verb, button=_button(button), times=_number(count, 1, 3, verb))


def _press(verb: str, rest: list[str]) -> Step:
    (button,) = rest or ["left"]
    return Step(verb, button=_button(button))


def _scroll(verb: str, rest: list[str]) -> Step:
    (number,) = rest
    return Step(verb, y=_number(number, -SCROLL_MAX, SCROLL_MAX, verb))


def _wait(verb: str, rest: list[str]) -> Step:
    (text,) = rest
    seconds = float(text) / (1000 if verb == "delay" else 1)
    if not 0 <= seconds <= WAIT_MAX_S:
        raise Usage(f"{verb} {text}: a wait is at most {WAIT_MAX_S:g} s")
    return Step(verb, seconds=seconds)


def _number(text: str, low: int, high: int, verb: str, what: str = "") -> int:
    number = int(text)
    if not low <= number <= high:
        raise Usage(f"{verb}: {number} is not within {low} to {high}{what}; nothing was sent")
    return number


def _button(name: str) -> str:
    if name.lower() not in BUTTONS:
        raise Usage(f"no mouse button {name!r}; there is {', '.join(BUTTONS)}", near=nearest(name, BUTTONS))
    return name.lower()


#: Verb → (what its words are, how they become a step).
VERBS: dict[str, tuple[str, Callable[[str, list[str]], Step]]] = {
    "type": ("type TEXT", _type),
    "key": ("key KEY, as in key enter or key ctrl-c", _key),
    "combo": ("combo KEY…, as in combo ctrl alt delete", _combo),
    "down": ("down KEY", _one),
    "up": ("up KEY", _one),
    "releaseall": ("releaseall", _bare),
    "move": ("move DX DY, two whole numbers", _move),
    "moveabs": ("moveabs X Y, two whole numbers from 0 to 32767", _moveabs),
    "click": ("click [left|right|middle] [1|2|3]", _click),
    "mdown": ("mdown [left|right|middle]", _press),
    "mup": ("mup [left|right|middle]", _press),
    "scroll": ("scroll N, a whole number, up if positive", _scroll),
    "ping": ("ping", _bare),
    "version": ("version", _bare),
    "delay": ("delay MILLISECONDS", _wait),
    "sleep": ("sleep SECONDS", _wait),
}

#: What people say for it.
_MEANT = {"press": "key", "text": "type", "write": "type", "hold": "down", "release": "up", "mouse": "move",
          "wheel": "scroll", "wait": "sleep", "keydown": "down", "keyup": "up", "tap": "key"}  # fmt: skip
