"""The boards that come with the package: `duts/*.toml`, found by name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from .dutfile import DUTS, load
from .dutmodel import Dut
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
    return sorted(path.stem for path in DUTS.glob("*.toml"))


def titles() -> dict[str, str]:
    """The built-in boards with their titles."""
    return {name: tomllib.loads((DUTS / f"{name}.toml").read_text("utf-8"))["title"] for name in names()}


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith(".toml")


def find(name: str, settings: Mapping[str, str] | None = None) -> Dut:
    """The board called `name`, or in the file `name`, with `settings` for its variables.

    Raises NoSuchDut, DutFileError.
    """
    path = Path(name) if _is_path(name) else DUTS / f"{name}.toml"
    if not path.is_file() or (not _is_path(name) and name not in names()):
        raise NoSuchDut(name)
    return load(path, settings)
