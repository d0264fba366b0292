"""The report for a terminal: a row a scenario, a column an agent, then rates, then what was not as expected."""

from typing import Any

from harness.stats import Rate

_GREEN, _RED, _YELLOW, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[0m"

LEGEND = "a verdict that was not expected of its agent is marked with !; controls are expected to fail"


def render(report: dict[str, Any], *, color: bool = False) -> str:
    """The text, with a final newline."""
    return "\n".join([*_grid(report, color), "", *_rates(report), *_surprises(report, color)]) + "\n"


def cell(rows: list[dict[str, Any]]) -> tuple[str, bool]:
    """What one agent got in one scenario, in a word, and whether that was expected."""
    if not rows:
        return "-", True
    expected = all(row["expected"] for row in rows)
    verdicts = list(dict.fromkeys(row["verdict"] for row in rows))
    if len(rows) == 1 or len(verdicts) == 1:
        word = verdicts[0] + (f" ×{len(rows)}" if len(rows) > 1 else "")
    else:
        word = ", ".join(f"{sum(r['verdict'] == v for r in rows)} {v}" for v in verdicts)
    return (word if expected else f"{word}!"), expected


def grid(report: dict[str, Any]) -> list[list[tuple[str, bool]]]:
    """Header row and a row a scenario; each cell with whether it was expected."""
    agents = report["order"]["agent"]
    head = [(word, True) for word in ("scenario", "lane", *agents)]
    rows = [head]
    for name in report["order"]["scenario"]:
        told = report["scenarios"][name]
        mine = [trial for trial in report["trials"] if trial["scenario"] == name]
        cells = [cell([trial for trial in mine if trial["agent"] == agent]) for agent in agents]
        rows.append([(name, True), (told["lane"], True), *cells])
    return rows


def plain(text: str) -> str:
    """On one line, without control characters: a reason quotes what agents and boards said."""
    return "".join(c if c.isprintable() else " " for c in str(text))


def rate_text(rate: dict[str, Any]) -> str:
    """k/n with its interval, attempted beside valid."""
    return str(Rate(rate["passed"], rate["valid"], rate["attempted"]))


def _grid(report: dict[str, Any], color: bool) -> list[str]:
    rows = grid(report)
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


def _rates(report: dict[str, Any]) -> list[str]:
    width = max(map(len, report["agents"]), default=0)
    lines = []
    for name in report["order"]["agent"]:
        told = report["agents"][name]
        lanes = [f"{lane} {rate_text(rate)}" for lane, rate in told["by_lane"].items()]
        parts = lanes if len(lanes) > 1 else []
        lines.append(f"{name.ljust(width)}  {told['counts']} {rate_text(told['overall'])}"
                     + (f"; {'; '.join(parts)}" if parts else ""))  # fmt: skip
    return lines


def _surprises(report: dict[str, Any], color: bool) -> list[str]:
    wrong = [trial for trial in report["trials"] if not trial["expected"]]
    if not wrong:
        return ["", f"all {len(report['trials'])} trials ended as expected"]
    lines = ["", f"{len(wrong)} of {len(report['trials'])} trials did not end as expected:"]
    for trial in wrong:
        lines.append(f"  {trial['id']}: {trial['verdict']}: {plain(trial['reason'])}")
        if trial["bundle"]:
            lines.append(f"    {trial['bundle']}")
    return [f"{_YELLOW}{line}{_PLAIN}" if color and line.startswith("  ") and ":" in line else line for line in lines]
