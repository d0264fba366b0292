"""The report for a terminal: a row a scenario, a column an agent, then the numbers, then what was not as expected."""

from collections.abc import Iterator
from typing import Any

from graders.contract import CLASSES
from harness.report import journeys, words
from harness.report.model import SPENT

_GREEN, _RED, _YELLOW, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[0m"


def render(report: dict[str, Any], *, color: bool = False) -> str:
    """The text, with a final newline."""
    parts = [
        *_grid(report, color),
        "",
        *_rates(report),
        *_journeys(report),
        *_more(report),
        *_classes(report),
        *_enough(report),
        *_surprises(report, color),
    ]
    return "\n".join([*(f"{label}\n" for label in report["labels"]), *parts]) + "\n"


def _grid(report: dict[str, Any], color: bool) -> list[str]:
    rows = words.grid(report)
    widths = [max(len(row[column][0]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for number, row in enumerate(rows):
        padded = [_painted(word.ljust(width), word, expected, color and number > 0)
                  for (word, expected), width in zip(row, widths, strict=True)]  # fmt: skip
        lines.append("  ".join(padded).rstrip())
        if number == 0:
            lines.append("  ".join("-" * width for width in widths))
    return lines


def _painted(text: str, word: str, expected: bool, color: bool) -> str:
    if not color or not any(word.startswith(v) for v in ("pass", "fail", "unknown", "harness", "blocked", "not_run")):
        return text
    return f"{_GREEN if expected else _RED}{text}{_PLAIN}"


def _told(report: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Heading, agent and numbers of each column."""
    for agent, condition, heading in words.columns(report):
        told = report["agents"][agent]
        yield heading, told, told["conditions"][condition]


def _journeys(report: dict[str, Any]) -> list[str]:
    """Each journey scenario's own trials, by product job."""
    if not report["journeys"]:
        return []
    head, *rows = journeys.table(report["journeys"])
    shown = [head[:-1], *(row[:-1] for row in rows)]
    widths = [max(len(row[n]) for row in shown) for n in range(len(shown[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
    told = [f"  stages: {row[-1]}" if row[-1] else "" for row in rows]
    return ["", lines[0], *(part for pair in zip(lines[1:], told, strict=True) for part in pair if part)]


def _rates(report: dict[str, Any]) -> list[str]:
    width = max((len(heading) for heading, *_ in _told(report)), default=0)
    lines = []
    for heading, agent, told in _told(report):
        lanes = [f"{lane} {words.overall_text(rate)}" for lane, rate in told["by_lane"].items()]
        parts = [f"{agent['counts']} {words.overall_text(told['overall'])}", *(lanes if len(lanes) > 1 else [])]
        lines.append(f"{heading.ljust(width)}  {'; '.join(parts)}")
    return lines


def _more(report: dict[str, Any]) -> list[str]:
    """What the agents that are there to pass invented, repeated and spent, and what being told more did for them."""
    lines = []
    for heading, agent, told in _told(report):
        if agent["control"]:
            continue
        facts = [f"invented {words.invented_text(told['invented'])}"] if told["invented"]["of"] else []
        facts += [text for text in [words.pass_k_text(told["pass_k"])] if text]
        facts += [f"{name.removesuffix('_usd').removesuffix('_s')} {words.spent_text(told['spent'][name], unit)}"
                  for name, unit in SPENT.items() if told["spent"][name]["median"] is not None]  # fmt: skip
        lines += [f"{heading}: {'; '.join(facts)}"] if facts else []
    lines += [f"{one['agent']}, {one['from']} → {one['to']}: {one['sentence']}" for one in report["deltas"]]
    return ["", *lines] if lines else []


def _classes(report: dict[str, Any]) -> list[str]:
    """How the program's calls went, a line a column; nothing where the run was never classified."""
    lines = []
    for heading, told in words.class_columns(report):
        having = {name: f"{one['attempts']}/{one['of']} trials" for name, one in told["attempts_with"].items()}
        found = [f"{name} {told['counts'][name]} in {having[name]}" for name in CLASSES if told["counts"][name]]
        parts = [f"ok {told['counts']['ok']}/{told['calls']} calls", *found,
                 f"score of the program's answers {words.score_text(told['score'])}",
                 words.right_text(told["verdicts"])]  # fmt: skip
        ignored = words.hints_text(told["hints_ignored"])
        lines.append(f"{heading}: {'; '.join(parts)}" + ("" if ignored == "none" else f"; hints ignored: {ignored}"))
    if lines and (unseen := words.not_asked(report)):
        lines.append(unseen)
    return ["", *lines] if lines else []


def _enough(report: dict[str, Any]) -> list[str]:
    """What the agents did after the program's answers, a line a column; nothing without transcripts."""
    head, *rows = words.enough_rows(report) or [[]]
    lines = []
    for row in rows:
        told = [f"{name} {count}" for name, count in zip(head[3:], row[3:], strict=True) if count != "0"]
        lines.append(f"{row[0]}: after {row[2]} answers: {', '.join(told) or 'nothing to judge'}")
    return ["", *lines, *report["sufficiency"]["notes"]] if lines else []


def _surprises(report: dict[str, Any], color: bool) -> list[str]:
    wrong = [trial for trial in report["trials"] if not trial["expected"]]
    if not wrong:
        return ["", words.whole(report["trials"])]
    lines = ["", f"{words.whole(report['trials'])}:"]
    for trial in wrong:
        lines.append(f"  {trial['id']}: {trial['verdict']}: {words.plain(trial['reason'])}")
        if trial["bundle"]:
            lines.append(f"    {trial['bundle']}")
    return [f"{_YELLOW}{line}{_PLAIN}" if color and line.startswith("  ") and ":" in line else line for line in lines]
