"""How a subject exercises the readiness rubric: loads and checks fixtures/readiness/rubric-VERSION.toml and
scenarios/NAME/readiness.toml. Starts nothing, judges nothing.

A plan begins each check in a throwaway sandbox with the state of a scenario, brings about what the check needs
(`before`: lines that must succeed), and says, step by step, what is run and what it must show. `state` declares what
digests are taken of before and after every step: files of the sandbox, or what a command of the harness's prints.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graders.readiness import VERSION
from graders.readiness_evidence import ROLES
from graders.readiness_rules import RULES
from graders.shape import Key, Shape, each, is_a, one_of, pattern, table, table_of, whole_within, within
from harness import subject
from harness.scenario_fill import data_dir
from harness.scenario_schema import Findings, toml_of
from labd.errors import NotFound, nearest

FILE, SCHEMA = "readiness.toml", "labd-readiness-plan/1"

#: Roles that any check may have: a page read for what it says, the harness's own look.
ANYWHERE = ("document", "look")

#: Seconds that a step may take if it says nothing else.
LIMIT_S = 20.0

#: Pages that are gone through at most.
MOST_PAGES = 50

_text, _texts = is_a(str, what="a text"), each(is_a(str, what="a text"))
_found = each(pattern)

STEP: Shape = {
    "role": Key(one_of(*ROLES), required=True),
    "run": Key(_text, required=True),
    "by": Key(one_of("subject", "harness")),
    "finds": Key(_found),
    "lacks": Key(_found),
    "counts": Key(table_of(whole_within(0, 100_000))),
    "exit": Key(each(whole_within(0, 255))),
    "refused": Key(each(whole_within(0, 255))),
    "parse": Key(one_of("json", "jsonl", "lines", "nul")),
    "pick": Key(_text),
    "planted": Key(_texts),
    "planted_from": Key(_text),
    "sequence": Key(table({"text": Key(_text, required=True), "to": Key(whole_within(1, 100_000), required=True)})),
    "next": Key(pattern),
    "until": Key(pattern),
    "within_s": Key(within(0.1, 600, "seconds")),
    "limit_s": Key(within(0.1, 600, "seconds")),
}

CHECK: Shape = {
    "scenario": Key(_text),
    "before": Key(_texts),
    "target": Key(_texts),
    "states": Key(_texts),
    "step": Key(each(table(STEP)), required=True),
}

PLAN: Shape = {
    "schema": Key(one_of(SCHEMA), required=True),
    "rubric": Key(_text, required=True),
    "scenario": Key(_text, required=True),
    "before": Key(_texts),
    "state": Key(table_of(table({"files": Key(_texts), "without": Key(_texts), "command": Key(_text)})), required=True),
    "not_applicable": Key(table_of(table({"reason": Key(_text, required=True), "reviewed": Key(_text)}))),
    "check": Key(table_of(table(CHECK)), required=True),
}

TEXTS: Shape = {name: Key(_text, required=True) for name in
                ("id", "domain", "says", "applies", "exercise", "expected", "pass", "unclear")}  # fmt: skip
RUBRIC: Shape = {
    "schema": Key(one_of("labd-rubric/1"), required=True),
    "version": Key(_text, required=True),
    "score": Key(_text, required=True),
    "domain": Key(each(table({"name": Key(_text, required=True), "title": Key(_text, required=True)})), required=True),
    "check": Key(each(table({**TEXTS, "always": Key(is_a(bool, what="true or false"))})), required=True),
}


@dataclass(frozen=True)
class Check:
    """How one check is exercised. `states`: what is observed; `target`: what of it the work is about."""

    id: str
    scenario: str
    before: tuple[str, ...]
    states: tuple[str, ...]
    target: tuple[str, ...]
    steps: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Plan:
    """The plan of one subject, checked. `text`: the file as it is, which a measurement keeps."""

    subject: str
    path: Path
    text: bytes
    state: dict[str, dict[str, Any]]
    checks: tuple[Check, ...]
    excepted: dict[str, dict[str, str]] = field(default_factory=dict)


def rubric_path(version: str = VERSION) -> Path:
    """Where a version of the rubric is."""
    return data_dir("fixtures") / "readiness" / f"rubric-{version}.toml"


def rubric(path: Path | None = None) -> dict[str, Any]:
    """The rubric, checked: each check has all its texts, a known domain, and a rule. Raises ScenarioError."""
    path = path or rubric_path()
    told = toml_of(path)
    report = Findings(str(path))
    table(RUBRIC)(told, "", report)
    report.done()
    domains, ids = [one["name"] for one in told["domain"]], [one["id"] for one in told["check"]]
    for number, one in enumerate(told["check"]):
        if one["domain"] not in domains:
            report(f"check[{number}].domain", f"there is no domain {one['domain']!r}", nearest(one["domain"], domains))
    if sorted(ids) != sorted(RULES):
        wrong = sorted(set(ids) ^ set(RULES)) or ["one is there twice"]
        report("check", f"checks and rules differ: {', '.join(wrong)}", [])
    report.done()
    return told


def load(name: str) -> Plan:
    """The plan of the subject `name`. Raises NotFound where it has none, ScenarioError naming each wrong key."""
    subject.load(name)
    path = data_dir("scenarios") / name / FILE
    if not path.is_file():
        has = [one for one in subject.names() if (data_dir("scenarios") / one / FILE).is_file()]
        raise NotFound(f"{name} says nowhere how its readiness is measured ({path})", near=[],
                       hint=f"labd-eval readiness {has[0]}" if has else "labd-eval list")  # fmt: skip
    return read(path, name)


def read(path: Path, name: str) -> Plan:
    """The plan in a file. Raises ScenarioError."""
    told = toml_of(path)
    report = Findings(str(path))
    table(PLAN)(told, "", report)
    report.done()
    _meaning(told, report)
    report.done()
    checks = []
    for one in told["check"]:
        own = told["check"][one]
        states = tuple(own.get("states", told["state"]))
        checks.append(Check(one, own.get("scenario", told["scenario"]),
                            tuple(own.get("before", told.get("before", ()))), states, tuple(own.get("target", ())),
                            tuple(own["step"])))  # fmt: skip
    return Plan(name, path, path.read_bytes(), told["state"], tuple(checks), told.get("not_applicable", {}))


def _meaning(told: dict[str, Any], report: Findings) -> None:
    """What shapes can't say: known checks, roles that the check's rule looks at, declared states."""
    known = rubric()
    if told["rubric"] != known["version"]:
        report("rubric", f"the rules here are for {known['version']}", [])
    always = {one["id"] for one in known["check"] if one.get("always")}
    for name in (*told["check"], *told.get("not_applicable", {})):
        if name not in RULES:
            report(name, "there is no such check", nearest(name, list(RULES)))
    for name in told.get("not_applicable", {}):
        if name in always:
            report(f"not_applicable.{name}", "it applies to every program", [])
        if name in told["check"]:
            report(f"not_applicable.{name}", "it is exercised as well", [])
    for name, state in told["state"].items():
        if ("files" in state) == ("command" in state):
            report(f"state.{name}", "either files or a command", [])
    for name, check in told["check"].items():
        for key in ("states", "target"):
            for one in check.get(key, ()):
                if one not in told["state"]:
                    report(f"check.{name}.{key}", f"{one!r} is not declared", nearest(one, list(told["state"])))
        allowed = (*RULES[name].roles, *ANYWHERE) if name in RULES else ROLES
        for number, step in enumerate(check["step"]):
            if step["role"] not in allowed:
                report(f"check.{name}.step[{number}].role", f"not for this check ({', '.join(allowed)})", [])
