"""Does the exam still speak of the command line that is there? Checked against the live program, never a stored copy.

`check` asks the installed program through `run`, which is given in (graders start no process): its table of commands
(`commands --json`), the `--help` of every group and of every command that a scenario uses, and for each line of a
reference or a control whether its words are a command (`commands --check -- …`, which runs nothing). A reference that
rots would make every verdict on it wrong, and quietly.

Left alone: texts of several lines (explanations for readers), lines of a shell or of another program, and what stands
behind the name of a program that gets the rest of the line (`helper NAME …`).
"""

import json
import re
import shlex
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple

from graders import stated_commands, when
from graders.t1_config import ALLOWED
from labd.errors import nearest

#: Runs words (the program's name first); returns exit code (None: it never ended), stdout, stderr.
Run = Callable[[list[str]], tuple[int | None, str, str]]


class Use(NamedTuple):
    """One command line of a scenario: where it stands, its words, and whether it is expected to be wrong usage."""

    where: str
    words: list[str]
    wrong: bool


def check(scenarios: Iterable[Any], run: Run, program: str = "labd", *, safe: Iterable[str] = (),
          unsafe: Iterable[str] = ()) -> list[str]:  # fmt: skip
    """Every way in which the scenarios no longer fit the live program, a line each; empty if all is well.

    `safe` is what a config-only trial may always do, whatever effect the table gives it: each must exist and be within
    ALLOWED. `unsafe` is what it may never do: each must exist and be outside.
    """
    scenarios = list(scenarios)
    table, names, problem = _table(run, program)
    if problem:
        return [problem]
    used = {path for scenario in scenarios for use in lines(scenario, program) if (path := resolve(use.words, names))}
    return [
        *_allowlist(table, names, program, safe, unsafe),
        *_help(table, used, run, program),
        *fit(scenarios, run, program),
    ]


def fit(scenarios: Iterable[Any], run: Run, program: str = "labd") -> list[str]:
    """The part of `check` that is about these scenarios alone: their lines and their predicates."""
    scenarios = list(scenarios)
    table, names, problem = _table(run, program)
    if problem:
        return [problem]
    uses = [use for scenario in scenarios for use in lines(scenario, program)]
    found = [problem for scenario in scenarios for problem in predicates(scenario, table, names)]
    found += [problem for scenario in scenarios for problem in inventions(scenario, run, program)]
    return [*_lines(uses, run, program), *found]


def questions(scenarios: Iterable[Any], program: str = "labd") -> list[list[str]]:
    """What `fit` will ask, each once, so that it can be asked at once."""
    asked = {tuple(use.words): None for scenario in scenarios for use in lines(scenario, program)}
    return [[program, "commands", "--json"], *([program, "commands", "--check", "--", *words] for words in asked)]


def against(scenarios: Iterable[Any], surface: dict[str, Any]) -> list[str]:
    """What of the scenarios does not fit a command reference that was walked from help pages (harness/helpwalk.py)."""
    found = []
    program = str(surface["program"])
    for scenario in scenarios:
        for use in lines(scenario, program):
            problems = [] if use.wrong else stated_commands.read(surface, use.words).problems
            found += [f"{use.where}: {program} {shlex.join(use.words)}: {one.text}" for one in problems]
    return found


def _table(run: Run, program: str) -> tuple[dict[str, Any], dict[str, str], str]:
    """(path → entry, every name of a command → its path, what is wrong)."""
    code, out, err = run([program, "commands", "--json"])
    try:
        table = {entry["path"]: entry for entry in json.loads(out)["operations"]}
    except (ValueError, KeyError, TypeError):
        return {}, {}, f"{program} commands --json gave no table (exit {code}): {_first(err) or _first(out)}"
    aliases = {alias: entry["path"] for entry in table.values() for alias in entry.get("aliases", ())}
    return table, aliases | {path: path for path in table}, ""


#: The controls whose lines are run.
_ACTED = ("wrong_resource", "partial", "hand_edit", "tampered_artifact")


def lines(scenario: Any, program: str = "labd") -> Iterator[Use]:
    """The command lines of the program in a scenario (reference, preparation, controls), filled with samples."""
    controls = scenario.controls
    groups = [("reference", scenario.reference)]
    if scenario.loopback:
        groups.append(("loopback.prepared", scenario.loopback.prepared))
    if controls:
        groups += [(f"controls.{n}", getattr(controls, n)) for n in _ACTED]
    for where, steps in groups:
        for number, step in enumerate(steps):
            if step.prose or step.shell:
                continue
            for words in _commands(step.run):
                if words[0] == program:
                    yield Use(f"{scenario.path.name}: {where}[{number}]", words[1:], step.expect_exit == 2)


def _commands(line: str) -> Iterator[list[str]]:
    """The commands of a line, filled with samples: those of `$(…)` in it, then itself."""
    line = re.sub(r"\{[a-z][a-z0-9_]*\}|<[a-z][a-z ]*>", "1", line)
    yield from (words for inner in re.findall(r"\$\(([^()]*)\)", line) if (words := shlex.split(inner)))
    yield shlex.split(line)


