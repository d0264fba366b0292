"""report.html: one page that needs no network, no server and no other file. Pure, besides reading its own parts.

The data lies in the page as JSON, in which no text can end its element; the page's script puts every text in place as
text, never as markup. A content security policy permits this very script and style and nothing else, so that what an
agent or a board has said could not run even if it got out.
"""

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from graders.contract import CLASSES
from harness.report import journeys, words
from harness.report.model import SPENT

_PARTS = Path(__file__).parent


def render(report: dict[str, Any], timelines: dict[str, dict[str, Any]]) -> str:
    """The page, with a final newline."""
    style, script = _part("page.css"), _part("page.js")
    policy = (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; base-uri 'none'; "
        "form-action 'none'"
    )
    values = {
        "POLICY": escape(policy),
        "TITLE": escape(f"Run {report['run']}"),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": embedded({"report": report, "said": _said(report), "timelines": timelines}),
    }
    page = _part("page.html")
    before, *rest = page.split("{{")
    return before + "".join(values[name] + after for name, after in (part.split("}}", 1) for part in rest))


def embedded(value: Any) -> str:
    """JSON that can stand in a script element: no character of it can end that, whatever the texts hold."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _said(report: dict[str, Any]) -> dict[str, Any]:
    """Numbers in the words of all renderers, so that the page computes and rounds nothing by itself."""
    columns = []
    for agent, condition, heading in words.columns(report):
        told = report["agents"][agent]["conditions"][condition]
        columns.append({
            "agent": agent,
            "condition": condition,
            "heading": heading,
            "overall": words.overall_text(told["overall"]),
            "spent": {name: _spent(told["spent"][name], unit) for name, unit in SPENT.items()},
            "cells": {name: words.rate_text(cell) for name, cell in told["by_scenario"].items()},
        })  # fmt: skip
    enough = {"rows": words.enough_rows(report), "notes": (report["sufficiency"] or {}).get("notes", [])}
    told = report["journeys"]
    jobs = {"rows": journeys.table(told), "note": told["note"]} if told else None
    return {
        "columns": columns, "journeys": jobs, "legend": words.LEGEND, "note": words.RATES_NOTE,
        "measured": words.measured(report), "classes": _classes(report), "enough": enough,
    }  # fmt: skip


def _classes(report: dict[str, Any]) -> dict[str, Any]:
    """How the program's calls went, in words, by column; no columns where the run was never classified."""
    rows = [{"heading": heading, "told": told, "score": words.score_parts(told["score"]),
             "right": words.right_text(told["verdicts"]),
             "hints": words.hints_text(told["hints_ignored"]),
             "cells": {name: words.class_text(told, name) for name in CLASSES}}
            for heading, told in words.class_columns(report)]  # fmt: skip
    unseen = words.not_asked(report) if rows else ""
    return {"rows": rows, "meaning": CLASSES, "note": words.CLASSES_NOTE, "unseen": unseen}


def _spent(told: dict[str, Any], unit: str) -> dict[str, str]:
    """Median, range and how many told it, each by itself."""
    if told["median"] is None:
        return {"median": "not told", "range": ""}
    told_by = "" if told["count"] == told["of"] else f", told by {told['count']} of {told['of']}"
    return {"median": words.amount(told["median"], unit),
            "range": f"{words.amount(told['low'], unit)} to {words.amount(told['high'], unit)}{told_by}"}  # fmt: skip


def _source(text: str) -> str:
    """How a content security policy names an inline element of exactly this text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _part(name: str) -> str:
    return (_PARTS / name).read_text("utf-8")
