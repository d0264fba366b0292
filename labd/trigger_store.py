"""What is known of triggers after the end of a daemon: one file in the runtime directory, as long as the machine runs.

Its first line is all of them as they were when it was last replaced (whole, by a rename). Behind it comes a short line
for each firing, written before anything is sent, so that a daemon that is killed never leaves one that fires twice;
and one now and then that says how far was looked. Where that can't be written, the file is given up. Light: no trio.
"""

from __future__ import annotations

import json
import os
import tempfile

from labd.platform import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NAME = "triggers.jsonl"
#: Bytes of the file at which it is time to replace it.
LONG = 1 << 18


class TriggerStore:
    """The file of one runtime directory. `log(text)` writes the daemon's log."""

    def __init__(self, runtime: str, log: Callable[[str], None]) -> None:
        self.path = os.path.join(runtime, NAME)
        self.log = log
        self._fd = -1
        self._size = 0

    @property
    def long(self) -> bool:
        """Whether so many lines were added that the file should be written anew."""
        return self._size > LONG

    @property
    def kept(self) -> bool:
        """Whether there is a file that the next daemon finds."""
        return self._fd >= 0

    def write(self, last: int, rows: list[dict[str, Any]]) -> None:
        """Replace the file. `last` is the newest trigger's number; without rows there is no file."""
        if not rows and not last:
            return
        line = json.dumps({"boot": current().boot_id(), "last": last, "triggers": rows}).encode() + b"\n"
        fresh = ""
        try:
            fd, fresh = tempfile.mkstemp(prefix=NAME, dir=os.path.dirname(self.path))
            self._close()
            self._fd, self._size = fd, os.write(fd, line)
            if self._size < len(line):
                raise OSError(0, "it was written in part")
            os.rename(fresh, self.path)
        except OSError as problem:
            if fresh and os.path.exists(fresh):
                os.unlink(fresh)
            self._give_up(problem)

    def note(self, what: str, number: str, offset: int) -> None:
        """Add that the trigger `number` has "fired" on what ends at `offset`, or has looked "at" all before it."""
        if self._fd < 0:
            return
        line = f'["{what}","{number}",{offset}]\n'.encode()
        try:
            if os.write(self._fd, line) < len(line):
                raise OSError(0, "it was written in part")
            self._size += len(line)
        except OSError as problem:
            self._give_up(problem)

    def load(self) -> tuple[int, list[dict[str, Any]]]:
        """(newest number, rows) as an earlier daemon left them; in a row, `marks` are its firings since then.

        What is from before the machine started, or can't be read, counts as nothing.
        """
        try:
            with open(self.path, "rb") as file:
                first, *rest = file.read().splitlines()
            state = json.loads(first)
            rows = {row["id"]: {**row, "marks": []} for row in state["triggers"]}
            if state["boot"] != current().boot_id():
                return 0, []
            for line in rest:
                _apply(line, rows)
            return int(state["last"]), list(rows.values())
        except FileNotFoundError:
            return 0, []
        except (OSError, ValueError, KeyError, TypeError) as problem:
            self.log(f"{self.path}: what an earlier daemon knew of triggers can't be read ({problem!r})")
            return 0, []

    def forget(self) -> None:
        """No daemon shall find any."""
        self._close()
        forget(os.path.dirname(self.path))

    def _give_up(self, problem: OSError) -> None:
        """An old file would have a trigger fire again that has fired: none is better."""
        self.log(f"{self.path} can't be written ({problem.strerror}): the triggers would not outlive this daemon")
        self.forget()

    def _close(self) -> None:
        fd, self._fd, self._size = self._fd, -1, 0
        if fd >= 0:
            os.close(fd)


def forget(runtime: str) -> None:
    """Remove the file of a runtime directory."""
    try:
        os.unlink(os.path.join(runtime, NAME))
    except FileNotFoundError:
        pass


def _apply(line: bytes, rows: dict[str, dict[str, Any]]) -> None:
    """Take one added line into the rows; the last one may be torn."""
    try:
        what, number, offset = json.loads(line)
    except ValueError:
        return
    row = rows.get(number)
    if row is None:
        return
    row["offset"] = max(row["offset"], offset)
    if what == "fired":
        row["marks"].append(offset)
        row["fired"] += 1
        row["state"] = "spent" if row["once"] else row["state"]
