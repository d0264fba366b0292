"""What was done to targets on their channels other than serial, and what those saw: one event journal a target.

The same form and clocks as the `events` stream of a serial interface, in the directory `@bench` beside the interfaces
(no interface can be called so). Every event has `channel`: `power`, `video`, `hid`, `netboot`, `netif`, `adb` or
`board`. Written by the daemon alone. Thread-safe.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Any

from labd import paths
from labd.errors import LabdError
from labd.journal_events import EventJournal

if TYPE_CHECKING:
    from collections.abc import Callable

#: The directory of a target's own events beside those of its interfaces.
DIRECTORY = "@bench"

#: How much of each target's own events is kept, bytes: years of them.
KEEP_BYTES = 64 << 20


class Chronicle:
    """The targets' own journals of one daemon, opened when something happens. `log` hears what could not be stored."""

    def __init__(self, state: str, log: Callable[[str], None]) -> None:
        self.state = state
        self.log = log
        self._lock = Lock()
        self._open: dict[str, EventJournal] = {}

    def directory(self, lab_path: str, target: str) -> str:
        """Where the events of a target are kept."""
        return os.path.join(self.state, "journal", paths.lab_id(lab_path), target, DIRECTORY)

    def tell(self, lab_path: str, target: str, channel: str, kind: str, **fields: Any) -> None:
        """Record that `kind` happened on a channel of a target, now. Never raises: what acts has already acted."""
        directory = self.directory(lab_path, target)
        try:
            with self._lock:
                journal = self._open.get(directory)
                if journal is None:
                    journal = self._open[directory] = EventJournal(directory, _no_rx, keep_bytes=KEEP_BYTES)
            journal.event(kind, channel=channel, **fields)
        except (LabdError, OSError, ValueError) as error:
            self.log(f"{target}: {channel} {kind} is not recorded: {error}")

    def sync(self) -> None:
        """Bring all to the disk. Slow: call it in a thread."""
        for journal in list(self._open.values()):
            journal.sync()

    def close(self) -> None:
        """Sync and let go of every journal."""
        with self._lock:
            journals, self._open = list(self._open.values()), {}
        for journal in journals:
            journal.close()


def _no_rx() -> int:
    """These channels receive no stream of bytes."""
    return 0
