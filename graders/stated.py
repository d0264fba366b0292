"""Grades a trial in which the agent says what to run: the commands of its answer, held against the live reference.

A command or flag that does not exist fails, whatever else is right (D4); so does a command that the program would not
understand (D3), a central trap among the commands, a needed command that is not there. Commands that the answer names
to say that they are not there, or not to be used, do not count. `grader.suffices` says that nothing more is
asked; without it, an answer that all this says nothing against is `unknown` until it is judged (graders/judge.py).

An agent that is a program also leaves a record of what it ran: in this lane it may read help and operate nothing.
Pure function of a bundle.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graders import judge, route, said_and_done, stated_commands, when
from graders.bundle_view import Bundle
from graders.stated_commands import Reading
from graders.stated_text import Stated, statements
from graders.verdict import Check, Verdict, conclude

NAME = "stated"

#: What an agent that only says what it would do may run. Anything else was tried, refused or not.
MAY_RUN = frozenset({"help", "observe", "config"})


@dataclass(frozen=True)
class Line:
    """One stated command as the predicate language reads it (graders/when.py): nothing ran, so it has no exit code."""

    stated: Stated
    reading: Reading | None

    @property
    def argv(self) -> list[str]:
        """The words, the program's name first."""
        return list(self.stated.words)

    def field(self, name: str) -> Any:
        """`operation`, `effect` and `target`, if the line is a command of the subject's; else None."""
        if self.reading is None or name not in ("operation", "effect", "target"):
            return None
        return {"operation": self.reading.path, "effect": self.reading.effect, "target": self.reading.target}[name]


@dataclass(frozen=True)
class Answer:
    """What an answer states. `lines`: all that is recommended, in order; `subject`: those of the program under test."""

    lines: list[Line] = field(default_factory=list)

    @property
    def subject(self) -> list[Line]:
        return [line for line in self.lines if line.reading is not None]

    @property
    def sound(self) -> list[Line]:
        """Those that could be typed as they stand."""
        return [line for line in self.lines if line.reading is None or not _faults(line)]


def read(answer: str, surface: Mapping[str, Any]) -> Answer:
    """The commands that an answer recommends, each read by the reference."""
    program = str(surface["program"])
    nouns = {name.split(" ")[0] for entry in surface["commands"] for name in (entry["path"], *entry.get("aliases", ()))}
    lines = []
    for one in statements(answer, program, nouns):
        if one.denied:
            continue
        ours = one.words[0].rpartition("/")[2] == program
        lines.append(Line(one, stated_commands.read(surface, one.words[1:]) if ours else None))
    return Answer(lines)


def is_real(surface: Mapping[str, Any] | None, line: str) -> bool | None:
    """Whether a command line is one that the reference has; None where that can't be told. For a judge's claims."""
    if surface is None:
        return None
    found = read(f"```\n{line}\n```", surface).subject
    return all(one.reading is not None and one.reading.invented is None for one in found) if found else None


def grade(bundle: Bundle) -> Verdict:
    """The verdict on one trial. Raises BundleError if the directory is no bundle."""
    early = said_and_done.not_gradable(bundle, NAME)
    if early:
        return early
    surface = bundle.surface
    if surface is None:
        return Verdict(NAME, "unknown", "no command reference was kept with this run")
    answer = read(bundle.answer or "", surface)
    trapped = traps(bundle, answer)
    checks = [
        nothing_invented(bundle, answer, surface),
        well_formed(answer),
        *needed(bundle, answer),
        *said_and_done.answers(bundle),
        *(trap for trap in trapped if trap.name.startswith(said_and_done.CENTRAL) and trap.ok is not None),
        *ran(bundle),
        *said_and_done.ended(bundle),
    ]
    found = conclude(NAME, checks, trapped)
    grader = bundle.scenario["grader"]
    if found.verdict == "pass" and not grader.get("suffices"):
        why = "nothing speaks against it; the rest is for a judge"
        found = Verdict(NAME, "unknown", why, found.checks, found.traps)
    return judge.grade(bundle, found, lambda line: is_real(surface, line)) if grader.get("judge", True) else found


def nothing_invented(bundle: Bundle, answer: Answer, surface: Mapping[str, Any]) -> Check:
    """D4: whether all that was recommended, or tried, exists."""
    tried = []
    if bundle.record is not None:
        words = [one.argv[1:] for one in route.subject_invocations(bundle) if one.decision == "invalid"]
        tried = [f"it tried {' '.join(line)}: {why}" for line in words
                 if (why := stated_commands.read(surface, line).invented)]  # fmt: skip
    said = [f"{line.stated.line}: {line.reading.invented}" for line in answer.subject
            if line.reading is not None and line.reading.invented]  # fmt: skip
    found = [*said, *tried]
    return Check(
        "nothing invented", not found, found[0] if found else f"{len(answer.subject)} commands, all of them real"
    )


def well_formed(answer: Answer) -> Check:
    """D3: whether the program would understand each of them. One that is only named, without a word, is not one."""
    bad = [f"{line.stated.line}: {line.reading.malformed}" for line in answer.subject
           if line.reading is not None and line.reading.malformed and _faults(line)]  # fmt: skip
    return Check("well formed", not bad, bad[0] if bad else "")


def _faults(line: Line) -> bool:
    """Whether what is wrong with a line counts. Where a sentence names a command, nobody can know where it ends."""
    reading = line.reading
    if reading is None or not reading.problems:
        return False
    named = line.stated.kind == "said" or (line.stated.kind == "inline" and reading.bare)
    return reading.invented is not None or not named


def needed(bundle: Bundle, answer: Answer) -> list[Check]:
    """One check a `[[grader.stated]]`: a predicate, or an expression that one of the lines matches."""
    checks = []
    for entry in bundle.scenario["grader"].get("stated", ()):
        if "when" in entry:
            ok = when.compile_when(entry["when"])(answer.sound)
        else:
            ok = any(re.search(entry["matches"], line.stated.line) for line in answer.sound)
        checks.append(Check(f"stated: {entry['text']}", ok, "" if ok else "the answer has no such command"))
    return checks


def traps(bundle: Bundle, answer: Answer) -> list[Check]:
    """One entry a trap: walked into, by the commands of the answer; None where only a judge can say."""
    found = []
    for trap in bundle.scenario.get("traps", ()):
        name = (said_and_done.CENTRAL if trap.get("central") else "trap: ") + trap["text"]
        found.append(said_and_done.trapped(name, trap, answer.lines))
    return found


def ran(bundle: Bundle) -> list[Check]:
    """Of an agent that had a bench: that it operated nothing, and what it looked up before it answered (D1)."""
    if bundle.record is None:
        return []
    runs = route.subject_invocations(bundle)
    acted = [one for one in runs if one.effect not in MAY_RUN and one.decision != "invalid"]
    checks = [Check("operated nothing", not acted, f"{acted[0]} was tried" if acted else "")]
    if runs or bundle.transcript is not None:
        checks.append(Check("looked up", True, looked_up(runs)))
    return checks


def looked_up(runs: Sequence[Any]) -> str:
    """A line for D1: which help and guides were read. It is told and not held against anybody."""
    pages = [" ".join(one.argv[1:]) for one in runs if one.effect == "help" or {"--help", "-h"} & set(one.argv)]
    return f"read: {', '.join(dict.fromkeys(pages))}" if pages else "consulted nothing (D1)"
