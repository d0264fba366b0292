"""JSON and TOML of anybody: what is nested deeper than can be read is a mistake like any other. Pure."""

import json
import tomllib
from typing import Any

_TOO_DEEP = "nested too deeply to be read"


def from_json(data: str | bytes) -> Any:
    """The value. Raises ValueError."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def object_in(data: str | bytes) -> dict[str, Any] | None:
    """The object that this is the JSON of; None where it is anything else."""
    try:
        found = from_json(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def from_toml(text: str) -> dict[str, Any]:
    """The table. Raises tomllib.TOMLDecodeError."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError(_TOO_DEEP) from None
