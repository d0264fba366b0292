"""What the tests of helpers share."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home() -> Iterator[Path]:
    """Short, as UNIX sockets need it."""
    folder = tempfile.mkdtemp(prefix="lh-", dir="/tmp")
    yield Path(folder)
    shutil.rmtree(folder)
