"""Files of calls that run on another machine: read here, written here."""

from __future__ import annotations

import hashlib
import os
import shutil

import pytest

from labd.operations import all_operations
from tests.remote.far import Far


def test_every_file_that_a_verb_of_a_channel_takes_says_which_way_it_goes():
    routed = [op for op in all_operations() if op.channel and op.effect in ("observe", "actuate")]
    silent = [f"{op.name}: {p.name}" for op in routed for p in op.params
              if (p.kind == "path" or p.complete == "file") and not p.ships]  # fmt: skip
    assert not silent


@pytest.mark.skipif(shutil.which("sz") is None, reason="lrzsz is not installed")
def test_files_cross_both_machines_to_the_board_and_back(far: Far):
    near = far.near
    near.lab.write_text(
        near.lab.read_text().replace("dut", "loader").replace("loopback:linux-login", "loopback:xmodem")
    )
    near("serial", "watch", "loader")
    near("serial", "expect", "loader", "load>", "--since", "0", "--timeout", "20")
    (near.root / "image.bin").write_bytes(os.urandom(3000))
    sent = near.json("serial", "xfer", "send", "image.bin", "-t", "loader", "-p", "x", "--start", "rx")
    assert sent["files"] == [str(near.root / "image.bin")] and sent["bytes"] >= 3000
    near("serial", "xfer", "recv", "new.bin", "-t", "loader", "-p", "x", "--start", "sx")
    received = (near.root / "new.bin").read_bytes()
    assert len(received) == 1024
    done = near("serial", "xfer", "recv", "new.bin", "-t", "loader", "-p", "x", "--start", "sx", check=1)
    assert b"new.bin is there already" in done.stderr
    assert (near.root / "new.bin").read_bytes() == received
    assert list((far.bench.root / "state" / "labd" / "remote" / "calls").iterdir()) == []
    near("serial", "stop", "loader")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_recording_is_written_where_the_caller_is(far: Far):
    near = far.near
    near("serial", "watch", "dut")
    near("serial", "expect", "dut", "login:", "--since", "0", "--timeout", "20")
    folder = near.root / "out dir"
    folder.mkdir(exist_ok=True)
    written = near.json("record", "export", "dut", "--since", "1h", "-o", "out dir/session.txt")
    assert written["file"] == str(folder / "session.txt")
    assert "login" in (folder / "session.txt").read_text()
    assert not (far.bench.root / "session.txt").exists()
    done = near("record", "export", "dut", "--since", "1h", "-o", "no such/session.txt", check=4)
    assert b"on this machine" in done.stderr
    assert digest(near("record", "export", "dut", "--since", "1h", "--format", "zip").stdout[:2]) == digest(b"PK")
