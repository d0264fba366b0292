"""JSON text without importing `json`, whose import costs as much as half an interpreter start.

Only writing; reading is rare and uses `json`. Strings keep undecodable bytes as surrogate escapes (`\\udcff`),
which `json.loads` turns back, so that an argv of any bytes survives.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    from _json import encode_basestring_ascii as _quote
except ImportError:  # an interpreter without the C accelerator
    from json.encoder import py_encode_basestring_ascii as _quote


def dumps(value: Any) -> str:
    """`value` (dict, list, tuple, str, int, float, bool, None) as one line of JSON.

    Raises TypeError for anything else; not-a-number and infinities become null, since JSON has no word for them.
    """
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return str(_quote(value))
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value) if value - value == 0 else "null"
    if isinstance(value, dict):
        return "{" + ", ".join([f"{_quote(str(key))}: {dumps(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([dumps(item) for item in value]) + "]"
    raise TypeError(f"{type(value).__name__} is not JSON data")


def pretty(value: Any, indent: str = "") -> str:
    """`value` as indented JSON for one object a person may look at; short lists and leaves stay on one line."""
    flat = dumps(value)
    if len(flat) + len(indent) <= 100 or not isinstance(value, (dict, list, tuple)):
        return flat
    deeper = indent + "  "
    if isinstance(value, dict):
        body = [f"{deeper}{_quote(str(key))}: {pretty(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(body) + f"\n{indent}}}"
    return "[\n" + ",\n".join([deeper + pretty(item, deeper) for item in value]) + f"\n{indent}]"
