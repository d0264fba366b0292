"""The options of `labd-eval run` for agents that are programs: what they are told, and what they may use up."""

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from labd.errors import Usage

if TYPE_CHECKING:
    from harness.agents import Agent
    from harness.agents._program import Options


def add(parser: argparse.ArgumentParser) -> None:
    """The options, in a group of their own."""
    group = parser.add_argument_group("agents that are programs")
    group.add_argument("--model", metavar="NAME", help="the model, in the agent's own words")
    group.add_argument("--agent-arg", action="append", default=[], metavar="ARG",
                       help="passed to the program as it is (--agent-arg=-x for a flag); repeatable")  # fmt: skip
    group.add_argument("--env", action="append", default=[], metavar="NAME",
                       help="give the program this variable of ours (its key, say); its value is kept nowhere; "
                            "repeatable")  # fmt: skip
    group.add_argument("--time-limit", type=_seconds, metavar="S",
                       help="seconds, where a scenario gives more (default: the scenario's)")  # fmt: skip
    group.add_argument("--turns", type=_whole, metavar="N", help="answers of the model that a trial may take")
    group.add_argument("--tokens", type=_whole, metavar="N", help="tokens, read and written, that a trial may take")
    group.add_argument("--money", type=amount, metavar="USD", help="US dollars that a trial may take")
    group.add_argument("--temperature", type=_temperature, metavar="T",
                       help="of the model, where the program hands it on (default: the program's own)")  # fmt: skip
    group.add_argument("--model-seed", type=_whole, metavar="N",
                       help="of the model's draws, where the program hands it on; promises nothing")  # fmt: skip
    group.add_argument("--scripted-model", metavar="SCRIPT",
                       help="no real model: one on loopback that plays SCRIPT, a file or `reference` (the scenario's "
                            "own answer); proves the harness, never a model's skill")  # fmt: skip
    group.add_argument("--isolation", choices=("home", "bwrap", "light"), default="home",
                       help="home: own home and directories (default); bwrap: behind bubblewrap, without a network; "
                            "light: the user's own home, a smoke test that counts for nothing")  # fmt: skip


def read(values: argparse.Namespace, cast: "Sequence[Agent]") -> "Options":
    """What was asked for. Raises Usage where no agent could heed it."""
    from harness.agents._program import Options

    missing = [name for name in getattr(values, "env", ()) if name not in os.environ]
    if missing and getattr(values, "cluster", None) is None:  # a cluster's workers have variables of their own
        raise Usage(f"--env {missing[0]}: there is no such variable", hint=f"export {missing[0]}=…")
    options = Options(
        model=getattr(values, "model", None), extra=tuple(getattr(values, "agent_arg", ())),
        time_s=getattr(values, "time_limit", None), turns=getattr(values, "turns", None),
        tokens=getattr(values, "tokens", None), money_usd=getattr(values, "money", None),
        env=tuple(dict.fromkeys(getattr(values, "env", ()))), isolation=getattr(values, "isolation", "home"),
        script=_script(getattr(values, "scripted_model", None)),
        temperature=getattr(values, "temperature", None), model_seed=getattr(values, "model_seed", None),
    )  # fmt: skip
    if options != Options() and not any(agent.program for agent in cast):
        raise Usage(f"{', '.join(agent.name for agent in cast)}: no agent that is a program; its options mean nothing",
                    hint="labd-eval run --help")  # fmt: skip
    deaf = [agent.name for agent in cast if agent.program and not agent.program.ways.sampling]
    if deaf and (options.temperature, options.model_seed) != (None, None):
        raise Usage(f"{deaf[0]} hands no temperature and no seed on to its model: the product decides",
                    hint="labd-eval run --help")  # fmt: skip
    return options


def _script(word: str | None) -> str | None:
    """The script, checked, by a path that holds wherever a run is gone on with. Raises ScriptError."""
    from harness.model_server import load

    if word is None or word == "reference":
        return word
    load(Path(word))
    return str(Path(word).resolve())


def _whole(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,11}", text):
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, found {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    return _positive(text, "seconds above 0")


def amount(text: str) -> float:
    """US dollars above 0. Raises ArgumentTypeError."""
    return _positive(text, "US dollars above 0, as 0.50")


def _temperature(text: str) -> float:
    if not re.fullmatch(r"[0-2](\.[0-9]{1,3})?", text) or float(text) > 2:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 2, found {text!r}")
    return float(text)


def _positive(text: str, what: str) -> float:
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text) or float(text) == 0:
        raise argparse.ArgumentTypeError(f"expected {what}, found {text!r}")
    return float(text)
