"""The board's own record: what it received and did, as JSON Lines, for whoever judges a run afterwards.

Each record has `t` (wall clock, seconds) and `kind`: "start" (dut, file, pid, variables), "rx" (what the board
received: `data`, each character one byte), "tx" (what it sent, the same way; echo has `echo`: true; the lines of a
flood are not kept but counted in the "flood" records), "lost" (bytes that the board's own input FIFO could not
hold), "state" (`state`, `boots`), "power", "port" (near end opened or closed), "fault", "flood", "transfer" (a file by
X-modem), "exit"; with a
served port also "client" (connected, gone, refused), "line", "dtr", "break", "settings" (`loopback.modem`), "reset" and
"button".
"""

from __future__ import annotations

import json
import os
import time
from typing import Any


class Record:
    """Appends to `path`; with None it keeps nothing. Each record is one write, so a killed player loses none."""

    def __init__(self, path: str | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = None if path is None else os.open(path, flags, 0o644)

    def add(self, kind: str, **fields: Any) -> None:
        """Write one record now."""
        if self._fd is not None:
            entry = {"t": round(time.time(), 6), "kind": kind, **fields}
            os.write(self._fd, json.dumps(entry).encode() + b"\n")

    def bytes(self, kind: str, data: bytes, **fields: Any) -> None:
        """Write one record of bytes."""
        if self._fd is not None and data:
            self.add(kind, data=data.decode("latin-1"), **fields)
