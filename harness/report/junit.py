"""junit.xml: a test case a trial, for CI systems. A trial that ended as expected of its agent has passed. Pure."""

import re
import xml.etree.ElementTree as ET
from typing import Any

from harness.report import words

#: Nobody's failure: nothing was tried, or a prerequisite is missing.
_SKIPPED = frozenset({"not_run", "not_applicable", "blocked"})

#: The exam's, the provider's or the judge's own failure.
_ERRORS = frozenset({"harness_error", "provider_error", "judge_error"})

#: What XML 1.0 can't hold, whatever an agent has said.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: dict[str, Any]) -> str:
    """The document, with a final newline."""
    root = ET.Element("testsuites", name=_clean(report["run"]))
    for agent, condition, heading in words.columns(report):
        rows = [row for row in report["trials"] if row["agent"] == agent and row["condition"] == condition]
        root.append(_suite(report, heading, rows))
    _count(root, [case for suite in root for case in suite.iter("testcase")])
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(report: dict[str, Any], heading: str, rows: list[dict[str, Any]]) -> ET.Element:
    suite = ET.Element("testsuite", name=_clean(heading), timestamp=report["created"])
    properties = ET.SubElement(suite, "properties")
    for name, value in words.measured(report):
        ET.SubElement(properties, "property", name=name, value=_clean(value))
    for label in report["labels"]:
        ET.SubElement(properties, "property", name="label", value=_clean(label))
    cases = [_case(report, row) for row in rows]
    suite.extend(cases)
    _count(suite, cases)
    return suite


def _case(report: dict[str, Any], row: dict[str, Any]) -> ET.Element:
    title = report["scenarios"][row["scenario"]]["title"]
    case = ET.Element("testcase", classname=_clean(f"{row['agent']}.{row['condition']}.{row['scenario']}"),
                      name=_clean(f"{row['scenario']} {title} #{row['number']}"),
                      time=f"{row['duration_s'] or 0:.3f}")  # fmt: skip
    if row.get("replaced_by"):
        message = f"{row['verdict']}: {row['reason']}; {row['replaced_by']} was run in its place"
        ET.SubElement(case, "skipped", message=_clean(message))
    elif not row["expected"]:
        kind = "skipped" if row["verdict"] in _SKIPPED else "error" if row["verdict"] in _ERRORS else "failure"
        told = ET.SubElement(case, kind, message=_clean(f"{row['verdict']}: {row['reason']}"))
        if kind != "skipped":
            told.set("type", row["verdict"])
            told.text = _clean("\n".join([*row["failed_checks"], row["bundle"] or ""]).strip())
    return case


def _count(element: ET.Element, cases: list[ET.Element]) -> None:
    """How many there are of each kind, and the time of all."""
    element.set("tests", str(len(cases)))
    for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        element.set(name, str(sum(case.find(kind) is not None for case in cases)))
    element.set("time", f"{sum(float(case.get('time', 0)) for case in cases):.3f}")


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(text))
