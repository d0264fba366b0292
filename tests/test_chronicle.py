"""The targets' own journals where they can't be written: nothing is lost that the memory can keep, and it is told."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labd import claims
from labd.chronicle import Chronicle
from labd.errors import LabdError
from labd.journal_read import Reader
from tests.conftest import BenchInAFolder, until


@contextmanager
def full(pid: int = 0) -> Iterator[None]:
    """No file of a process can grow, as on a full disk."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def test_what_can_not_be_written_waits_and_is_written_in_order_with_its_time(tmp_path: Path) -> None:
    logged: list[str] = []
    chronicle = Chronicle(str(tmp_path), logged.append)
    directory = Path(chronicle.directory("/lab.toml", "pico"))
    directory.parent.mkdir(parents=True)
    directory.write_text("in the way")
    chronicle.tell("/lab.toml", "pico", "power", "hook", action="cycle")
    assert chronicle.waits and "can't be opened" in (chronicle.failing("/lab.toml", "pico") or "") and logged
    assert chronicle.failing("/lab.toml", "other") is None
    directory.unlink()
    chronicle.tell("/lab.toml", "pico", "power", "verify", outcome="seen")
    assert not chronicle.waits and chronicle.failing("/lab.toml", "pico") is None
    events = list(Reader(str(directory)).events())
    assert [event.kind for event in events] == ["hook", "verify"] and events[0].wall_ns < events[1].wall_ns
    chronicle.close()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits another process (Linux)")
def test_a_power_cycle_on_a_full_disk_says_so_and_is_recorded_later(labd: BenchInAFolder) -> None:
    labd.lab.write_text('[targets.pico]\n[targets.pico.power]\ncycle_cmd = "true"\n')
    labd.env.pop("LABD_ARGV_LOG", None)
    assert b"recorded" not in labd("power-cycle", "pico").stderr
    pid = labd.daemon_pid()
    assert pid is not None
    with full(pid):
        said = labd("power-cycle", "pico").stderr.decode()
        assert "pico: what was done is not recorded yet (" in said and "File too large" in said

    def recorded() -> list[str]:
        rows = map(json.loads, labd.out("timeline", "pico", "--json", "--tail", "0").splitlines())
        return [row["event"] for row in rows if row.get("channel") == "power"]

    until("it is recorded", lambda: recorded() == ["hook", "verify"] * 2)


def test_a_claim_that_can_not_be_written_names_its_file_and_leaves_nothing(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "LABD_AS": "ann"}
    with full(), pytest.raises(LabdError, match=r"pico\.json can't be written: .*; pico is not claimed"):
        claims.claim(env, "/lab.toml", "pico", seconds=60)
    assert claims.read(env, "/lab.toml", "pico") is None
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if name != "lock"]
