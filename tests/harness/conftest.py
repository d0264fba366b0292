"""Parts that the harness's tests share: waiting with a deadline, programs written on the spot."""

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

DEADLINE_S = 20.0


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
