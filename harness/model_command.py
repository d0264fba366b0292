"""`labd-eval model SCRIPT`: the scripted model by hand, until it is interrupted. Prints where it listens.

The command line imports this for its help alone: what it needs to run comes in when it runs.
"""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from labd.errors import LabdError, NotFound, nearest

if TYPE_CHECKING:
    from harness.model_server import Script

HELP = "a model server on loopback that plays a script: what agent programs are tried with, without a provider"

EXAMPLES = """\
  labd-eval model script.toml                       prints its address; Ctrl-C ends it
  labd-eval model reference:C1 --log requests.jsonl the reference answer of C1 as the script; keeps what reaches it
the form of a script: harness/model_server/script.py"""


def options(parser: argparse.ArgumentParser) -> None:
    """The command's own flags."""
    parser.add_argument("script", metavar="SCRIPT", help="a TOML file, or reference:ID for a scenario's reference")
    parser.add_argument("--log", metavar="FILE", help="append what reaches it, one JSON object a line, keys blanked")


def script_of(word: str, values: dict[str, str]) -> "Script":
    """What SCRIPT names. Raises ScriptError or NotFound."""
    from harness import scenario
    from harness.model_server import from_scenario, load

    if not word.startswith("reference:"):
        return load(Path(word), values)
    known = {one.id: one for one in scenario.load_all()}
    wanted = word.partition(":")[2].upper()
    if wanted not in known:
        raise NotFound(f"no scenario {wanted!r}", near=nearest(wanted, list(known)), hint="labd-eval list")
    return from_scenario(known[wanted], values)


def do_model(values: argparse.Namespace, words: Sequence[str]) -> int:
    """Serve until SIGINT or SIGTERM."""
    from harness.model_server import NOTE, ModelServer

    script = script_of(values.script, {})
    try:
        model = ModelServer(script, Path(values.log) if values.log else None)
    except OSError as error:
        raise LabdError(f"{values.log or '127.0.0.1'}: {error.strerror}", hint="labd-eval model --help") from error
    done = threading.Event()
    stopping = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: done.set()) for number in stopping}
    try:
        with model:
            sys.stdout.write(model.url + "\n")
            sys.stdout.flush()
            sys.stderr.write(f"labd-eval: {NOTE}; end it with Ctrl-C\n")
            done.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0
