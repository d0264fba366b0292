"""The boards that come with the package: `duts/*.toml`, found by name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from .dutfile import load
from .dutmodel import Dut
from .include import built_in
from .strict import near


class NoSuchDut(Exception):
    """Neither a built-in board nor a file. `near` are near matches."""

    def __init__(self, name: str) -> None:
        self.near = near(name, names())
        meant = f"; did you mean {' or '.join(self.near)}?" if self.near else f"; there are: {', '.join(names())}"
        what = f"no DUT file {name!r}" if _is_path(name) else f"no DUT is named {name!r}{meant}"
        super().__init__(what)


def names() -> list[str]:
    """The built-in boards."""
    return sorted(built_in())


def titles() -> dict[str, str]:
    """The built-in boards with their titles."""
    return {name: tomllib.loads(path.read_text("utf-8"))["title"] for name, path in built_in().items()}


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith(".toml")


def find(name: str, settings: Mapping[str, str] | None = None) -> Dut:
    """The board called `name`, or in the file `name`, with `settings` for its variables.

    Raises NoSuchDut, DutFileError.
    """
    path = Path(name) if _is_path(name) else built_in().get(name)
    if path is None or not path.is_file():
        raise NoSuchDut(name)
    return load(path, settings)
