"""Finding lines by a pattern: `serial log --grep`. Imported only when a pattern is given.

The pattern is a regular expression of the `regex` module, matched against a line's text as `labd.view` shows it, so
that colours and backspaces hide nothing. A pattern from a user may explode: each match has a time limit, and the
interpreter is left to others while it runs. Never `re`, which has neither.

Most blocks of a journal hold no match. A text that every match must contain is taken from the pattern where that is
easy to see, and a block without it is passed over with one search for bytes.
"""

from typing import Any

from labd.errors import TimedOut, Usage
from labd.view import plain

#: The longest that one line may take, in seconds.
TIMEOUT_S = 0.5
#: What is looked at of a line at a time; a longer line in pieces that overlap.
PIECE = 1 << 16
OVERLAP = 1 << 10

_META = frozenset(r".^$*+?{}[]\|()")
_CLASSES = frozenset("dDwWsSbBAZ")
_CONTROLS = (b"\x1b", b"\b", b"\a")


class Pattern:
    """A compiled pattern. Raises Usage, with the position, if it is none."""

    def __init__(self, pattern: str, *, ignore_case: bool = False, encoding: str = "utf-8") -> None:
        if not pattern:
            raise Usage("--grep needs something to look for", hint="labd serial log --grep 'panic|oops'")
        self.pattern = pattern
        self._encoding = encoding
        self._ignore_case = ignore_case
        self._literal = None if ignore_case or _META & set(pattern) else pattern
        self._compiled: Any = None if self._literal else _compile(pattern, ignore_case)
        self._needle = self._needle_bytes(self._literal or required(pattern))

    def _needle_bytes(self, text: str) -> bytes:
        if not text or "\\" in text or (self._ignore_case and not text.isascii()):
            return b""
        try:
            data = text.encode(self._encoding)
        except (LookupError, UnicodeError):
            return b""
        return data.lower() if self._ignore_case else data

    def maybe(self, block: bytes) -> bool:
        """False if no line of the block can match."""
        needle = self._needle
        if not needle or needle in (block.lower() if self._ignore_case else block):
            return True
        if any(control in block for control in _CONTROLS):
            return True  # what is shown differs from the bytes
        return block.count(b"\r") != block.count(b"\r\n")

    def matches(self, text: str) -> bool:
        """Whether the text has a match. Raises TimedOut if that takes too long to tell."""
        if self._literal is not None:
            return self._literal in text
        try:
            return self._compiled.search(text, timeout=TIMEOUT_S, concurrent=True) is not None
        except TimeoutError:
            raise TimedOut(
                f"--grep {self.pattern!r} takes more than {TIMEOUT_S:g} s on one line",
                hint="write it without a repetition inside a repetition, as in (a+)+: that is what explodes",
            ) from None

    def matches_raw(self, raw: bytes, *, partial: bool = False) -> bool:
        """Whether the text of these bytes has a match."""
        return self.matches(plain(raw, self._encoding, partial=partial))


def _compile(pattern: str, ignore_case: bool) -> Any:
    import regex

    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except regex.error as problem:
        where = "" if problem.pos is None else f" at position {problem.pos}"
        raise Usage(
            f"--grep: {problem.msg}{where} of {pattern!r}",
            hint=f"labd serial log --grep {_quoted(regex.escape(pattern, special_only=True))}",
        ) from None
    except (OverflowError, RecursionError, ValueError) as problem:
        raise Usage(f"--grep: {pattern[:80]!r} is no usable pattern: {problem}") from None


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def required(pattern: str) -> str:
    """The longest text that every match surely contains, or `""` where that is not plain to see."""
    if "|" in pattern or "(?" in pattern:
        return ""
    best = run = ""
    depth = at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        literal = ""
        if char == "\\":
            literal, at = _escaped(pattern, at)
            if at < 0:
                return ""
        elif char not in _META:
            literal = char
        if literal:
            run += literal if not depth else ""
            continue
        if char in "*?{":
            run = run[:-1]  # what came last may be absent
        best, run = max(best, run, key=len), ""
        if char in "[{":
            at = _skip(pattern, at, char)
            if at < 0:
                return ""
        depth += (char == "(") - (char == ")")
    return max(best, run, key=len)


def _escaped(pattern: str, at: int) -> tuple[str, int]:
    """The text of the escape whose letter is at `at`, and where to go on: -1 if its meaning is not plain."""
    letter = pattern[at : at + 1]
    if letter in _CLASSES:
        return "", at + 1
    if not letter or letter.isalnum():
        return "", -1
    return letter, at + 1


def _skip(pattern: str, at: int, opening: str) -> int:
    """Where a set or a repetition count that begins before `at` ends: -1 if it does not."""
    if opening == "{":
        return pattern.find("}", at) + 1 or -1
    at += pattern[at : at + 1] == "^"
    at += pattern[at : at + 1] == "]"
    while at < len(pattern) and pattern[at] != "]":
        if pattern[at] == "[":
            return -1
        at += 2 if pattern[at] == "\\" else 1
    return at + 1 if at < len(pattern) else -1
