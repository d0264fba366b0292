"""How numbers and verdicts are said, the same in every renderer. Pure."""

from collections import Counter
from typing import Any

from graders.contract import CLASSES
from harness.stats import Rate

LEGEND = "a verdict that was not expected of its agent is marked with !; controls are expected to fail"

RATES_NOTE = """Scenarios are the unit of an overall rate; the interval is Wilson's, 95 %. Only pass and fail enter a
rate. Few trials say little: the interval, not the fraction, is the finding. A pass says that what was asked held, not
that all of it was right."""


CLASSES_NOTE = """Each call of the program has at most one class. Calls of one trial are not independent: the interval
is that of trials with such a call. C is the worst: it succeeded, and was wrong. E is dropped from the score; F is the
agent's own, and not charged. The score is of the program's answers, not of whether the agent was right. Its weights are
untuned: it compares two versions, and says nothing by itself."""


def plain(text: str) -> str:
    """On one line, without control characters: a reason quotes what agents and boards said."""
    return "".join(c if c.isprintable() else " " for c in str(text))


def whole(rows: list[dict[str, Any]]) -> str:
    """Whether the trials of a run ended as expected. One that was lost and replaced does not count, but is told."""
    count = [row for row in rows if not row.get("replaced_by")]
    wrong = sum(not row["expected"] for row in count)
    trials = f"{len(count)} trials" + (" that count" if len(count) < len(rows) else "")
    text = f"{wrong} of {trials} did not end as expected" if wrong else f"all {trials} ended as expected"
    return text + (f"; {len(rows) - len(count)} lost and replaced" if len(count) < len(rows) else "")


def cell(rows: list[dict[str, Any]]) -> tuple[str, bool]:
    """What one agent got in one scenario, in a word, and whether that was expected."""
    if not rows:
        return "-", True
    expected = all(row["expected"] for row in rows)
    counts = Counter(row["verdict"] for row in rows)
    if len(counts) == 1:
        word = rows[0]["verdict"] + (f" ×{len(rows)}" if len(rows) > 1 else "")
    else:
        rated = counts.pop("pass", 0), counts.pop("fail", 0)
        told = [f"{rated[0]}/{sum(rated)} pass"] if sum(rated) else []
        word = ", ".join([*told, *(f"{count} {verdict}" for verdict, count in counts.items())])
    return (word if expected else f"{word}!"), expected


