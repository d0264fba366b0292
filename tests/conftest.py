"""A bench in a folder: the installed program, its own HOME, lab, runtime and state, and no daemon left behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

LABD = str(Path(sys.executable).parent / "labd")

# Whoever started us in the background of a shell may have left SIGINT ignored, and every program that a test starts
# would inherit that: no Ctrl-C would ever reach one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def until(what: str, check: Callable[[], Any], seconds: float = 20.0) -> Any:
    """The first true answer of `check`; fails, saying `what` was missing, after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > deadline:
            pytest.fail(f"after {seconds:.0f} s still missing: {what}")
        time.sleep(0.01)


class BenchInAFolder:
    """Runs the installed `labd` as a user would, in a sandbox of its own."""

    def __init__(self, root: Path, runtime: Path) -> None:
        self.root = root
        self.lab = root / "lab.toml"
        self.log = root / "argv.jsonl"
        self.runtime = runtime
        self.env = {
            "HOME": str(root),
            "PATH": f"{Path(LABD).parent}:/usr/bin:/bin",
            "LABD_LAB": str(self.lab),
            "LABD_ARGV_LOG": str(self.log),
            "XDG_RUNTIME_DIR": str(runtime),
            "XDG_STATE_HOME": str(root / "state"),
            "LANG": "C.UTF-8",
        }

    def __call__(self, *argv: str, check: int | None = 0, stdin: bytes = b"", timeout: float = 60,
                 env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
        done = subprocess.run([LABD, *argv], input=stdin, capture_output=True, env={**self.env, **(env or {})},
                              timeout=timeout, cwd=self.root)  # fmt: skip
        if check is not None:
            assert done.returncode == check, (argv, done.returncode, done.stdout, done.stderr)
        return done

    def start(self, *argv: str, **kw: Any) -> subprocess.Popen[bytes]:
        """The program, still running, with pipes."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([LABD, *argv], env=self.env, cwd=self.root, **{**pipes, **kw})

    def json(self, *argv: str, **kw: Any) -> Any:
        """The answer under --json."""
        return json.loads(self(*argv, "--json", **kw).stdout)

    def out(self, *argv: str, **kw: Any) -> str:
        """The answer as text."""
        return self(*argv, **kw).stdout.decode()

    def records(self) -> list[dict[str, Any]]:
        """The argv record so far."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_bytes().split(b"\n") if line]

    def daemon_pid(self) -> int | None:
        """The running daemon's pid."""
        return self._alive("daemon.lock")

    def capture_pid(self) -> int | None:
        """The pid of the capture process that runs."""
        return self._alive("capture.lock")

    def _alive(self, name: str) -> int | None:
        lock = self.runtime / "labd" / name
        text = lock.read_text().strip() if lock.exists() else ""
        if not text:
            return None
        try:
            os.kill(int(text), 0)
        except OSError:
            return None
        return int(text)

    def clean(self) -> None:
        """Stop the daemon and its capture process, by their own verb first."""
        pids = [pid for pid in (self.daemon_pid(), self.capture_pid()) if pid is not None]
        if pids:
            try:
                subprocess.run([LABD, "daemons", "stop", "--force"], capture_output=True, env=self.env, timeout=30)
            except subprocess.TimeoutExpired:
                pass
            for pid in pids:
                if pid in (self.daemon_pid(), self.capture_pid()):
                    os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def a_bench(root: Path) -> Iterator[BenchInAFolder]:
    """A bench under `root`, cleaned away at the end. The runtime directory is short, as UNIX sockets need it."""
    runtime = Path(tempfile.mkdtemp(prefix="lt-", dir="/tmp"))
    bench = BenchInAFolder(root, runtime)
    try:
        yield bench
    finally:
        bench.clean()
        shutil.rmtree(runtime, ignore_errors=True)


@contextlib.contextmanager
def a_board(dut: str = "linux-login") -> Iterator[BenchInAFolder]:
    """For benchmarks: a bench of its own whose target `dut` is a simulated board, without an argv record."""
    with tempfile.TemporaryDirectory() as root, a_bench(Path(root)) as bench:
        bench.env.pop("LABD_ARGV_LOG")
        bench.lab.write_text(LAB_OF_ONE.format(dut=dut))
        yield bench


LAB_OF_ONE = '[targets.dut]\n[[targets.dut.serial]]\nname = "console"\ndevice = "loopback:{dut}"\n'


@pytest.fixture
def labd(tmp_path: Path) -> Iterator[BenchInAFolder]:
    """A fresh bench in a folder, without a lab."""
    with a_bench(tmp_path) as bench:
        yield bench


@pytest.fixture
def board(labd: BenchInAFolder) -> BenchInAFolder:
    """A bench whose lab has one target, `dut`, with a simulated Linux board on its console."""
    labd.lab.write_text(LAB_OF_ONE.format(dut="linux-login"))
    return labd
