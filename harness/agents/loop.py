"""The smallest agent: our own loop of a model and one shell (harness/arms/loop.py). Nothing has to be installed.

The model is any that speaks Chat Completions: `--env OPENAI_BASE_URL --env OPENAI_API_KEY --model NAME`.
"""

import hashlib
import platform
import sys
from pathlib import Path

from harness.agents._product import SCRIPTED_KEY
from harness.agents._program import RATED, Command, Needs, Options, Ways
from harness.sandbox import Sandbox

_PROGRAM = Path(__file__).resolve().parent.parent / "arms" / "loop.py"
_LOG = "conversation.json"


class Loop:
    """It has no settings, no skills, and no memory."""

    name = "loop"
    product = "atif"
    summary = "the smallest agent: one shell, and any model behind a Chat Completions API (--env OPENAI_BASE_URL)"
    needs = Needs(sys.executable, "it comes along")
    ways = Ways(sampling=True)
    expected = RATED
    time_s = None

    def version(self) -> str | None:
        """A digest of the program, and the Python that runs it."""
        return f"sha256:{hashlib.sha256(_PROGRAM.read_bytes()).hexdigest()[:16]} python {platform.python_version()}"

    def prepare(self, place: Sandbox, options: Options) -> list[Path]:
        """Nothing."""
        return []

    def command(self, goal: str, place: Sandbox, options: Options) -> Command:
        """The goal is on its stdin."""
        words = [sys.executable, "-I", str(_PROGRAM), "--log", str(_log(place))]
        words += ["--model", options.model] if options.model else []
        words += ["--turns", str(options.turns)] if options.turns is not None else []
        words += ["--temperature", str(options.temperature)] if options.temperature is not None else []
        words += ["--seed", str(options.model_seed)] if options.model_seed is not None else []
        url, key = options.base_url, SCRIPTED_KEY
        return Command((*words, *options.extra), {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": key} if url else {},
                       goal.encode())  # fmt: skip

    def collect(self, place: Sandbox) -> dict[str, Path]:
        """Its log."""
        return {f"session/{_LOG}": _log(place)} if _log(place).is_file() else {}


def _log(place: Sandbox) -> Path:
    return place.home / ".loop" / _LOG


PROGRAM = Loop()
