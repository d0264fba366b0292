"""report.md: the same data as the table, for a page. Pure."""

from typing import Any

from harness.report.table import LEGEND, grid, plain, rate_text

RATES_NOTE = """k/n with Wilson's 95 % interval. Only `pass` and `fail` enter a rate. Few trials say little: the
interval, not the fraction, is the finding."""


def render(report: dict[str, Any]) -> str:
    """The page, with a final newline."""
    parts = [
        f"# Run {report['run']}",
        _facts(report),
        "## Verdicts",
        _table([[word for word, _ in row] for row in grid(report)]),
        LEGEND.capitalize() + ".",
        "## Rates",
        _rates(report),
        RATES_NOTE,
        *_traps(report),
        *_surprises(report),
        "## Exactly what was measured",
        _table([["part", "version or SHA-256"], *map(list, {**report["versions"], **report["hashes"]}.items())]),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(report: dict[str, Any]) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report["counts"].items())
    causes = ", ".join(f"{count} {cause}" for cause, count in report["causes"].items()) or "none"
    whole = "every trial ended as expected" if report["as_expected"] else "not every trial ended as expected"
    return (
        f"Begun {report['created']}. {len(report['trials'])} trials: {counts}; {whole}. "
        f"How they ended: {causes}."
    )  # fmt: skip


def _rates(report: dict[str, Any]) -> str:
    rows = [["agent", "counted", "overall", "by lane"]]
    for name in report["order"]["agent"]:
        told = report["agents"][name]
        lanes = "; ".join(f"{lane} {rate_text(rate)}" for lane, rate in told["by_lane"].items())
        rows.append([name, told["counts"], rate_text(told["overall"]), lanes])
    return _table(rows)


def _traps(report: dict[str, Any]) -> list[str]:
    if not report["traps"]:
        return []
    rows = [["scenario", "trap", "walked into"]]
    rows += [[t["scenario"], t["trap"], f"{t['walked_into']}/{t['of']}"] for t in report["traps"]]
    return ["## Traps", _table(rows)]


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
    return plain(word).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
