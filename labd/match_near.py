"""What came closest to a pattern that never came: for the end of a wait that timed out. Pure.

Two ways, the better one is told: the pattern itself with a few characters allowed to differ (`regex` can do that, and
says which), and the line that is most similar to the pattern's text. Bounded in time and in what is looked at.
"""

from __future__ import annotations

import difflib
import re
import time
from typing import Any

from labd.match_pattern import Pattern

#: Lines that are compared, from the last one back.
LINES = 200
_LINE_MAX = 400
_SECONDS = 0.1
_ALIKE = 0.5


def nearest(pattern: Pattern, lines: list[tuple[int, str]], *, ignore_case: bool = False) -> dict[str, Any] | None:
    """The nearest miss among `lines`, (seq, text) each: `{pattern, seq, text, differs}`; None if nothing is near.

    `text` is the part of the line that is near, `differs` says in words what differed.
    """
    recent = [(seq, text[:_LINE_MAX]) for seq, text in lines[-LINES:] if text.strip()]
    if not recent:
        return None
    found = _fuzzy(pattern, recent, ignore_case)
    if found is None and len(_words(pattern)) >= 3:
        found = _similar(_words(pattern), recent)
    return None if found is None else {"pattern": pattern.source, **found}


def _fuzzy(pattern: Pattern, recent: list[tuple[int, str]], ignore_case: bool) -> dict[str, Any] | None:
    """The line that has the pattern with the fewest characters wrong, missing or too many; of equals the last."""
    import regex

    source = regex.escape(pattern.source) if pattern.literal is not None else pattern.source
    most = min(6, len(_words(pattern)) // 3)
    if most < 1:
        return None
    best: tuple[int, int, Any] | None = None
    until = time.monotonic() + _SECONDS
    try:
        compiled = regex.compile(
            f"(?b)(?:{source}){{e<={most}}}", regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0)
        )
        for seq, text in reversed(recent):
            left = until - time.monotonic()
            if left <= 0:
                break
            match = compiled.search(text, timeout=left, concurrent=True)
            if match is not None and match[0].strip() and (best is None or sum(match.fuzzy_counts) < best[0]):
                best = (sum(match.fuzzy_counts), seq, match)
    except (regex.error, TimeoutError, OverflowError, RecursionError, ValueError):
        pass  # what was found until then is as good as it gets
    if best is None:
        return None
    match = best[2]
    differs = _counts(match.fuzzy_counts) if pattern.literal is None else _differs(pattern.source, match[0])
    return {"seq": best[1], "text": match[0], "differs": differs}


def _similar(words: str, recent: list[tuple[int, str]]) -> dict[str, Any] | None:
    """The line most like the pattern's text, or that holds the longest part of it."""
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(words)
    best: tuple[float, int, str] | None = None
    for seq, text in reversed(recent):
        matcher.set_seq1(text)
        part = matcher.find_longest_match()
        score = max(part.size / len(words), matcher.quick_ratio() if part.size > 2 else 0.0)
        if part.size >= 3 and score >= _ALIKE and (best is None or score > best[0]):
            best = (score, seq, text)
    if best is None:
        return None
    return {"seq": best[1], "text": best[2], "differs": _differs(words, best[2])}


def _differs(wanted: str, got: str) -> str:
    """What one must change in `got` to have `wanted`, in words."""
    said = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, wanted, got, autojunk=False).get_opcodes():
        if kind == "replace":
            said.append(f"{got[c:d]!r} instead of {wanted[a:b]!r}")
        elif kind == "delete":
            said.append(
                f"{wanted[a:b]!r} is missing" + (f" before {got[c : c + 8]!r}" if c < len(got) else " at the end")
            )
        elif kind == "insert" and 0 < a < len(wanted):
            said.append(f"{got[c:d]!r} comes between")
    if len(said) > 4:
        return "; ".join(said[:4]) + "; …"
    return "; ".join(said) or "it is there with other text around it"


def _counts(counts: tuple[int, int, int]) -> str:
    words = ("other", "too many", "missing")
    return ", ".join(
        f"{count} character{'s' * (count > 1)} {word}" for count, word in zip(counts, words, strict=True) if count
    )


def _words(pattern: Pattern) -> str:
    """The text of the pattern, without what is a regex's own."""
    if pattern.literal is not None:
        return pattern.literal
    text = re.sub(r"\(\?[^:)]*[:)]|\\[a-zA-Z]|\[[^\]]*\]|[.^$*+?{}()|]", " ", pattern.source)
    return re.sub(r"\s+", " ", text.replace("\\", "")).strip()
