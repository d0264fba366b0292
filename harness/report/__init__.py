"""The report of a run: one projection of the stored bundles (model), rendered as a table, as Markdown and as JSON.

`write` puts report.json and report.md into the run's directory. Nothing here runs or grades anything, and the same
bundles give the same bytes.
"""

from pathlib import Path
from typing import Any

from harness import files
from harness.report import markdown, model, table

__all__ = ["collect", "plain", "table_text", "write"]

plain = table.plain


def collect(directory: Path) -> dict[str, Any]:
    """The report's data, read from the run's directory. Raises LabdError if it is no run."""
    return model.collect(directory)


def table_text(report: dict[str, Any], *, color: bool = False) -> str:
    """The report for a terminal, with a final newline."""
    return table.render(report, color=color)


def write(directory: Path) -> dict[str, Any]:
    """Collect, and keep report.json and report.md in the run's directory, atomically; returns the data."""
    report = collect(directory)
    files.write_json(directory / "report.json", report)
    files.write_bytes(directory / "report.md", markdown.render(report).encode())
    return report
