"""One check's evidence, as graders/readiness_rules.py reads it: the commands that were run, in order, what each gave,
and the digests of the declared states before and after.

Pure functions of plain data (a file `checks/ID.json` of a measurement); starts nothing, reads no file. What a command
was to show stands beside what it gave (`wanted`), so that a measurement can be graded again without its plan.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from graders import parsed

#: What a step is there for. `look` is the harness's own look, `document` a page read for what it says.
ROLES = ("document", "discover", "read", "page", "preview", "apply", "again", "fault", "repair", "mistake", "login",
         "permitted", "denied", "look")  # fmt: skip

#: Programs that show a text page by page and wait for a key.
PAGERS = frozenset({"less", "more", "most", "lv", "pg", "w3m", "bat"})

#: Exit codes by which a shell tells that a command crashed or was killed: no code of the command's own.
CRASHED = frozenset({132, 134, 135, 136, 137, 139})

State = Mapping[str, Any] | None


@dataclass(frozen=True)
class Step:
    """One command. `waiting`: the programs that still ran when its time was up. `before`, `after`: a digest (or None:
    it could not be observed) for each declared state."""

    role: str
    run: str
    wanted: Mapping[str, Any]
    ended_by: str
    code: int | None
    signal: str | None
    cut: int
    stdout: str
    stderr: str
    waiting: tuple[str, ...] = ()
    before: Mapping[str, State] = field(default_factory=dict)
    after: Mapping[str, State] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Whether it came to its own end, with an exit code."""
        return self.ended_by == "exit" and self.code is not None and self.code not in CRASHED

    @property
    def ok(self) -> bool:
        """Whether it ended with success: 0, or what the plan says is success."""
        return self.known and self.code in (self.wanted.get("exit") or (0,))

    @property
    def said(self) -> str:
        """All that it printed."""
        return f"{self.stdout}\n{self.stderr}"

    @property
    def paging(self) -> str | None:
        """The pager that it waited in when its time was up."""
        return next((one for one in self.waiting if one in PAGERS), None) if self.ended_by == "time_limit" else None

    @property
    def end(self) -> str:
        """How it ended, in words."""
        if self.ended_by == "not_started":
            return "it could not be started"
        if self.ended_by != "exit":
            return f"it was ended ({self.ended_by.replace('_', ' ')})"
        return (
            f"exit {self.code}"
            if self.known
            else f"ended by {self.signal or (f'a crash, exit {self.code}' if self.code else 'an unknown cause')}"
        )

    @cached_property
    def lacking(self) -> tuple[str, ...]:
        """What it was to print and did not, and what it printed and was not to; empty if all is as wanted."""
        text = self.said
        missing = [f"{pattern!r} is not there" for pattern in self.wanted.get("finds", ())
                   if not re.search(pattern, text, re.MULTILINE)]  # fmt: skip
        found = [f"{pattern!r} is there" for pattern in self.wanted.get("lacks", ())
                 if re.search(pattern, text, re.MULTILINE)]  # fmt: skip
        counted = []
        for pattern, number in self.wanted.get("counts", {}).items():
            many = len(re.findall(pattern, text, re.MULTILINE))
            if many != number:
                counted.append(f"{pattern!r} is there {many} times, not {number}")
        return (*missing, *found, *counted)


@dataclass(frozen=True)
class Evidence:
    """All of one check. `target`: the states that its work is about; the others are unrelated. `blocked`, `broken`: why
    it was not exercised (a prerequisite was missing; the harness failed)."""

    check: str
    steps: tuple[Step, ...] = ()
    target: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    blocked: str = ""
    broken: str = ""

    def of(self, *roles: str) -> list[Step]:
        """The steps with one of these roles, in order."""
        return [step for step in self.steps if step.role in roles]

    def behind(self, role: str) -> list[Step]:
        """The harness's looks behind the last step of that role."""
        last = max((n for n, step in enumerate(self.steps) if step.role == role), default=len(self.steps))
        return [step for step in self.steps[last + 1 :] if step.role == "look"]

    def unrelated(self) -> list[str]:
        """The declared states that the work is not about."""
        return [name for name in self.states if name not in self.target]


def from_dict(told: Mapping[str, Any]) -> Evidence:
    """The evidence in a file of a measurement. Raises KeyError or TypeError if it is none."""
    steps = tuple(
        Step(one["role"], one["run"], one.get("wanted", {}), one["ended_by"], one["code"], one.get("signal"),
             one["cut"], one["stdout"], one["stderr"], tuple(one.get("waiting", ())), one["state"]["before"],
             one["state"]["after"])
        for one in told["steps"]
    )  # fmt: skip
    return Evidence(told["check"], steps, tuple(told["target"]), tuple(told["states"]), told.get("blocked") or "",
                    told.get("broken") or "")  # fmt: skip


# -- states ---------------------------------------------------------------------------------------------------------


def unobserved(names: Iterable[str], *sides: Mapping[str, State]) -> list[str]:
    """Those states that one of the sides has no digest of."""
    return [name for name in names if any(side.get(name) is None for side in sides)]


def moved(names: Iterable[str], before: Mapping[str, State], after: Mapping[str, State]) -> list[str]:
    """Those states whose digests differ."""
    return [name for name in names if before.get(name) != after.get(name)]


# -- output ---------------------------------------------------------------------------------------------------------


class NotParsed(ValueError):
    """Why an output could not be parsed as a whole."""


def records(step: Step) -> list[str]:
    """What a step's stdout tells, a text a record, by its `parse` (json, jsonl, lines, nul) and `pick`: in JSON a path
    such as `lines[].text`, in lines an expression whose first group is meant. Raises NotParsed."""
    form, pick = step.wanted.get("parse", "lines"), step.wanted.get("pick", "")
    text = step.stdout
    try:
        if form == "json":
            return [str(one) for one in _picked(parsed.from_json(text), pick)]
        if form == "jsonl":
            rows = [parsed.from_json(line) for line in text.split("\n") if line.strip()]
            return [str(one) for row in rows for one in _picked(row, pick)]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise NotParsed(f"stdout is no {form} of that form: {error}") from error
    parts = [part for part in text.split("\0" if form == "nul" else "\n") if part]
    found = [re.fullmatch(pick, part) if pick else part for part in parts]
    strange = next((part for part, one in zip(parts, found, strict=True) if one is None), None)
    if strange is not None:
        raise NotParsed(f"{strange[:60]!r} is no record")
    return [one if isinstance(one, str) else (one[1] if one.re.groups else one[0]) for one in found if one is not None]


def _picked(value: Any, path: str) -> list[Any]:
    """What stands at a path: keys with dots between, `[]` behind one for each element."""
    found = [value]
    for part in filter(None, path.split(".")):
        key, each = part.removesuffix("[]"), part.endswith("[]")
        found = [one[key] for one in found] if key else found
        found = [item for one in found for item in one] if each else found
    return found
