"""What stands on the desk of a trial outside the bench's reach: a board on a real tty or behind RFC 2217, and a program
of somebody else's that holds its port; or a screen, which is a picture's file.

Started by the sandbox before the agent, ended after it. The processes are the harness's own: they carry none of the
sandbox's marks, end with their standard input, and are signalled by nobody but their owner. What the board received and
did goes into a record that the bundle takes; what became of the holder is told in `facts`. Grades nothing.
"""

import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import execute

if TYPE_CHECKING:
    from harness.screen import Screen

#: Seconds for a process of the desk to say that it is ready, or to answer, or to end.
PATIENCE_S = 20.0

_CHECKOUT = Path(__file__).resolve().parent.parent


class OutsideError(Exception):
    """Something on the desk did not come up or did not do what the scenario says. Not the agent's doing."""


@dataclass(frozen=True)
class Outside:
    """What a scenario says: the board's DUT file and its text, how its port is reached (`tty`, `rfc2217`), whether it
    is held by somebody, and what happens before the agent is asked and after: acts, each `wait_s` and one of `say`,
    `power` and `fault`. Served as a `picture`, the text is what the screen shows first, and the acts `show` another."""

    file: str
    serve: str
    source: str
    held: bool = False
    before: tuple[Mapping[str, Any], ...] = ()
    after: tuple[Mapping[str, Any], ...] = ()


class _Helper:
    """One process of the desk that says one JSON line when it is ready and answers a line with a line."""

    def __init__(self, argv: list[str], root: Path) -> None:
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(_CHECKOUT), "LANG": "C.UTF-8"}
        self._process = execute.begin(argv, env=env, cwd=root)
        self._pending = b""
        self._lock = threading.Lock()
        try:
            self.ready = self._answer()
        except OutsideError:
            self.end()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request, return its answer. Raises OutsideError if it is refused or there is none."""
        with self._lock:
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
            except OSError as error:
                raise OutsideError(f"{self._process.args!r} is gone") from error
            answer = self._answer()
        if not answer.get("ok"):
            raise OutsideError(f"{request}: {answer.get('error')}")
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        until = time.monotonic() + PATIENCE_S
        while b"\n" not in self._pending:
            fd = self._process.stdout.fileno()
            if not select.select([fd], [], [], max(0.0, until - time.monotonic()))[0]:
                raise OutsideError(f"no answer within {PATIENCE_S:g} s")
            data = os.read(fd, 65536)
            if not data:
                raise OutsideError("it ended at once")
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> int:
        """Let it end, with its standard input; returns how it ended, as subprocess tells it."""
        return execute.finish(self._process, PATIENCE_S)


class Desk:
    """The running side of an `Outside`. `values` are its placeholders: `device`, and `holder` (a process id) or
    `device2` (another screen)."""

    def __init__(self, outside: Outside, root: Path, record: Path, fill: Callable[[str], str]) -> None:
        """Start it under `root`. Raises OutsideError; nothing is left then."""
        self._outside = outside
        self._fill = fill
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.problem = ""
        self._ended: dict[str, Any] = {}
        self._holder: _Helper | None = None
        self._board: _Helper | None = None
        self._screen: Screen | None = None
        for name in ("dev", "opt"):
            (root / name).mkdir(mode=0o700)
        if outside.serve == "picture":
            self._show(root, record)
            return
        source = root / "opt" / "board.toml"
        source.write_text(fill(outside.source), encoding="utf-8")
        link = root / "dev" / "ttyUSB0"
        where = ["--link", str(link)] if outside.serve == "tty" else ["--rfc2217", "0"]
        argv = [sys.executable, "-m", "loopback", str(source), "--record", str(record), *where]
        try:
            self._board = _Helper(argv, root)
        finally:
            source.unlink()  # it holds the facts of the trial, and the board has read it
        self.device: str = str(link) if outside.serve == "tty" else self._board.ready["url"]
        self.values = {"device": self.device}
        if outside.held:
            try:
                self._hold(root, link)
            except BaseException:
                self.stop()
                raise

    def _show(self, root: Path, record: Path) -> None:
        """A screen, and another one beside it."""
        from harness.screen import Screen  # numpy and OpenCV: only trials with a screen pay for them

        self._screen = Screen(root / "dev", record)
        self._screen.show(self._fill(self._outside.source))
        self.device = self._screen.device
        self.values = {"device": self.device, "device2": self._screen.other}

    def _hold(self, root: Path, link: Path) -> None:
        """A measuring program that has the port open, and `letgo`, by which it is asked to close it."""
        program = root / "opt" / "meter"
        program.write_text((Path(__file__).with_name("meter.py")).read_text(encoding="utf-8"), encoding="utf-8")
        ask = root / "run" / "letgo"
        letgo = root / "bin" / "letgo"
        letgo.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {program} --ask {ask} "$@"\n', encoding="utf-8")
        letgo.chmod(0o755)
        self._holder = _Helper([sys.executable, "-I", "-S", str(program), str(link), str(ask)], root)
        self.values["holder"] = str(self._holder.pid)

    def before(self) -> None:
        """What happens before the agent is asked. Raises OutsideError."""
        self._act(self._outside.before)

    def asked(self) -> None:
        """The agent has been asked: what happens after runs beside it from now on."""
        if self._outside.after:
            self._thread = threading.Thread(target=self._after, name="desk", daemon=True)
            self._thread.start()

    def _after(self) -> None:
        try:
            self._act(self._outside.after)
        except OutsideError as error:
            self.problem = str(error)

    def _act(self, acts: Iterable[Mapping[str, Any]]) -> None:
        for act in acts:
            if self._stop.wait(act.get("wait_s", 0)):
                return
            if self._screen is not None and "show" in act:
                self._screen.show(self._fill(act["show"]))
            for name in ("say", "power", "fault"):
                if self._board is not None and name in act:
                    self._board.ask({name: self._fill(act[name])})

    def stop(self) -> None:
        """End all of it. The record is whole then."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self._holder is not None:
            code = self._holder.end()
            told = {0: "let go", 3: "never asked"}.get(code, f"ended by somebody (code {code})")
            self._ended = {"pid": self._holder.pid, "end": told}
            self._holder = None
        if self._board is not None:
            self._board.end()

    @property
    def facts(self) -> dict[str, Any]:
        """What the bundle says of it, once it has been stopped."""
        return {"device": self.device, "serve": self._outside.serve, "holder": self._ended or None}
