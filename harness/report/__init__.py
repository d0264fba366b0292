"""The report of a run: one projection of the stored bundles (model), rendered for terminals, pages, programs and CI.

`write` puts report.json, report.md, junit.xml and report.html into the run's directory. Nothing here runs or grades
anything, and the same bundles give the same bytes.
"""

from pathlib import Path
from typing import Any

from harness import files
from harness.report import html, junit, markdown, model, table, timeline, words

__all__ = ["FORMATS", "collect", "plain", "plain_lines", "table_text", "text", "write"]

#: What `labd-eval report --format` takes.
FORMATS = ("table", "json", "markdown", "junit", "html")

plain = words.plain


def plain_lines(lines: list[str]) -> str:
    """Lines without control characters, with a final newline."""
    return "\n".join(map(words.plain, lines)) + "\n"


def collect(directory: Path) -> dict[str, Any]:
    """The report's data, read from the run's directory. Raises LabdError if it is no run."""
    return model.collect(directory)


def table_text(report: dict[str, Any], *, color: bool = False) -> str:
    """The report for a terminal, with a final newline."""
    return table.render(report, color=color)


def text(directory: Path, report: dict[str, Any], form: str, *, color: bool = False) -> str:
    """The report in one of FORMATS. The page shows every trial, so that it reads the bundles in `directory` again."""
    if form == "json":
        return files.canonical(report).decode()
    if form == "html":
        return html.render(report, timeline.read_all(directory, report))
    if form == "table":
        return table.render(report, color=color)
    return {"markdown": markdown.render, "junit": junit.render}[form](report)


def write(directory: Path) -> dict[str, Any]:
    """Collect, and keep the report's files in the run's directory, each atomically; returns the data."""
    report = collect(directory)
    for name, form in (("report.json", "json"), ("report.md", "markdown"), ("junit.xml", "junit"),
                       ("report.html", "html")):  # fmt: skip
        files.write_bytes(directory / name, text(directory, report, form).encode("utf-8", "backslashreplace"))
    return report
