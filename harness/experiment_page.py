"""What an experiment found, in words: for a terminal, for its own page, and for the ledger. Pure."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from harness.report import words

#: The most lines of one stream, and of an answer, that are shown of a trace; what is left out is counted.
SHOWN = 8

WIDTH = 118

_SIDES = ("before", "after")


def title(found: Mapping[str, Any]) -> list[str]:
    """What was asked, of whom, and what differed, a line each."""
    who = f"{found['agent']}, {'a scripted model' if found['scripted'] else found['model'] or 'its own model'}"
    many = f"{count(len(found['scenarios']), 'scenario')}, {count(found['trials'], 'trial')} each"
    return [
        found["question"],
        f"Lever: {found['lever']}. {differs(found)}",
        f"Played by {who}; {many}, {', '.join(found['conditions'])}.",
    ]


def differs(found: Mapping[str, Any]) -> str:
    """What one arm had and the other had not."""
    before, after = (found["arms"][side] for side in _SIDES)
    if found["lever"] == "instructions":
        told = [f"“{one['text']}”" if one["text"] else "nothing" for one in (before, after)]
        return f"Both: {_build(found, before)}. Agents are told besides their goal before: {told[0]}; after: {told[1]}."
    return f"Before: {_build(found, before)}; after: {_build(found, after)}."


def _build(found: Mapping[str, Any], arm: Mapping[str, Any]) -> str:
    name = f"{found['subject']} (build {arm['build'][:8]})"
    return (
        f"{name} with the planted defect {arm['planted']['name']}: {arm['planted']['says']}" if arm["planted"] else name
    )


def diff(found: Mapping[str, Any]) -> list[str]:
    """The very change, in Markdown: the code that is in one arm's program alone, or nothing where it isn't ours."""
    arms = [found["arms"][side]["planted"] for side in _SIDES]
    if found["lever"] == "instructions" or arms[0] == arms[1] or not any(arms):
        return []
    lines = [f"{mark}{line}" for mark, arm in zip("-+", arms, strict=True) if arm for line in arm["code"].split("\n")]
    return [
        "What the change takes out of (-), or puts into (+), the program's code:",
        "\n".join(["```diff", *lines, "```"]),
    ]


def measures(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The measures of both arms as (what, before, after)."""
    before, after = (found["arms"][side] for side in _SIDES)
    yield "right answers", _rate(before["right"]), _rate(after["right"])
    yield f"trials that met {' or '.join(found['fails_as'])}", _rate(before["met"]), _rate(after["met"])
    yield "of trials with a failed call, right in the end", _rate(before["recovered"]), _rate(after["recovered"])
    for name in ("commands", "turns"):
        yield f"{name} a trial", *(_mean(found[name][side]) for side in _SIDES)
    yield "hints not used by the next call", str(before["ignored_hints"]), str(after["ignored_hints"])
    for name in sorted({*before["classes"], *after["classes"]}, key=lambda one: (one != "ok", one)):
        what = "calls without a fault" if name == "ok" else f"calls of class {name}"
        yield what, *(str(one["classes"].get(name, 0)) for one in (before, after))


def _rate(told: Mapping[str, Any]) -> str:
    return f"{told['passed']} of {told['valid']}"


def _mean(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def verdict(found: Mapping[str, Any]) -> list[str]:
    """The verdict and its reasons, a line each."""
    alone = f" (the numbers alone would say: {found['numbers_alone']})" if found["scripted"] else ""
    return [f"{found['verdict']}{alone}", *found["reasons"], found["small_n"]]


def text(found: Mapping[str, Any]) -> str:
    """For a terminal, with a final newline."""
    told = [("", *_SIDES), *measures(found)]
    widths = [max(len(row[at]) for row in told) for at in range(3)]
    rows = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in told]
    first, *rest = verdict(found)
    lines = [f"{found['name']}: {found['title']}", *title(found), "", *rows, "", f"verdict: {first}",
             *(f"  - {one}" for one in rest)]  # fmt: skip
    return "\n".join(map(words.plain, lines)) + "\n"


def page(found: Mapping[str, Any]) -> str:
    """The result as a page of its own, with a final newline."""
    parts = [f"# {found['title']}", *map(wrapped, title(found)), *diff(found), table(found)]
    parts += ["## Before the change", *trace(found, 0), "## After the change", *trace(found, 1)]
    parts += ["## Verdict", *verdict_paragraphs(found)]
    return "\n\n".join(parts) + "\n"


def table(found: Mapping[str, Any]) -> str:
    """The measures as a Markdown table."""
    return "\n".join(["| | before | after |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in measures(found))])


def verdict_paragraphs(found: Mapping[str, Any]) -> list[str]:
    """The verdict in Markdown."""
    first, *rest = verdict(found)
    return [f"**{first}**", "\n".join(wrapped(f"- {one}", "  ") for one in rest)]


def trace(found: Mapping[str, Any], side: int) -> list[str]:
    """One question as it went in an arm, in Markdown: what was typed, what came back, what was concluded."""
    if not found["traces"]:
        return ["(no trial was played in both arms)"]
    told = found["traces"][_SIDES[side]]
    lines = [line for call in told["calls"] for line in shown(call)]
    turns = f", {count(told['turns'], 'turn')}" if told["turns"] is not None else ""
    right = "right" if told["right"] else "wrong"
    answer = " ⏎ ".join(cut(told["answer"])) or "(nothing)"
    return [
        wrapped(f"Question {found['traces']['scenario']}: {count(told['commands'], 'command')}{turns}."),
        "\n".join(["```console", *lines, "```"]),
        wrapped(f"The answer, which is **{right}**: {answer}"),
    ]


def shown(ran: Mapping[str, Any]) -> Iterator[str]:
    """One command with what came back, as lines of a console: what went to stderr is marked."""
    yield f"$ {ran['run']}"
    yield from cut(ran["stdout"])
    yield from (f"[stderr] {line}".rstrip() for line in cut(ran["stderr"]))
    notes = [f"exit {ran['exit']}"] if ran["exit"] != 0 else []
    if not ran["stdout"] and not ran["stderr"]:
        notes = ["nothing on stdout, nothing on stderr", f"exit {ran['exit']}"]
    if ran.get("silent_s"):
        notes.append(f"{ran['silent_s']} s or more without a byte")
    if ran.get("class", "ok") != "ok":
        notes.append(f"class {ran['class']}")
    if notes:
        yield f"({', '.join(notes)})"


def cut(text_: str) -> list[str]:
    """The lines of a text, the first SHOWN of many."""
    lines = text_.rstrip("\n").split("\n") if text_ else []
    more = len(lines) - SHOWN
    return lines if more <= 0 else [*lines[:SHOWN], f"… ({more} more lines)"]


def count(number: int, what: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def wrapped(text_: str, indent: str = "") -> str:
    """A paragraph of Markdown."""
    return textwrap.fill(text_, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
