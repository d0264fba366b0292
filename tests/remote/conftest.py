"""One other machine for all tests here: making one takes a second or two."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.remote.far import Far, a_far_machine


@pytest.fixture(scope="session")
def _machine() -> Iterator[Far]:
    with a_far_machine() as far:
        yield far


@pytest.fixture
def far(_machine: Far) -> Iterator[Far]:
    """Another machine as it should be, and a lab here whose `dut` is a simulated board there."""
    if _machine.sshd is None:
        _machine.start()
    _machine.lab()
    yield _machine
