"""Reading a TOML table key by key: what is asked for is known, what is left over is refused with its near match.

Used by `loopback.dutfile` alone. Every error names the file and the full key.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class DutFileError(Exception):
    """A DUT file is wrong. `file` and `key` say where, `near` what was probably meant."""

    def __init__(self, file: str, key: str, message: str, near: Iterable[str] = ()) -> None:
        self.file = file
        self.key = key
        self.message = message
        self.near = list(near)
        where = f"{file}: {key}" if key else file
        meant = f"; did you mean {' or '.join(self.near)}?" if self.near else ""
        super().__init__(f"{where}: {message}{meant}")


def near(word: str, known: Iterable[str]) -> list[str]:
    """The names in `known` that `word` most likely stands for: the best, and those that are as good or nearly so."""
    scored = [(difflib.SequenceMatcher(None, name, word).ratio(), name) for name in dict.fromkeys(known)]
    best = max((score for score, _ in scored), default=0.0)
    return [name for score, name in sorted(scored, key=lambda pair: -pair[0]) if score >= max(0.6, best - 0.05)][:3]


class Table:
    """One table of the file. Each typed getter marks its key as known; `done()` refuses the rest."""

    def __init__(self, data: dict[str, Any], file: str, path: str = "") -> None:
        self.data = data
        self.file = file
        self.path = path
        self._asked: list[str] = []

    def at(self, key: str) -> str:
        """The full name of `key`, as errors print it."""
        return f"{self.path}.{key}" if self.path else key

    def fail(self, key: str, message: str, near: Iterable[str] = ()) -> DutFileError:
        """The error to raise about `key`."""
        return DutFileError(self.file, self.at(key), message, near)

    def get(self, key: str, kinds: tuple[type, ...], expected: str) -> Any:
        """The value, or None if absent. Raises DutFileError when its type is none of `kinds`."""
        self._asked.append(key)
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise self.fail(key, f"expected {expected}, got {value!r}")
        return value

    def text(self, key: str, default: str | None = None) -> str | None:
        value = self.get(key, (str,), "a string")
        return default if value is None else value

    def flag(self, key: str, default: bool) -> bool:
        value = self.get(key, (bool,), "true or false")
        return default if value is None else value

    def choice(self, key: str, default: str, options: Iterable[str]) -> str:
        known = list(options)
        value = self.text(key, default)
        if value not in known:
            raise self.fail(key, f"{value!r} is not one of {', '.join(known)}", near(str(value), known))
        return str(value)

    def strings(self, key: str) -> list[str]:
        """A string, or an array of strings; absent is the empty list."""
        value = self.get(key, (str, list), "a string or an array of strings")
        if value is None:
            return []
        items = [value] if isinstance(value, str) else value
        if not all(isinstance(item, str) for item in items):
            raise self.fail(key, "expected a string or an array of strings")
        return items

    def mapping(self, key: str) -> dict[str, str]:
        """A table of strings (numbers are taken as their text); absent is empty."""
        value = self.get(key, (dict,), "a table of strings")
        out: dict[str, str] = {}
        for name, item in (value or {}).items():
            if isinstance(item, bool) or not isinstance(item, (str, int, float)):
                raise self.fail(f"{key}.{name}", f"expected a string, got {item!r}")
            out[name] = str(item)
        return out

    def table(self, key: str) -> Table | None:
        value = self.get(key, (dict,), "a table")
        return None if value is None else Table(value, self.file, self.at(key))

    def tables(self, key: str) -> list[Table]:
        """An array of tables (`[[key]]`); absent is empty. Entries are counted from 1 in errors."""
        value = self.get(key, (list,), f"an array of tables ([[{self.at(key)}]])")
        if not all(isinstance(item, dict) for item in value or []):
            raise self.fail(key, f"expected an array of tables ([[{self.at(key)}]])")
        return [Table(item, self.file, f"{self.at(key)}[{number}]") for number, item in enumerate(value or [], 1)]

    def done(self) -> None:
        """Refuse every key that nobody asked for."""
        for key in self.data:
            if key not in self._asked:
                raise self.fail(key, "unknown key", near(key, self._asked))
