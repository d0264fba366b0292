"""How a scripted agent plays its lines: in order, with what earlier lines gave it; its answer is the last output."""

import re
from collections.abc import Iterable, Mapping

from harness.bench import Bench, GaveUp
from harness.scenario import Step, fill


def play(bench: Bench, steps: Iterable[Step]) -> str:
    """Run the lines that are there to be run; returns the stdout of the last one.

    Raises GaveUp if a line's output lacks what later lines need (`save`) or if what it waits for (`until`) never came.
    """
    values = dict(bench.values)
    answer = ""
    for step in steps:
        if step.stated or step.prose:
            continue
        ended = bench.run(step, values)
        if ended.ended_by == "not_started":
            raise GaveUp(f"{step.run}: {ended.error}")
        answer = ended.stdout.decode("utf-8", "replace")
        wanted = step.wanted(values)
        if wanted is not None and not wanted.search(answer):
            raise GaveUp(f"{step.run}: {step.until!r} did not come within {step.within_s:g} s")
        for name, pattern in step.save.items():
            found = re.search(fill(pattern, values, pattern=True), answer, re.MULTILINE)
            if found is None:
                raise GaveUp(f"{step.run}: nothing in its output matches {pattern!r} (for {{{name}}})")
            values[name] = found[1] if found.re.groups else found[0]
    return answer


def say(bench: Bench, steps: Iterable[Step]) -> str:
    """The lines as the answer of somebody who only says what to run."""
    return stated(steps, bench.values)


def stated(steps: Iterable[Step], values: Mapping[str, str]) -> str:
    """The lines as text: explanations as they are, commands in code blocks."""
    parts: list[tuple[bool, list[str]]] = []
    for step in steps:
        text = fill(step.run, values).strip()
        if parts and not step.prose and not parts[-1][0]:
            parts[-1][1].append(text)
        else:
            parts.append((step.prose, [text]))
    return "\n\n".join(lines[0] if prose else "\n".join(["```sh", *lines, "```"]) for prose, lines in parts)


def act_out(bench: Bench, steps: Iterable[Step]) -> str:
    """Play the lines, or say them where commands are only stated."""
    return (say if bench.scenario.lane == "stated" else play)(bench, steps)


def targets_named(steps: Iterable[Step]) -> list[str]:
    """The targets that lines address with -t, --target or `target add`, each once, in order."""
    found: dict[str, None] = {}
    for step in steps:
        for match in re.finditer(r"(?:\s-t[= ]?|\s--target[= ]|\starget add )([A-Za-z0-9][\w.-]*)", step.run):
            found[match[1]] = None
    return list(found)