def columns(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(agent, condition, heading) of the matrix; the heading names the condition only where there are several."""
    several = len(report["order"]["condition"]) > 1
    return [(agent, condition, f"{agent} {condition}" if several else agent)
            for agent in report["order"]["agent"] for condition in report["agents"][agent]["conditions"]]  # fmt: skip


def grid(report: dict[str, Any]) -> list[list[tuple[str, bool]]]:
    """Header row and a row a scenario; each cell with whether it was expected."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for trial in report["trials"]:
        found.setdefault((trial["scenario"], trial["agent"], trial["condition"]), []).append(trial)
    rows = [[(word, True) for word in ("scenario", "lane", *(heading for *_, heading in columns(report)))]]
    for name in report["order"]["scenario"]:
        cells = [cell(found.get((name, agent, condition), [])) for agent, condition, _ in columns(report)]
        rows.append([(name, True), (report["scenarios"][name]["lane"], True), *cells])
    return rows


def rate_text(rate: dict[str, Any]) -> str:
    """k/n with its interval, attempted beside valid."""
    return str(Rate(rate["passed"], rate["valid"], rate["attempted"]))


def percent(value: float) -> str:
    """A share as a whole number of hundredths."""
    return f"{value * 100:.0f} %"


def between(bounds: list[float]) -> str:
    """An interval of shares."""
    return f"{bounds[0] * 100:.0f}–{bounds[1] * 100:.0f} %"


def overall_text(told: dict[str, Any]) -> str:
    """A rate over scenarios. With one trial a scenario that is a count of scenarios."""
    if told["mean"] is None:
        return f"not measured (0 valid of {told['attempted']} attempted)"
    lost = "" if told["valid"] == told["attempted"] else f", {told['valid']} valid of {told['attempted']} attempted"
    if told["valid"] == told["scenarios"]:
        return f"{told['passed']}/{told['scenarios']} ({between(told['interval'])}){lost}"
    trials = f"{told['passed']}/{told['valid']} trials"
    return f"{percent(told['mean'])} of {told['scenarios']} scenarios ({between(told['interval'])}; {trials}){lost}"


def invented_text(told: dict[str, Any]) -> str:
    """The invent-rate of one agent under one condition."""
    if not told["of"]:
        return "not asked"
    return f"{told['trials']}/{told['of']} ({between(told['interval'])})"


def amount(value: float, unit: str) -> str:
    """A measured amount with its unit, as short as it can be read."""
    if unit == "USD":
        return f"${value:.4f}".rstrip("0").rstrip(".") if value < 0.1 else f"${value:.2f}"
    if unit == "s":
        return f"{value:.1f} s" if value < 100 else f"{value:.0f} s"
    return f"{value:,.0f}".replace(",", " ") + ("" if unit == "turns" else f" {unit}")


def spent_text(told: dict[str, Any], unit: str) -> str:
    """Median and range; where not all trials told it, how many did."""
    if told["median"] is None:
        return "not told"
    text = f"{amount(told['median'], unit)} ({amount(told['low'], unit)} to {amount(told['high'], unit)})"
    return text if told["count"] == told["of"] else f"{text}, told by {told['count']} of {told['of']}"


def pass_k_text(told: dict[str, Any]) -> str:
    """pass^k and pass@k for the largest k that the trials bear, if that is more than one."""
    if len(told["k"]) < 2:
        return ""
    k = told["k"][-1]
    text = f"pass^{k} {percent(told['pass_hat_k'][-1])}, pass@{k} {percent(told['pass_at_k'][-1])}"
    return f"{text} ({told['note']})" if told["note"] else text


def measured(report: dict[str, Any]) -> list[tuple[str, str]]:
    """What exactly was measured: versions, and the SHA-256 of each part."""
    hashes = [(f"{name} (SHA-256)", value) for name, value in report["hashes"].items()]
    return [*report["versions"].items(), *hashes]


def class_legend() -> list[str]:
    """A line a class."""
    return [f"{name}: {meaning}" for name, meaning in CLASSES.items()]


def class_columns(report: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(heading, numbers) of each column that has classified calls; none where the run was never classified."""
    told = {(one["agent"], one["condition"]): one for one in (report["classes"] or {}).get("columns", ())}
    return [(heading, told[agent, condition]) for agent, condition, heading in columns(report)
            if (agent, condition) in told]  # fmt: skip


def class_text(told: dict[str, Any], name: str) -> str:
    """How often a class was met: calls, and trials with such a call; an empty text if never."""
    count, trials = told["counts"][name], told["attempts_with"][name]
    if not count:
        return ""
    return f"{count}/{told['calls']} calls, {trials['attempts']}/{trials['of']} trials ({between(trials['interval'])})"


def not_asked(report: dict[str, Any]) -> str:
    """What is not seen, and where; an empty text where the program was asked after every trial."""
    trials = len(report["classes"]["not_asked"])
    if not trials:
        return ""
    unseen = "a wrong answer that is not empty is not seen there, and an empty one not explained"
    return f"the program was not asked again, or not all, after {trials} trials: {unseen}"


def without_record(report: dict[str, Any]) -> list[str]:
    """The trials whose calls are in no distribution, a line each: there is no record, or none that can be read."""
    told = report["classes"]
    lines = [f"no record: {name}" for name in told["without_record"]]
    return lines + [f"unreadable record: {name}: {why}" for name, why in told["unreadable"].items()]


def score_parts(told: dict[str, Any]) -> tuple[str, str]:
    """The mean score; of how many trials it is, and why the others have none."""
    value = "no score" if told["mean"] is None else f"{told['mean']:.2f}"
    why = "".join(f"; {count} dropped: {reason}" for reason, count in told["dropped"].items())
    return value, f"{told['scored']}/{told['attempts']} trials{why}"


def score_text(told: dict[str, Any]) -> str:
    """The same in one."""
    return "{} ({})".format(*score_parts(told))


def right_text(told: dict[str, int]) -> str:
    """Whether the agent was right, which no score of the program's answers says."""
    return f"the agent was right in {told['passed']}/{told['of']} trials"


def hints_text(told: dict[str, Any]) -> str:
    """Hints that were ignored, and in how many trials."""
    return f"{told['hints']} in {told['attempts']}/{told['of']} trials" if told["hints"] else "none"


#: What an agent did after an answer of the program, by bucket (graders/sufficiency.py).
NEXT = {
    "again": "asked again",
    "help_again": "asked its help",
    "around": "went around it",
    "read_returned": "read what it returned",
    "read_not_returned": "read what it did not return",
    "search": "searched",
    "moved_on": "moved on, or answered",
}


def enough_rows(report: dict[str, Any]) -> list[list[str]]:
    """A head, and a row a column of the matrix: how many answers each bucket has; empty without transcripts."""
    told = {(one["agent"], one["condition"]): one for one in (report["sufficiency"] or {}).get("columns", ())}
    shown = [(heading, told[agent, condition]) for agent, condition, heading in columns(report)
             if (agent, condition) in told]  # fmt: skip
    rows = [[heading, str(one["passes"]), str(one["answered"]), *(str(one["counts"][name]) for name in NEXT),
             *(str(one[name]) for name in ("open", "failed", "unanswered", "concurrent", "other_route"))]
            for heading, one in shown]  # fmt: skip
    head = ["agent", "trials", "answers", *NEXT.values(), "no verdict", "failed", "unanswered", "concurrent",
            "by another route"]  # fmt: skip
    return [head, *rows] if rows else []
