"""`labd-eval gate`: watch the classes being found, on copies of atlas with one planted defect each, before measuring.

Parsed in harness/cli.py like all commands; here is what it does.
"""

import argparse
import sys
import time
from collections.abc import Sequence

from harness import files, gate
from harness.telling import note

HELP = "plant defects in atlas and see that each gets its verdict, and atlas itself none; needed before measuring"

EXAMPLES = """\
  labd-eval gate                      all defects, and the undamaged program; 1 when one is missed
  labd-eval gate --json               with the commands, the calls and the evidence
  labd-eval gate --if-needed          nothing to do where this build has passed already
  labd-eval gate silent_cut           one defect; leaves no stamp"""


def options(parser: argparse.ArgumentParser) -> None:
    """What the command takes, besides what all take."""
    parser.add_argument(
        "defects", nargs="*", metavar="DEFECT", help="only these (default: all, and the undamaged atlas)"
    )
    parser.add_argument("--if-needed", action="store_true", help="only where this build has not passed yet")


def do_gate(values: argparse.Namespace, words: Sequence[str]) -> int:
    """Play, show, and leave a stamp if all is as it must be."""
    if values.if_needed and not values.defects and gate.passed():
        note(values, f"passed before: {gate.stamp_path()}")
        if values.json:
            sys.stdout.write(files.canonical(files.read_json(gate.stamp_path())).decode())
        return 0
    begun = time.monotonic()
    passage = gate.passage(values.defects)
    sys.stdout.write(files.canonical(gate.told(passage)).decode() if values.json else gate.table(passage))
    note(values, f"{time.monotonic() - begun:.1f} s")
    if passage.ok and not values.defects:
        note(values, f"stamp: {gate.stamp(passage)}")
    return 0 if passage.ok else 1
