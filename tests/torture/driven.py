"""Subjects that are a Python library: a driver process of its own (`drivers/`), asked by JSON lines on its stdin.

So its CPU and memory are its own, it may live in another venv, and a call that never comes back is ended with the
process. The driver says `{"ready": version}` first, and answers each `{"op": …}` with `{"ok": …}`, `{"not_there": …}`
or `{"wrong": …}`.
"""

from __future__ import annotations

import base64
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.torture.subject import Found, NotThere, Ran, Sent, Subject, Wrong

OWN_WORDS = re.compile(rb"\ALabgrid Console.*?=== Log starts here ===\n", re.DOTALL)
NOT_THERE = {
    "run": "has no run with an exit code",
    "open_net": "is no RFC 2217 client",
    "edit": "does not edit its configuration",
    "send_break": "sends no break",
    "lines": "shows no modem lines",
    "expect": "has no expect",
    "ask": "has no request and response",
    "send": "only reads",
}
DRIVERS = Path(__file__).parent / "drivers"


class Driven(Subject):
    """A driver process, started when it is needed."""

    def __init__(self, name: str, python: str = sys.executable, *, reads_alone: bool = True) -> None:
        self.name = name
        self._argv = [python, str(DRIVERS / f"{name}_driver.py")]
        self._reads_alone = reads_alone
        self._child: subprocess.Popen[bytes] | None = None
        self._log = Path()
        self._folder = tempfile.TemporaryDirectory(prefix="torture-")
        self._said = ""
        self._count = 0
        self._turn = threading.Lock()

    def open(self, path: Path, *, baud: int = 115200, tx_delay_ms: int = 0, prompt: str = "") -> None:
        self._new_log()
        self._call("open", path=str(path), baud=baud, log=str(self._log), tx_delay_ms=tx_delay_ms, prompt=prompt)

    def open_net(self, host: str, port: int) -> None:
        self._new_log()
        self._call("open_net", host=host, port=port, log=str(self._log))

    def _new_log(self) -> None:
        self._count += 1
        self._log = Path(self._folder.name) / f"log{self._count}"
        self._log.touch()
        self._said = ""

    def stored(self) -> bytes:
        return OWN_WORDS.sub(b"", self._log.read_bytes())

    def settle(self, marker: bytes, within_s: float | None = None) -> None:
        if self._reads_alone:
            return super().settle(marker, within_s)
        within = self.patience_s if within_s is None else within_s
        if not self._call("settle", within_s=within, marker=marker.decode("latin-1"), spare_s=within):
            raise Wrong(f"never got to what was said last ({marker!r})")
        return None

    def look(self) -> None:
        if not self._reads_alone:
            self._call("settle", within_s=0.02, marker="~~ never ~~")

    def expect(self, pattern: str, within_s: float) -> Found | None:
        return _found(self._call("expect", spare_s=within_s, pattern=pattern, within_s=within_s))

    def ask(self, line: str, pattern: str, within_s: float) -> Found | None:
        return _found(self._call("ask", spare_s=within_s, line=line, pattern=pattern, within_s=within_s))

    def send(self, data: bytes, within_s: float) -> Sent:
        answer = self._call("send", spare_s=within_s - 5, data=base64.b64encode(data).decode())
        return Sent(answer["accepted"], answer["said"])

    def run(self, command: str, within_s: float) -> Ran:
        answer = self._call("run", spare_s=within_s + 30, command=command, within_s=within_s)
        return Ran(answer["code"], answer["out"], answer.get("note", ""))

    def told(self) -> str:
        return self._said + str(self._call("told"))

    def lines(self) -> str:
        return str(self._call("lines"))

    def send_break(self) -> str:
        return str(self._call("send_break"))

    def edit(self, path: Path, target: str, key: str, value: str) -> None:
        self._call("edit", path=str(path), target=target, key=key, value=value)

    def pids(self) -> list[int]:
        return [self._child.pid] if self._child else []

    def close(self) -> None:
        if self._child:
            self._call("close")

    def abandon(self) -> None:
        if self._turn.locked() and self._child:
            self._child.kill()

    def quit(self) -> None:
        child, self._child = self._child, None
        if child:
            child.kill()
            child.communicate()
        self._folder.cleanup()

    def _call(self, op: str, *, spare_s: float = 0.0, **args: Any) -> Any:
        """Ask the driver; it has 5 s beyond `spare_s`, then it is ended, and that was wrong."""
        if not self._turn.acquire(timeout=4):
            raise Wrong(f"{op} never came back (4 s): it is still in another call")
        try:
            child = self._child if self._child and self._child.poll() is None else self._start()
            assert child.stdin is not None
            child.stdin.write(json.dumps({"op": op, **args}).encode() + b"\n")
            child.stdin.flush()
            answer = self._answer(5 + spare_s, op)
        finally:
            self._turn.release()
        if "not_there" in answer:
            raise NotThere(NOT_THERE.get(op, answer["not_there"]))
        if "wrong" in answer:
            self._said += answer["wrong"]
            raise Wrong(answer["wrong"])
        return answer["ok"]

    def _start(self) -> subprocess.Popen[bytes]:
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        self._child = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.version = self._answer(60, "its start")["ready"]
        return self._child

    def _answer(self, within_s: float, op: str) -> Any:
        child, deadline, line = self._child, time.monotonic() + within_s, b""
        assert child is not None and child.stdout is not None
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([child.stdout], [], [], max(0.0, deadline - time.monotonic()))
            more = os.read(child.stdout.fileno(), 65536) if ready else b""
            if not more:
                child.kill()
                child.communicate()
                self._child = None
                raise Wrong(f"{op} never came back ({within_s:.0f} s)" if not ready else f"died at {op}")
            line += more
        return json.loads(line)


def _found(answer: Any) -> Found | None:
    return Found(answer["text"], tuple(answer["groups"]), time.monotonic()) if answer else None


def bad(name: str) -> Driven:
    """`naive`: a logger as many write it, pyserial, lines, text. `cat`: `cat /dev/ttyX >> log`. Both bad on purpose."""
    made = Driven(name)
    made.patience_s, made.haste = 3.0, 0.4
    return made
