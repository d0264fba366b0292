"""What was done to targets on their channels other than serial, and what those saw: one event journal a target.

The same form and clocks as the `events` stream of a serial interface, in the directory `@bench` beside the interfaces
(no interface can be called so). Every event has `channel`: `power`, `video`, `hid`, `netboot`, `netif`, `adb` or
`board`. Written by the daemon alone. Thread-safe.
"""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import TYPE_CHECKING, Any

from labd import paths
from labd.errors import LabdError
from labd.journal_events import WAITING_MAX, EventJournal

if TYPE_CHECKING:
    from collections.abc import Callable

#: How much of each target's own events is kept, bytes: years of them.
KEEP_BYTES = 64 << 20

#: How many bytes of pictures of each target's screen are kept, the newest.
PICTURE_BYTES = 256 << 20


class Chronicle:
    """The targets' own journals of one daemon, opened when something happens. `log` hears what could not be stored.

    What can't be written waits in memory, in order, and is written at the next `tell` or `settle` that can.
    """

    def __init__(self, state: str, log: Callable[[str], None]) -> None:
        self.state = state
        self.log = log
        self._lock = Lock()
        self._open: dict[str, EventJournal] = {}
        self._kept: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        """Events of journals that can't be opened, by directory."""
        self._why: dict[str, str] = {}

    def directory(self, lab_path: str, target: str) -> str:
        """Where the events of a target are kept."""
        return os.path.join(self.state, "journal", paths.lab_id(lab_path), target, paths.BENCH_JOURNAL)

    def tell(self, lab_path: str, target: str, channel: str, kind: str, **fields: Any) -> None:
        """Record that `kind` happened on a channel of a target, now. Never raises: what acts has already acted."""
        directory = self.directory(lab_path, target)
        now = {"wall_ns": time.time_ns(), "mono_ns": time.monotonic_ns()}
        with self._lock:
            kept = self._kept.setdefault(directory, [])
            kept.append((kind, {"channel": channel, **fields, **now}))
            if len(kept) > WAITING_MAX:
                self.log(f"{target}: {kept.pop(0)[0]} is not recorded: too much waits for {directory}")
            self._write(directory)

    def failing(self, lab_path: str, target: str) -> str | None:
        """Why something that was told of a target is not written yet; None where all is."""
        directory = self.directory(lab_path, target)
        with self._lock:
            journal = self._open.get(directory)
            return self._why.get(directory) or (journal.failing if journal is not None and journal.waits else None)

    @property
    def waits(self) -> bool:
        """Whether anything could not be written yet."""
        return bool(self._kept) or any(journal.waits for journal in list(self._open.values()))

    def settle(self) -> None:
        """Try again to write what waits. Touches the disk: call it in a thread."""
        with self._lock:
            for directory in list(self._kept):
                self._write(directory)
            for journal in self._open.values():
                journal.flush()

    def _write(self, directory: str) -> None:
        """Write what is kept for a journal, as far as that goes; under the lock."""
        kept = self._kept[directory]
        try:
            journal = self._open.get(directory)
            if journal is None:
                journal = self._open[directory] = EventJournal(directory, _no_rx, keep_bytes=KEEP_BYTES)
            while kept:
                journal.event(kept[0][0], **kept[0][1])
                kept.pop(0)
        except (LabdError, OSError, ValueError) as error:
            why = error.message if isinstance(error, LabdError) else str(error)
            if why != self._why.get(directory):
                self.log(f"{kept[0][1]['channel']} {kept[0][0]} is not recorded yet: {why}")
            self._why[directory] = why
            return
        del self._kept[directory]
        self._why.pop(directory, None)

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
        self.settle()
        with self._lock:
            for directory, kept in self._kept.items():
                self.log(f"{len(kept)} events are lost: {self._why.get(directory)}")
            journals, self._open = list(self._open.values()), {}
        for journal in journals:
            journal.close()


def _no_rx() -> int:
    """These channels receive no stream of bytes."""
    return 0