def inventions(scenario: Any, run: Run, program: str) -> Iterator[str]:
    """A control that recommends what does not exist must go on doing so."""
    said = [step.run for step in scenario.controls.invented] if scenario.controls else []
    commands = [words[1:] for line in said if "\n" not in line for words in _commands(line) if words[0] == program]
    if commands and all(run([program, "commands", "--check", "--", *words])[0] == 0 for words in commands):
        yield f"{scenario.path.name}: controls.invented: all of it exists"


def resolve(words: list[str], names: dict[str, str]) -> str | None:
    """The path of the command that the words begin with; None if there is no such command."""
    plain = [word for word in words if not word.startswith("-")]
    return names.get(" ".join(plain[:2])) or names.get(" ".join(plain[:1]))


def _lines(uses: Iterable[Use], run: Run, program: str) -> Iterator[str]:
    """The lines that are no commands. A line that several scenarios use is asked about once a check."""
    answers: dict[tuple[str, ...], tuple[int | None, str, str]] = {}
    for use in uses:
        words = tuple(use.words)
        if words not in answers:
            answers[words] = run([program, "commands", "--check", "--", *words])
        code, out, err = answers[words]
        if code != 0 and not use.wrong:
            ended = "did not end" if code is None else f"exit {code}"
            yield f"{use.where}: {program} {shlex.join(words)}: no such command ({ended}): {_first(err) or _first(out)}"


def _help(table: dict[str, Any], used: set[str], run: Run, program: str) -> Generator[str, None, None]:
    """The help tree: the top names every group, a group each verb, a used command each of its flags."""
    groups: dict[str, list[str]] = {}
    for path in table:
        groups.setdefault(path.split(" ")[0], []).append(path)
    top = yield from _page(run, [program])
    for group, paths in groups.items():
        if not _says(top, group):
            yield f"{program} --help does not name {group}"
        page = yield from _page(run, [program, group])
        for path in paths:
            verb = path.partition(" ")[2]
            if verb and not _says(page, verb):
                yield f"{program} {group} --help does not name {verb}"
    for path in sorted(used):
        page = ""
        for name in (path, *table[path].get("aliases", ())):  # a command that is a group too tells its flags elsewhere
            page += yield from _page(run, [program, *name.split(" ")])
        for param in table[path]["params"]:
            for flag in param["flags"]:
                if not _says(page, flag):
                    yield f"{program} {path} --help does not name its flag {flag}"


def _page(run: Run, words: list[str]) -> Generator[str, None, str]:
    """Returns the help of a command; yields a problem, and returns nothing, if there is none."""
    code, out, err = run([*words, "--help"])
    if code != 0:
        yield f"{' '.join(words)} --help: exit {code}: {_first(err)}"
        return ""
    return out


def _says(page: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", page) is not None


def _allowlist(table: dict[str, Any], names: dict[str, str], program: str, within: Iterable[str],
               outside: Iterable[str]) -> Iterator[str]:  # fmt: skip
    """What the config-only tier rests on: the named commands exist, and their effects are on the right side."""
    for listed, safe in ((within, True), (outside, False)):
        for path in listed:
            if path not in names:
                near = ", ".join(nearest(path, list(names)))
                yield f"allowlist: {program} {path} does not exist" + (f"; near: {near}" if near else "")
            elif (table[names[path]]["effect"] in ALLOWED) != safe:
                side = "must be within" if safe else "must be outside"
                yield f"allowlist: {program} {path} has effect {table[names[path]]['effect']}: it {side} the T1 set"


def predicates(scenario: Any, table: dict[str, Any], names: dict[str, str]) -> Iterator[str]:
    """Commands and flags that predicates of a scenario name but the table does not have: they could never be true."""
    flags = {flag for entry in table.values() for param in entry["params"] for flag in param["flags"]} | {"--json"}
    texts = [(f"traps[{n}].when", trap.when) for n, trap in enumerate(scenario.traps) if trap.when]
    texts += [(f"grader.{kind}[{n}].when", entry["when"]) for kind in ("ran", "stated")
              for n, entry in enumerate(scenario.grader.get(kind, ())) if "when" in entry]  # fmt: skip
    for where, text in texts:
        compared = when.compared(text)
        named = [value for name, value in compared if name == "operation" and value is not None]
        wrong = [f"no command {word!r}" for word in named if names.get(word) != word]
        for name, known in when.CLOSED.items():
            wrong += [f"no {name} {value!r}{_meant(value, known)}" for field, value in compared
                      if field == name and value is not None and value not in known]  # fmt: skip
        wrong += [f"no flag {flag}" for flag in re.findall(r"--[a-z][a-z-]*[a-z]", text) if flag not in flags]
        yield from (f"{scenario.path.name}: {where}: {problem}" for problem in wrong)


def _meant(word: Any, known: Iterable[str]) -> str:
    near = nearest(str(word), list(known))
    return f"; did you mean {', '.join(near)}?" if near else ""


def _first(text: str) -> str:
    return text.strip().split("\n")[0][:200]
