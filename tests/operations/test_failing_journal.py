"""Who types while the journal can't be written is told so: by the verbs, in --json, and from Python."""

from __future__ import annotations

import json
import os
import pty
import resource
import tty
from collections.abc import Iterator

import pytest

from labd.client import Lab
from tests.conftest import LAB_OF_ONE, BenchInAFolder, until


@pytest.fixture
def full(labd: BenchInAFolder) -> Iterator[BenchInAFolder]:
    """A bench whose console has said more than can be stored."""
    master, near = pty.openpty()
    tty.setraw(near)
    labd.lab.write_text(LAB_OF_ONE.replace("loopback:{dut}", os.ttyname(near)))
    labd("serial", "watch", "dut")
    pid = labd.capture_pid()
    assert pid is not None
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, before[1]))
    os.write(master, b"a line of text that is lost\r\n")
    until("a journal that fails", lambda: labd.json("serial", "show", "dut")[0]["failing"])
    yield labd
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    os.close(master)
    os.close(near)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits another process (Linux)")
def test_send_and_run_say_that_nothing_is_recorded(full: BenchInAFolder):
    done = full("serial", "send", "dut", "x")
    assert b"the journal of dut.console can't be written just now (" in done.stderr
    sent = json.loads(full("serial", "send", "dut", "x", "--json").stdout)
    assert "File too large" in sent["failing"]
    ran = full("serial", "run", "dut", "x", "--no-status", "--timeout", "1", "--json", check=None)
    assert ran.returncode != 0 and b"can't be written just now" in ran.stderr
    assert "File too large" in json.loads(ran.stdout)["failing"]
    with Lab(str(full.lab), env=full.env) as lab:
        assert "File too large" in (lab["dut"]["console"].send("x").failing or "")


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits another process (Linux)")
def test_a_capture_that_loses_bytes_is_not_called_complete(full: BenchInAFolder):
    capture = full.json("serial", "show", "dut")[0]["capture"]
    assert not capture["complete"] and "bytes could not be stored" in capture["losses"][0]["why"]
    assert "incomplete since #1, because File too large" in full.out("serial", "show", "dut")
    said = full("doctor", "dut", check=None).stdout.decode()
    assert "not being kept" in said and f"df -h {full.root}" in said


def test_where_the_journal_is_well_nothing_is_said(board: BenchInAFolder):
    board("serial", "watch", "dut")
    done = board("serial", "send", "dut", "x", "--json")
    assert "failing" not in json.loads(done.stdout) and b"journal" not in done.stderr
