"""The keys of a scenario file and what each may hold: one table, walked by a strict checker that names file and key.

Knows shapes, not meaning; every problem of a file is reported, not the first.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from graders import labpath, parsed, when
from graders.shape import (
    Key,
    Report,
    Shape,
    each,
    exactly_one,
    is_a,
    one_of,
    pattern,
    pattern_or,
    table,
    table_of,
    text_or,
    whole_within,
    within,
)
from labd.errors import LabdError


class ScenarioError(LabdError):
    """A scenario file is wrong. `problems` has one line a mistake, each naming the file and the key."""

    name = "scenario"

    def __init__(self, problems: list[str], near: list[str]) -> None:
        super().__init__("\n".join(problems), hint="labd-eval check", near=near)
        self.problems = problems


def toml_of(path: Path) -> dict[str, Any]:
    """What a TOML file of the exam's says. Raises ScenarioError, naming the file, where it can't be read or is none."""
    try:
        return parsed.from_toml(path.read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ScenarioError([f"{path}: {error}"], []) from error


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


def _board(value: Any, key: str, report: Report) -> None:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
        report(key, "expected the name of a board: letters, digits, '.', '_', '-'", [])


_text = is_a(str, what="a text")
_flag = is_a(bool, what="true or false")
_code = whole_within(0, 255)
_count = whole_within(0, 10_000)
#: Seconds. Longer than a day, or none at all, is a slip of the pen.
_seconds = within(0.1, 86_400, "seconds")
_anything = is_a(str, int, float, bool, list, dict, what="a value")

STEP: Shape = {
    "run": Key(_text, required=True),
    "save": Key(table_of(pattern)),
    "stated": Key(_flag),
    "expect_exit": Key(_code),
    "until": Key(pattern),
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
    "matches": Key(pattern),
    "exists": Key(_flag),
    "count": Key(_count),
    "same": Key(_labpath),
}
ANSWER: Shape = {"contains": Key(_text), "matches": Key(pattern), "lacks": Key(pattern)}
STATED: Shape = {"text": Key(_text, required=True), "when": Key(_when), "matches": Key(pattern)}
RAN: Shape = {"text": Key(_text, required=True), "when": Key(_when, required=True)}
GRADER: Shape = {
    "type": Key(one_of("t1_config", "outcome", "stated", "repo_state", "answer", "journey"), required=True),
    "state": Key(one_of("t1_config", "outcome", "repo_state")),
    "permits": Key(each(_text)),
    "rewrites": Key(each(_labpath)),
    "forbidden": Key(each(table(RAN))),
    "assert": Key(each(table(ASSERT, exactly_one(*OPS)))),
    "answer": Key(each(table(ANSWER, exactly_one(*ANSWER)))),
    "ran": Key(each(table(RAN))),
    "stated": Key(each(table(STATED, exactly_one("when", "matches")))),
    "suffices": Key(_flag),
    "judge": Key(_flag),
    "exits": Key(each(_code)),
    "free": Key(each(_labpath)),
    "may_change": Key(each(pattern)),
}

HEARD: Shape = {
    "matches": Key(pattern),
    "lacks": Key(pattern),
    "target": Key(_text),
    "interface": Key(_text),
    "kind": Key(one_of("rx", "tx", "event")),
}
TOLD: Shape = {"matches": Key(pattern), "lacks": Key(pattern), "target": Key(_text)}
_heard = each(pattern_or(table(HEARD, exactly_one("matches", "lacks"))))
_told = each(pattern_or(table(TOLD, exactly_one("matches", "lacks"))))
EXPECT: Shape = {
    "received": Key(_heard),
    "may_receive": Key(_heard),
    "free_sends": Key(_flag),
    "journal": Key(_heard),
    "bench": Key(_told),
    "drives": Key(each(pattern)),
    "printed": Key(each(pattern)),
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

RESPOND: Shape = {"match": Key(pattern, required=True), "reply": Key(_text, required=True)}
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
    "tampered_artifact": Key(_steps),
}

TASK: Shape = {
    "look_for": Key(pattern, required=True),
    "type": Key(_text),
    "see": Key(pattern),
    "press": Key(_text),
    "patience_s": Key(_seconds),
}

SCENARIO: Shape = {
    "id": Key(_text, required=True),
    "title": Key(_text, required=True),
    "tier": Key(one_of("t0", "t1"), required=True),
    "core": Key(_flag),
    "conditions": Key(each(one_of("cold", "warm", "preloaded", "mcp"))),
    "capabilities": Key(each(_text)),
    "boards": Key(each(_board)),
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
