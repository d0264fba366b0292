"""The argv record of a trial as invocations: each start joined with its end. Pure functions of bytes.

A start without an end is an invocation whose exit code nobody knows; it stays unknown. Lines are split at newline
bytes only: an argument may hold any character, and none of them may forge a second invocation.
"""

from dataclasses import dataclass
from typing import Any

from graders import parsed


@dataclass(frozen=True)
class Invocation:
    """One run of a program, in the order of starts. `ended` says whether the end was recorded at all."""

    start: dict[str, Any]
    end: dict[str, Any] | None

    @property
    def argv(self) -> list[str]:
        """The words, the program's name first."""
        return [str(word) for word in self.start.get("argv") or []]

    @property
    def ended(self) -> bool:
        """Whether there is an end record."""
        return self.end is not None

    @property
    def code(self) -> int | None:
        """The exit code; None if it is not known or a signal ended the program. Never 0 for want of a record."""
        value = self.end.get("code") if self.end else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def signal(self) -> str | None:
        """The signal that ended it, as text; None if none did or nobody knows."""
        value = self.end.get("signal") if self.end else None
        return None if value is None else str(value)

    @property
    def operation(self) -> str | None:
        """The verb of the bench that its parser found (`serial send`), which is never guessed from words."""
        value = self.start.get("operation")
        return value if isinstance(value, str) else None

    @property
    def effect(self) -> str | None:
        """The operation's effect, if it was classified."""
        value = self.start.get("effect")
        return value if isinstance(value, str) else None

    @property
    def decision(self) -> str | None:
        """`permitted`, `refused` or `invalid`."""
        value = self.start.get("decision")
        return value if isinstance(value, str) else None

    def field(self, name: str) -> Any:
        """What the predicate language reads (graders/when.py)."""
        if name in ("operation", "effect", "decision", "code", "signal"):
            return getattr(self, name)
        return self.start.get(name)

    def __str__(self) -> str:
        import shlex

        return shlex.join(self.argv)


@dataclass(frozen=True)
class Record:
    """All invocations, in the order of their starts, the ends in the order in which they were written, and what
    could not be read (line numbers with the reason)."""

    invocations: tuple[Invocation, ...]
    ends: tuple[Invocation, ...]
    torn: tuple[str, ...]


def read(data: bytes) -> Record:
    """Join starts and ends of argv.jsonl. Bad lines are reported, not skipped in silence."""
    starts: dict[str, dict[str, Any]] = {}
    ends: dict[str, dict[str, Any]] = {}
    torn: list[str] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = parsed.from_json(line)
            kind, key = record["rec"], str(record["id"])
        except (ValueError, KeyError, TypeError):
            torn.append(f"line {number} is no record")
            continue
        table = {"start": starts, "end": ends}.get(kind)
        if table is None or key in table:
            torn.append(f"line {number}: " + ("unknown kind" if table is None else f"a second {kind} of {key}"))
            continue
        table[key] = record
    torn += [f"an end without a start: {key}" for key in ends if key not in starts]
    joined = {key: Invocation(start, ends.get(key)) for key, start in starts.items() if not _is_server(start)}
    return Record(tuple(joined.values()), tuple(joined[key] for key in ends if key in joined), tuple(torn))


def _is_server(start: dict[str, Any]) -> bool:
    """Whether it is the start of an MCP server: the way by which calls come, and none of them."""
    return start.get("operation") == "mcp"
