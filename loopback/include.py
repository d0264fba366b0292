"""Reading DUT files as data: TOML, and a board that is another board with changes (`include`)."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .strict import DutFileError, near

DUTS = Path(__file__).parent / "duts"


class Trusted(dict[str, Any]):
    """A table out of one of the package's own files."""


def read(path: Path, check: Callable[[dict[str, Any], Path], None], within: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The data of the DUT file at `path`, with what it includes underneath.

    `check(data, path)` is called with each included board, so that its errors name its own file. Raises
    DutFileError, OSError.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DutFileError(str(path), "", f"is not TOML: {error}") from None
    if isinstance(data.get("program"), dict) and path.resolve().parent == DUTS.resolve():
        data["program"] = Trusted(data["program"])
    if "include" not in data:
        return data
    what = data.pop("include")
    base = _included(path, what)
    if base is None:
        raise DutFileError(str(path), "include", f"no board {what!r}", near(str(what), built_in()))
    if base.resolve() in (*within, path.resolve()):
        raise DutFileError(str(path), "include", f"{what!r} includes this file")
    below = read(base, check, (*within, path.resolve()))
    check(below, base)
    return _joined(below, data)


def built_in() -> dict[str, Path]:
    """The boards of the package, by name."""
    return {path.stem: path for path in sorted(DUTS.glob("*.toml"))}


def _included(path: Path, what: object) -> Path | None:
    if not isinstance(what, str):
        return None
    found = built_in().get(what)
    beside = path.parent / what
    return found or (beside if beside.is_file() else None)


def _joined(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    out = {**below, **above}
    for key in ("variables", "texts", "states"):
        if isinstance(below.get(key), dict) and isinstance(above.get(key), dict):
            out[key] = {**below[key], **above[key]}
    return out
