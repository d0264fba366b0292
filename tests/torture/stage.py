"""What a case is, and the stage that it is played on: devices, simulated boards, and their end."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.torture.far import Far
from tests.torture.subject import NotThere, Subject, Wrong

END = b"~END-OF-CASE~\r\n"


@dataclass(frozen=True)
class Case:
    """One way in which consoles fail, by its number in the list that this suite is made from.

    `source` is where it was met; `given` the input; `right` the right behaviour. `check` plays it and returns what was
    measured, in words, or raises Wrong. `bad` names the deliberately bad subjects that must fail it, each with a
    regular expression that its reason must match: a case that nothing can fail shows nothing.
    """

    number: str
    title: str
    source: str
    given: str
    right: str
    check: Callable[[Stage], str | None] = field(compare=False)
    bad: dict[str, str] = field(default_factory=dict, compare=False)
    waits: bool = field(default=False, kw_only=True)
    """Mostly waiting, and measures nothing: it may be played beside others."""
    measures: bool = field(default=False, kw_only=True)
    """It measures CPU or memory: nothing may be played beside it."""


@dataclass(frozen=True)
class Absent:
    """A case of the list that can't exist here, and why."""

    number: str
    title: str
    why: str


@contextlib.contextmanager
def speaking(speak: Callable[[], None]) -> Iterator[None]:
    """The device speaks in a thread of its own meanwhile: some subjects read only while they wait for something."""
    speaker = threading.Thread(target=lambda: _until_deaf(speak), daemon=True)
    speaker.start()
    try:
        yield
    finally:
        speaker.join(30)


def _until_deaf(speak: Callable[[], None]) -> None:
    with contextlib.suppress(TimeoutError):  # it is the subject's failure, and seen as that
        speak()


class Board:
    """`python -m loopback …`, a process of ours: its ready line, its record, its control."""

    def __init__(self, folder: Path, dut: str, *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "tty-board"
        self._record = folder / "record.jsonl"
        argv = [sys.executable, "-m", "loopback", dut, "--record", str(self._record), *options]
        if "--rfc2217" not in options:
            argv += ["--link", str(self.path)]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ready = self._answer()

    def ask(self, request: str) -> dict[str, Any]:
        """One control request, and its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(request.encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def record(self, kind: str) -> list[dict[str, Any]]:
        """What it has noted of this kind so far."""
        lines = self._record.read_bytes().split(b"\n") if self._record.exists() else []
        return [entry for line in lines if line and (entry := json.loads(line))["kind"] == kind]

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(5)
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], 30)
        line = self._process.stdout.readline() if ready else b""
        assert line, "the simulated board said nothing"
        return dict(json.loads(line))


class Stage:
    """A subject, a folder and the devices of one case. `full`: the sizes of the published table, not of the tests."""

    def __init__(self, subject: Subject, folder: Path, *, full: bool = False) -> None:
        self.subject = subject
        self.folder = folder
        self.full = full
        self._devices: list[Far | Board] = []

    def device(self, **settings: Any) -> Far:
        """A device on a PTY, opened by the subject; the node has the settings with which a kernel hands it out."""
        far = self.bare()
        self.subject.open(far.path, **settings)
        return far

    def bare(self) -> Far:
        """A device on a PTY that nobody has opened yet."""
        far = Far(self.folder / f"far{len(self._devices)}", cooked=True)
        self._devices.append(far)
        return far

    def board(self, dut: str, *options: str) -> Board:
        """A simulated board that nobody has opened yet."""
        board = Board(self.folder / f"board{len(self._devices)}", dut, *options)
        self._devices.append(board)
        return board

    def play(self, far: Far, *pieces: bytes | float) -> bytes:
        """Say bytes and wait seconds, in turn; then the end mark. Returns what was said before it, once taken in."""

        def speak() -> None:
            for piece in (*pieces, END):
                if isinstance(piece, float):
                    time.sleep(piece)
                else:
                    far.say(piece, within_s=12)

        with speaking(speak):
            self.subject.settle(END.strip())
        return b"".join(piece for piece in pieces if isinstance(piece, bytes))

    def stored_exactly(self, said: bytes) -> None:
        """Wrong unless these bytes, and only these, are what the subject has kept, up to the end mark."""
        stored = self.subject.stored()
        kept = stored.partition(END.strip())[0]
        if kept != said:
            at = next(
                (n for n, (a, b) in enumerate(zip(said, kept, strict=False)) if a != b), min(len(said), len(kept))
            )
            what = f"{kept[at : at + 12]!r} for {said[at : at + 12]!r} at byte {at}"
            raise Wrong(f"stored {len(kept)} bytes for {len(said)}: {what}")

    def has(self, what: str) -> bool:
        """Whether the subject has this function at all."""
        return getattr(type(self.subject), what) is not getattr(Subject, what)

    def needs(self, what: str) -> None:
        """NotThere unless it has."""
        if not self.has(what):
            raise NotThere(f"has no {what}")

    def lines(self) -> list[str]:
        """The shown lines before the end mark."""
        shown = self.subject.shown()
        mark = END.strip().decode()
        return shown[: next((n for n, line in enumerate(shown) if mark in line), len(shown))]

    def close(self) -> None:
        """The devices go first, so that no subject can hang on one that nobody serves any more."""
        try:
            self.subject.abandon()
            with contextlib.suppress(Wrong, NotThere):
                self.subject.close()
        finally:
            for device in self._devices:
                device.close()
