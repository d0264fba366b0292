"""The distribution of classes for a terminal: a bar a class, by scenario, and the calls behind each bar. Pure."""

from collections.abc import Iterator
from typing import Any

from graders.contract import CLASSES
from harness.report import words
from harness.report.classes import NAMES
from harness.telling import many

#: Characters of the longest bar, and calls that are listed behind one.
_WIDTH, _LISTED = 30, 12


def render(report: dict[str, Any]) -> str:
    """The text, with a final newline. Raises TypeError for a run that was never classified."""
    told = report["classes"]
    lines = [*report["labels"], f"run {report['run']}"]
    for _, one in words.class_columns(report):
        lines += ["", *_column(one)]
    if not told["columns"]:
        lines += ["", "no counted trial has a record"]
    lines += ["", *(f"  {line}" for line in words.class_legend()), "", *words.CLASSES_NOTE.splitlines()]
    if unseen := words.not_asked(report):
        lines += ["", unseen]
    lines += words.without_record(report)
    return "\n".join(map(words.plain, lines)) + "\n"


def _column(told: dict[str, Any]) -> Iterator[str]:
    yield f"{told['agent']}, {told['condition']}: {many(told['calls'], 'call')} in {many(told['attempts'], 'trial')}"
    if not told["calls"]:
        return
    yield f"  score of the program's answers {words.score_text(told['score'])}; {words.right_text(told['verdicts'])}"
    yield f"  hints ignored: {words.hints_text(told['hints_ignored'])}"
    digits = len(str(told["calls"]))
    for name in NAMES:
        count = told["counts"][name]
        bar = "█" * -(-count * _WIDTH // told["calls"]) if count else ""
        about = f"  {_trials(told, name)}" if name in CLASSES and count else ""
        yield f"  {name:<2} {count:>{digits}}/{told['calls']}  {bar}{about}".rstrip()
        yield from _behind(told["behind"].get(name, ()))
    yield from _scenarios(told["by_scenario"])


def _trials(told: dict[str, Any], name: str) -> str:
    having = told["attempts_with"][name]
    kinds = ", ".join(f"{kind} {count}" for kind, count in told["subtypes"].items()) if name == "C" else ""
    text = f"{having['attempts']}/{having['of']} trials ({words.between(having['interval'])})"
    return f"{text}; {kinds}" if kinds else text


def _behind(calls: list[dict[str, Any]]) -> Iterator[str]:
    for call in calls[:_LISTED]:
        told = ": ".join(part for part in (call["subtype"], call["evidence"]) if part)
        evidence = f"  [{told}]" if told else ""
        yield f"       {call['trial']} call {call['call']}: {call['command']}{evidence}"
    if len(calls) > _LISTED:
        yield f"       and {len(calls) - _LISTED} more, all in --json"


def _scenarios(cells: dict[str, dict[str, Any]]) -> Iterator[str]:
    width = max(len("by scenario"), *map(len, cells))
    yield "  " + "  ".join([f"{'by scenario':<{width}}", *(f"{name:>4}" for name in NAMES)])
    for name, cell in cells.items():
        if not cell["calls"]:
            continue
        counts = (str(cell["counts"][one] or ".") for one in NAMES)
        yield "  " + "  ".join([f"{name:<{width}}", *(f"{count:>4}" for count in counts)])
