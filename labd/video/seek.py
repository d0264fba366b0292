"""Looking for patterns in the text of a screen. Pure and light; in the daemon.

A screen breaks lines that are longer than it is wide: what fills a row to its end goes on in the next one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.match_pattern import Pattern

#: Lines before a match that are told with it.
BEFORE = 5

_ROWS = (
    "!\"#$%&'()*+,-./0123456789:;<=>?",
    "@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_",
    "`abcdefghijklmnopqrstuvwxyz{|}~",
)

#: All printable ASCII characters, each at two places: what a screen shows to have its font learned.
CHART = (*_ROWS, *(row[::-1] for row in _ROWS))


def search(
    patterns: list[Pattern], lines: list[dict[str, Any]], grid: dict[str, Any] | None, *, ignore_case: bool = False
) -> dict[str, Any] | None:
    """The first pattern that is in the lines of a page, with its evidence; None if none is.

    The evidence: `pattern`, `match`, `groups`, `row`, `line` (the whole line), `box`, `confidence`, `before`. Blanks at
    the end of a line can't be seen on a screen: a prompt's `=> ` is found with its blank and without.
    """
    columns = grid["columns"] if grid else 0
    for text, starts in (_joined(lines, 0, ""), _joined(lines, 0, " "), _joined(lines, columns, "")):
        for pattern in patterns:
            found = _compiled(pattern, ignore_case).search(text)
            if found is not None:
                at = max((i for i, start in enumerate(starts) if start <= found.start()), default=0)
                return _evidence(pattern, found, lines[at], lines[max(0, at - BEFORE) : at])
    return None


def _compiled(pattern: Pattern, ignore_case: bool) -> Any:
    import regex

    source = pattern.source if pattern.literal is None else regex.escape(pattern.source)
    return regex.compile(source, regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0))


def _joined(lines: list[dict[str, Any]], columns: int, end: str) -> tuple[str, list[int]]:
    """All lines as one text, each with `end`, and where each begins; rows that fill `columns` run on into the next."""
    text, starts = "", []
    for line in lines:
        starts.append(len(text))
        text += line["text"] + end
        if not columns or len(line["text"]) < columns:
            text += "\n"
    return text.removesuffix("\n"), starts


def _evidence(pattern: Pattern, found: Any, line: dict[str, Any], before: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "pattern": pattern.source,
        "match": found[0],
        "groups": list(found.groups()),
        "row": line["row"],
        "line": line["text"],
        "box": line["box"],
        "confidence": line["confidence"],
        "before": [earlier["text"] for earlier in before],
    }
