"""The predicate language over argv records, in which scenarios write traps and what must have been run.

    expr    := both ( "or" both )*
    both    := one ( "and" one )*
    one     := "not" one | "(" expr ")" | event ( "then" event )*
    event   := "[" test "]"                      some invocation satisfies the test
    test    := tboth ( "or" tboth )* ;  tboth := tone ( "and" tone )* ;  tone := "not" tone | "(" test ")" | field
    field   := NAME "==" V | NAME "!=" V | NAME "~" "regex" | NAME "in" "(" V, … ")" | argv "has" "word"
    V       := "text" | 'text' | integer | none

`[A] then [B]` asks for an invocation with A and a later one with B. Names: operation effect decision code signal
target face program cwd argv line (`line` is the argv, shell-quoted). `argv has "--since"` is an exact word of the
argv, so that the same text inside another argument is not taken for the flag. Pure; knows nothing of files.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

NAMES = ("operation", "effect", "decision", "code", "signal", "target", "face", "program", "cwd", "argv", "line")


#: Names with a closed set of values: another one can never be true.
CLOSED = {
    "effect": ("help", "observe", "config", "actuate", "admin"),
    "decision": ("permitted", "refused", "invalid"),
    "face": ("cli", "mcp", "rpc", "recorder"),
}


class Record(Protocol):
    """What the language reads of one invocation (graders.argv_records.Invocation is one)."""

    @property
    def argv(self) -> list[str]:
        """The words, the program's name first."""

    def field(self, name: str) -> Any:
        """The value of a name of NAMES; None where unknown."""


Test = Callable[[Record], bool]
Predicate = Callable[[Sequence[Record]], bool]


class WhenError(ValueError):
    """The text is not a predicate; says where and what was expected."""


@dataclass(frozen=True)
class _Token:
    kind: str  # "text", "int", "word", "op", "end"
    value: Any
    at: int


_LEX = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'[^']*')|(?P<int>-?\d+)|(?P<word>[A-Za-z_]+)|(?P<op>==|!=|~|[()\[\],]))"""
)


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _LEX.match(text, at)
        if not match:
            raise WhenError(f"{text!r}: cannot read from {text[at:].strip()[:20]!r}")
        kind = str(match.lastgroup)
        value: Any = match[kind]
        if kind == "text":
            value = re.sub(r'\\(["\\])', r"\1", value[1:-1]) if value[0] == '"' else value[1:-1]
        elif kind == "int":
            value = int(value)
        found.append(_Token(kind, value, match.start(kind)))
        at = match.end()
    found.append(_Token("end", None, end))
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0

    def peek(self, *values: str) -> bool:
        token = self.tokens[self.at]
        return token.kind in ("word", "op") and token.value in values

    def take(self, *values: str) -> bool:
        if self.peek(*values):
            self.at += 1
            return True
        return False

    def need(self, value: str) -> None:
        if not self.take(value):
            raise self.wrong(repr(value))

    def wrong(self, expected: str) -> WhenError:
        token = self.tokens[self.at]
        found = "the end" if token.kind == "end" else repr(token.value)
        return WhenError(f"{self.text!r}: expected {expected} at {token.at}, found {found}")

    def value(self) -> Any:
        token = self.tokens[self.at]
        if token.kind in ("text", "int"):
            self.at += 1
            return token.value
        if self.take("none"):
            return None
        raise self.wrong('a value ("text", a number or none)')

    # over the whole sequence

    def expr(self) -> Predicate:
        parts = [self.both()]
        while self.take("or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else lambda records: any(part(records) for part in parts)

    def both(self) -> Predicate:
        parts = [self.one()]
        while self.take("and"):
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else lambda records: all(part(records) for part in parts)

    def one(self) -> Predicate:
        if self.take("not"):
            inner = self.one()
            return lambda records: not inner(records)
        if self.take("("):
            inner = self.expr()
            self.need(")")
            return inner
        steps = [self.event()]
        while self.take("then"):
            steps.append(self.event())
        return lambda records: _in_order(steps, records)

    def event(self) -> Test:
        self.need("[")
        test = self.test()
        self.need("]")
        return test

    # over one record

    def test(self) -> Test:
        parts = [self.tboth()]
        while self.take("or"):
            parts.append(self.tboth())
        return parts[0] if len(parts) == 1 else lambda record: any(part(record) for part in parts)

    def tboth(self) -> Test:
        parts = [self.tone()]
        while self.take("and"):
            parts.append(self.tone())
        return parts[0] if len(parts) == 1 else lambda record: all(part(record) for part in parts)

    def tone(self) -> Test:
        if self.take("not"):
            inner = self.tone()
            return lambda record: not inner(record)
        if self.take("("):
            inner = self.test()
            self.need(")")
            return inner
        return self.comparison()

    def comparison(self) -> Test:
        token = self.tokens[self.at]
        if token.kind != "word" or token.value not in NAMES:
            raise self.wrong(f"one of {', '.join(NAMES)}")
        self.at += 1
        name = str(token.value)
        if name == "argv":
            self.need("has")
            word = self.value()
            return lambda record: word in record.argv
        if self.take("=="):
            value = self.value()
            return lambda record: _same(_read(record, name), value)
        if self.take("!="):
            value = self.value()
            return lambda record: not _same(_read(record, name), value)
        if self.take("in"):
            values = self.values()
            return lambda record: any(_same(_read(record, name), value) for value in values)
        self.need("~")
        pattern = self.pattern()
        return lambda record: bool(pattern.search(str(_read(record, name) or "")))

    def values(self) -> list[Any]:
        self.need("(")
        found = [self.value()]
        while self.take(","):
            found.append(self.value())
        self.need(")")
        return found

    def pattern(self) -> re.Pattern[str]:
        text = self.value()
        try:
            return re.compile(str(text))
        except re.error as error:
            raise WhenError(f"{self.text!r}: {text!r} is not a regular expression: {error}") from error


def _same(found: Any, wanted: Any) -> bool:
    return type(found) is type(wanted) and bool(found == wanted)


def _read(record: Record, name: str) -> Any:
    return shlex.join(record.argv) if name == "line" else record.field(name)


def _in_order(steps: list[Test], records: Sequence[Record]) -> bool:
    at = 0
    for step in steps:
        while at < len(records) and not step(records[at]):
            at += 1
        if at == len(records):
            return False
        at += 1
    return True


def compared(text: str) -> list[tuple[str, Any]]:
    """(name, value) of every comparison with `==`, `!=` or `in`. Raises WhenError for what can't be read."""
    found: list[tuple[str, Any]] = []
    name, listing = "", False
    for token, before in zip(tokens := _tokens(text), [None, *tokens], strict=False):
        if token.kind == "word" and token.value in NAMES:
            name, listing = token.value, False
        elif before is not None and before.value in ("==", "!=") and token.kind in ("text", "int"):
            found.append((name, token.value))
        elif token.kind == "word" and token.value == "in":
            listing = True
        elif listing and token.kind in ("text", "int"):
            found.append((name, token.value))
        elif listing and token.value == ")":
            listing = False
    return found


def names(text: str) -> set[str]:
    """The names that a predicate reads. Raises WhenError for what can't be read."""
    return {str(token.value) for token in _tokens(text) if token.kind == "word" and token.value in NAMES}


def compile_when(text: str) -> Predicate:
    """The predicate that `text` writes. Raises WhenError."""
    parser = _Parser(text)
    found = parser.expr()
    if parser.tokens[parser.at].kind != "end":
        raise parser.wrong("the end, 'and', 'or' or 'then'")
    return found
