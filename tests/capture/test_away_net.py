"""Network ports over the end of a daemon: a plain stream loses nothing, RFC 2217 costs a gap that is recorded."""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

import pytest

from labd import paths
from labd.journal_read import Reader
from tests.capture.test_away import alive
from tests.channels.far import rfc2217, serving
from tests.conftest import BenchInAFolder, until

LAB = '[targets.dut]\n[[targets.dut.serial]]\nname = "console"\ndevice = "{scheme}://127.0.0.1:{port}"\n'


def echo(line: socket.socket) -> None:
    while data := line.recv(65536):
        line.sendall(data)


def reader(bench: BenchInAFolder) -> Reader:
    return Reader(paths.journal_dir(bench.env, str(bench.lab), "dut", "console"))


def events(bench: BenchInAFolder, kind: str) -> list[dict[str, Any]]:
    return [event.fields for event in reader(bench).events() if event.kind == kind]


def kill_daemon(bench: BenchInAFolder) -> None:
    pid = bench.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until("its end", lambda: not alive(pid))


def end_daemon(bench: BenchInAFolder, how: str) -> None:
    """And have the next one, which nobody asks to watch anything."""
    if how == "restart":
        bench("daemons", "restart")
    else:
        kill_daemon(bench)
        bench("serial", "trigger", "rm", "--all")  # starts one


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_plain_stream_is_taken_up_again_on_the_same_connection(labd: BenchInAFolder, how: str) -> None:
    with serving(echo) as server:
        labd.lab.write_text(LAB.format(scheme="socket", port=server.port))
        labd("serial", "watch", "dut")
        labd("serial", "send", "dut", "before")
        end_daemon(labd, how)
        server.connections[0].sendall(b"said by itself\n")
        until("what came", lambda: b"said by itself" in reader(labd).bytes(0))
        labd("serial", "send", "dut", "after")
        until("the echo", lambda: b"after" in reader(labd).bytes(0))
        assert len(server.connections) == 1
        assert events(labd, "attached") and not events(labd, "lost") + events(labd, "reopened")


def test_what_a_plain_stream_says_while_no_daemon_is_there_is_captured(labd: BenchInAFolder) -> None:
    with serving(echo) as server:
        labd.lab.write_text(LAB.format(scheme="socket", port=server.port))
        labd("serial", "watch", "dut")
        kill_daemon(labd)
        server.connections[0].sendall(b"nobody is here\n")
        until("the bytes on the disk", lambda: b"nobody is here" in reader(labd).bytes(0))
        assert labd.json("daemons")["daemon"] is None


def test_a_server_that_hung_up_while_no_daemon_was_there_is_connected_to_again(labd: BenchInAFolder) -> None:
    with serving(echo) as server:
        labd.lab.write_text(LAB.format(scheme="socket", port=server.port))
        labd("serial", "watch", "dut")
        kill_daemon(labd)
        server.hang_up()
        labd("serial", "trigger", "rm", "--all")
        [again] = until("the new connection", lambda: events(labd, "reopened"))
        assert again["cause"] == f"127.0.0.1:{server.port} closed the connection" and again["gap_ms"] > 0


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_rfc2217_comes_back_by_itself_and_the_gap_is_recorded(labd: BenchInAFolder, how: str) -> None:
    with rfc2217() as server:
        labd.lab.write_text(LAB.format(scheme="rfc2217", port=server.port))
        labd("serial", "watch", "dut")
        end_daemon(labd, how)
        [again] = until("the new connection", lambda: events(labd, "reopened"))
        assert again["cause"] == "the daemon that held its connection ended" and again["gap_ms"] >= 0
        [lost] = events(labd, "lost")
        assert lost["why"] == again["cause"]
        labd("serial", "send", "dut", "after")
        until("what was sent", lambda: b"after" in server.heard)


def test_a_port_that_was_lost_before_the_daemon_died_is_lost_once_and_still_awaited(labd: BenchInAFolder) -> None:
    with serving(echo) as server:
        labd.lab.write_text(LAB.format(scheme="socket", port=server.port))
        labd("serial", "watch", "dut")
        server.stop()
        [lost] = until("the loss", lambda: events(labd, "lost"))
        kill_daemon(labd)
        labd("serial", "trigger", "rm", "--all")
        until("the line", lambda: [row["state"] for row in labd.json("serial", "show", "dut")] == ["lost"])
        server.start()
        [again] = until("the new connection", lambda: events(labd, "reopened"))
        assert events(labd, "lost") == [lost] and again["gap_ms"] > 0
