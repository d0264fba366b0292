"""Boards of another machine from Python, and on a terminal."""

from __future__ import annotations

import os
import pty
import select
import time

import pytest

from labd.client import Lab
from labd.errors import TimedOut, Unreachable, Usage
from tests.conftest import LABD, BenchInAFolder
from tests.remote.far import Far


def test_a_board_there_is_driven_from_python(far: Far):
    with Lab(far.near.lab, env=far.near.env) as lab:
        console = lab["dut"].console
        assert console.watch().state == "open"
        console.expect("login:", cursor=0)
        console.send("root")
        console.expect("# ")
        assert console.run("uname -r").output.strip() == "6.12.44-labd"
        assert len(lab.call("serial.log", target="dut", tail=2)) == 2
        with pytest.raises(Usage, match="missing"):
            lab.call("serial.log", target="dut", grep="(")
        with pytest.raises(TimedOut):
            console.expect("never said", timeout=0.2)
        with pytest.raises(Unreachable, match="wired to host 'far'") as told:
            list(console.log())
        assert 'lab.call("serial.log"' in str(told.value.hint)


def test_a_person_is_attached_to_a_console_there(far: Far):
    far.near("serial", "watch", "dut")
    said = on_terminal(far.near, "serial", "connect", "dut", typed=[(b"quits", b"\r"), (b"loopback", b"\x1dq")])
    assert b"dut.console on /dev/" in said and b"detached from dut.console" in said
    assert b"Shared connection" not in said


def on_terminal(bench: BenchInAFolder, *argv: str, typed: list[tuple[bytes, bytes]]) -> bytes:
    """What the program says on a terminal where keys are typed once what each waits for was said; it ends with 0."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(bench.root)
        os.execve(LABD, [LABD, *argv], {**bench.env, "TERM": "xterm"})
    said, deadline = b"", time.monotonic() + 20
    while time.monotonic() < deadline:
        if not select.select([fd], [], [], 0.2)[0]:
            continue
        try:
            data = os.read(fd, 4096)
        except OSError:
            break  # the terminal's end, on Linux
        said += data
        if not data:
            break
        if typed and typed[0][0] in said:
            os.write(fd, typed.pop(0)[1])
    os.close(fd)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, said
    return said
