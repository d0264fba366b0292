"""JSON text without importing `json`, whose import costs as much as half an interpreter start.

Only writing; reading is rare and uses `json`. Strings keep undecodable bytes as surrogate escapes (`\\udcff`),
which `json.loads` turns back, so that an argv of any bytes survives.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

try:
    from _json import encode_basestring_ascii as _quote
except ImportError:  # an interpreter without the C accelerator
    from json.encoder import py_encode_basestring_ascii as _quote


def _not_json(value: Any) -> NoReturn:
    raise TypeError(f"{type(value).__name__} is not JSON data")


_fast: Callable[[Any, int], Iterable[str]] | None
try:
    from _json import make_encoder

    _fast = make_encoder(None, _not_json, _quote, None, ": ", ", ", False, False, False)
except (ImportError, TypeError):  # another interpreter, or another version of this one
    _fast = None


def dumps(value: Any) -> str:
    """`value` (dict, list, tuple, str, int, float, bool, None) as one line of JSON.

    Raises TypeError for anything else; not-a-number and infinities become null, since JSON has no word for them.
    """
    if _fast is not None:
        try:
            return "".join(_fast(value, 0))
        except ValueError:  # not-a-number, for one
            pass
    return _slowly(value)


def _slowly(value: Any) -> str:
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
        return "{" + ", ".join([f"{_quote(str(key))}: {_slowly(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([_slowly(item) for item in value]) + "]"
    _not_json(value)


def pretty(value: Any, indent: str = "") -> str:
    """`value` as indented JSON for one object a person may look at; short lists and leaves stay on one line.

    Each value is written once: a container is one line if its parts are and it is short.
    """
    if value.__class__ is str:
        return str(_quote(value))
    if value is None or value is False:  # most of what there is
        return "null" if value is None else "false"
    if not isinstance(value, (dict, list, tuple)):
        return dumps(value)
    if not value:
        return "{}" if isinstance(value, dict) else "[]"
    deeper = indent + "  "
    if isinstance(value, dict):
        parts = [f"{_quote(str(key))}: {pretty(item, deeper)}" for key, item in value.items()]
        opened, closed = "{", "}"
    else:
        parts = [pretty(item, deeper) for item in value]
        opened, closed = "[", "]"
    room = 100 - len(indent) - 2 * len(parts)
    if sum(map(len, parts)) <= room and not any("\n" in part for part in parts):
        return opened + ", ".join(parts) + closed
    return f"{opened}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{closed}"
