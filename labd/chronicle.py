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

#: How much of each target's own events is kept, bytes: years of them.
KEEP_BYTES = 64 << 20

#: How many bytes of pictures of each target's screen are kept, the newest.
PICTURE_BYTES = 256 << 20


class Chronicle:
    """The targets' own journals of one daemon, opened when something happens. `log` hears what could not be stored."""

    def __init__(self, state: str, log: Callable[[str], None]) -> None:
        self.state = state
        self.log = log
        self._lock = Lock()
        self._open: dict[str, EventJournal] = {}

    def directory(self, lab_path: str, target: str) -> str:
        """Where the events of a target are kept."""
        return os.path.join(self.state, "journal", paths.lab_id(lab_path), target, paths.BENCH_JOURNAL)

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

    def keep_picture(self, lab_path: str, target: str, name: str, png: bytes) -> None:
        """Keep a picture of the screen that an event names in its field `picture`. Never raises."""
        directory = os.path.join(self.directory(lab_path, target), "pictures")
        path = os.path.join(directory, name)
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            if not os.path.exists(path):
                fresh = f"{path}.{os.getpid()}"
                with open(fresh, "wb") as file:
                    file.write(png)
                os.replace(fresh, path)
                self._drop_old(directory)
        except OSError as error:
            self.log(f"{target}: the picture {name} is not kept: {error.strerror}")

    def _drop_old(self, directory: str) -> None:
        """Keep the newest pictures, up to `PICTURE_BYTES`."""
        with os.scandir(directory) as found:
            files = sorted(
                ((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in found), reverse=True
            )
        total = 0
        for _, size, path in files:
            total += size
            if total > PICTURE_BYTES:
                os.unlink(path)

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
