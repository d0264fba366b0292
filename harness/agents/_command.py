"""Any command as an agent: `--agent 'command:PROGRAM ARGS'`. It gets the goal where it says `{goal}`, else on stdin.

What it prints is its answer. It is looked up on the PATH of whoever starts the run, and works in the sandbox.
"""

import hashlib
import os
import re
import shlex
from pathlib import Path

from harness.agents._program import RATED, Command, Needs, Options, Ways, located
from harness.sandbox import Sandbox
from labd.errors import Usage

PREFIX = "command:"
ANY_COMMAND = "any command, as `command:PROGRAM ARGS`: the goal on its stdin, or where it says {goal}"


class AnyCommand:
    """The adapter of one command line. Raises Usage if it is none."""

    product = "text"
    ways = Ways()
    expected = RATED
    time_s = None

    def __init__(self, line: str) -> None:
        try:
            self.words = shlex.split(line)
        except ValueError as error:
            raise Usage(f"{PREFIX}{line}: {error}", hint="labd-eval run --help") from error
        if not self.words:
            raise Usage(f"{PREFIX} what? it takes a program and its arguments", hint="labd-eval run --help")
        base = re.sub(r"[^A-Za-z0-9_-]+", "-", os.path.basename(self.words[0])).strip("-") or "program"
        told = hashlib.sha256(line.encode()).hexdigest()[:6]
        self.name = f"command-{base[:32]}-{told}"
        self.summary = f"the command: {line}"
        self.needs = Needs(self.words[0], f"put {self.words[0]} on PATH, or name it by its path")

    def version(self) -> str | None:
        """Where it is, and a digest of the program: a command of one's own has no version to ask for."""
        found = located(self.words[0])
        if found is None:
            return None
        return f"{found[-1]} sha256:{hashlib.sha256(Path(found[-1]).read_bytes()).hexdigest()[:16]}"

    def prepare(self, place: Sandbox, options: Options) -> list[Path]:
        """Nothing: it has no settings that we know."""
        return []

    def command(self, goal: str, place: Sandbox, options: Options) -> Command:
        """Its words, with the goal in place of `{goal}`; where none is, the goal is on its stdin.

        Where a scripted model listens, variables that many programs know say so.
        """
        words = [*self.words[1:], *options.extra]
        start = located(self.words[0]) or self.words[:1]
        filled = tuple(word.replace("{goal}", goal) for word in words)
        url = options.base_url
        env = {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1", "GOOGLE_GEMINI_BASE_URL": url} if url else {}
        return Command((*start, *filled), env, stdin=b"" if filled != tuple(words) else goal.encode())

    def collect(self, place: Sandbox) -> dict[str, Path]:
        """Nothing: what it printed is all there is."""
        return {}
