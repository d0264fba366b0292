"""Looks at a trial's sandbox from outside while it runs, and remembers what later edits can't undo.

Three things, as the kernel tells of them (harness/inotify.py, so Linux only): each state of the argv record, with the
process that was behind a start when it was written; each change of the lab file, of the program and of the directories
that they stand in; each opening of a file that describes a board. What it saw goes into the bundle as witness.jsonl,
for graders/witness.py. It never writes into the sandbox and judges nothing.
"""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from graders import parsed
from harness import inotify
from harness.sandbox import Sandbox

#: Seconds after which it looks even if nothing happened; events are seen at once.
PAUSE_S = 5.0

_PLACED = inotify.MOVED_FROM | inotify.MOVED_TO | inotify.CREATE | inotify.DELETE
_KINDS = ((inotify.MOVED_TO, "renamed into place"), (inotify.MOVED_FROM, "moved away"), (inotify.CREATE, "made"),
          (inotify.DELETE, "removed"), (inotify.MODIFY, "written in place"))  # fmt: skip


class Witness:
    """One trial's witness: looks from its making until `finish`."""

    def __init__(self, place: Sandbox) -> None:
        self._place = place
        self._lab = place.lab if "lab" in place.values else None
        lab = self._lab
        self._boards = {path.name for path in lab.parent.glob("*.toml")} - {lab.name} if lab is not None else set()
        self._seen: list[dict[str, Any]] = []
        self._record = b""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        try:
            self._events = inotify.Inotify()
            self._watch()
        except OSError:
            return
        self._thread = threading.Thread(target=self._look, name="witness", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        root, lab = self._place.root, self._lab
        self._events.watch(str(self._place.argv_log.parent), _PLACED | inotify.MODIFY)
        if lab is not None:
            self._events.watch(str(lab.parent), _PLACED | inotify.MODIFY | inotify.OPEN)
        self._events.watch(str(self._place.bin), _PLACED)
        for directory in ((lab.parent.parent,) if lab is not None else ()) + (self._place.home, root):
            self._events.watch(str(directory), _PLACED)

    def finish(self) -> bytes | None:
        """What was seen, as JSON Lines; None where nobody could look."""
        if self._thread is None:
            return None
        self._stop.set()
        self._events.wake()
        self._thread.join()
        self._events.close()
        return "".join(json.dumps(entry, sort_keys=True) + "\n" for entry in self._seen).encode()

    def _look(self) -> None:
        while True:
            last = self._stop.is_set()
            if not last:
                self._events.wait(PAUSE_S)
            touched = False
            for event in self._events.events():
                touched |= self._hear(event)
            if touched or last:
                self._read_record()
            if last:
                return

    def _hear(self, event: inotify.Event) -> bool:
        """Note one event; returns whether it is about the argv record."""
        place, lab = self._place, self._lab
        if event.mask & inotify.OVERFLOW:
            self._note("overflow")
        elif event.directory == str(place.argv_log.parent):
            return event.name == place.argv_log.name
        elif lab is not None and event.directory == str(lab.parent):
            if event.name == lab.name and event.mask & ~inotify.OPEN:
                self._note("lab", what=_what(event.mask))
            elif event.name in self._boards and event.mask & inotify.OPEN:
                self._note("board", name=event.name)
        elif event.directory == str(place.bin):
            if event.name == place.examined.program:
                self._note("program", what=_what(event.mask))
        elif event.name in ("home", "bin", "rec", ".config", lab.parent.name if lab is not None else "work"):
            self._note("place", name=event.name, what=_what(event.mask))
        return False

    def _read_record(self) -> None:
        """Take what is new in the argv record, or note that what was there is no longer."""
        try:
            data = self._place.argv_log.read_bytes()
        except OSError:
            data = None
        if data == self._record:
            return
        if data is None or not data.startswith(self._record):
            whole = self._record.startswith(data) if data is not None else True
            self._note("record", what="cut short" if whole else "rewritten", bytes=len(self._record))
            self._record = data or b""
            return
        cut = data.rfind(b"\n", 0, len(data)) + 1
        for line in data[len(self._record) : cut].split(b"\n"):
            self._look_behind(line)
        self._record = data[: max(cut, len(self._record))]

    def _look_behind(self, line: bytes) -> None:
        """The process that a start record names, if it is still there."""
        try:
            record = parsed.from_json(line)
            identity, pid = str(record["id"]), int(record["pid"])
            if record["rec"] != "start":
                return
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
            output, image = os.readlink(f"/proc/{pid}/fd/1"), os.readlink(f"/proc/{pid}/exe")
        except (OSError, ValueError, KeyError, TypeError):
            return
        if words:  # one that is just ending has none
            told = [word.decode("utf-8", "replace") for word in words]
            self._note("process", id=identity, argv=told, exe=image, stdout=output)

    def _note(self, kind: str, **fields: Any) -> None:
        if len(self._seen) < 100_000:
            self._seen.append({"kind": kind, "t": round(time.time(), 6), **fields})


def _what(mask: int) -> str:
    return next((word for bit, word in _KINDS if mask & bit), "touched")
