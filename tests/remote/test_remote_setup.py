"""`labd setup --host`: this build put on another machine, where there was none."""

from __future__ import annotations

import site
from pathlib import Path

import pytest

import labd
from labd import build
from tests.remote.far import Far

pytestmark = pytest.mark.slow


@pytest.fixture
def bare(far: Far) -> Far:
    """The machine without a labd of its own; what pip would fetch is there."""
    far.near("daemons", "stop")
    far.lab(labd_cmd=f"{far.bench.root}/.local/bin/labd")
    packages = next(path for path in site.getsitepackages() if (Path(path) / "trio").exists())
    config = far.root / "sshd.conf"
    config.write_text(config.read_text().replace("SetEnv ", f"SetEnv PYTHONPATH={packages} PIP_NO_INDEX=1 "))
    far.cut()
    far.start()
    return far


def test_setup_brings_this_build_there_and_twice_is_once(bare: Far):
    near, there = bare.near, bare.bench.root
    done = near("serial", "show", "dut", check=7)
    assert b"labd setup --yes --host far" in done.stderr
    plan = near.json("setup", "--user-only", "--host", "far")
    assert [(step["name"], step["state"]) for step in plan["steps"]] == [("labd", "needed")] and not plan["done"]
    assert not (there / ".local").exists()
    done = near.json("setup", "--user-only", "--host", "far", "--yes", timeout=120)
    assert done["steps"][0]["state"] == "done" and len(done["steps"]) > 1
    source = there / ".local" / "share" / "labd" / "source"
    assert (source / "labd" / "thin.py").read_bytes() == (Path(labd.__file__).parent / "thin.py").read_bytes()
    assert (source.parent / "build").read_text().strip() == build.digest(str(source / "labd"))
    assert b"dut.console" in near("serial", "show", "dut").stdout
    brought, before = (source.parent / "build").read_text(), (source / "labd" / "thin.py").stat().st_ino
    near("setup", "--user-only", "--host", "far", "--yes", timeout=120)
    again = (source.parent / "build").read_text()  # another one where somebody edits this checkout just now
    assert (source / "labd" / "thin.py").stat().st_ino == before or again != brought
