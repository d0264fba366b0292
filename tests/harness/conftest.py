"""Parts that the harness's tests share: waiting with a deadline, programs written on the spot."""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import sandbox
from harness.sandbox import Sandbox
from harness.scenario import Scenario, Step

#: How long anything may take that comes at once on an idle machine. Nothing waits longer than it must.
DEADLINE_S = 60.0


def wait_until(what: str, condition: Callable[[], object], *, deadline_s: float = DEADLINE_S) -> None:
    """Come back when `condition` holds; fail, saying `what` was missing, when it doesn't in time."""
    until = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"after {deadline_s:g} s there is still not: {what}")
        time.sleep(0.005)


def alive(pid: int) -> bool:
    """Whether the process lives (a zombie doesn't)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text() if os.path.isdir("/proc/self") else ""
        os.kill(pid, 0)
    except (ProcessLookupError, FileNotFoundError):
        return False
    return ") Z" not in text


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Path]:
    """Writes a program: `program("name", "#!/bin/sh\\n…")`."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / "real" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return write


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.execute.GRACE_S", 0.4)


def stand_in(directory: Path) -> Path:
    """The stand-in for labd, installed in a new `directory`."""
    path = directory / "labd"
    directory.mkdir()
    text = (Path(__file__).parent / "fake_labd.py").read_text()
    python = getattr(sys, "_base_executable", sys.executable)
    real = os.path.join(os.path.dirname(sys.executable), "labd")
    path.write_text(f"#!{python} -IS\n" + text.partition("\n")[2].replace('REAL = "labd"', f"REAL = {real!r}"))
    path.chmod(0o755)
    return path


@pytest.fixture
def subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in for labd, taken for the installed one."""
    path = stand_in(tmp_path / "installed")
    monkeypatch.setenv("LABD_EVAL_SUBJECT", str(path))
    return path


@pytest.fixture
def place(subject: Path) -> Iterator[Sandbox]:
    """A sandbox of the scenario that adds a board."""
    made = sandbox.create(make_scenario(ADD_PICO), str(subject))
    yield made
    made.stop()
    made.close()


def make_scenario(*lines: str | Step, identity: str = "T1", **fields: Any) -> Scenario:
    """A config scenario with this reference: target `pico` has to be there at the end."""
    plain: dict[str, Any] = {
        "id": identity,
        "title": "A test",
        "tier": "t1",
        "goal": "Enter the board pico.",
        "reference": tuple(Step(line) if isinstance(line, str) else line for line in lines),
        "grader": {"type": "t1_config", "assert": [{"path": "targets.pico", "exists": True}]},
        "path": Path(f"{identity.lower()}.toml"),
        "timeout_s": 30.0,
    }
    return Scenario(**plain | fields)


ADD_PICO = "labd target add pico"
