"""What --scenario means, for every command that has it: ids, comma-separated, with `*` and `?`; repeatable."""

import fnmatch
from collections.abc import Iterable, Sequence

from labd.errors import NotFound, Usage, nearest


def chosen(given: Sequence[str], known: Iterable[str]) -> list[str]:
    """Those of the ids `known` that are meant, in their order; all of them where nothing was given.

    Raises Usage where what was given names nothing, NotFound with near matches for a word that fits no id.
    """
    ids = list(known)
    words = [word.strip() for entry in given for word in entry.split(",") if word.strip()]
    if given and not words:
        raise Usage("--scenario names no scenario", hint="labd-eval list")
    for word in words:
        if not any(_fits(identity, word) for identity in ids):
            raise NotFound(f"no scenario {word!r}", near=nearest(word, ids), hint="labd-eval list")
    return [identity for identity in ids if not words or any(_fits(identity, word) for word in words)]


def _fits(identity: str, word: str) -> bool:
    return fnmatch.fnmatchcase(identity.lower(), word.lower())
