"""Checkers of plain data (what JSON and TOML give), to be put together into tables: each says what is wrong, and where.

Shapes, not meaning. Used by the loaders of scenarios, signs and records; every problem is reported, not the first, and
a message never repeats more of a value than a line can show.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labd.errors import nearest

Report = Callable[[str, str, list[str]], None]  # key, message, near matches
Checker = Callable[[Any, str, Report], None]

#: Of a value that is wrong, this many characters are shown.
SHOWN = 80
#: A whole number beyond this many bits is not written out.
SHOWN_BITS = 256


@dataclass(frozen=True)
class Key:
    """One key: a checker of its value, and whether it must be there."""

    check: Checker
    required: bool = False


Shape = dict[str, Key]


def told(value: Any) -> str:
    """A value as a message shows it: whole if it is short, else its beginning."""
    if isinstance(value, str | bytes):
        return repr(value) if len(value) <= SHOWN else f"{value[:SHOWN]!r}… ({len(value)} long)"
    if isinstance(value, int) and value.bit_length() > SHOWN_BITS:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, dict | list) and len(value) > 4:
        return f"{'a table' if isinstance(value, dict) else 'an array'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def is_a(*types: type, what: str) -> Checker:
    """A checker for plain values. `bool` passes for `int` only if it is named."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            report(key, f"expected {what}, found {told(value)}", [])

    return check


def one_of(*choices: str) -> Checker:
    """A checker for a word of a closed set."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, str) or value not in choices:
            near = nearest(value, choices) if isinstance(value, str) and len(value) <= SHOWN else []
            report(key, f"expected one of {', '.join(choices)}, found {told(value)}", near)

    return check


def each(inner: Checker) -> Checker:
    """A checker for an array."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, list):
            report(key, f"expected an array, found {told(value)}", [])
            return
        for number, item in enumerate(value):
            inner(item, f"{key}[{number}]", report)

    return check


def table(shape: Shape, extra: Callable[[dict[str, Any], str, Report], None] | None = None, *, open_: bool = False,
          ) -> Checker:  # fmt: skip
    """A checker for a table of `shape`: unknown keys are refused with near matches (unless `open_`), missing ones are
    named. `extra` is asked about tables only, whatever else was found wrong with them.
    """

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, dict):
            report(key, f"expected a table, found {told(value)}", [])
            return
        prefix = f"{key}." if key else ""
        for name, item in value.items():
            if name in shape:
                shape[name].check(item, prefix + name, report)
            elif not open_:
                report(prefix + name, "unknown key", nearest(name, list(shape)))
        for name, entry in shape.items():
            if entry.required and name not in value:
                report(prefix + name, "missing", [])
        if extra:
            extra(value, key, report)

    return check


def table_of(inner: Checker) -> Checker:
    """A checker for a table with free names."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, dict):
            report(key, f"expected a table, found {told(value)}", [])
            return
        for name, item in value.items():
            inner(item, f"{key}.{name}", report)

    return check


def within(low: float, high: float, what: str) -> Checker:
    """A checker for a number in a range (both ends are in it)."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            report(key, f"expected {what} from {low:g} to {high:g}, found {told(value)}", [])

    return check


def whole_within(low: int, high: int) -> Checker:
    """A checker for a whole number in a range."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, int):
            report(key, f"expected a whole number, found {told(value)}", [])
        else:
            within(low, high, "a whole number")(value, key, report)

    return check


def pattern(value: Any, key: str, report: Report) -> None:
    """A checker for a regular expression."""
    if not isinstance(value, str):
        report(key, f"expected a regular expression, found {told(value)}", [])
        return
    try:
        re.compile(value)
    except re.error as error:
        report(key, f"not a regular expression: {error}", [])


def pattern_or(other: Checker) -> Checker:
    """A checker for a regular expression, or else what `other` checks."""

    def check(value: Any, key: str, report: Report) -> None:
        (pattern if isinstance(value, str) else other)(value, key, report)

    return check


def text_or(other: Checker) -> Checker:
    """A checker for a string, or else what `other` checks."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, str):
            other(value, key, report)

    return check


def none_or(other: Checker) -> Checker:
    """A checker for nothing at all (null), or else what `other` checks."""

    def check(value: Any, key: str, report: Report) -> None:
        if value is not None:
            other(value, key, report)

    return check


def exactly_one(*names: str) -> Callable[[dict[str, Any], str, Report], None]:
    """What `table` may ask besides: that exactly one of these keys is there."""

    def check(value: dict[str, Any], key: str, report: Report) -> None:
        given = [name for name in names if name in value]
        if len(given) != 1:
            report(key, f"expected exactly one of {', '.join(names)}, found {', '.join(given) or 'none'}", [])

    return check
