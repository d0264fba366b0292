"""`labd serial expect` as its users meet it: the installed program, a daemon, a simulated board."""

from __future__ import annotations

import json
import time

import pytest

from labd import paths
from labd.journal import Journal
from tests.conftest import BenchInAFolder


@pytest.fixture
def console(board: BenchInAFolder) -> BenchInAFolder:
    """A board that is being captured."""
    board("serial", "watch", "dut")
    return board


def test_a_login_prompt_is_waited_for_and_the_exit_code_says_that_it_came(console: BenchInAFolder):
    done = console("serial", "expect", "dut", "login: ", "--since", "0", "--timeout", "30")
    assert done.stdout.endswith(b"login: \n")
    assert b"matched in #" in done.stderr and b"--from-offset" in done.stderr


def test_json_tells_all_and_one_wait_goes_on_where_the_other_ended(console: BenchInAFolder):
    login = console.json("serial", "expect", "dut", r"(\w+) login: ", "--since", "0", "--timeout", "30")
    assert login["ended"] == "matched" and len(login["groups"]) == 1
    assert login["stop"] > login["start"] and login["seq"] == login["seq_end"]
    console("serial", "send", "dut", "root")
    shell = console.json("serial", "expect", "dut", "never", "--any", "[#$] ", "--from-offset", str(login["cursor"]))
    assert (shell["index"], shell["pattern"]) == (1, "[#$] ")
    sent = console.json("serial", "send", "dut", "echo STEP_DONE")
    answer = console.json("serial", "expect", "dut", "STEP_DONE", "--from-offset", str(sent["rx"]))
    (echo,) = [span for span in answer["echo"] if span[0] >= sent["rx"]]
    assert echo[1] <= answer["start"], "the echo is no answer"


def test_what_never_comes_is_exit_5_with_the_nearest_miss_and_the_last_lines(console: BenchInAFolder):
    console("serial", "expect", "dut", "login: ", "--since", "0", "--timeout", "30")
    done = console("serial", "expect", "dut", "logim: ", "--since", "0", "--timeout", "0.2", check=5)
    assert done.stdout == b"" and b"nearest to 'logim: '" in done.stderr and b"the last lines" in done.stderr
    told = console("serial", "expect", "dut", "logim: ", "--since", "0", "--timeout", "0.2", "--json", check=5)
    data = json.loads(told.stdout)
    assert data["ended"] == "timed_out" and data["last_lines"] and data["nearest"][0]["pattern"] == "logim: "
    assert json.loads(told.stderr.splitlines()[-1])["error"]["code"] == "timed_out"


def test_a_death_pattern_is_exit_8(console: BenchInAFolder):
    done = console("serial", "expect", "dut", "never", "--death", "Run /sbin/init", "--since", "0", check=8)
    assert b"Run /sbin/init" in done.stderr


def test_a_bad_pattern_is_exit_2_with_its_position_and_asks_nothing(board: BenchInAFolder):
    done = board("serial", "expect", "dut", "lo(gin", check=2)
    assert b"position 6" in done.stderr
    assert board.daemon_pid() is None


def test_contradictory_words_are_exit_2(board: BenchInAFolder):
    board("serial", "expect", "dut", "x", "--since", "1", "--from-offset", "1", check=2)
    board("serial", "expect", "dut", "x", "--no-death", "--death", "y", check=2)


def test_without_a_capture_it_is_exit_7_and_how_to_begin_one_unless_it_is_stored_already(console: BenchInAFolder):
    console("serial", "expect", "dut", "login: ", "--since", "0", "--timeout", "30")
    console("serial", "stop", "dut")
    done = console("serial", "expect", "dut", "login: ", check=7)
    assert b"labd serial watch dut" in done.stderr
    console("serial", "expect", "dut", "login: ", "--since", "0")
    console("daemons", "stop")
    console("serial", "expect", "dut", "login: ", "--since", "0")
    console("serial", "expect", "dut", "login: ", check=7)


def test_a_wait_ends_when_the_capture_is_stopped(console: BenchInAFolder):
    waiting = console.start("serial", "expect", "dut", "never comes", "--timeout", "60")
    assert waiting.stderr is not None
    while b"waiting for" not in (line := waiting.stderr.readline()):
        assert line, "no word of what it waits for"
    console("serial", "stop", "dut")
    assert waiting.wait(20) == 7
    waiting.communicate()


def test_a_cursor_beyond_the_end_is_told_at_once(console: BenchInAFolder):
    console("serial", "expect", "dut", "login: ", "--since", "0", "--timeout", "30")
    seen = console.json("serial", "expect", "dut", "login: ", "--since", "0")
    last, end = str(seen["seq"]), str(seen["cursor"])
    far = console("serial", "expect", "dut", "login: ", "--since", "999999", "--timeout", "0", check=5).stderr
    assert f"--since 999999 is beyond the last line, #{last}; only what comes from now on".encode() in far
    far = console("serial", "expect", "dut", "x", "--from-offset", "999999", "--timeout", "0", check=5).stderr
    assert f"--from-offset 999999 is beyond the last byte that came, which ends at {end}".encode() in far
    for at_the_end in (("--since", last), ("--from-offset", end)):
        near = console("serial", "expect", "dut", "never", *at_the_end, "--timeout", "0", check=5).stderr
        assert b"beyond" not in near


def test_a_very_long_line_is_clipped_for_a_person_and_whole_for_a_program(board: BenchInAFolder):
    journal = Journal(paths.journal_dir(board.env, str(board.lab), "dut", "console"))
    journal.rx(b"x" * 4000 + b"\n" + b"y" * 200 + b"\n", time.time_ns(), time.monotonic_ns())
    journal.close()
    look = ("serial", "expect", "dut", "never", "--since", "0", "--timeout", "0")
    told = board(*look, check=5).stderr.decode()
    assert f"  #1  {'x' * 200}… (3800 more characters)\n  #2  {'y' * 200}\n" in told
    assert json.loads(board(*look, "--json", check=5).stdout)["last_lines"][0]["text"] == "x" * 4000
