"""The path language of end-state assertions: `targets.pico.serial[name=bmc].baud` over parsed lab data.

    path     := key ( "." key | "[" key "=" value "]" | "[" number "]" )*
    key      := letters, digits, "_", "-"  |  "double-quoted, with \\" and \\\\ escapes"
    value    := like a key; compared with the text form of the element's field

A selector picks the *only* element that matches; two that match are nobody, as the assertion would not say
which is meant. Pure functions of values.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: What `find` gives where nothing is there. (None can't be a TOML value, but a sentinel says it plainly.)
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "nothing", "__bool__": lambda self: False})()


class PathError(ValueError):
    """The text is not a path of this language; says where."""


@dataclass(frozen=True)
class Key:
    """Go into a table by name."""

    name: str


@dataclass(frozen=True)
class Index:
    """Go into an array by position, from 0."""

    number: int


@dataclass(frozen=True)
class Where:
    """Go into an array by the one element whose `field` reads `value`."""

    field: str
    value: str


Part = Key | Index | Where
Path = tuple[Part, ...]

_WORD = re.compile(r'[A-Za-z0-9_-]+|"(?:[^"\\]|\\["\\])*"')
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def parse(text: str) -> Path:
    """The parts of `text`. Raises PathError."""
    parts: list[Part] = []
    at = 0
    while True:
        word, at = _word(text, at)
        parts.append(Key(word))
        while text[at : at + 1] == "[":
            part, at = _bracket(text, at + 1)
            parts.append(part)
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            raise PathError(f"{text!r}: expected '.' or '[' at {at}, found {text[at]!r}")
        at += 1


def _word(text: str, at: int) -> tuple[str, int]:
    found = _WORD.match(text, at)
    if not found:
        raise PathError(f"{text!r}: expected a key at {at}")
    word = found[0]
    if word.startswith('"'):
        word = re.sub(r'\\(["\\])', r"\1", word[1:-1])
    return word, found.end()


def _bracket(text: str, at: int) -> tuple[Part, int]:
    quoted = text[at : at + 1] == '"'
    word, at = _word(text, at)
    part: Part
    if text[at : at + 1] == "=":
        value, at = _word(text, at + 1)
        part = Where(word, value)
    elif word.isascii() and word.isdigit() and not quoted:
        part = Index(int(word))
    else:
        raise PathError(f"{text!r}: expected a number or key=value in brackets, found {word!r}")
    if text[at : at + 1] != "]":
        raise PathError(f"{text!r}: expected ']' at {at}")
    return part, at + 1


def show(path: Path) -> str:
    """The text of a path; `parse(show(p)) == p`."""
    out = ""
    for part in path:
        if isinstance(part, Key):
            out += ("." if out else "") + _quote(part.name)
        elif isinstance(part, Index):
            out += f"[{part.number}]"
        else:
            out += f"[{_quote(part.field)}={_quote(part.value)}]"
    return out


def _quote(word: str) -> str:
    if _BARE.match(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def find(data: Any, path: Path) -> Any:
    """What is at `path` in `data`, or MISSING."""
    for part in path:
        data = _step(data, part)
        if data is MISSING:
            return MISSING
    return data


def _step(data: Any, part: Part) -> Any:
    if isinstance(part, Key):
        return data.get(part.name, MISSING) if isinstance(data, dict) else MISSING
    if not isinstance(data, list):
        return MISSING
    if isinstance(part, Index):
        return data[part.number] if part.number < len(data) else MISSING
    matching = [item for item in data if isinstance(item, dict) and _reads(item, part)]
    return matching[0] if len(matching) == 1 else MISSING


def _reads(item: dict[str, Any], part: Where) -> bool:
    if part.field not in item:
        return False
    value = item[part.field]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text == part.value


def without(data: Any, paths: list[Path]) -> Any:
    """`data` with what `paths` name taken out, and tables and arrays that this empties taken out too.

    The field that a selector looks at goes with what it selects: an assertion about the line `[name=bmc]` also
    speaks about its name, so a new line is wholly covered once its other fields are.
    """
    for path in paths:
        if find(data, path) is not MISSING:
            data = _without(data, path)
    return data


def _without(data: Any, path: Path) -> Any:
    part, rest = path[0], path[1:]
    inner = _step(data, part)
    left = _without(inner, rest) if rest else MISSING
    if isinstance(part, Where) and left is not MISSING and set(left) <= {part.field}:
        left = MISSING
    if left in ({}, []):
        left = MISSING
    if isinstance(data, dict):
        assert isinstance(part, Key)
        return {k: (left if k == part.name else v) for k, v in data.items() if k != part.name or left is not MISSING}
    assert isinstance(data, list)
    assert not isinstance(part, Key)
    at = part.number if isinstance(part, Index) else next(n for n, item in enumerate(data) if item is inner)
    return [*data[:at], *([] if left is MISSING else [left]), *data[at + 1 :]]


def differences(before: Any, after: Any, prefix: str = "") -> Iterator[str]:
    """What differs, a line each, in the order of the data. Types count: `1` is not `true` and not `1.0`."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(k for k in after if k not in before)]:
            where = f"{prefix}.{_quote(key)}" if prefix else _quote(key)
            yield from differences(before.get(key, MISSING), after.get(key, MISSING), where)
    elif isinstance(before, list) and isinstance(after, list):
        for number in range(max(len(before), len(after))):
            one = before[number] if number < len(before) else MISSING
            two = after[number] if number < len(after) else MISSING
            yield from differences(one, two, f"{prefix}[{number}]")
    elif type(before) is not type(after) or before != after:
        yield f"{prefix or 'the whole'}: {before!r} became {after!r}"
