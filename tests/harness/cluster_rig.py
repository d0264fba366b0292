"""A real scheduler and real workers on loopback, each a process of its own, for tests and benchmarks."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.harness.conftest import wait_until

ROOT = Path(__file__).resolve().parents[2]
PRELOAD = "tests.harness.cluster_preload"


class Rig:
    """One scheduler, and the workers that were added."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        told = root / "scheduler.json"
        self._start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                    "--scheduler-file", str(told))  # fmt: skip
        wait_until("the scheduler", lambda: told.exists() and told.stat().st_size, deadline_s=60)
        self.address: str = json.loads(told.read_text())["address"].removeprefix("tcp://")

    def workers(self, *names: str, threads: int = 1, boards: str = "", preload: str | None = PRELOAD,
                **env: str) -> None:  # fmt: skip
        """Start workers side by side, and wait for them. `boards`: as `--resources` says them."""
        for name in names:
            more = ["--resources", boards] if boards else []
            more += ["--preload", preload] if preload else []
            self._start(name, "worker", f"tcp://{self.address}", "--host", "127.0.0.1", "--no-nanny", "--no-dashboard",
                        "--nthreads", str(threads), "--name", name, "--local-directory", str(self.root / name),
                        *more, **env)  # fmt: skip
        for name in names:
            wait_until(f"worker {name}", lambda name=name: b"Registered to" in self.log(name), deadline_s=60)

    def _start(self, name: str, *words: str, **env: str) -> None:
        dask = str(Path(sys.executable).with_name("dask"))
        with (self.root / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [dask, *words], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT), **env},
            )  # fmt: skip

    def log(self, name: str) -> bytes:
        """What a process has printed."""
        return (self.root / f"{name}.log").read_bytes()

    def children(self, name: str) -> list[int]:
        """The processes that a worker has started and that live."""
        pid = self.processes[name].pid
        found: list[int] = []
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (task / "children").read_text().split())
        return found

    def kill(self, name: str) -> None:
        """End it as a crash would."""
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def end(self) -> None:
        """End all of it."""
        for name, process in self.processes.items():
            if process.poll() is None:
                self.kill(name)


@contextlib.contextmanager
def a_rig(root: Path) -> Iterator[Rig]:
    """A scheduler without workers, under `root`."""
    root.mkdir(parents=True, exist_ok=True)
    rig = Rig(root)
    try:
        yield rig
    finally:
        rig.end()
