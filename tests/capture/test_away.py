"""No byte is lost while a daemon is away or its capture process is replaced, and what can be lost is said."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

from labd import paths
from labd.capture_wire import SOCKET
from labd.journal_read import Reader
from tests.conftest import BenchInAFolder, until

FLOOD = '[targets.dut]\n[[targets.dut.serial]]\nname = "console"\ndevice = "loopback:flood"\n'

#: A capture process of a version to come, which speaks a protocol that nobody knows yet.
STRANGER = """
import fcntl, json, os, socket, sys
runtime, key = sys.argv[2:4]
lock = os.open(runtime + "/capture.lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
os.pwrite(lock, b"%d" % os.getpid(), 0)
door = socket.socket(socket.AF_UNIX)
door.bind(runtime + "/capture.sock")
door.listen()
print("ready", flush=True)
while True:
    peer = door.accept()[0]
    peer.sendall(json.dumps({"labd": "capture", "protocol": 99, "version": "9.9", "pid": os.getpid(),
                             "ports": [{"key": key}]}).encode() + b"\\n")
    if b'"quit"' in peer.makefile("rb").readline():
        break
os.unlink(runtime + "/capture.sock")
"""


@pytest.fixture
def flood(labd: BenchInAFolder) -> BenchInAFolder:
    """A bench whose board prints numbered lines as fast as they are read."""
    labd.lab.write_text(FLOOD)
    labd("serial", "watch", "dut")
    until("the first line", lambda: captured(labd) > 1000)  # a board that is still powering up hears nothing
    labd("serial", "send", "dut", "rate 0")
    return labd


def captured(bench: BenchInAFolder) -> int:
    return int(bench.json("serial", "show", "dut")[0]["rx"])


def events(bench: BenchInAFolder, kind: str) -> list[dict[str, Any]]:
    """From the files: by the command line, all that a flood has said would come along."""
    return [event.fields for event in Reader(directory(bench)).events() if event.kind == kind]


def directory(bench: BenchInAFolder) -> str:
    return paths.journal_dir(bench.env, str(bench.lab), "dut", "console")


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check_every_byte(bench: BenchInAFolder) -> int:
    """Stop the flood: each number is there once, in its order; how many bytes there are."""
    bench("serial", "send", "dut", "stop")
    until("the flood's end", lambda: "flood: stopped" in bench.out("serial", "log", "dut", "--tail", "5"))
    said = bench.out("serial", "log", "dut", "--raw", "--tail", "0")
    sent = re.findall(r"flood: stopped, sent=(\d+)", said)
    numbers = [
        int(number) for number in re.findall(r"kernel: flood (\d{8}) usb 1-1.4: new high-speed USB device", said)
    ]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(numbers) == int(sent[-1])
    return captured(bench)


def test_restarting_the_daemon_in_a_full_speed_flood_loses_no_byte(flood: BenchInAFolder) -> None:
    before = flood.json("daemons")
    until("a megabyte", lambda: captured(flood) > 1_000_000)
    again = flood.json("daemons", "restart")
    assert again["captured_again"] == ["dut.console"] and again["pid"] != before["daemon"]["pid"]
    reached = captured(flood)
    until("more", lambda: captured(flood) > reached + 1_000_000)
    after = flood.json("daemons")
    assert (after["capture"]["pid"], after["boards"][0]["pid"]) == (
        before["capture"]["pid"],
        before["boards"][0]["pid"],
    )
    assert check_every_byte(flood) > reached
    assert events(flood, "attached") and not events(flood, "lost") + events(flood, "gap") + events(flood, "closed")


def test_killing_the_daemon_in_a_flood_loses_no_byte_also_while_nobody_is_there(flood: BenchInAFolder) -> None:
    pid = flood.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until("its end", lambda: not alive(pid))
    reached = _stored(flood)
    until("two megabytes more without a daemon", lambda: _stored(flood) > reached + 2_000_000)
    assert flood.json("daemons")["daemon"] is None
    shown = flood("serial", "show", "dut")
    assert shown.stdout.startswith(b"dut.console: captured  loopback:flood") and b"goes on by itself" in shown.stdout
    assert b"the capture goes on without one" in shown.stderr and b"nothing is being captured" not in shown.stderr
    flood("serial", "send", "dut", "version")  # starts the next one, which can send on what the first one opened
    check_every_byte(flood)
    assert not events(flood, "lost") + events(flood, "gap")


def _stored(bench: BenchInAFolder) -> int:
    rx = os.path.join(directory(bench), "rx")
    return sum(os.stat(os.path.join(rx, name)).st_size for name in os.listdir(rx) if name.endswith(".raw"))


def test_a_killed_capture_process_is_replaced_and_the_gap_is_recorded(flood: BenchInAFolder) -> None:
    before = flood.json("daemons")
    until("a megabyte", lambda: captured(flood) > 1_000_000)
    os.kill(before["capture"]["pid"], signal.SIGKILL)
    (gap,) = until("the gap's record", lambda: events(flood, "gap"))
    assert gap["cause"] == "the capture process died" and 0 <= gap["gap_ms"] < 20_000
    reached = captured(flood)
    until("capture again", lambda: captured(flood) > reached + 100_000)
    after = flood.json("daemons")
    assert after["daemon"]["pid"] == before["daemon"]["pid"] and after["capture"]["pid"] != before["capture"]["pid"]
    assert after["untracked"] == []
    flood("serial", "send", "dut", "stop")
    until("the flood's end", lambda: "flood: stopped" in flood.out("serial", "log", "dut", "--tail", "5"))
    assert not events(flood, "lost")
    flood("daemons", "restart")  # and what was handed over anew is taken up again too
    assert flood.json("serial", "show", "dut")[0]["state"] == "open"
    assert flood.json("daemons")["boards"][0]["pid"] == before["boards"][0]["pid"]


def test_a_board_that_died_while_no_daemon_was_there_is_lost_at_that_time_and_comes_back(board: BenchInAFolder) -> None:
    board("serial", "watch", "dut")
    until("login prompt", lambda: "login:" in board.out("serial", "log", "dut"))
    listed = board.json("daemons")
    os.kill(listed["daemon"]["pid"], signal.SIGKILL)
    until("its end", lambda: not alive(listed["daemon"]["pid"]))
    os.kill(listed["boards"][0]["pid"], signal.SIGKILL)
    until("the board's end", lambda: not alive(listed["boards"][0]["pid"]))
    board("serial", "watch", "dut", check=None)  # it may come just before the board is there again
    (lost,) = until("the loss in the record", lambda: events(board, "lost"))
    assert "hang-up" in lost["why"]
    until("the board again", lambda: events(board, "reopened"))
    assert board.json("serial", "show", "dut")[0]["state"] == "open"
    assert events(board, "reopened")[0]["gap_ms"] > 0


def test_an_answer_comes_after_what_caused_it(board: BenchInAFolder) -> None:
    board("serial", "watch", "dut")
    until("login prompt", lambda: "login:" in board.out("serial", "log", "dut"))
    board("serial", "send", "dut", "root")
    until("shell prompt", lambda: "root@" in board.out("serial", "log", "dut"))
    for number in range(20):
        sent = board.json("serial", "send", "dut", f"echo said-{number}")
        since, answer = str(sent["seq"]), f"said-{number}"
        until("the answer", lambda s=since, a=answer: a in board.out("serial", "log", "dut", "--since", s))
    reader = Reader(directory(board))
    for event in reader.events():
        if event.kind == "tx" and event.fields["data"].startswith("echo"):
            echo = event.fields["data"].encode().rstrip(b"\r")
            assert reader.bytes(event.rx, event.rx + len(echo) + 1000).find(echo) >= 0, event
            assert event.rx <= reader.bytes(0).find(echo)


def test_a_capture_process_of_another_version_is_said_to_be_and_replaced_with_a_gap(labd: BenchInAFolder) -> None:
    labd.lab.write_text(FLOOD)
    runtime = paths.private_dir(paths.runtime_dir(labd.env))
    argv = [sys.executable, "-c", STRANGER, "-m", runtime, directory(labd)]
    stranger = subprocess.Popen(argv, stdout=subprocess.PIPE)
    try:
        assert stranger.stdout is not None and stranger.stdout.readline() == b"ready\n"
        labd("serial", "watch", "dut")
        assert stranger.wait(20) == 0
        (gap,) = events(labd, "gap")
        assert "another version (9.9)" in gap["cause"]
        log = (labd.runtime / "labd" / "daemon.log").read_text()
        assert "speaks protocol 99" in log
    finally:
        stranger.kill()
        stranger.communicate()


def test_a_stopped_capture_process_delays_no_question_about_the_past(board: BenchInAFolder) -> None:
    board("serial", "watch", "dut")
    until("login prompt", lambda: "login:" in board.out("serial", "log", "dut"))
    pid = board.json("daemons")["capture"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        assert "login:" in board.out("serial", "log", "dut", timeout=10)
        assert board.json("serial", "show", "dut", timeout=10)[0]["state"] == "open"
        assert board.json("serial", "send", "dut", "root", timeout=10)["accepted"] == 5
    finally:
        os.kill(pid, signal.SIGCONT)
    until("what came meanwhile", lambda: "root@" in board.out("serial", "log", "dut"))


def test_the_socket_is_for_this_user_only(board: BenchInAFolder) -> None:
    board("serial", "watch", "dut")
    assert (board.runtime / "labd" / SOCKET).stat().st_mode & 0o777 == 0o600
