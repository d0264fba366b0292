"""What a case may ask of a console program, the words in which a verdict is given, and how a process is measured.

A `Subject` opens the device's node and does what it is for; what it has no way to do raises `NotThere`, which is n/a in
the table and never a failure. Each peer is run with its own best settings for the purpose.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


class Wrong(Exception):
    """The subject did the wrong thing; the message is the one line why."""


class NotThere(Exception):
    """The subject has no such function; the message says which."""


@dataclass(frozen=True)
class Found:
    """A match: its text, its groups and when it was told (time.monotonic)."""

    text: str
    groups: tuple[str, ...]
    at: float


@dataclass(frozen=True)
class Ran:
    """What a command's run came to: None for a code that the subject does not claim to know; its remark about it."""

    code: int | None
    out: str
    note: str = ""


@dataclass(frozen=True)
class Sent:
    """What became of a send: how many bytes the device's driver took (None: not told), and what was said."""

    accepted: int | None
    said: str


class Subject:
    """A console program under test. One port a time: `open` … `close`; `quit` at the very end."""

    name = "?"
    version = ""
    patience_s = 10.0
    haste = 1.0  # what a subject that is known to fail gets of the time that others have

    def open(self, path: Path, *, baud: int = 115200, tx_delay_ms: int = 0, prompt: str = "") -> None:
        """Open the port and capture it; raises Wrong when it can't. `tx_delay_ms`: pause after each byte sent."""
        raise NotImplementedError

    def open_net(self, host: str, port: int) -> None:
        """Open a port served by RFC 2217, and leave its DTR low."""
        raise NotThere("is no RFC 2217 client")

    def stored(self) -> bytes:
        """The bytes that it has kept of what the device said since `open`."""
        raise NotThere("keeps no record")

    def shown(self) -> list[str]:
        """The same as the lines of text that it shows or writes for people and agents, without its own stamps."""
        text = self.stored().decode("utf-8", "replace")
        return [line.rstrip("\r") for line in text.split("\n")]

    def settle(self, marker: bytes, within_s: float | None = None) -> None:
        """Return once it has taken in `marker`, which the device said last; Wrong if it never does."""
        within = self.patience_s if within_s is None else within_s
        wait(lambda: marker in self.stored(), within, f"never stored what was said last ({marker!r})")

    def look(self) -> None:
        """Take in what has come, for a subject that does not read by itself."""

    def expect(self, pattern: str, within_s: float) -> Found | None:
        """The first match in what came since `open`; None if there was none in time."""
        raise NotThere("has no expect")

    def ask(self, line: str, pattern: str, within_s: float) -> Found | None:
        """Type a line, and return the first match in what comes after it."""
        raise NotThere("has no request and response")

    def send(self, data: bytes, within_s: float) -> Sent:
        """Send bytes; returns within the time whatever becomes of them, or Wrong."""
        raise NotThere("can't send by a program")

    def type_sure(self, line: str) -> None:
        """Type a line, in the way that the subject offers against loss of input."""
        self.send(line.encode() + b"\r", self.patience_s)

    def run(self, command: str, within_s: float) -> Ran:
        """Run a command in the device's shell."""
        raise NotThere("has no run with an exit code")

    def told(self) -> str:
        """All that it says by itself about the port: gaps, other programs, errors."""
        return ""

    def lines(self) -> str:
        """What it says of the modem lines."""
        raise NotThere("shows no modem lines")

    def send_break(self) -> str:
        """Send a break; the answer in words."""
        raise NotThere("sends no break")

    def edit(self, path: Path, target: str, key: str, value: str) -> None:
        """Change one value of its TOML configuration."""
        raise NotThere("does not edit its configuration")

    def pids(self) -> list[int]:
        """Its processes."""
        return []

    def close(self) -> None:
        """Let the port go."""

    def abandon(self) -> None:
        """End a call that is still being made, by force if need be; the port may be lost with it."""

    def quit(self) -> None:
        """End every process of it."""


def wait(check: Callable[[], object], within_s: float, missing: str) -> float:
    """Poll until `check()`; returns how long it took in seconds. Raises Wrong with `missing`."""
    began = time.monotonic()
    while not check():
        if time.monotonic() - began > within_s:
            raise Wrong(missing)
        time.sleep(0.005)
    return time.monotonic() - began


def cpu_s(pids: list[int]) -> float:
    """CPU seconds that these processes have had, to the nanosecond, threads that ended included (Linux)."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += time.clock_gettime((~pid << 3) | 2)
    return total


def memory_mb(pids: list[int]) -> float:
    """Megabytes of memory of their own: mapped files, which the kernel can drop, are not counted."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("RssAnon"))
    return total / 1024


@contextlib.contextmanager
def ending(*things: object) -> Iterator[None]:
    """Close, stop or kill each in turn, whatever happens."""
    with contextlib.ExitStack() as stack:
        for thing in things:
            stack.callback(getattr(thing, "close", None) or getattr(thing, "stop", None) or thing.kill)  # type: ignore[attr-defined]
        yield


def free_port() -> int:
    """A TCP port that nobody listens on."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def alive(pid: int) -> bool:
    """Whether the process is there and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return os.path.isdir(f"/proc/{pid}")
