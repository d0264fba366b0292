"""Real players in processes of their own, real PTYs, and waits that say what was missing."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

DEADLINE_S = 20.0


class Terminal:
    """What a serial program sees of a port: bytes out, bytes in, hang-up."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        self.seen = bytearray()

    def send(self, data: bytes) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while data:
            ready = select.select([], [self.fd], [], max(0.0, deadline - time.monotonic()))[1]
            assert ready, f"the port took no more; {len(data)} bytes are left"
            data = data[os.write(self.fd, data) :]

    def expect(self, pattern: bytes) -> bytes:
        """Everything up to and with the first match; what follows stays for the next call."""
        deadline = time.monotonic() + DEADLINE_S
        while not (found := re.search(pattern, self.seen, re.S)):
            assert self._more(deadline), f"no {pattern!r} within {DEADLINE_S} s in {bytes(self.seen[-500:])!r}"
        taken = bytes(self.seen[: found.end()])
        del self.seen[: found.end()]
        return taken

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        deadline = time.monotonic() + DEADLINE_S
        while len(self.seen) < count:
            assert self._more(deadline), f"{len(self.seen)} of {count} bytes within {DEADLINE_S} s"
        taken = bytes(self.seen[:count])
        del self.seen[:count]
        return taken

    def _more(self, deadline: float) -> bool:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self.fd], [], [], left)[0]:
            return False
        data = os.read(self.fd, 65536)
        self.seen += data
        return bool(data)

    def hung_up(self) -> bool:
        """Wait for the hang-up. True when it came."""
        poll = select.poll()
        poll.register(self.fd, select.POLLHUP)
        return any(events & select.POLLHUP for _, events in poll.poll(DEADLINE_S * 1000))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.fd)


class Playing:
    """One player process."""

    def __init__(self, *args: str, cwd: Path) -> None:
        self.record_path = Path(args[args.index("--record") + 1]) if "--record" in args else None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "loopback", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "TMPDIR": str(cwd)},
        )
        self._pending = b""
        self._zero: dict[str, Any] = {}
        self._skip = 0
        self.ready = self.answer()
        self.tty: str = self.ready["tty"]

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        deadline = time.monotonic() + DEADLINE_S
        fd = self.process.stdout.fileno()
        while b"\n" not in self._pending:
            left = max(0.0, deadline - time.monotonic())
            assert select.select([fd], [], [], left)[0], f"the player said nothing within {DEADLINE_S} s"
            data = os.read(fd, 65536)
            assert data, f"the player ended: {self.stderr()}"
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return self.answer()

    def do(self, **request: Any) -> dict[str, Any]:
        answer = self.ask(**request)
        assert answer["ok"], answer
        return answer

    def stats(self) -> dict[str, Any]:
        stats: dict[str, Any] = self.do(stats=True)["stats"]
        for way, counts in self._zero.items():
            stats[way] = {key: value - counts[key] for key, value in stats[way].items()}
        return stats

    def zero(self) -> None:
        """Count bytes and records from here."""
        self._zero = {}
        stats = self.stats()
        self._zero = {way: stats[way] for way in ("to_host", "to_dut")}
        self._skip = 0
        self._skip = len(self.records())

    def until(self, what: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Ask for the counts until `condition` holds of them."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            stats = self.stats()
            if condition(stats):
                return stats
            select.select([], [], [], 0.005)
        raise AssertionError(f"not within {DEADLINE_S} s: {what}; last {stats}")

    def records(self, kind: str | None = None) -> list[dict[str, Any]]:
        assert self.record_path is not None
        entries = [json.loads(line) for line in self.record_path.read_bytes().splitlines()]
        return [entry for entry in entries[self._skip :] if kind in (None, entry["kind"])]

    def recorded(self, kind: str) -> bytes:
        return b"".join(entry["data"].encode("latin-1") for entry in self.records(kind))

    def wait_records(self, kind: str, count: int) -> list[dict[str, Any]]:
        """The records of `kind`, once there are `count`."""
        deadline = time.monotonic() + DEADLINE_S
        while len(found := self.records(kind)) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} {kind} records within {DEADLINE_S} s"
            select.select([], [], [], 0.01)
        return found

    def stderr(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def end(self) -> int:
        """Close its standard input; returns the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(DEADLINE_S)

    def shut(self) -> None:
        """Close what leads to it."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE_S)


Play = Callable[..., Playing]


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """Start players; all of them have ended when the test has."""
    started: list[Playing] = []

    def start(dut: str, *args: str) -> Playing:
        number = len(started)
        if "--record" not in args:
            args = (*args, "--record", str(tmp_path / f"record{number}.jsonl"))
        if "\n" in dut:
            path = tmp_path / f"dut{number}.toml"
            settle = "" if "settle_ms" in dut else "settle_ms = 20\n"  # these openers set no modes
            path.write_text(settle + dut)
            dut = str(path)
        started.append(Playing(dut, *args, cwd=tmp_path))
        return started[-1]

    yield start
    for playing in started:
        with contextlib.suppress(OSError):
            playing.kill()
        playing.shut()


@pytest.fixture
def terminal() -> Iterator[Callable[[str], Terminal]]:
    """Open ports; all of them are closed when the test has ended."""
    opened: list[Terminal] = []

    def open_(path: str) -> Terminal:
        opened.append(Terminal(path))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()
