"""One pattern of a wait: what it is, whether a match of it can still grow, and finding it within a time limit.

Pure; used by `labd.match` and by whoever checks patterns before anything is sent. The engine is `regex`, never `re`: a
pattern from a user may explode, and `regex` has a time limit and lets other threads run. google-re2, where it happens
to be installed, only tells quickly that a text holds no match; what matches, and where, never depends on it.

`^` and `$` stand for the begin and the end of each line, as a person means them who looks at a console.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from labd.errors import TimedOut, Usage
from labd.loggrep import required

#: The longest that one look for one pattern may take, in seconds.
TIMEOUT_S = 0.5
#: A match over several lines is found up to this many characters.
SPAN = 1 << 14

#: What a board says when it is past helping: a wait ends at once. Compared as text, case and all.
DEATHS = (
    "Kernel panic",
    "Oops: ",
    "Oops [#",
    "Unable to handle kernel",
    "BUG: unable to handle",
    "kernel BUG at ",
    "Guru Meditation Error",
    "ZEPHYR FATAL ERROR",
    "### ERROR ### Please RESET the board ###",
)

_META = frozenset(r".^$*+?{}[]\|()")
# What a pattern that can match a line end has in it, seen generously.
_LINE_ENDS = re.compile(r"\\[nrsWDRXNpPvxuU0]|\[\^|\[\[|\(\?[a-zA-Z^]*[sxrbeDSVpL]|[\n\r]")
_AT_THE_END = re.compile(r"\\[Zz]")
_DEAD_DOLLAR = re.compile(r"(?<!\\)(?:\\\\)*\$(?=[ \w#>])")


class Pattern:
    """A compiled pattern. Raises Usage, with the position, if it is none, or if it matches the empty text.

    `fixed` says that a match can't grow: it is certain as soon as it is there. `lines` says that it may reach over a
    line end. `at_end` says that it asks for the very end of what was said.
    """

    __slots__ = (
        "_clear",
        "_compiled",
        "_needle_bytes",
        "_needles",
        "at_end",
        "fixed",
        "folded",
        "lines",
        "literal",
        "source",
        "width",
    )

    def __init__(self, source: str, *, literal: bool = False, ignore_case: bool = False, raw: bool = False,
                 as_written: str = "--literal") -> None:  # fmt: skip
        if not source:
            raise Usage("an empty pattern matches everything and says nothing", hint="ask for at least one character")
        self.source = source
        as_bytes = source.encode("utf-8", "surrogateescape").decode("latin-1")
        source = as_bytes if raw else source.replace("\r\n", "\n")
        plain = literal or not _META & set(source)
        self.literal = source if plain and not ignore_case else None
        self._compiled: Any = None
        self._needles: list[str] = []
        self.folded = ignore_case
        self._clear: Any = None
        self.at_end = False
        if plain:
            self.fixed, self.width, self.lines = True, len(source), "\n" in source
        if self.literal is None:
            text = _escaped(source) if plain else source
            self._compile(text, plain, ignore_case, as_written)
        elif len(source) > 1:
            self._needles = [max(source.split("\n"), key=len)]
        self._needle_bytes = [needle.encode("latin-1" if raw else "utf-8", "replace") for needle in self._needles]

    def _compile(self, text: str, plain: bool, ignore_case: bool, as_written: str) -> None:
        self._compiled = _compile(text, self.source, ignore_case, as_written)
        if plain:
            return
        dead = _DEAD_DOLLAR.search(_without_sets(text))
        if dead:
            raise Usage(
                f"pattern {self.source!r}: the $ at position {dead.end() - 1} is the end of a line, and text after it "
                "never matches",
                hint="write \\$ for the character" + (f", or {as_written} for the whole pattern" if as_written else ""),
            )
        if self._search(self._compiled, "", 0, 0) is not None:
            raise Usage(
                f"pattern {self.source!r} matches the empty text, so it would be found at once",
                hint="ask for at least one character"
                + (f"; {as_written} takes the pattern as it is written" if as_written else ""),
            )
        self.width = _width(text)
        self.fixed = self.width > 0
        self.lines = _LINE_ENDS.search(text) is not None
        self.at_end = _AT_THE_END.search(text) is not None
        if text.startswith("(?i)") and text.isascii():
            text, self.folded = text[4:], True
        needles = [required(part) for part in _alternatives(text)]
        if all(len(needle) > 1 and (needle.isascii() or not self.folded) for needle in needles):
            self._needles = [needle.lower() for needle in needles] if self.folded else needles
        else:
            self._clear = _re2(text, self.folded)

    def absent(self, raw: bytes, lowered: bytes) -> bool:
        """Whether no match has any part in these bytes, which a terminal shows as they are; False if unsure.

        `lowered` are the same in lower case, needed if `folded`.
        """
        hay = lowered if self.folded else raw
        return bool(self._needle_bytes) and not any(needle in hay for needle in self._needle_bytes)

    def find(self, text: str, start: int = 0, stop: int | None = None) -> Found | None:
        """The first match in `text[start:stop]` that is not empty. Raises TimedOut if that takes too long to tell."""
        if self.literal is not None:
            at = text.find(self.literal, start, len(text) if stop is None else stop)
            return None if at < 0 else Found(at, at + len(self.literal), None)
        if not self._maybe(text):
            return None
        while True:
            match = self._search(self._compiled, text, start, len(text) if stop is None else stop)
            if match is None:
                return None
            if match.end() > match.start():
                return Found(match.start(), match.end(), match)
            start = match.end() + 1

    def _maybe(self, text: str) -> bool:
        """False if no match is in the text, where that is quick to see."""
        if self._needles:
            hay = text.lower() if self.folded else text
            return any(needle in hay for needle in self._needles)
        if self._clear is not None and len(text) > 512 and text.isascii():
            return self._clear.search(text) is not None
        return True

    def _search(self, compiled: Any, text: str, start: int, stop: int) -> Any:
        try:
            return compiled.search(text, start, stop, timeout=TIMEOUT_S, concurrent=True)
        except TimeoutError:
            raise TimedOut(
                f"pattern {self.source!r} takes more than {TIMEOUT_S:g} s on a piece of text, so it was given up",
                hint="write it without a repetition inside a repetition, as in (a+)+: that is what explodes",
            ) from None


class Found:
    """Where in a text a match is, and what its groups hold."""

    __slots__ = ("match", "start", "stop")

    def __init__(self, start: int, stop: int, match: Any) -> None:
        self.start = start
        self.stop = stop
        self.match = match

    @property
    def groups(self) -> tuple[str | None, ...]:
        """The numbered groups, from 1."""
        return () if self.match is None else tuple(self.match.groups())

    @property
    def named(self) -> dict[str, str | None]:
        """The named groups."""
        return {} if self.match is None else dict(self.match.groupdict())


def compile_all(
    patterns: list[str] | tuple[str, ...], *, literal: bool = False, ignore_case: bool = False, raw: bool = False,
    as_written: str = "--literal",
) -> list[Pattern]:  # fmt: skip
    """All of them, in order. Raises Usage for the first bad one, with its position.

    `as_written` is what the caller's verb has to take a pattern as it is written, for hints; "" where it has nothing.
    """
    how: dict[str, Any] = {"literal": literal, "ignore_case": ignore_case, "raw": raw, "as_written": as_written}
    return [Pattern(source, **how) for source in patterns]


@lru_cache(maxsize=64)
def death_text(source: str, raw: bool) -> Pattern:
    """A death pattern that is plain text; the same ones come with every wait."""
    return Pattern(source, literal=True, raw=raw)


def _compile(text: str, source: str, ignore_case: bool, as_written: str) -> Any:
    import regex

    try:
        return regex.compile(text, regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0))
    except regex.error as problem:
        where = "" if problem.pos is None else f" at position {problem.pos}"
        raise Usage(
            f"pattern {source!r}: {problem.msg}{where}",
            hint=f"{as_written} looks for the very characters" if as_written else r"write \[ for the character [",
        ) from None
    except (OverflowError, RecursionError, ValueError) as problem:
        raise Usage(f"pattern {source[:80]!r} is no usable pattern: {problem}") from None


def _escaped(text: str) -> str:
    import regex

    return str(regex.escape(text))


def _alternatives(text: str) -> list[str]:
    """The alternatives of a pattern that has no other structure around them; else the pattern itself."""
    return [text] if any(c in text for c in "()[]\\") else text.split("|")


def _without_sets(text: str) -> str:
    """The pattern with each `[…]` blanked, so that positions stay."""
    return re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", lambda m: m[0] if m[0][0] == "\\" else "." * len(m[0]), text)


def _width(text: str) -> int:
    """How many characters every match has, if that is one number and nothing behind a match matters; else 0."""
    if re.search(r"\{(?!\d)|\[:", text):  # fuzzy matching and classes of `regex`, which `re` reads otherwise
        return 0
    try:
        from re import _parser as parser  # type: ignore[attr-defined]

        parsed = parser.parse(text)
        low, high = parsed.getwidth()
        return int(low) if low == high and _behind_nothing(parsed) else 0
    except Exception:  # a pattern for `regex` alone, or a Python that parses elsewhere: then it may grow
        return 0


def _behind_nothing(parsed: Any) -> bool:
    """Whether only what the pattern consumes decides."""
    for op, value in parsed:
        name = str(op)
        if name in ("LITERAL", "NOT_LITERAL", "IN", "ANY") or (name == "AT" and "BEGINNING" in str(value)):
            continue
        if name == "SUBPATTERN" and _behind_nothing(value[-1]):
            continue
        if name == "BRANCH" and all(_behind_nothing(branch) for branch in value[1]):
            continue
        if name == "MAX_REPEAT" and value[0] == value[1] and _behind_nothing(value[2]):
            continue
        return False
    return True


def _re2(text: str, ignore_case: bool) -> Any:
    """The same pattern for google-re2, which tells in linear time whether there is a match at all; None without it."""
    if not text.isascii() or "\\Q" in text or "\\C" in text or "\\E" in text:
        return None
    try:
        import re2  # type: ignore[import-not-found, unused-ignore]

        options = re2.Options()
        options.log_errors = False
        options.case_sensitive = not ignore_case
        return re2.compile("(?m)" + text, options=options)
    except Exception:  # not installed, or a pattern that it has no words for
        return None
