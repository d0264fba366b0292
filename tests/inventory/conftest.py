"""A made-up machine, a real pseudo-terminal, and the doctor between them."""

import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labd import doctor
from labd.call import Call
from tests.inventory.machine import FakeMachine

Rows = list[dict[str, Any]]
Examine = Callable[..., Rows]


@pytest.fixture
def fake(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path / "machine")


@pytest.fixture
def pty() -> Iterator[str]:
    master, slave = os.openpty()
    name = os.ttyname(slave)
    os.close(slave)
    yield name
    os.close(master)


@pytest.fixture
def examine(tmp_path: Path, fake: FakeMachine) -> Examine:
    """examine(lab text, target) → rows, on the made-up machine."""

    def run(text: str, target: str = "pico", live: Any = (), screens: Any = (), **env: str) -> Rows:
        data = tomllib.loads(text)
        whole = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin"), **env}
        bench = doctor.Bench(fake.machine, data, str(tmp_path), whole, live, screens)
        return doctor.examine(bench, target, data["targets"][target].get("serial", []))

    return run


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., str]:
    """program("adb") → a program of that name on the PATH of `examine`; its text, if any, is a shell script."""

    def make(name: str, script: str = "", mode: int = 0o755) -> str:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(mode)
        return str(path)

    return make


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., Call]:
    """call(lab text) → a call by a user whose home is empty but for that lab."""

    def make(lab: str | None, **env: str) -> Call:
        path = tmp_path / "lab.toml"
        if lab is not None:
            path.write_text(lab)
        home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": "/nowhere",
                "XDG_RUNTIME_DIR": str(tmp_path / "run")}  # fmt: skip
        return Call(face="test", argv=[], cwd=str(tmp_path), env={**home, "LABD_LAB": str(path), **env},
                    out=lambda _: None, err=lambda _: None, columns=200)  # fmt: skip

    return make


def serial(device: str, name: str = "console", target: str = "pico", extra: str = "") -> str:
    """One serial interface of a lab file."""
    return f'[[targets.{target}.serial]]\nname = "{name}"\ndevice = "{device}"\n{extra}'


def statuses(rows: Rows, interface: str | None = "*") -> list[str]:
    """The statuses of the rows, or of those about one thing."""
    return [row["status"] for row in rows if interface in ("*", row["interface"])]
