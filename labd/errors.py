"""What can go wrong, as types: each carries its exit code, a message for a person, a hint, near matches.

Raised where the fact is known, rendered in one place (`labd.render`). Imports nothing: every start of the
program pays for this module.
"""

#: Characters of one word, and of a whole message, that an error echoes.
WORD_SHOWN, MESSAGE_SHOWN = 200, 2000


def brief(text: str) -> str:
    """`text` without what nobody reads: a word, or a whole, that is too long is cut, and says by how much."""
    if len(text) > 2 * WORD_SHOWN:
        text = " ".join(_cut(word, WORD_SHOWN) for word in text.split(" "))
    return _cut(text, MESSAGE_SHOWN)


def _cut(text: str, most: int) -> str:
    if len(text) <= most + 40:  # what is said of the cut is no shorter
        return text
    return f"{text[:most]}…({len(text) - most} more characters)"


class LabdError(Exception):
    """Something failed. `message` is one line; `hint` is a command or an act that helps; `near` are near matches.

    `exit_code` and `name` are the closed vocabulary of the command line (design section 6): `name` is the
    `code` of the JSON error object.
    """

    exit_code = 1
    name = "failed"

    def __init__(self, message: str, *, hint: str | None = None, near: "list[str] | tuple[str, ...]" = ()) -> None:
        message = brief(message)
        super().__init__(message)
        self.message = message
        self.hint = brief(hint) if hint else hint
        self.near = list(near)


class Usage(LabdError):
    """The words of the call are wrong: unknown verb or flag, a value out of range, a repeated flag."""

    exit_code = 2
    name = "usage"


class Refused(LabdError):
    """The policy does not permit this. Nothing ran."""

    exit_code = 3
    name = "refused"


class NotFound(LabdError):
    """No such target, interface, host, skill, helper, DUT, scenario."""

    exit_code = 4
    name = "not_found"


class TimedOut(LabdError):
    """What was waited for did not come in time."""

    exit_code = 5
    name = "timed_out"


class Busy(LabdError):
    """Somebody else holds it; the message says who."""

    exit_code = 6
    name = "busy"


class Unreachable(LabdError):
    """A device or host isn't there, is down, or may not be opened."""

    exit_code = 7
    name = "unreachable"


class Died(LabdError):
    """The target said that it is past helping (a kernel panic) while something else was waited for."""

    exit_code = 8
    name = "died"


class PassedOn(LabdError):
    """A hook, helper or remote command failed with its own exit code, which becomes ours."""

    name = "passed_on"

    def __init__(self, message: str, exit_code: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


def nearest(word: str, known: "list[str] | tuple[str, ...]", most: int = 3) -> list[str]:
    """The entries of `known` that a person who wrote `word` most likely meant, best first, at most `most`."""
    import difflib

    if len(word) > WORD_SHOWN:
        return []
    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), list(lowered), n=most, cutoff=0.6)
    parts = [low for low in lowered if len(word) >= 3 and (word.lower() in low or low in word.lower())]
    return [lowered[low] for low in dict.fromkeys(close + sorted(parts))][:most]
