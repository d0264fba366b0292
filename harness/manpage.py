"""labd-eval(1), made from the parser of `labd-eval`, and the command `man` that prints or installs it."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import files
from labd import __version__, manpages, roff
from labd.errors import LabdError

HELP = "the manual page: print it, or install it"

EXAMPLES = """\
  labd-eval man | man -l -                        read it
  labd-eval man --dir ~/.local/share/man          from then on: man labd-eval"""

EXIT = (("0", "done, and for run, grade, check and their like: all ended as expected"),
        ("1", "failed, or something did not end as expected"), ("2", "bad usage"), ("3", "refused"),
        ("4", "no such thing"), ("6", "busy"), ("7", "something that is needed can't be reached"))  # fmt: skip


def options(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--dir", metavar="DIR", help="write it to DIR/man1/labd-eval.1 instead")


def do_man(values: argparse.Namespace, words: Sequence[str]) -> int:
    """Print or install the page."""
    from harness import cli

    top, made = cli.build()
    text = source(top, made, cli.EXAMPLES, manpages.date_of(os.environ))
    if values.dir is None:
        shown = files.canonical({"name": "labd-eval", "source": text}).decode() if values.json else text
        sys.stdout.write(shown)
        return 0
    place = Path(values.dir).expanduser() / "man1"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabdError(f"{place} can't be made: {error.strerror}") from error
    files.write_bytes(place / "labd-eval.1", text.encode())
    written = str(place / "labd-eval.1")
    sys.stdout.write(files.canonical({"written": [written]}).decode() if values.json else f"1 page in {place}\n")
    return 0


def source(top: argparse.ArgumentParser, made: Mapping[str, argparse.ArgumentParser], examples: Mapping[str, str],
           date: str) -> str:  # fmt: skip
    """The page as man(7) source. `made` are the parsers of the commands by name."""
    lines = [roff.head("labd-eval", date, f"labd {__version__}", manpages.MANUAL), roff.section("NAME"),
             "labd\\-eval \\- the exam of the lab bench", roff.section("SYNOPSIS"),
             f"{roff.bold('labd-eval')} COMMAND [OPTIONS]", roff.section("DESCRIPTION"),
             *roff.paragraphs(top.description or ""), roff.section("COMMANDS")]  # fmt: skip
    for name, parser in made.items():
        lines += _command(name, parser, examples.get(name, ""))
    lines += [roff.section("EXIT STATUS"), *roff.listed(EXIT), roff.section("EXAMPLES"),
              *roff.example(_lines(examples[""])), roff.section("SEE ALSO"), f"{roff.bold('labd')}(1)"]  # fmt: skip
    return roff.page(lines)


def _command(name: str, parser: argparse.ArgumentParser, examples: str) -> list[str]:
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    rows = [(_spelled(action), _told(parser, action)) for action in parser._actions if action.help is not None]
    lines = [roff.subsection(f"labd-eval {name}"), *roff.paragraphs(f"{parser.description or ''}\n\n{usage}")]
    return [*lines, *roff.listed(rows), *(roff.example(_lines(examples)) if examples else [])]


def _spelled(action: argparse.Action) -> str:
    """An option with what it takes, or a place, as its help writes it."""
    word = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    shown = " ".join(word) if isinstance(word, tuple) else word
    if not action.option_strings:
        return shown
    return ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {shown}")


def _told(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    values: dict[str, Any] = {**vars(action), "prog": parser.prog}
    return str(action.help) % values


def _lines(examples: str) -> list[str]:
    return [line.removeprefix("  ") for line in examples.splitlines()]
