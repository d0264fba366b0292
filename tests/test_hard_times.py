"""What must survive: kill -9 in a flood, a full disk, several users at once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LAB_OF_ONE, BenchInAFolder, until


@pytest.fixture
def flood(labd: BenchInAFolder) -> BenchInAFolder:
    """A bench whose board never stops printing numbered lines."""
    labd.lab.write_text(LAB_OF_ONE.format(dut="flood"))
    return labd


def lines(bench: BenchInAFolder, *argv: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in bench.out("serial", "log", "dut", "--json", *argv).splitlines()]


def numbers(found: list[dict[str, object]]) -> list[int]:
    """The board's own numbers in the whole lines."""
    hits = (re.search(r"flood (\d{8})", str(line["text"])) for line in found if not line["partial"])
    return [int(hit[1]) for hit in hits if hit]


def captured(bench: BenchInAFolder) -> int:
    return int(bench.json("serial", "show", "dut")[0]["rx"])


def test_kill_9_in_a_flood_loses_no_line_that_was_captured_and_doubles_none(flood: BenchInAFolder):
    flood("serial", "watch", "dut")
    until("the first line", lambda: captured(flood) > 1000)  # a board that is still powering up hears nothing
    flood("serial", "send", "dut", "rate 0")
    until("two megabytes", lambda: captured(flood) > 2_000_000)
    before = lines(flood, "--tail", "5")
    pid = flood.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    flood("serial", "send", "dut", "stop")  # by the next daemon, on the port that was captured all the while
    until("the flood's end", lambda: "stopped" in flood.out("serial", "log", "dut", "--tail", "3"))
    assert flood.daemon_pid() != pid
    found = lines(flood, "--tail", "0")
    seqs = [int(str(line["seq"])) for line in found]
    assert seqs == list(range(1, len(seqs) + 1))
    assert seqs[-1] > int(str(before[-1]["seq"]))
    counted = numbers(found)
    assert counted == list(range(counted[0], counted[0] + len(counted)))


def test_two_watches_two_sends_and_a_follow_at_once(board: BenchInAFolder):
    watches = [board.start("serial", "watch", "dut") for _ in range(2)]
    assert [process.wait(60) for process in watches] == [0, 0]
    until("login prompt", lambda: "login:" in board.out("serial", "log", "dut"))
    follow = board.start("serial", "log", "dut", "--follow", "--tail", "1")
    board("serial", "send", "dut", "root")
    until("shell prompt", lambda: "root@" in board.out("serial", "log", "dut"))
    sends = [board.start("serial", "send", "dut", f"echo from-{n}-{'x' * 60}") for n in range(2)]
    assert [process.wait(60) for process in sends] == [0, 0]
    for n in range(2):
        # A board may echo what is typed while it prints an answer, so an answer need not begin a line.
        until(f"echo and answer {n}", lambda n=n: _texts(board).count(f"from-{n}-") >= 2)
    follow.send_signal(signal.SIGINT)
    seen = follow.communicate(timeout=30)[0].decode()
    assert "from-0-" in seen and "from-1-" in seen


def _texts(bench: BenchInAFolder) -> str:
    return "".join(f"\n{line['text']}" for line in lines(bench, "--tail", "0"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    if os.getuid() != 0:
        pytest.skip("mounting a small file system needs root")
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_stops_no_daemon_and_what_was_lost_is_said(flood: BenchInAFolder, small_disk: Path):
    flood.env["XDG_STATE_HOME"] = str(small_disk)
    flood("serial", "watch", "dut")
    until("the first line", lambda: captured(flood) > 1000)  # a board that is still powering up hears nothing
    flood("serial", "send", "dut", "rate 0")
    until("a full disk", lambda: os.statvfs(small_disk).f_bavail == 0)
    pid = flood.daemon_pid()
    stored = lines(flood, "--tail", "3")
    assert stored and flood.daemon_pid() == pid
    flood("serial", "send", "dut", "stop")
    subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)
    flood("serial", "send", "dut", "stats")
    until("capture again", lambda: any("stats" in str(line["text"]) or "sent=" in str(line["text"])
                                       for line in lines(flood, "--tail", "5")))  # fmt: skip
    events = [line for line in lines(flood, "--tail", "0", "--events") if line.get("event") == "overrun"]
    assert events and int(str(events[0]["count"])) > 0
    assert flood.daemon_pid() == pid


def test_an_edit_on_a_full_disk_leaves_the_lab_as_it_was(labd: BenchInAFolder, small_disk: Path):
    lab = small_disk / "lab.toml"
    labd.env["LABD_LAB"] = str(lab)
    labd("target", "add", "dut")
    before = lab.read_bytes()
    (small_disk / "ballast").write_bytes(b"")
    with (small_disk / "ballast").open("ab", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"x" * 4096)
        except OSError:
            pass
    done = labd("target", "set", "dut", "--description", "x" * 5000, check=1)
    assert b"no space left" in done.stderr and b"Traceback" not in done.stderr
    assert lab.read_bytes() == before
    assert sorted(p.name for p in small_disk.iterdir() if p.name.endswith(".tmp")) == []
