"""`labd-eval compare`: two runs held against each other. Words are parsed in harness/cli.py.

Ends with 1 when the numbers show that something got worse, with 0 when they don't: also when they can't.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import compare, files, report, run, selection
from harness.report import model, rows, words
from harness.stats import Rate

HELP = "two runs held against each other: what got worse, and whether the numbers can show it"

EXAMPLES = """\
  labd-eval compare runs/before runs/after
  labd-eval compare 20261130T101500Z-all-1 latest --scenario 'C*'
  labd-eval compare A B --changed     also where a scenario is not the same in both"""


def options(parser: argparse.ArgumentParser) -> None:
    """What the command takes, besides what all take."""
    parser.add_argument("first", metavar="A", help="the run before: a path, a name under --out, or `latest`")
    parser.add_argument("second", metavar="B", help="the run after")
    parser.add_argument("--changed", action="store_true", help="compare scenarios that changed between the runs too")


def do_compare(values: argparse.Namespace, words_: Sequence[str]) -> int:
    """Compare, and say it."""
    places = (run.find(Path(values.out), name) for name in (values.first, values.second))
    first, second = (_report(place, values.scenario) for place in places)
    told = compare.compare(first, second, changed=values.changed)
    sys.stdout.write(files.canonical(told).decode() if values.json else text(told))
    return 1 if told["regression"] else 0


def _report(directory: Path, given: list[str]) -> dict[str, Any]:
    """The report of a run over the scenarios that fit, with the digests of the scenarios."""
    manifest = run.load(directory)
    kept = {name: manifest["scenarios"][name] for name in selection.chosen(given, manifest["scenarios"])}
    told = model.project(manifest, [row for row in rows.read_all(directory, manifest) if row["scenario"] in kept])
    return told | {"scenarios": kept}


def text(told: dict[str, Any]) -> str:
    """The comparison for a terminal, with a final newline."""
    differs = ", ".join(told["differences"]) or "nothing, so that any difference is noise"
    lines = [f"{told['first']} → {told['second']}", f"what differs: {differs}"]
    if told["changed_scenarios"]:
        lines.append(f"not the same scenarios in both: {', '.join(told['changed_scenarios'])}")
    lines.append("")
    for arm in told["arms"]:
        lines.append(f"{arm['agent']} {arm['condition']}: {arm['sentence']}")
        lines += [f"  {line}" for line in _about(arm)]
    if told["cells"]:
        lines += ["", "cells that differ:"]
    for cell in told["cells"]:
        one, other = (
            Rate(side["passed"], side["valid"], side["attempted"]) for side in (cell["first"], cell["second"])
        )
        shown = cell["shown"] or f"not shown by so few trials, p = {cell['adjusted_p']:.2g}"
        lines.append(f"  {cell['scenario']} {cell['agent']} {cell['condition']}: {one} → {other}: {shown}")
    lines += ["", "the numbers show a regression" if told["regression"] else "the numbers show no regression"]
    return report.plain_lines(lines)


def _about(arm: dict[str, Any]) -> list[str]:
    """The noise, what was lost, and what was invented, where there is something to say."""
    lines = []
    if arm["noise"]:
        floor, visible, headroom = (words.percent(arm["noise"][key]) for key in ("floor", "visible", "headroom"))
        lines.append(f"noise: two runs of the very same differ by up to {floor}; mostly seen from {visible} on; "
                     f"headroom {headroom}")  # fmt: skip
    before, after = arm["not_valid"]
    if before or after:
        told = [", ".join(f"{n} {why}" for why, n in side.items()) or "none" for side in (before, after)]
        lines.append(f"not valid: {told[0]} → {told[1]}")
    if arm["bounds"] and (before or after):
        lines.append(f"if all those had gone one way or the other: {arm['bounds'][0] * 100:+.0f} to "
                     f"{arm['bounds'][1] * 100:+.0f} points")  # fmt: skip
    one, other = arm["invented"]
    if one["of"] or other["of"]:
        lines.append(f"invented: {words.invented_text(one)} → {words.invented_text(other)}")
    return lines
