"""A subject: the program that sits the exam, told by scenarios/NAME/subject.toml. Loads and checks that file.

All that is plain data about a program is here: how it is called and found, how its help is walked, what a trial may
and may not do with it, the variables it is given, where its state lies, how its skills are had, and what an empty
and a guided start look like. What has to be done differently is in its kind (harness/subjects/). Starts nothing.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from harness import subjects
from harness.scenario_fill import data_dir, fill
from harness.scenario_schema import Findings, Key, Shape, each, is_a, one_of, table, table_of, toml_of
from labd.errors import NotFound, nearest

if TYPE_CHECKING:
    from harness.subjects._kind import Kind

FILE = "subject.toml"
DEFAULT = "labd"

#: Files of a subject's folder that are no scenarios.
NO_SCENARIOS = (FILE, "signs.toml", "readiness.toml")

_text, _flag = is_a(str, what="a text"), is_a(bool, what="true or false")
_texts, _named = each(_text), table_of(_text)

SHAPE: Shape = {
    "name": Key(_text, required=True),
    "title": Key(_text, required=True),
    "program": Key(_text, required=True),
    "kind": Key(_text, required=True),
    "lane": Key(one_of("config", "local"), required=True),
    "find": Key(table({"variable": Key(_text), "beside_python": Key(_flag), "fixture": Key(_text),
                       "install": Key(_text)})),
    "help": Key(table({"layout": Key(one_of("own", "pages", "git"), required=True), "opaque": Key(_texts),
                       "environment": Key(_named)}), required=True),
    "allowlist": Key(table({"safe": Key(_texts, required=True), "unsafe": Key(_texts, required=True)}), required=True),
    "environment": Key(_named),
    "policy": Key(table({"variable": Key(_text, required=True), "outside": Key(_text), "lanes": Key(_named)})),
    "state": Key(_named),
    "skills": Key(table({"names": Key(_texts), "command": Key(_texts)})),
    "mcp": Key(table({"server": Key(_texts, required=True)})),
    "conditions": Key(table({"empty": Key(_text), "guided": Key(_text)})),
    "around": Key(table({"programs": Key(_texts), "files": Key(_texts)})),
}  # fmt: skip


@dataclass(frozen=True)
class Policy:
    """How the program is told what it may do: a variable, its value in each lane and with a device outside."""

    variable: str = ""
    outside: str = ""
    lanes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """One subject, checked. `lane`: where its executed scenarios run. `asking`: variables for asking it for its help.

    Paths in `state` and `environment` are templates: {root}, {home}, {work} are a sandbox's, and the names of `state`
    may be used in `environment`. around: other programs that do its work, and its own files (paths or their ends,
    globs allowed), which an agent that works through it leaves alone. server: the program's words that make it an MCP
    server, if it can be one; its tools' names begin with the program's.
    """

    name: str
    title: str
    program: str
    kind_name: str
    lane: str
    path: Path
    layout: str
    safe: tuple[str, ...]
    unsafe: tuple[str, ...]
    opaque: tuple[str, ...] = ()
    variable: str = ""
    asking: dict[str, str] = field(default_factory=dict)
    beside_python: bool = False
    fixture: str = ""
    install: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    state: dict[str, str] = field(default_factory=dict)
    skills: tuple[str, ...] = ()
    skill_command: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    empty: str = ""
    guided: str = ""
    around_programs: tuple[str, ...] = ()
    around_files: tuple[str, ...] = ()

    @cached_property
    def kind(self) -> "Kind":
        """Its doings."""
        made: Kind = import_module(f"harness.subjects.{self.kind_name}").KIND(self)
        return made

    def find(self) -> str | None:
        """The absolute path of the installed program: what `in_place` or its variable names, that of this Python (if
        the subject says so), that among the fixtures (if it is one of ours), that on PATH; None if there is none."""
        named = _in_place.get().get(self.name) or (os.environ.get(self.variable) if self.variable else None)
        beside = [os.path.join(os.path.dirname(sys.executable), self.program)] if self.beside_python else []
        ours = [str(data_dir("fixtures") / self.fixture)] if self.fixture else []
        for path in [named] if named else [*beside, *(ours or [shutil.which(self.program)])]:
            if path and os.access(path, os.X_OK) and os.path.isfile(path):
                return os.path.abspath(path)
        return None

    @property
    def missing(self) -> str:
        """What to say when `find` finds none."""
        beside = "beside this Python or " if self.beside_python else ""
        return f"there is no {self.program} {beside}on PATH"

    def variables(self, root: Path, lane: str) -> dict[str, str]:
        """The variables that it is given in a sandbox at `root`."""
        values = {"root": str(root), "home": str(root / "home"), "work": str(root / "work")}
        values |= {name: fill(text, values) for name, text in self.state.items()}
        env = {name: fill(text, values) for name, text in self.environment.items()}
        if self.policy.variable and lane in self.policy.lanes:
            env[self.policy.variable] = self.policy.lanes[lane]
        return env


_in_place: ContextVar[Mapping[str, str]] = ContextVar("in_place", default={})  # noqa: B039  never changed, replaced


@contextmanager
def in_place(name: str, program: str) -> Iterator[None]:
    """Another build in the place of the installed program of that subject, in this thread alone."""
    token = _in_place.set({**_in_place.get(), name: program})
    try:
        yield
    finally:
        _in_place.reset(token)


def names() -> list[str]:
    """The subjects that there are, the default first."""
    found = sorted(path.parent.name for path in data_dir("scenarios").glob(f"*/{FILE}"))
    return sorted(found, key=lambda name: (name != DEFAULT, name))


def all_of_them() -> list[Subject]:
    """Every subject."""
    return [load(name) for name in names()]


@cache
def load(name: str = DEFAULT) -> Subject:
    """The subject of that name. Raises NotFound with near matches, or ScenarioError naming each key that is wrong."""
    if name not in names():
        raise NotFound(f"no subject {name!r}", near=nearest(name, names()), hint="labd-eval list")
    return read(data_dir("scenarios") / name / FILE)


def read(path: Path) -> Subject:
    """The subject in a file. Raises ScenarioError, naming the file and each key that is wrong."""
    told = toml_of(path)
    _check(told, path)
    find, helps, allowed = told.get("find", {}), told["help"], told["allowlist"]
    skills, starts, around = told.get("skills", {}), told.get("conditions", {}), told.get("around", {})
    return Subject(
        name=told["name"], title=told["title"], program=told["program"], kind_name=told["kind"], lane=told["lane"],
        path=path, layout=helps["layout"], opaque=tuple(helps.get("opaque", ())), asking=helps.get("environment", {}),
        safe=tuple(allowed["safe"]), unsafe=tuple(allowed["unsafe"]), variable=find.get("variable", ""),
        beside_python=find.get("beside_python", False), fixture=find.get("fixture", ""),
        install=find.get("install", ""),
        environment=told.get("environment", {}), policy=Policy(**told.get("policy", {})), state=told.get("state", {}),
        skills=tuple(skills.get("names", ())), skill_command=tuple(skills.get("command", ())),
        server=tuple(told.get("mcp", {}).get("server", ())),
        empty=starts.get("empty", ""), guided=starts.get("guided", ""),
        around_programs=tuple(around.get("programs", ())), around_files=tuple(around.get("files", ())),
    )  # fmt: skip


def _check(told: dict[str, Any], path: Path) -> None:
    report = Findings(str(path))
    table(SHAPE)(told, "", report)
    kinds = [info.name for info in iter_modules(subjects.__path__) if not info.name.startswith("_")]
    if "kind" in told and told["kind"] not in kinds:
        report("kind", f"there is no kind {told['kind']!r}", nearest(str(told["kind"]), kinds))
    if told.get("name") != path.parent.name:
        report("name", f"{told.get('name')!r} does not fit the folder {path.parent.name!r}", [])
    report.done()
