"""What an adapter of an agent that is a program tells: how to prepare it, start it, and find what it left behind.

One module for each product has an object of this shape in `PROGRAM`. An adapter starts nothing itself and judges
nothing: harness/program_trial.py runs what `command` says, in the sandbox, recorded and within the run's limits.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from harness.agents._servers import Server
from harness.sandbox import Sandbox

Condition = Literal["cold", "warm", "preloaded", "mcp"]
Isolation = Literal["home", "bwrap", "light"]


@dataclass(frozen=True)
class Needs:
    """The program that an adapter starts, as looked up on PATH, and a command that installs it."""

    program: str
    install: str


@dataclass(frozen=True)
class Ways:
    """How a product can be told something before its goal. What it has no way for goes before the goal itself.

    `skills`: the folder, below its working directory, whose skills it lists by their descriptions (`.claude/skills`).
    `memory`: the file there that it reads when it starts (`AGENTS.md`). `system`: the flag whose value is added to its
    system prompt (`--append-system-prompt`). `mcp`: whether it can be told of an MCP server. `sampling`:
    whether it hands a temperature and a seed on to its model.
    """

    skills: str | None = None
    memory: str | None = None
    system: str | None = None
    sampling: bool = False
    mcp: bool = False


@dataclass(frozen=True)
class Options:
    """What a run asks of an agent. None: the product's own default.

    `condition` is what it knows of the subject beforehand (harness/conditions.py realises it, by `Ways`). `turns`
    counts its answers, `tokens` all tokens, `money_usd` US dollars, `time_s` seconds: all are watched from outside too.
    `extra` are arguments passed to it as they are, `env` the names of variables of ours that it gets. `script` is what
    a scripted model plays instead of a real one (`reference`, or a file), `base_url` where that listens
    (http://127.0.0.1:…; harness/program_trial.py fills it in). `told` is a text of the run's own that every agent gets
    before its goal: instructions whose effect is measured. `temperature` and `model_seed` are for the model, where the
    program has a way to hand them on. `server` is the MCP server that it is to use (harness/program_trial.py fills it
    in, where the condition says so).
    """

    condition: Condition = "cold"
    model: str | None = None
    time_s: float | None = None
    turns: int | None = None
    tokens: int | None = None
    money_usd: float | None = None
    extra: tuple[str, ...] = ()
    script: str | None = None
    env: tuple[str, ...] = ()
    base_url: str | None = None
    isolation: Isolation = "home"
    told: str = ""
    temperature: float | None = None
    model_seed: int | None = None
    server: Server | None = None


@dataclass(frozen=True)
class Command:
    """How it is started: its words, variables beside the sandbox's own (which win), and what its stdin holds.

    The values of variables whose names say KEY, TOKEN, SECRET or PASSWORD are blanked in all that is kept.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""


class Program(Protocol):
    """An adapter. `name` is what `--agent` takes; `product` names the format that harness/transcripts reads.

    `expected` are the verdicts that it is there to get; `time_s` is its own time, where it takes less than a
    scenario's (seconds).
    """

    name: str
    product: str
    summary: str
    needs: Needs
    ways: Ways
    expected: frozenset[str]
    time_s: float | None

    def version(self) -> str | None:
        """The installed program's version in its own words; None where it isn't installed."""

    def prepare(self, place: Sandbox, options: Options) -> list[Path]:
        """Put the product's own settings in the sandbox's home and work directories; returns what was written.

        Raises OSError.
        """

    def command(self, goal: str, place: Sandbox, options: Options) -> Command:
        """How to start it on `goal` without anybody at a terminal."""

    def collect(self, place: Sandbox) -> dict[str, Path]:
        """What it left beside its output, by the name under raw/ (`session/…`); only files that are there."""


#: The verdicts that a real agent may get: whatever it earns.
RATED = frozenset({"pass", "fail", "unknown"})


def located(program: str) -> list[str] | None:
    """The words that start a program of ours in a sandbox, whose PATH has none of ours; None: there is none.

    A script that asks env for its interpreter gets the one on our PATH.
    """
    found = shutil.which(program)
    if found is None:
        return None
    real = os.path.realpath(found)
    try:
        with open(real, "rb") as file:
            first = file.readline(256)
    except OSError:
        return [found]
    words = first[2:].split() if first.startswith(b"#!") else []
    if len(words) == 2 and os.path.basename(words[0]) == b"env":
        interpreter = shutil.which(os.fsdecode(words[1]))
        return [interpreter, real] if interpreter else None
    return [os.path.abspath(found)]
