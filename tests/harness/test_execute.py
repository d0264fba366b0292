"""One command: started, watched, ended, told; whatever it does, its caller gets an answer in time."""

import os
import threading
import time
from pathlib import Path

import pytest

from harness import execute
from tests.harness.conftest import alive

ENV = {"PATH": "/usr/bin:/bin"}


def run(*argv: str, limit_s: float = 20.0, **more: object) -> execute.Ended:
    return execute.run(argv, **{"env": ENV, "cwd": "/", "limit_s": limit_s} | more)  # type: ignore[arg-type]


def test_a_command_is_told_as_it_was() -> None:
    ended = run("sh", "-c", "cat; echo err >&2; exit 7", stdin=b"in\xff")
    assert (ended.code, ended.signal, ended.stdout, ended.stderr) == (7, None, b"in\xff", b"err\n")
    assert (ended.ended_by, ended.ok) == ("exit", False)


def test_death_by_a_signal_has_no_exit_code() -> None:
    ended = run("sh", "-c", "kill -KILL $$")
    assert (ended.code, ended.signal, ended.ended_by) == (None, "SIGKILL", "exit")


@pytest.mark.parametrize("argv", [["no-such-program"], ["/no/such"], ["/etc/passwd"], ["a\0b"]])
def test_what_cannot_start_is_told_not_raised(argv: list[str]) -> None:
    ended = run(*argv)
    assert (ended.ended_by, ended.code) == ("not_started", None)
    assert ended.error


def test_programs_are_looked_up_on_the_given_path_not_on_ours(tmp_path: Path) -> None:
    assert run("sh", "-c", ":", env={"PATH": str(tmp_path)}).ended_by == "not_started"


def test_its_time_is_limited_and_its_whole_group_ends(tmp_path: Path) -> None:
    started = time.monotonic()
    script = f"sleep 600 & echo $! > '{tmp_path}/pid'; trap '' TERM; echo here; while :; do sleep 1; done"
    ended = run("sh", "-c", script, limit_s=0.5)
    assert (ended.ended_by, ended.stdout) == ("time_limit", b"here\n")
    assert time.monotonic() - started < 10
    assert not alive(int((tmp_path / "pid").read_text()))


def test_it_can_be_cancelled_from_another_thread() -> None:
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    ended = run("sleep", "600", cancelled=stop.is_set)
    assert ended.ended_by == "cancelled"
    assert ended.duration_s < 10


def test_a_process_left_behind_with_the_streams_open_is_not_waited_for() -> None:
    ended = run("sh", "-c", "sleep 600 & echo $!")
    try:
        assert ended.ok
        assert ended.duration_s < 10
    finally:
        os.kill(int(ended.stdout), 9)


def test_output_without_end_is_kept_up_to_the_limit_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "KEPT_BYTES", 1000)
    ended = run("head", "-c", "3000000", "/dev/zero")
    assert (len(ended.stdout), ended.cut) == (1000, 2999000)


def test_ten_megabytes_are_kept_whole_on_both_streams() -> None:
    ended = run("sh", "-c", "head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2")
    assert (len(ended.stdout), len(ended.stderr), ended.cut) == (5000000, 5000000, 0)
