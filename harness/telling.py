"""Notes and progress beside a command's answer: on stderr, a line each, none under --quiet."""

import argparse
import sys


def many(count: int, thing: str) -> str:
    """A number of things: `1 call`, `2 calls`."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def note(values: argparse.Namespace, text: str) -> None:
    """Say it now."""
    if not values.quiet:
        sys.stderr.write(f"labd-eval: {text}\n")
        sys.stderr.flush()
