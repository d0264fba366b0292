"""What an adapter of an agent that is a program tells: how to prepare it, start it, and find what it left behind.

One module for each product gives an object of this shape. An adapter starts nothing itself and judges nothing:
`Bench.program` runs what `command` says, in the sandbox, recorded and under the trial's time limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from harness.sandbox import Sandbox

Condition = Literal["cold", "warm", "preloaded"]


@dataclass(frozen=True)
class Needs:
    """The program that an adapter starts, as looked up on PATH, and a command that installs it."""

    program: str
    install: str


@dataclass(frozen=True)
class Options:
    """What a run asks of an agent. None: the product's own default.

    `condition` is what it knows of the subject beforehand; `skill` is the text that the subject's own skill has at the
    time of the run (empty when cold). `turns` counts its answers, `tokens` all tokens, `money_usd` US dollars.
    `extra` are arguments passed to it as they are; `base_url` is where a scripted model listens (http://127.0.0.1:…).
    """

    condition: Condition = "cold"
    skill: str = ""
    model: str | None = None
    turns: int | None = None
    tokens: int | None = None
    money_usd: float | None = None
    extra: tuple[str, ...] = ()
    base_url: str | None = None


@dataclass(frozen=True)
class Command:
    """How it is started: its words, variables beside the sandbox's own (which win), and what its stdin holds."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""


class Program(Protocol):
    """An adapter. `name` is what `--agent` takes; `product` names the format that harness/transcripts reads."""

    name: str
    product: str
    summary: str
    needs: Needs

    def version(self) -> str | None:
        """The installed program's version in its own words; None where it isn't installed."""

    def prepare(self, place: Sandbox, options: Options) -> list[Path]:
        """Put the condition's files in the sandbox's home and work directories; returns what was written.

        Raises OSError.
        """

    def command(self, goal: str, place: Sandbox, options: Options) -> Command:
        """How to start it on `goal` without anybody at a terminal."""

    def collect(self, place: Sandbox) -> dict[str, Path]:
        """What it left beside its output, by the name under raw/ (`session/…`); only files that are there."""
