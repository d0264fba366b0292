"""How a wait ended, as frozen data. Made by `labd.match`, completed by `labd.expect`, rendered by operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Result:
    """How a wait ended. Offsets are of the target's exact bytes; `stop` is behind the last one.

    `ended`: `matched`, `died` (a death pattern), `timed_out`, `gone` (the capture ended), `cancelled` (nobody waits
    any more). `why` says it in words. `pattern` is the text of the one that matched, `index` its place among those
    given (of the death patterns, if it died); `groups` are its numbered groups, `named` its named ones. `echo` are the
    pieces of the stream that were taken for the echo of what was sent. The fields from `seq` on are filled by
    `labd.expect`: the numbers of the lines, the text before the match, and on a timeout the nearest misses
    (`labd.match_near`) and the last lines. `cursor` is the offset from which to go on.
    """

    ended: str
    why: str
    pattern: str | None = None
    index: int | None = None
    text: str | None = None
    groups: tuple[str | None, ...] = ()
    named: dict[str, str | None] = field(default_factory=dict)
    start: int | None = None
    stop: int | None = None
    echo: tuple[tuple[int, int], ...] = ()
    seq: int | None = None
    seq_end: int | None = None
    cursor: int = 0
    before: str = ""
    nearest: tuple[dict[str, Any], ...] = ()
    last_lines: tuple[dict[str, Any], ...] = ()
    waited_s: float = 0.0

    @property
    def matched(self) -> bool:
        """Whether what was waited for is there."""
        return self.ended == "matched"
