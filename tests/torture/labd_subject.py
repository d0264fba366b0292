"""labd as a subject: the installed program and its daemon, in a bench of its own; each port is a target of its own."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from labd import __version__
from tests.conftest import BenchInAFolder
from tests.torture.subject import Found, Ran, Sent, Subject, Wrong

_numbers = itertools.count(1)
PORT = '\n[targets.{name}]\n[[targets.{name}.serial]]\nname = "console"\ndevice = "{path}"\nbaud = {baud}\n'


class Labd(Subject):
    """Everything through `labd` as a user types it."""

    name = "labd"
    version = __version__

    def __init__(self, bench: BenchInAFolder) -> None:
        self.bench = bench
        self.target = ""

    def open(self, path: Path | str, *, baud: int = 115200, tx_delay_ms: int = 0, prompt: str = "",
             more: str = "") -> None:  # fmt: skip
        self.target = f"t{next(_numbers)}"
        with self.bench.lab.open("a") as lab:  # one write, so that two at once do not mix
            lab.write(PORT.format(name=self.target, path=path, baud=baud) + more)
        self._ok("watch", self.target)

    def open_net(self, host: str, port: int) -> None:
        self.open(f"rfc2217://{host}:{port}", more="assert_dtr = false\n")

    def stored(self) -> bytes:
        return self._ok("log", self.target, "--raw", "--tail", "0").stdout

    def shown(self) -> list[str]:
        return [line["text"] for line in self.lines_shown()]

    def lines_shown(self) -> list[dict[str, Any]]:
        """Each shown line with its number and whether it is unfinished."""
        found = self._ok("log", self.target, "--json", "--tail", "0").stdout
        return [json.loads(line) for line in found.splitlines() if line.startswith(b'{"seq"')]

    def expect(self, pattern: str, within_s: float) -> Found | None:
        return self._found(self._labd("expect", self.target, pattern, "--since", "0", *_timeout(within_s)))

    def ask(self, line: str, pattern: str, within_s: float) -> Found | None:
        return self._found(self._labd("send", self.target, line, "--expect", pattern, *_timeout(within_s)))

    def send(self, data: bytes, within_s: float) -> Sent:
        with tempfile.NamedTemporaryFile(dir=self.bench.root) as file:
            file.write(data)
            file.flush()
            began = time.monotonic()
            done = self._labd("send", self.target, "--file", file.name, "--json", within_s=within_s)
        if time.monotonic() - began > within_s:
            raise Wrong(f"send came back after {time.monotonic() - began:.1f} s")
        answer = json.loads(done.stdout) if done.returncode == 0 else {}
        said = done.stderr.decode()
        if done.returncode:
            said = json.loads(done.stderr.splitlines()[-1])["error"]["message"]
        return Sent(answer.get("accepted", _taken(said)), said)

    def type_sure(self, line: str) -> None:
        self._ok("send", self.target, line, "--verify-echo", within_s=30)

    def run(self, command: str, within_s: float) -> Ran:
        done = self._labd("run", self.target, command, "--json", *_timeout(within_s)[:2], within_s=within_s + 10)
        if done.returncode and not done.stdout:
            return Ran(None, "", done.stderr.decode())
        answer = json.loads(done.stdout)
        return Ran(answer["code"], answer["output"] or "", "interleaved" if answer.get("interleaved") else "")

    def told(self) -> str:
        events = self._ok("log", self.target, "--events", "--tail", "0").stdout.decode()
        return self._ok("show", self.target).stdout.decode() + events

    def lines(self) -> str:
        return _words(self._labd("lines", self.target))

    def send_break(self) -> str:
        return _words(self._labd("break", self.target))

    def edit(self, path: Path, target: str, key: str, value: str) -> None:
        done = self.bench("target", "set", target, f"--{key}", value, check=None, env={"LABD_LAB": str(path)})
        if done.returncode:
            raise Wrong(_words(done))

    def pids(self) -> list[int]:
        return [pid for pid in (self.bench.daemon_pid(), self.bench.capture_pid()) if pid]

    def close(self) -> None:
        if self.target:
            self._ok("stop", self.target)
            self.target = ""

    def quit(self) -> None:
        self.bench.clean()

    def _labd(self, *words: str, within_s: float = 60.0) -> subprocess.CompletedProcess[bytes]:
        try:
            return self.bench("serial", *words, check=None, timeout=within_s + 20)
        except subprocess.TimeoutExpired:
            raise Wrong(f"labd serial {words[0]} never came back ({within_s + 20:.0f} s)") from None

    def _ok(self, *words: str, within_s: float = 60.0) -> subprocess.CompletedProcess[bytes]:
        done = self._labd(*words, within_s=within_s)
        if done.returncode:
            raise Wrong(f"labd serial {words[0]}: {_words(done)}")
        return done

    def _found(self, done: subprocess.CompletedProcess[bytes]) -> Found | None:
        if done.returncode == 5:
            return None
        if done.returncode:
            raise Wrong(_words(done))
        answer = json.loads(done.stdout)
        match = answer.get("match", answer)
        return Found(match["text"], tuple(match["groups"]), time.monotonic())


def _timeout(within_s: float) -> tuple[str, str, str]:
    return ("--timeout", f"{within_s:g}", "--json")


def _words(done: subprocess.CompletedProcess[bytes]) -> str:
    return f"exit {done.returncode}: " + " ".join((done.stdout + done.stderr).decode(errors="replace").split())[:300]


def _taken(text: str) -> int | None:
    """`1234` of "took 1234 of 200000 bytes"."""
    found = re.search(r"(\d+) of \d+ bytes", text)
    return int(found[1]) if found else None
