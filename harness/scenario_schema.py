"""The keys of a scenario file and what each may hold: one table, walked by a strict checker that names file and key.

Used by harness/scenario.py alone. Knows shapes, not meaning; every problem of a file is reported, not the first.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graders import labpath, when
from labd.errors import LabdError, nearest

Report = Callable[[str, str, list[str]], None]  # key, message, near matches


class ScenarioError(LabdError):
    """A scenario file is wrong. `problems` has one line a mistake, each naming the file and the key."""

    name = "scenario"

    def __init__(self, problems: list[str], near: list[str]) -> None:
        super().__init__("\n".join(problems), hint="labd-eval check", near=near)
        self.problems = problems


@dataclass(frozen=True)
class Key:
    """One key: a checker of its value, and whether it must be there."""

    check: Callable[[Any, str, Report], None]
    required: bool = False


Shape = dict[str, Key]


def is_a(*types: type, what: str) -> Callable[[Any, str, Report], None]:
    """A checker for plain values. `bool` passes for `int` only if it is named."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            report(key, f"expected {what}, found {value!r}", [])

    return check


def one_of(*choices: str) -> Callable[[Any, str, Report], None]:
    """A checker for a word of a closed set."""

    def check(value: Any, key: str, report: Report) -> None:
        if value not in choices:
            report(key, f"expected one of {', '.join(choices)}, found {value!r}", nearest(str(value), choices))

    return check


def each(inner: Callable[[Any, str, Report], None]) -> Callable[[Any, str, Report], None]:
    """A checker for an array."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, list):
            report(key, f"expected an array, found {value!r}", [])
            return
        for number, item in enumerate(value):
            inner(item, f"{key}[{number}]", report)

    return check


def table(shape: Shape, extra: Callable[[dict[str, Any], str, Report], None] | None = None,
          ) -> Callable[[Any, str, Report], None]:  # fmt: skip
    """A checker for a table of `shape`: unknown keys are refused with near matches, missing ones named."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, dict):
            report(key, f"expected a table, found {value!r}", [])
            return
        prefix = f"{key}." if key else ""
        for name, item in value.items():
            if name in shape:
                shape[name].check(item, prefix + name, report)
            else:
                report(prefix + name, "unknown key", nearest(name, list(shape)))
        for name, entry in shape.items():
            if entry.required and name not in value:
                report(prefix + name, "missing", [])
        if extra:
            extra(value, key, report)

    return check


def within(low: float, high: float, what: str) -> Callable[[Any, str, Report], None]:
    """A checker for a number in a range (both ends are in it)."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            report(key, f"expected {what} from {low:g} to {high:g}, found {value!r}", [])

    return check


def whole_within(low: int, high: int) -> Callable[[Any, str, Report], None]:
    """A checker for a whole number in a range."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, int):
            report(key, f"expected a whole number, found {value!r}", [])
        else:
            within(low, high, "a whole number")(value, key, report)

    return check


def pattern_or(other: Callable[[Any, str, Report], None]) -> Callable[[Any, str, Report], None]:
    """A checker for a regular expression, or else what `other` checks."""

    def check(value: Any, key: str, report: Report) -> None:
        (_pattern if isinstance(value, str) else other)(value, key, report)

    return check


