"""Which screens a daemon watches, in a file of the runtime directory: the next one watches them again. Light."""

from __future__ import annotations

import json
import os

#: The file's name.
NAME = "screens.json"

Row = tuple[str, str, str]


def write(runtime: str, rows: list[Row]) -> None:
    """Put it down: (lab, target, policy level) of each. Raises OSError."""
    path = os.path.join(runtime, NAME)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(rows, file)
    os.replace(path + ".new", path)


def read(runtime: str) -> list[Row]:
    """What an earlier daemon put down; empty when it left nothing, or nothing readable."""
    try:
        with open(os.path.join(runtime, NAME), encoding="utf-8") as file:
            return [(str(lab), str(target), str(level)) for lab, target, level in json.load(file)]
    except (OSError, ValueError, TypeError):
        return []


def forget(runtime: str) -> None:
    """No daemon is to watch again what was watched."""
    try:
        os.unlink(os.path.join(runtime, NAME))
    except OSError:
        pass
