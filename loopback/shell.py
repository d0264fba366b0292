"""The little of a shell that boards are talked to with: `;`, `&&`, `||`, quotes, `$?`, `$NAME`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_TOKEN = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|&&|\|\||;|[^'\"\\;&|]+|.", re.S)
_PARAM = re.compile(r"\$(?:\{(\w+)\}|(\?|\w+))")


def split(line: str) -> Iterator[tuple[str, str]]:
    """The commands of `line` in order, each with what joins it to the one before: ";", "&&" or "||"."""
    joint, piece = ";", ""
    for token in _TOKEN.findall(line):
        if token in (";", "&&", "||"):
            if piece.strip():
                yield joint, piece.strip()
            joint, piece = token, ""
        else:
            piece += token
    if piece.strip():
        yield joint, piece.strip()


def expand(command: str, value: Callable[[str], str]) -> str:
    """`command` with parameters replaced by `value(name)` and quotes removed, blanks between words collapsed."""

    def fill(text: str) -> str:
        return _PARAM.sub(lambda found: value(found[1] or found[2]), text)

    out: list[str] = []
    for token in _TOKEN.findall(command):
        if len(token) >= 2 and token[0] == token[-1] == "'":
            out.append(token[1:-1])
        elif len(token) >= 2 and token[0] == token[-1] == '"':
            out.append(fill(re.sub(r'\\([\\"$`])', r"\1", token[1:-1])))
        elif len(token) == 2 and token[0] == "\\":
            out.append(token[1])
        else:
            out.append(re.sub(r"\s+", " ", fill(token)))
    return "".join(out).strip()