def text_or(other: Callable[[Any, str, Report], None]) -> Callable[[Any, str, Report], None]:
    """A checker for a string, or else what `other` checks."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, str):
            other(value, key, report)

    return check


def table_of(inner: Callable[[Any, str, Report], None]) -> Callable[[Any, str, Report], None]:
    """A checker for a table with free names."""

    def check(value: Any, key: str, report: Report) -> None:
        if not isinstance(value, dict):
            report(key, f"expected a table, found {value!r}", [])
            return
        for name, item in value.items():
            inner(item, f"{key}.{name}", report)

    return check


def _pattern(value: Any, key: str, report: Report) -> None:
    if not isinstance(value, str):
        report(key, f"expected a regular expression, found {value!r}", [])
        return
    try:
        re.compile(value)
    except re.error as error:
        report(key, f"not a regular expression: {error}", [])


def _when(value: Any, key: str, report: Report) -> None:
    try:
        when.compile_when(value)
    except (when.WhenError, TypeError) as error:
        report(key, f"not a predicate: {error}", [])


def _labpath(value: Any, key: str, report: Report) -> None:
    try:
        labpath.parse(value)
    except (labpath.PathError, TypeError) as error:
        report(key, f"not a path: {error}", [])


def _exactly_one(*names: str) -> Callable[[dict[str, Any], str, Report], None]:
    def check(value: dict[str, Any], key: str, report: Report) -> None:
        given = [name for name in names if name in value]
        if len(given) != 1:
            report(key, f"expected exactly one of {', '.join(names)}, found {', '.join(given) or 'none'}", [])

    return check


_text = is_a(str, what="a text")
_flag = is_a(bool, what="true or false")
_code = whole_within(0, 255)
_count = whole_within(0, 10_000)
#: Seconds. Longer than a day, or none at all, is a slip of the pen.
_seconds = within(0.1, 86_400, "seconds")
_anything = is_a(str, int, float, bool, list, dict, what="a value")

STEP: Shape = {
    "run": Key(_text, required=True),
    "save": Key(table_of(_pattern)),
    "stated": Key(_flag),
    "expect_exit": Key(_code),
    "until": Key(_pattern),
    "within_s": Key(_seconds),
    "shell": Key(_flag),
}
_steps = each(text_or(table(STEP)))

TRAP: Shape = {"text": Key(_text, required=True), "central": Key(_flag), "when": Key(_when)}

OPS = ("equals", "contains", "matches", "exists", "count", "same")
ASSERT: Shape = {
    "path": Key(_labpath, required=True),
    "equals": Key(_anything),
    "contains": Key(is_a(str, int, what="a text or a number")),
    "matches": Key(_pattern),
    "exists": Key(_flag),
    "count": Key(_count),
    "same": Key(_labpath),
}
ANSWER: Shape = {"contains": Key(_text), "matches": Key(_pattern), "lacks": Key(_pattern)}
STATED: Shape = {"text": Key(_text, required=True), "when": Key(_when), "matches": Key(_pattern)}
RAN: Shape = {"text": Key(_text, required=True), "when": Key(_when, required=True)}
GRADER: Shape = {
    "type": Key(one_of("t1_config", "outcome", "stated", "repo_state"), required=True),
    "assert": Key(each(table(ASSERT, _exactly_one(*OPS)))),
    "answer": Key(each(table(ANSWER, _exactly_one(*ANSWER)))),
    "ran": Key(each(table(RAN))),
    "stated": Key(each(table(STATED, _exactly_one("when", "matches")))),
    "suffices": Key(_flag),
    "judge": Key(_flag),
    "exits": Key(each(_code)),
    "free": Key(each(_labpath)),
    "may_change": Key(each(_pattern)),
}

HEARD: Shape = {
    "matches": Key(_pattern),
    "lacks": Key(_pattern),
    "target": Key(_text),
    "interface": Key(_text),
    "kind": Key(one_of("rx", "tx", "event")),
}
TOLD: Shape = {"matches": Key(_pattern), "lacks": Key(_pattern), "target": Key(_text)}
_heard = each(pattern_or(table(HEARD, _exactly_one("matches", "lacks"))))
_told = each(pattern_or(table(TOLD, _exactly_one("matches", "lacks"))))
EXPECT: Shape = {
    "received": Key(_heard),
    "may_receive": Key(_heard),
    "free_sends": Key(_flag),
    "journal": Key(_heard),
    "bench": Key(_told),
    "drives": Key(each(_pattern)),
    "printed": Key(each(_pattern)),
    "at_end": Key(one_of("open", "closed")),
    "pulses": Key(each(each(within(0, 60_000, "milliseconds")))),
    "power": Key(one_of("on", "off")),
    "boots": Key(_count),
    "holder": Key(one_of("let go", "never asked")),
}

ACT: Shape = {
    "wait_s": Key(within(0, 600, "seconds")),
    "say": Key(_text),
    "power": Key(one_of("on", "off", "cycle")),
    "fault": Key(one_of("unplug", "replug")),
    "show": Key(_text),
}
OUTSIDE: Shape = {
    "file": Key(_text, required=True),
    "serve": Key(one_of("tty", "rfc2217", "picture"), required=True),
    "held": Key(_flag),
    "before": Key(each(table(ACT))),
    "after": Key(each(table(ACT))),
}

RESPOND: Shape = {"match": Key(_pattern, required=True), "reply": Key(_text, required=True)}
LOOPBACK: Shape = {
    "target": Key(_text, required=True),
    "interface": Key(_text, required=True),
    "files": Key(table_of(_text)),
    "dut": Key(_text),
    "variables": Key(table_of(_text)),
    "banner": Key(_text),
    "mode": Key(one_of("line", "key", "mute", "loop")),
    "respond": Key(each(table(RESPOND))),
    "followup": Key(each(_text)),
    "outside": Key(table(OUTSIDE)),
    "prepared": Key(_steps),
    "expect": Key(table(EXPECT), required=True),
}

VIRTUAL: Shape = {
    "target": Key(_text, required=True),
    "interface": Key(_text),
    "outside": Key(table(OUTSIDE)),
    "prepared": Key(_steps),
    "expect": Key(table(EXPECT), required=True),
}

CONTROLS: Shape = {
    "printed_success": Key(_text),
    "wrong_resource": Key(_steps),
    "partial": Key(_steps),
    "hand_edit": Key(_steps),
    "invented": Key(_steps),
}

TASK: Shape = {
    "look_for": Key(_pattern, required=True),
    "type": Key(_text),
    "see": Key(_pattern),
    "press": Key(_text),
    "patience_s": Key(_seconds),
}

SCENARIO: Shape = {
    "id": Key(_text, required=True),
    "title": Key(_text, required=True),
    "tier": Key(one_of("t0", "t1"), required=True),
    "core": Key(_flag),
    "conditions": Key(each(one_of("cold", "warm", "preloaded"))),
    "capabilities": Key(each(_text)),
    "goal": Key(_text, required=True),
    "quoted": Key(each(_text)),
    "traps": Key(each(text_or(table(TRAP)))),
    "reference": Key(_steps, required=True),
    "seed": Key(_text),
    "timeout_s": Key(_seconds),
    "grader": Key(table(GRADER), required=True),
    "loopback": Key(table(LOOPBACK)),
    "virtual": Key(table(VIRTUAL)),
    "controls": Key(table(CONTROLS)),
    "task": Key(table(TASK)),
}


class Findings:
    """What is wrong with one file, gathered: call it with a key, a message and near matches."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[str] = []
        self.near: list[str] = []

    def __call__(self, key: str, message: str, near: list[str]) -> None:
        meant = f"; did you mean {', '.join(near)}?" if near else ""
        self.problems.append(f"{self.file}: {key or 'the file'}: {message}{meant}")
        self.near.extend(near)

    def done(self) -> None:
        """Raises ScenarioError with every problem found, if there is one."""
        if self.problems:
            raise ScenarioError(self.problems, self.near)


def check(data: dict[str, Any], file: str) -> None:
    """Check a whole scenario file. Raises ScenarioError with every problem found."""
    report = Findings(file)
    table(SCENARIO)(data, "", report)
    report.done()
