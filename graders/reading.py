"""What stands in the output of a command: the values at a place in its JSON, or its rows, and how many there are.

A subject says once, as data, where its answers stand (`Read`). Pure functions; what can't be read is None, never an
empty answer.
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ROWS = ("lines", "csv", "table")


@dataclass(frozen=True)
class Read:
    """Where an answer stands. `json`: a path (`places[].name`; `[]` goes through an array or the values of a table,
    `{}` through a table's names, `a|b` to both; empty: the whole document; JSON Lines are one array). Else `rows`:
    lines, or CSV, or a table of columns set apart by blanks (a line of dashes is none of its rows), behind `header`
    lines, or behind the first line that has `head`, without which it is no such answer. `pattern`: what is taken of
    each row (its first group), and the rows that count. `number`: the answer is a count, which the first group of
    `number` finds; in JSON as well, what stands there has to be one then. With `json` and one of the others, what is
    no JSON object or array is read as those say.
    """

    json: str | None = None
    rows: str | None = None
    header: int = 0
    head: str | None = None
    pattern: str | None = None
    number: str | None = None


#: A number of more digits counts nothing.
_DIGITS = 18
#: A line that only parts a table's rows from its titles.
_RULE = re.compile(r"[\s|+:]*[-=─]{3}[\s|+:=─-]*")
#: Plain lines, each a value.
LINES = Read(rows="lines")


def values(read: Read, text: str) -> list[str] | None:
    """The values of an answer, as texts; None if it is not of that form."""
    document = _document(text, read)
    if document is not ...:
        found = _at(document, read.json or "")
        listed = [part for one in found for part in (one if isinstance(one, list) else [one])]
        return [_text(one) for one in listed if one is not None]
    if read.rows is None and read.number is None:
        return None
    below = _below(read, text.split("\n"))
    if below is None:
        return None
    lines = [line for line in below if line.strip() and not (read.rows == "table" and _RULE.fullmatch(line))]
    if read.rows == "csv":
        try:
            lines = [",".join(row) for row in csv.reader(io.StringIO("\n".join(lines), newline="")) if row]
        except csv.Error:
            return None
    if read.pattern is None:
        return [" ".join(line.split()) if read.rows == "table" else line.rstrip() for line in lines]
    matches = (re.search(read.pattern, line) for line in lines)
    return [found[1] if found.re.groups else found[0] for found in matches if found and found[found.re.groups and 1]]


def _below(read: Read, lines: list[str]) -> list[str] | None:
    """The lines behind the header; None if it has to be there and is not."""
    if read.head is None:
        return lines[read.header :]
    at = next((at for at, line in enumerate(lines) if re.search(read.head, line)), None)
    return None if at is None else lines[at + 1 :]


def size(read: Read, text: str) -> int | None:
    """How much an answer holds: the number that it is, or how many values it has; None if it is not of that form."""
    document = _document(text, read)
    if document is ...:
        if read.number is not None:
            return _counted(read.number, text)
        told = values(read, text)
        return None if told is None else len(told)
    at = list(_at(document, read.json or ""))
    if len(at) == 1 and not (read.json or "").endswith("[]"):
        return _held(at[0]) if read.number is None else _number(at[0], read.number)
    return sum(one is not None for one in at)


def _held(one: Any) -> int:
    """How much a value of JSON holds: a number itself, an array or a table its values. null and "" hold nothing."""
    if isinstance(one, int) and not isinstance(one, bool):
        return one
    if isinstance(one, list | dict):
        return sum(part is not None for part in (one.values() if isinstance(one, dict) else one))
    return int(one not in (None, "", 0.0) or one is False)


def _number(one: Any, pattern: str) -> int | None:
    """The count that a value of JSON is; None if it is none. null counts nothing."""
    if one is None or (isinstance(one, float) and one.is_integer()):
        return int(one or 0)
    if isinstance(one, int) and not isinstance(one, bool):
        return one
    return _counted(pattern, one) if isinstance(one, str) else None


def _counted(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text, re.M)
    return int(found[1]) if found and found[1] and found[1].isdecimal() and len(found[1]) <= _DIGITS else None


def json_in(text: str) -> str | None:
    """The longest JSON object or array that stands on lines of its own in a text (notes beside an answer are none of
    it); None where there is none."""
    found: list[str] = []
    for start in re.finditer(r"^[{\[]", text, re.M):
        try:
            _, end = json.JSONDecoder().raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        if not text[end : text.find("\n", end) if "\n" in text[end:] else len(text)].strip():
            found.append(text[start.start() : end])
    return max(found, key=len, default=None)


def is_count(read: Read, text: str) -> bool:
    """Whether an answer is a number and tells no values."""
    document = _document(text, read)
    if document is ...:
        return read.number is not None
    return any(isinstance(one, int) for one in _at(document, read.json or ""))


def _document(text: str, read: Read) -> Any:
    """The JSON of a text, or its JSON Lines as an array; `...` if it is neither, or is to be read otherwise."""
    if read.json is None:
        return ...
    found = _json(text)
    plain = read.json == "" and read.rows is None and read.number is None  # anything that is JSON, then
    return found if plain or isinstance(found, list | dict) else ...


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        return [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        return ...


def _at(value: Any, path: str) -> Iterator[Any]:
    """What stands at a path: nothing where a key is missing."""
    step, _, left = path.partition(".")
    if not step:
        yield value
        return
    name, through = (step[:-2], step[-2:]) if step.endswith(("[]", "{}")) else (step, "")
    for one in name.split("|") if name else ():
        if isinstance(value, dict) and one in value:
            yield from (found for part in _through(value[one], through) for found in _at(part, left))
    if not name:
        yield from (found for part in _through(value, through) for found in _at(part, left))


def _through(value: Any, how: str) -> list[Any]:
    if not how:
        return [value]
    if how == "{}":
        return list(value) if isinstance(value, dict) else []
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
