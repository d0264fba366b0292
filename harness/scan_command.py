"""`labd-eval scan`: help and error behaviour of any program, without credentials and without a network.

Parsed in harness/cli.py like all commands; here is what it does.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import files, scan
from harness.telling import note

HELP = "how any program's help and errors behave, without credentials and with its network denied"

EXAMPLES = """\
  labd-eval scan git                  its help, help's commands, and mistakes; the record is kept under ./runs
  labd-eval scan ./my-tool /usr/bin/tar --json
  labd-eval scan labd -q              only the answer"""


def options(parser: argparse.ArgumentParser) -> None:
    """What the command takes, besides what all take."""
    parser.add_argument("programs", nargs="+", metavar="PROGRAM", help="a path, or a name on PATH")


def do_scan(values: argparse.Namespace, words: Sequence[str]) -> int:
    """Scan one after the other, and show each."""
    records = []
    for name in values.programs:
        note(values, f"scanning {name}: help and mistakes only, no network, no credentials")
        place = scan.scan(name, Path(values.out))
        note(values, f"record: {place}")
        records.append(files.read_json(place))
    sys.stdout.write(files.canonical(records).decode() if values.json else "\n".join(map(text, records)))
    return 0


def text(record: dict[str, Any]) -> str:
    """A record for people."""
    found = record["findings"]
    lines = [f"{record['program']['name']}: {record['program']['version'] or 'tells no version'}"]
    lines += [f"  {name:<16} {one['verdict']:<8} {one['reason']}" for name, one in found["behaviour"].items()]
    lines.append(f"  {'help pages':<16} {found['pages']}")
    lines += [f"  {name:<16} documented: {', '.join(told)}" for name, told in found["documented"].items() if told]
    lines.append("  What help documents is no evidence that it works; a scan has no score.")
    return "\n".join(lines) + "\n"
