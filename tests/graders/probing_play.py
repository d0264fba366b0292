"""Plays probes without a program: answers come from a table of command lines, and every question is noted."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from graders.contract import Probe, Record
from graders.probe_plan import Planned, plan
from graders.probe_read import Answer, asking
from graders.signs import Signs, load
from tests.graders.records import attempt, call


@dataclass
class Program:
    """Answers by command line; another line is refused. `asked`: what was asked, in order."""

    answers: Mapping[str, str | Answer]
    asked: list[str] = field(default_factory=list)

    def answer(self, argv: tuple[str, ...]) -> Answer:
        line = shlex.join(argv)
        self.asked.append(line)
        found = self.answers.get(line, Answer(2, "", f"no such line: {line}"))
        return Answer(0, found) if isinstance(found, str) else found

    def play(self, planned: Planned) -> Probe:
        """Ask until the probe concludes."""
        questions = asking(planned)
        try:
            argv = next(questions)
            while True:
                argv = questions.send(self.answer(argv))
        except StopIteration as end:
            found: Probe = end.value
            return found


def only(signs: Signs, record: Record) -> Planned:
    """The one probe that is planned."""
    (planned,) = plan(record, signs).planned
    return planned


def empty(line: str, stdout: str = "", **more: object) -> Record:
    """An attempt of one call that was empty."""
    return attempt(call("C", line, stdout_head=stdout, **more))


def went_well(line: str, stdout: str = "", **more: object) -> Record:
    """An attempt of one call that went well."""
    return attempt(call("ok", line, stdout_head=stdout, **more))


def signs(text: str) -> Signs:
    """The signs in a text."""
    return load(text)
