"""One console, typed to and read by a program that waits for answers: what `serial run` and echoed sends stand on.

Runs in a handler's thread. It reads the journal from where it began, so nothing is missed however late it looks, and
writes through the bench. It knows when the port went away under it. It interprets nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from labd.errors import TimedOut, Unreachable
from labd.journal_read import Reader
from labd.view import plain

if TYPE_CHECKING:
    from labd.call import Call
    from labd.lab import Lab
    from labd.lease import Lease

_NAP_S = 1.0
_BLOCK = 1 << 18
#: How far back the unfinished line is looked for.
_PENDING = 4096


class Console:
    """The console `line` of `target`; `cursor` is the offset of the next byte that `read` gives."""

    def __init__(self, call: Call, lab: Lab, target: str, line: dict[str, Any], who: dict[str, Any],
                 lease: Lease | None = None) -> None:  # fmt: skip
        self.call = call
        self.lab = lab
        self.target = target
        self.line = line
        self.name = f"{target}.{line['name']}"
        self.who = who
        self.lease = lease
        self.reader = Reader(call.journal_dir(target, line["name"]))
        self.cursor = self.reader.end_offset
        self._opened = self._row().get("reopened")

    def send(self, data: bytes, *, pace_ms: float = 0.0, line_pace_ms: float = 0.0,
             timeout_s: float = 10.0) -> dict[str, Any]:  # fmt: skip
        """Type `data`; as `Bench.send`. Raises Unreachable, Busy, TimedOut."""
        sent: dict[str, Any] = self.call.hop(
            self.call.bench.send, self.lab, self.target, self.line["name"], data, pace_ms=pace_ms,
            line_pace_ms=line_pace_ms, who=self.who, timeout_s=timeout_s, lease=self.lease,
        )  # fmt: skip
        return sent

    def skip(self) -> None:
        """Leave out all that has come until now."""
        self.reader.refresh()
        self.cursor = self.reader.end_offset

    def read(self, until: float) -> bytes:
        """What came since the last read, at most 256 KiB; b"" if nothing did until the monotonic time `until`.

        Raises Unreachable once the port is gone and all that it said has been read, TimedOut when the caller went.
        """
        while True:
            self.reader.refresh()
            if self.reader.end_offset > self.cursor:
                at, data = next(self.reader.chunks(self.cursor, self.cursor + _BLOCK), (self.cursor, b""))
                self.cursor = at + len(data)
                return data
            self.check()
            left = until - time.monotonic()
            if left <= 0:
                return b""
            if not self.call.wait_data(self.reader.directory, min(left, _NAP_S)):
                raise TimedOut(f"{self.name}: nobody waits any more")

    def check(self) -> None:
        """Raise Unreachable if the port went away since this object was made, even if it is back."""
        row = self._row()
        if not row:
            raise Unreachable(f"{self.name} is not being captured any more", hint=f"labd serial watch {self.target}")
        if row.get("state") != "open" or row.get("reopened") != self._opened:
            raise Unreachable(
                f"{self.name}: the port went away ({row.get('why')}); nothing is typed again",
                hint=f"labd serial log {self.target} -i {self.line['name']} --events --tail 20",
            )

    def failing(self) -> str | None:
        """Why the journal can't be written just now: then what comes may never be read here."""
        why: str | None = self._row().get("failing")
        return why

    def pending(self) -> str:
        """The unfinished line at the live edge as a terminal shows it; "" if there is none."""
        self.reader.refresh()
        end = self.reader.end_offset
        tail = self.reader.bytes(max(self.reader.first_offset, end - _PENDING), end)
        return plain(tail.rpartition(b"\n")[2], self.line.get("encoding", "utf-8"))

    def pause(self, seconds: float) -> None:
        """Let time pass, reading nothing; ends early when the port goes."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.call.wait_data(self.reader.directory, left)
            self.check()

    def _row(self) -> dict[str, Any]:
        rows = self.call.bench.status(self.call.lab_path, self.target)
        return next((row for row in rows if row["name"] == self.line["name"]), {})
