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

#: Bytes that a file may have: less than the board says.
MOST = 64 << 10


@pytest.fixture
def full(labd: BenchInAFolder) -> Iterator[BenchInAFolder]:
    """A bench whose console has said more than its files can take."""
    master, near = pty.openpty()
    tty.setraw(near)
    labd.lab.write_text(LAB_OF_ONE.replace("loopback:{dut}", os.ttyname(near)))
    watching = labd.start("serial", "watch", "dut",
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, MOST)))  # fmt: skip
    watching.communicate(timeout=60)
    assert watching.returncode == 0
    os.set_blocking(master, False)
    left = b"a line of text, and again\r\n" * (2 * MOST // 27)

    def said() -> bool:
        nonlocal left
        try:
            left = left[os.write(master, left[:4096]) :] if left else left
        except BlockingIOError:
            pass
        return not left and bool(labd.json("serial", "show", "dut")[0]["failing"])

    until("a journal that fails", said)
    yield labd
    os.close(master)
    os.close(near)


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


def test_where_the_journal_is_well_nothing_is_said(board: BenchInAFolder):
    board("serial", "watch", "dut")
    done = board("serial", "send", "dut", "x", "--json")
    assert "failing" not in json.loads(done.stdout) and done.stderr == b""
