"""The changes that can be made to a lab, as data, and what each means for plain data.

Pure. The same change is applied to the text by `surgery`; `rewrite` holds the two against each other.
"""

from collections.abc import Iterable
from typing import Any

Path = tuple[str | int, ...]
Scalar = str | int | float | bool


class Change:
    """One change at `path` (keys, and indices of arrays). See the five kinds below."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path


class Set(Change):
    """Give the key at `path` this value. The table that holds it must exist; the key may."""

    __slots__ = ("value",)

    def __init__(self, path: Path, value: Scalar) -> None:
        super().__init__(path)
        self.value = value


class Unset(Change):
    """Take away the key at `path`. The table that held it stays, even if it is empty now."""

    __slots__ = ()


class Add(Change):
    """A new table of scalars at `path`; the tables above it come into being if need be."""

    __slots__ = ("table",)

    def __init__(self, path: Path, table: dict[str, Scalar]) -> None:
        super().__init__(path)
        self.table = table


class Append(Change):
    """A new last element, a table of scalars, of the array of tables at `path`, which comes into being if need be."""

    __slots__ = ("table",)

    def __init__(self, path: Path, table: dict[str, Scalar]) -> None:
        super().__init__(path)
        self.table = table


class Remove(Change):
    """Take away the table, or the array's element, at `path` with all that is in it.

    An array goes with its last element. The table that held it stays.
    """

    __slots__ = ()


def applied(data: dict[str, Any], changes: Iterable[Change]) -> dict[str, Any]:
    """A copy of `data` with the changes made. Raises KeyError, IndexError or TypeError if a path leads nowhere."""
    data = _copy(data)
    for change in changes:
        _apply(data, change)
    return data


def same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Whether two labs hold the same. Types count (1 is not true), NaN is itself, an empty top table is as none."""
    return _alike(_without_empty(left), _without_empty(right))


def lookup(data: Any, path: Path) -> Any:
    """What is at `path`, or None."""
    for key in path:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _copy(data: Any) -> Any:
    """A deep copy of plain data (the `copy` module would do, and costs its import)."""
    if isinstance(data, dict):
        return {key: _copy(value) for key, value in data.items()}
    return [_copy(value) for value in data] if isinstance(data, list) else data


def _apply(data: dict[str, Any], change: Change) -> None:
    *above, last = change.path
    holder: Any = data
    for key in above:
        if isinstance(change, (Add, Append)) and isinstance(key, str):
            holder = holder.setdefault(key, {})
        else:
            holder = holder[key]
    if isinstance(change, Set):
        holder[last] = change.value
    elif isinstance(change, Add):
        if last in holder:
            raise KeyError(last)
        holder[last] = dict(change.table)
    elif isinstance(change, Append):
        holder.setdefault(last, []).append(dict(change.table))
    else:
        del holder[last]
        if isinstance(last, int) and not holder:
            del lookup(data, change.path[:-2])[change.path[-2]]


def _without_empty(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value != {}}


def _alike(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_alike(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_alike, left, right))
    return bool(left == right) or (left != left and right != right)
