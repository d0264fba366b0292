"""`labd-eval publish` and `labd-eval verify`: a release from runs and readiness, and whether it is still what it was.

Words are parsed in harness/cli.py; harness/release/ does the work.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import files, run
from harness.release import check, store
from harness.telling import many, note
from labd.errors import NotFound

HELP = "a release that is never changed, from runs of journeys and readiness: report, data, card, and all behind them"
HELP_VERIFY = "compute every number of a release once more from what it stores, and hold every file against its hash"

EXAMPLES = """\
  labd-eval publish latest --readiness runs/readiness-git-20261130T141500Z-1a2b3c --review review.toml --name 2026-11
  labd-eval publish RUN1 RUN2 --readiness R1 --readiness R2 --review review.toml --name 2026-12 --to releases
  labd-eval publish latest --name try --json          what is missing, as data; nothing is written"""

EXAMPLES_VERIFY = """\
  labd-eval verify releases/current
  labd-eval verify releases/2026-11 --json            each file that was touched, each number that is another"""


def options(parser: argparse.ArgumentParser, once: Any) -> None:
    """What `publish` takes, besides what all take."""
    # fmt: off
    add = parser.add_argument
    add("run", nargs="+", metavar="RUN", help="runs of journeys: a path, a name under --out, or `latest`")
    add("--readiness", action="append", default=[], metavar="DIR",
        help="a measurement by `labd-eval readiness`; repeatable, one a subject")
    add("--review", action=once, metavar="FILE", help="who read it and what they understood (docs/exam.md)")
    add("--name", action=once, required=True, metavar="NAME", help="of the release; once taken it stays taken")
    add("--to", action=once, default="releases", metavar="DIR", help="where releases are (default: ./releases)")
    add("-o", "--out", action=once, default="runs", metavar="DIR", help="where run directories are (default: ./runs)")
    # fmt: on


def verify_options(parser: argparse.ArgumentParser) -> None:
    """What `verify` takes."""
    parser.add_argument("release", metavar="RELEASE", help="its directory, or the link `current`")


def do_publish(values: argparse.Namespace, words: Sequence[str]) -> int:
    """Publish; 3 with everything that is missing."""
    out = Path(values.out)
    runs = [run.find(out, one) for one in values.run]
    measured = [_there(Path(one), "manifest.json", "labd-eval readiness --history") for one in values.readiness]
    review = Path(values.review) if values.review else None
    try:
        made = store.publish(values.name, runs, measured, review, Path(values.to), lambda text: note(values, text))
    except store.Incomplete as error:
        if not values.json:
            raise
        told = {"published": False, "missing": [one.data() for one in error.found]}
        sys.stdout.write(files.canonical(told).decode())
        return error.exit_code
    told = {"published": True, "release": str(made), "sha256": files.digest((made / check.MANIFEST).read_bytes())}
    text = f"published {made}\nreport: {made / 'report.html'}\nrelease.json: sha256 {told['sha256']}\n"
    sys.stdout.write(files.canonical(told).decode() if values.json else text)
    return 0


def _there(place: Path, name: str, hint: str) -> Path:
    if not (place / name).is_file():
        raise NotFound(f"{place} has no {name}: no measurement of readiness", hint=hint)
    return place


def do_verify(values: argparse.Namespace, words: Sequence[str]) -> int:
    """0 where all is as it was published, 1 with everything that is not."""
    place = Path(values.release).resolve()
    found = list(dict.fromkeys([*check.problems(place), *check.bound(place)]))
    notes = check.notes(place)
    for text in notes:
        note(values, text)
    if values.json:
        told = [{"file": one.file, "what": one.what} for one in found]
        whole = {"ok": not found, "release": str(place), "problems": told, "notes": notes}
        sys.stdout.write(files.canonical(whole).decode())
    elif found:
        sys.stdout.write("\n".join([*map(str, found), many(len(found), "problem") + f" in {place}"]) + "\n")
    else:
        total = len(files.read_json(place / check.MANIFEST)["files"])
        sys.stdout.write(f"{place}: as it was published: {many(total, 'file')}, every number computed once more\n")
    return 1 if found else 0
