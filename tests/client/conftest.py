"""A lab of one simulated board, as a Python program sees it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from labd.client import Lab
from labd.lab_console import Console
from tests.conftest import BenchInAFolder, until


@pytest.fixture
def lab(board: BenchInAFolder) -> Iterator[Lab]:
    """A Lab in the bench's sandbox; no daemon runs yet."""
    with Lab(env=board.env) as lab:
        yield lab


@pytest.fixture
def shell(lab: Lab) -> Console:
    """The board's console, captured, with root logged in."""
    console = lab["dut"].console
    console.watch()
    until("the login prompt", lambda: b"login: " in console.bytes())
    console.send("root")
    until("the shell's prompt", lambda: console.bytes().endswith(b":~# "))
    return console
