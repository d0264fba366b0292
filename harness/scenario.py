"""Scenarios: a goal in a user's words, what a right end looks like, and how wrong ends are acted out.

Owns the loading of scenarios/*/*.toml into frozen values, the filling of `{nonce}`-like placeholders, and the
lint of goals. Runs nothing and grades nothing. Who runs a scenario reads `Scenario`, `Step` and `Controls`.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness import inline_board
from harness import subject as subjects
from harness.journey_parts import Journey
from harness.outside import Outside
from harness.scenario_fill import HOLE, data_dir, fill
from harness.scenario_schema import ScenarioError, check, toml_of

__all__ = ["CONTROL_NAMES", "HOLE", "Controls", "Loopback", "Scenario", "ScenarioError", "Step", "Trap", "fill",
           "fixtures_dir", "lint", "load", "load_all", "scenarios_dir", "vocabulary"]  # fmt: skip

CONTROL_NAMES = ("noop", "printed-success", "wrong-resource", "partial", "hand-edit", "invented")
DEFAULT_TIMEOUT_S = 300.0

#: Stands for the line of a scenario that is about a screen alone.
NO_LINE = "@screen"


@dataclass(frozen=True)
class Step:
    """One line of a reference answer or of a control.

    `run` is a command line with placeholders. `shell` lines go to `sh -c` (they are a user's own shell: cat,
    printf, redirections); others are split into words as a shell would and started without one. `save` maps a name
    to a regular expression searched in stdout (group 1, else the whole match); later lines may say `{name}`.
    `until`: run it again, with a short pause, until stdout matches, at most `within_s` seconds (the last run is the
    one that counts; running out is a failure of the step). `stated`: only said, never run. `prose`: a text of
    several lines, for readers; never run, and not checked against the command line.
    """

    run: str
    save: Mapping[str, str] = field(default_factory=dict)
    stated: bool = False
    expect_exit: int = 0
    until: str | None = None
    within_s: float = 20.0
    shell: bool = False

    @property
    def prose(self) -> bool:
        """Whether it is an explanation of several lines, not a command."""
        return "\n" in self.run.strip() and not self.shell

    def wanted(self, values: Mapping[str, str]) -> "re.Pattern[str] | None":
        """What it waits for, placeholders filled."""
        return None if self.until is None else re.compile(fill(self.until, values, pattern=True), re.MULTILINE)

    def argv(self, values: Mapping[str, str]) -> list[str]:
        """The words to start, placeholders filled (after splitting, so that a value can't add words)."""
        if self.shell:
            return ["sh", "-c", fill(self.run, values)]
        return [fill(word, values) for word in shlex.split(self.run)]


@dataclass(frozen=True)
class Trap:
    """A mistake that the scenario invites. `central`: walking into it fails the scenario. `when`: a predicate
    (graders/when.py) over the argv record that is true if the trap was walked into; None: a judge has to say."""

    text: str
    central: bool = False
    when: str | None = None


@dataclass(frozen=True)
class Controls:
    """Scripted agents that must not pass. `noop` does nothing and says nothing, so it needs no data.

    `printed_success`: the answer given without running anything. The others are lines to run, and the answer is the
    stdout of the last one, as with the reference; in the lane `stated` they are said. `invented` is for it alone,
    `tampered_artifact` for journeys.
    """

    printed_success: str = ""
    wrong_resource: tuple[Step, ...] = ()
    partial: tuple[Step, ...] = ()
    hand_edit: tuple[Step, ...] = ()
    invented: tuple[Step, ...] = ()
    tampered_artifact: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Loopback:
    """What makes a scenario executable on simulated boards, or (`virtual`) on boards and screens that a program of this
    machine has to play.

    `target` and `interface` say whom the goal is about. `files` maps the name that a file gets beside the lab, so
    that a seed lab can say `device = "loopback:NAME.toml"`, to its source under fixtures/. `board` is a DUT file that
    the scenario itself describes (harness/inline_board.py). `outside` is a board that the tool does not start, whose
    port is {device}, and `prepared` what was run on the bench before the agent is asked. `expect` is for
    graders/outcome.py.
    """

    target: str
    interface: str
    files: Mapping[str, str]
    expect: Mapping[str, Any]
    board: str | None = None
    outside: Outside | None = None
    prepared: tuple[Step, ...] = ()
    virtual: bool = False


@dataclass(frozen=True)
class Task:
    """What a goal says so plainly that a script without the bench can go about it, for comparisons (`versus`).

    `look_for`: the answer, in group 1. `type`: what the goal has one type first; `press` when `see` comes.
    """

    look_for: str
    type: str = ""
    see: str = ""
    press: str = ""
    patience_s: float = 20.0


@dataclass(frozen=True)
class Scenario:
    """One scenario, checked. `lane` is where its commands really run: config, loopback, local, or stated.

    `subject` names what it examines (harness/subject.py): the folder that its file is in. `boards` are real boards that
    it needs for itself: no other trial has them meanwhile.
    """

    id: str
    title: str
    tier: str
    goal: str
    reference: tuple[Step, ...]
    grader: Mapping[str, Any]
    path: Path
    core: bool = False
    conditions: tuple[str, ...] = ("cold", "warm", "preloaded", "mcp")
    capabilities: tuple[str, ...] = ()
    boards: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()
    traps: tuple[Trap, ...] = ()
    seed: str | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    loopback: Loopback | None = None
    controls: Controls | None = None
    task: Task | None = None
    subject: str = subjects.DEFAULT
    journey: Journey | None = None

    def knows(self, condition: str) -> bool:
        """Whether it is tried under this condition: nothing is stated where there is no command line."""
        return condition in self.conditions and (condition != "mcp" or self.lane != "stated")

    @property
    def outside(self) -> Outside | None:
        """What stands outside the bench, if something does."""
        return self.loopback.outside if self.loopback else None

    @property
    def lane(self) -> str:
        """`loopback` if it has simulated boards, `virtual` if programs of this machine play them (QEMU), else its
        subject's own for T1 (`config`, or `local`: its files), else `stated`: the agent says what to run."""
        if self.loopback:
            return "virtual" if self.loopback.virtual else "loopback"
        return subjects.load(self.subject).lane if self.tier == "t1" else "stated"

    def files(self, values: Mapping[str, str]) -> dict[str, str]:
        """All that the sandbox needs beside the lab: file name → text, placeholders filled.

        The seed lab is not among them: see `seed_text`.
        """
        if not self.loopback:
            return {}
        texts = {name: _read(fixtures_dir() / source) for name, source in self.loopback.files.items()}
        if self.loopback.board is not None:
            texts[inline_board.NAME] = self.loopback.board
        return {name: fill(text, values) for name, text in texts.items()}

    def seed_text(self, values: Mapping[str, str]) -> str | None:
        """The seed lab's text, placeholders filled and line ends as in the fixture; None: start without a lab."""
        fault = self.journey.fault if self.journey else None
        names = [name for name in (self.seed, fault.seed if fault else None) if name is not None]
        return fill("".join(_read(fixtures_dir() / name) for name in names), values) if names else None

    def control(self, name: str) -> tuple[Step, ...]:
        """The lines that a control runs or says; none for `noop` and `printed-success`. Raises KeyError for another."""
        controls = self.controls or Controls()
        return {"noop": (), "printed-success": (), "wrong-resource": controls.wrong_resource,
                "tampered-artifact": controls.tampered_artifact,
                "partial": controls.partial or self.partial(), "hand-edit": controls.hand_edit,
                "invented": controls.invented}[name]  # fmt: skip

    def partial(self) -> tuple[Step, ...]:
        """The reference cut short before the last line that has an effect (reads at the end have none)."""
        run = [step for step in self.reference if not step.stated and not step.prose]
        reads = re.compile(r"^\S+ (config|target|host) (show|list|path)\b")
        while run and reads.search(run[-1].run):
            run.pop()
        return tuple(run[:-1])

    def frozen(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Plain data for the bundle's scenario.json: all that graders need, placeholders filled.

        In regular expressions (keys `matches`, `lacks`, `printed`, `may_change`, `until`) values are filled in
        escaped, so that a path in a value matches itself.
        """
        data = asdict(self)
        data["path"] = self.path.name
        data["lane"] = self.lane
        frozen: dict[str, Any] = _filled(data, values, pattern=False)
        return frozen


#: Keys whose texts are regular expressions; under `save` all are.
_PATTERN_KEYS = frozenset({"matches", "lacks", "printed", "may_change", "until", "received", "journal", "save",
                           "may_receive", "look_for", "see"})  # fmt: skip


def _filled(value: Any, values: Mapping[str, str], *, pattern: bool) -> Any:
    if isinstance(value, str):
        return fill(value, values, pattern=pattern)
    if isinstance(value, Mapping):
        return {
            key: {name: fill(text, values, pattern=True) for name, text in item.items()}
            if key == "save"
            else _filled(item, values, pattern=key in _PATTERN_KEYS)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_filled(item, values, pattern=pattern) for item in value]
    return value


#: The names that a trial itself fills in.
KNOWN = frozenset(
    {"nonce", "lab", "home", "remotes", "device", "device2", "holder", *(f"nonce{n}" for n in range(2, 10))}
)


def scenarios_dir(subject: str = subjects.DEFAULT) -> Path:
    """Where the scenarios of a subject are."""
    return data_dir("scenarios") / subject


def fixtures_dir() -> Path:
    """Where seed labs and simulated boards are."""
    return data_dir("fixtures")


def _read(path: Path) -> str:
    # newline="" keeps CRLF: seeds have odd line ends on purpose.
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def load(path: str | Path) -> Scenario:
    """The scenario in a file. Raises ScenarioError, naming the file and each key that is wrong."""
    path = Path(path)
    data = toml_of(path)
    named = path.parent.name if (path.parent / subjects.FILE).is_file() else subjects.DEFAULT
    return made(data, path, subject=named)


def made(data: dict[str, Any], path: Path, *, subject: str, journey: Journey | None = None) -> Scenario:
    """The scenario that plain data tells; `path` is its file. Raises ScenarioError, naming each key that is wrong."""
    file = f"{path} ({journey.variant})" if journey else str(path)
    check(data, file)
    scenario = _build(data, path, subject, journey)
    from harness.scenario_meaning import problems_of

    problems = [f"{file}: {problem}" for problem in problems_of(scenario)]
    if problems:
        raise ScenarioError(problems, [])
    return scenario


def load_all(subject: str = subjects.DEFAULT) -> list[Scenario]:
    """All scenarios of a subject, the core set first, then in the order of their ids (C2 before C10).

    Raises ScenarioError for all of them, and NotFound for a subject that is not there.
    """
    subjects.load(subject)
    scenarios: list[Scenario] = []
    problems: list[str] = []
    near: list[str] = []
    for path in sorted(scenarios_dir(subject).glob("*.toml")):
        if path.name in subjects.NO_SCENARIOS:
            continue
        try:
            scenarios.append(load(path))
        except ScenarioError as error:
            problems += error.problems
            near += error.near
    twice = {s.id for s in scenarios if sum(other.id == s.id for other in scenarios) > 1}
    problems += [f"{s.path}: id: {s.id} is also another file's" for s in scenarios if s.id in twice]
    if problems:
        raise ScenarioError(problems, near)
    return sorted(scenarios, key=_place)


def _place(one: Scenario) -> tuple[bool, str, int, str]:
    return not one.core, one.id.rstrip("0123456789"), int(re.sub(r"\D", "", one.id) or 0), one.id


def _build(data: dict[str, Any], path: Path, subject: str, journey: Journey | None) -> Scenario:
    names = ("id", "title", "tier", "goal", "grader", "core", "seed", "timeout_s")
    plain: dict[str, Any] = {name: data[name] for name in names if name in data}
    lists = ("conditions", "capabilities", "boards", "quoted")
    plain |= {name: tuple(data[name]) for name in lists if name in data}
    traps = tuple(Trap(t) if isinstance(t, str) else Trap(**t) for t in data.get("traps", ()))
    loopback = data.get("loopback") or data.get("virtual")
    controls = data.get("controls")
    return Scenario(
        **plain,
        traps=traps,
        reference=_steps(data["reference"]),
        path=path,
        loopback=_loopback(loopback, data["title"], virtual="virtual" in data) if loopback else None,
        controls=_controls(controls) if controls is not None else None,
        task=Task(**data["task"]) if "task" in data else None,
        subject=subject,
        journey=journey,
    )


def _loopback(data: dict[str, Any], title: str, *, virtual: bool) -> Loopback:
    board = None if virtual else inline_board.text(data, title)
    return Loopback(data["target"], data.get("interface", NO_LINE), data.get("files", {}), data["expect"], board,
                    _outside(data.get("outside")), _steps(data.get("prepared", ())), virtual)  # fmt: skip


def _outside(data: dict[str, Any] | None) -> Outside | None:
    if data is None:
        return None
    path = fixtures_dir() / data["file"]
    acts = {name: tuple(data.get(name, ())) for name in ("before", "after")}
    return Outside(data["file"], data["serve"], _read(path) if path.is_file() else "", data.get("held", False), **acts)


def _steps(entries: Iterable[str | dict[str, Any]]) -> tuple[Step, ...]:
    made = []
    for entry in entries:
        data: dict[str, Any] = {"run": entry} if isinstance(entry, str) else entry
        made.append(Step(**data))
    return tuple(made)


_CONTROLS = ("wrong_resource", "partial", "hand_edit", "invented", "tampered_artifact")


def _controls(data: dict[str, Any]) -> Controls:
    return Controls(
        printed_success=data.get("printed_success", ""),
        **{name: _steps(data.get(name, ())) for name in _CONTROLS},
    )


#: Verbs of the tool that no English goal can do without.
_FUNCTION_WORDS = frozenset({"on", "off"})


def vocabulary(subject: str = subjects.DEFAULT) -> frozenset[str]:
    """The words of the tool: those of its commands."""
    return subjects.load(subject).kind.vocabulary()


def lint(scenario: Scenario, words: Iterable[str] | None = None) -> list[str]:
    """What a user would not say: words of the tool's commands and flags in the goal.

    A word is fine if the scenario lists it under `quoted` (reviewed: users say it too). `words` replaces the live
    table, for tests.
    """
    known = frozenset(vocabulary(scenario.subject) if words is None else words) - _FUNCTION_WORDS
    known -= {word.lower() for word in scenario.quoted}
    # Paths, addresses and anything in back quotes are things, not words.
    plain = re.sub(r"`[^`]*`|\S*[/@]\S*", " ", scenario.goal.lower())
    said = re.findall(r"(?<!\S)--?[a-z][a-z-]*|[a-z0-9]+(?:[-_][a-z0-9]+)*", plain)
    found = [f"{scenario.path.name}: goal: {word!r} is a word of the tool; say it as a user would, or list it in quoted"
             for word in dict.fromkeys(said) if word in known]  # fmt: skip
    flags = [word for word in dict.fromkeys(said) if word.startswith("-") and word not in scenario.quoted]
    return found + [f"{scenario.path.name}: goal: {word!r} looks like a flag" for word in flags]
