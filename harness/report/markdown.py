"""report.md: the same data as the table, for a page. Pure."""

from typing import Any

from graders.contract import CLASSES
from harness.report import journeys, words
from harness.report.model import SPENT


def render(report: dict[str, Any]) -> str:
    """The page, with a final newline."""
    parts = [
        f"# Run {report['run']}",
        *(f"**{label}**" for label in report["labels"]),
        _facts(report),
        "## Verdicts",
        _table([[word for word, _ in row] for row in words.grid(report)]),
        words.LEGEND.capitalize() + ".",
        "## Rates",
        _rates(report),
        words.RATES_NOTE,
        *_journeys(report),
        *_repeated(report),
        *_deltas(report),
        *_traps(report),
        *classes(report),
        *_enough(report),
        *_surprises(report),
        "## Exactly what was measured",
        _table([["part", "version or SHA-256"], *map(list, words.measured(report))]),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(report: dict[str, Any]) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report["counts"].items())
    causes = ", ".join(f"{count} {cause}" for cause, count in report["causes"].items()) or "none"
    return (
        f"Begun {report['created']}. {len(report['trials'])} trials: {counts}; {words.whole(report['trials'])}. "
        f"How they ended: {causes}."
    )  # fmt: skip


def _rates(report: dict[str, Any]) -> str:
    rows = [["agent", "counted", "overall", "by lane", "invented", *(name for name in SPENT)]]
    for agent, condition, heading in words.columns(report):
        about = report["agents"][agent]
        told = about["conditions"][condition]
        lanes = "; ".join(f"{lane} {words.overall_text(rate)}" for lane, rate in told["by_lane"].items())
        spent = [words.spent_text(told["spent"][name], unit) for name, unit in SPENT.items()]
        rows.append([heading, about["counts"], words.overall_text(told["overall"]), lanes,
                     words.invented_text(told["invented"]), *spent])  # fmt: skip
    return _table(rows)


def _journeys(report: dict[str, Any]) -> list[str]:
    told = report["journeys"]
    return ["## Journeys, by product job", _table(journeys.table(told)), told["note"]] if told else []


def _repeated(report: dict[str, Any]) -> list[str]:
    """What several trials a cell tell: pass^k, pass@k, and what the noise hides."""
    rows = [["agent", "k", "pass^k", "pass@k", "noise floor", "smallest visible difference", "headroom", "note"]]
    for agent, condition, heading in words.columns(report):
        told = report["agents"][agent]["conditions"][condition]
        if report["agents"][agent]["control"] or len(told["pass_k"]["k"]) < 2:
            continue
        k, quiet = told["pass_k"], told["noise"]
        rows.append([heading, str(k["k"][-1]), words.percent(k["pass_hat_k"][-1]), words.percent(k["pass_at_k"][-1]),
                     words.percent(quiet["floor"]), words.percent(quiet["visible"]),
                     words.percent(quiet["headroom"]), k["note"]])  # fmt: skip
    return ["## Repeated trials", _table(rows)] if len(rows) > 1 else []


def _deltas(report: dict[str, Any]) -> list[str]:
    if not report["deltas"]:
        return []
    rows = [["agent", "from", "to", "finding"]]
    rows += [[one["agent"], one["from"], one["to"], one["sentence"]] for one in report["deltas"]]
    return ["## What being told more did", _table(rows)]


def _traps(report: dict[str, Any]) -> list[str]:
    if not report["traps"]:
        return []
    rows = [["scenario", "trap", "walked into"]]
    rows += [[t["scenario"], t["trap"], f"{t['walked_into']}/{t['of']}"] for t in report["traps"]]
    return ["## Traps", _table(rows)]


def _enough(report: dict[str, Any]) -> list[str]:
    """What the agents did after the program's answers, a line a call with its place in the trial's transcript; nothing
    untold."""
    rows = words.enough_rows(report)
    if not rows:
        return []
    calls = [[call["trial"], str(call["n"]), call["asked"], ": ".join(filter(None, (call["next"], call["note"]))),
              words.NEXT.get(call["bucket"], "no verdict"), str(call["concurrent"] or "")]
             for column in report["sufficiency"]["columns"] for call in column["calls"]]  # fmt: skip
    parts = ["## Were the answers enough?", _table(rows), " ".join(report["sufficiency"]["notes"])]
    if calls:
        head = ["trial", "entry", "asked", "next", "which is", "concurrent"]
        parts += ["### What came after each", _table([head, *calls[:_LISTED]])]
    return [*parts, *([f"{len(calls) - _LISTED} more are in report.json."] if len(calls) > _LISTED else [])]


#: Calls that are listed on the page; the data has all.
_LISTED = 200


def classes(report: dict[str, Any]) -> list[str]:
    """How the program's calls went, by class, with the calls behind it; nothing where the run was never classified."""
    told = words.class_columns(report)
    if not told:
        return []
    rows = [["agent", "trials", "calls", "ok", *CLASSES, "score of its answers", "agent right", "hints ignored"]]
    rows += [[heading, str(one["attempts"]), str(one["calls"]), str(one["counts"]["ok"]),
              *(words.class_text(one, name) or "0" for name in CLASSES), words.score_text(one["score"]),
              f"{one['verdicts']['passed']}/{one['verdicts']['of']}", words.hints_text(one["hints_ignored"])]
             for heading, one in told]  # fmt: skip
    cells = [[heading, name, *(str(cell["counts"][one]) for one in ("ok", *CLASSES))]
             for heading, one in told for name, cell in one["by_scenario"].items()]  # fmt: skip
    keys = ("trial", "call", "command", "evidence")
    behind = [[heading, name, call["subtype"] or "", *(str(call[key]) for key in keys)]
              for heading, one in told for name in CLASSES for call in one["behind"][name]]  # fmt: skip
    parts = ["## What went wrong", "; ".join(words.class_legend()) + ".", _table(rows), words.CLASSES_NOTE,
             "### By scenario, calls", _table([["agent", "scenario", "ok", *CLASSES], *cells])]  # fmt: skip
    if unseen := words.not_asked(report):
        parts.append(f"**{unseen.capitalize()}.**")
    if lost := words.without_record(report):
        parts.append("Not in it: " + "; ".join(map(_escaped, lost)) + ".")
    if behind:
        head = ["agent", "class", "kind", "trial", "call", "command", "evidence"]
        parts += ["### The calls behind it", _table([head, *behind[:_LISTED]])]
    if len(behind) > _LISTED:
        parts.append(f"{len(behind) - _LISTED} more are in report.json.")
    return parts


def _surprises(report: dict[str, Any]) -> list[str]:
    wrong = [trial for trial in report["trials"] if not trial["expected"]]
    if not wrong:
        return []
    rows = [["trial", "verdict", "why", "checks that failed"]]
    rows += [[t["id"], t["verdict"], t["reason"], "; ".join(t["failed_checks"])] for t in wrong]
    return ["## Not as expected", _table(rows)]


def _table(rows: list[list[str]]) -> str:
    head, *rest = [[_escaped(word) for word in row] for row in rows]
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _escaped(word: str) -> str:
    """Text that can't break out of its cell: verdicts quote what agents and boards said."""
    return words.plain(word).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
