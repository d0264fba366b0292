"""Texts with fields: `{name}` and `{name:arg}` are replaced when a text is printed, `{{` and `}}` are braces.

A template is compiled once, when the DUT file is read, so that a misspelt field is an error of the file and
never a surprise in the middle of a boot log. Pure: no I/O, no clock; values come from the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Lookup = Callable[[str, str], object]

_FIELD = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|\d+)(?::([^{}]*))?")


class TemplateError(ValueError):
    """The text is no template: a lone brace, or a field whose name is no name."""


@dataclass(frozen=True)
class Field:
    """One `{name:arg}`; `arg` is empty when there was no colon."""

    name: str
    arg: str


@dataclass(frozen=True)
class Template:
    """A compiled text: literal parts and fields in order."""

    parts: tuple[str | Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields, in order of appearance."""
        return tuple(part for part in self.parts if isinstance(part, Field))

    def render(self, lookup: Lookup) -> str:
        """The text with every field replaced by `lookup(name, arg)`; the values are not expanded again."""
        return "".join(part if isinstance(part, str) else str(lookup(part.name, part.arg)) for part in self.parts)

    def __bool__(self) -> bool:
        return bool(self.parts)


EMPTY = Template(())


def compile_template(text: str) -> Template:
    """Parse `text`. Raises TemplateError, saying what to write instead."""
    parts: list[str | Field] = []
    literal: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char not in "{}":
            end = at + 1
            while end < len(text) and text[end] not in "{}":
                end += 1
            literal.append(text[at:end])
            at = end
        elif text[at : at + 2] in ("{{", "}}"):
            literal.append(char)
            at += 2
        else:
            found = _FIELD.match(text, at + 1) if char == "{" else None
            if found is None or text[found.end() : found.end() + 1] != "}":
                raise TemplateError(f"a lone {char!r} at character {at + 1}; write {char * 2} for the brace itself")
            if literal:
                parts.append("".join(literal))
                literal = []
            parts.append(Field(found[1], found[2] or ""))
            at = found.end() + 1
    if literal:
        parts.append("".join(literal))
    return Template(tuple(parts))
