"""Boards that are real shells: what they say, that they are shut in, and that nothing of them stays behind."""

from __future__ import annotations

import glob
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from loopback import confine
from loopback.home import Home

from .conftest import DEADLINE_S, Play, Terminal

Open = Callable[[str], Terminal]

pytestmark = pytest.mark.skipif(confine.why_not() is not None, reason=f"cannot shut programs in: {confine.why_not()}")
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
OWN = 'title = "mine"\nbanner = "hello\\n"\n[program]\nargv = ["sh", "-i"]\nenv = {PS1 = "mine# "}\n'


def gone(pid: int) -> bool:
    """Wait for a process to be gone."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        try:
            state = Path("/proc", str(pid), "stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            return True
        if state == b"Z":
            return True
        select.select([], [], [], 0.02)
    return False


def test_a_real_dash_echoes_answers_and_keeps_statuses(play: Play, terminal: Open) -> None:
    port = terminal(play("dash-shell", "--set", "nonce=d4sh", "--baud", "0").tty)
    port.expect(rb"board d4sh\r\n\r\n# ")
    port.send(b"cat nonce; (exit 7)\r")
    port.expect(rb"cat nonce; \(exit 7\)\r\nd4sh\r\n# ")
    port.send(b"echo rc=$? $BOARD\r")
    port.expect(rb"\r\nrc=7 d4sh\r\n# ")


@needs_bash
def test_a_real_bash_has_bracketed_paste(play: Play, terminal: Open) -> None:
    port = terminal(play("bash-shell", "--baud", "0").tty)
    port.expect(rb"\x1b\[\?2004hroot@loopback:~# ")
    port.send(b"\x1b[200~echo one\x1b[201~\r")
    port.expect(rb"echo one\r\n\x1b\[\?2004l\rone\r\n\x1b\[\?2004hroot@loopback:~# ")


@needs_bash
def test_the_fancy_prompt_is_coloured_and_long_lines_are_redrawn(play: Play, terminal: Open) -> None:
    port = terminal(play("fancy-shell", "--baud", "0").tty)
    port.expect(rb"\x1b\]0;root@fancy: ~\x07.*\x1b\[01;32mroot@fancy\x1b\[00m:\x1b\[01;34m~\x1b\[00m# ")
    echo = b""
    for byte in b"echo " + b"0123456789" * 8:  # one by one: what comes at once is not redrawn
        port.send(bytes([byte]))
        echo += port.expect(re.escape(bytes([byte])))
    port.send(b"\r")
    echo += port.expect(rb"\x1b\[\?2004l\r")
    assert b"0123456789" * 8 not in echo and b" \r" in echo, "readline did not wrap the line"
    port.expect(rb"(0123456789){8}\r\n")


def test_the_cursor_is_asked_for_at_each_prompt_and_the_answer_is_no_input(play: Play, terminal: Open) -> None:
    port = terminal(play("busybox-shell", "--baud", "0").tty)
    for _ in range(2):
        port.expect(rb"/ # \x1b\[6n")
        port.send(b"\x1b[24;5Recho got it\r")
        port.expect(rb"\r\ngot it\r\n")


def test_the_question_is_the_players_when_the_program_asks_none(play: Play, terminal: Open, tmp_path: Path) -> None:
    board = tmp_path / "asks.toml"
    board.write_text(OWN.replace("[program]", '[program]\nprompt = "mine# "\nask_position = true'))
    port = terminal(play(str(board), "--allow-programs", "--baud", "0").tty)
    for _ in range(2):
        port.expect(rb"mine# \x1b\[6n")
        port.send(b"\x1b[24;")
        port.send(b"5Recho got it\r")
        port.expect(rb"\r\ngot it\r\n")


@pytest.mark.skipif(shutil.which("python3", path="/usr/bin") is None, reason="no python3 under /usr/bin")
def test_a_shell_reaches_no_file_process_or_socket_of_the_machine(play: Play, terminal: Open, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("top secret")
    port = terminal(play("dash-shell", "--baud", "0").tty)
    port.expect(rb"# ")
    for command, answer in {
        f"cat {secret}": rb"Permission denied",
        f"echo x > {secret}": rb"Permission denied|cannot create",
        f"ls {Path.home()}": rb"Permission denied",
        "ls /proc/1": rb"Permission denied",
        "cat /etc/shadow": rb"Permission denied",
        "kill -9 $PPID": rb"not permitted|No such process",
        "/usr/bin/python3 -c 'import socket; socket.socket()'": rb"PermissionError",
        "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX)'": rb"PermissionError",
        "echo mine > here; cat here; pwd": rb"\nmine\r\n\S*/home\r\n",
    }.items():
        port.send(command.encode() + b"\r")
        assert re.search(answer, port.expect(rb"\n[^\n]*\r\n# ")), command
    assert secret.read_text() == "top secret"


def test_power_and_the_players_end_leave_no_process_and_no_home(play: Play, terminal: Open) -> None:
    player = play("dash-shell", "--baud", "0")
    port = terminal(player.tty)
    port.expect(rb"# ")
    pids = []
    for _ in range(2):
        port.send(b"setsid sleep 1000 & nohup sleep 1000 >/dev/null 2>&1 & echo $$ $! pid; pwd\r")
        found = re.search(rb"\n(\d+) (\d+) pid\r\n(\S+)\r\n", port.expect(rb"pid\r\n\S+\r\n"))
        assert found
        pids += [int(found[1]), int(found[2])]
        home = found[3].decode()
        assert os.path.isdir(home)
        if len(pids) == 2:
            player.do(power="cycle")
            port.expect(rb"board none\r\n\r\n# ")
    assert player.end() == 0
    assert [pid for pid in pids if not gone(pid)] == []
    assert not os.path.exists(home)
    left = subprocess.run(["pgrep", "-P", str(player.process.pid)], capture_output=True).stdout
    assert left == b""


def test_a_killed_player_takes_its_shell_along_and_the_next_one_its_home(play: Play, terminal: Open) -> None:
    player = play("dash-shell", "--baud", "0")
    port = terminal(player.tty)
    port.expect(rb"# ")
    port.send(b"echo pid $$ $HOME\r")
    found = re.search(rb"pid (\d+) (\S+)", port.expect(rb"\npid \d+ \S+\r\n"))
    assert found
    player.kill()
    assert gone(int(found[1]))
    old = tempfile.tempdir
    tempfile.tempdir = str(Path(found[2].decode()).parents[1])
    try:
        home = Home()
        assert glob.glob(f"{tempfile.tempdir}/loopback-home-*") == [str(Path(home.path).parent)]
        home.remove()
    finally:
        tempfile.tempdir = old


def test_a_shell_that_ends_is_started_again(play: Play, terminal: Open) -> None:
    player = play("dash-shell", "--baud", "0")
    port = terminal(player.tty)
    port.expect(rb"# ")
    port.send(b"exit 3\r")
    port.expect(rb"board none\r\n\r\n# ")
    ended = [entry for entry in player.records("state") if entry["state"] == "ended"]
    assert [(entry["code"], entry["boots"]) for entry in ended] == [(3, 1)]
    assert player.stats()["boots"] == 2


def run(*args: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "loopback", *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=DEADLINE_S,
    )
    return done.returncode, done.stderr


def test_a_file_of_ones_own_may_run_no_program_unless_allowed(tmp_path: Path, play: Play, terminal: Open) -> None:
    board = tmp_path / "mine.toml"
    board.write_text(OWN)
    code, said = run(str(board))
    assert code == 2
    assert "mine.toml: program: is a real program; give --allow-programs" in said
    port = terminal(play(str(board), "--allow-programs", "--baud", "0").tty)
    port.expect(rb"hello\r\nmine# ")


def test_including_a_built_in_shell_changes_its_variables_but_not_its_program(
    tmp_path: Path, play: Play, terminal: Open
) -> None:
    board = tmp_path / "mine.toml"
    board.write_text('include = "dash-shell"\n[variables]\nprompt = "mine> "\n')
    terminal(play(str(board), "--baud", "0").tty).expect(rb"mine> ")
    board.write_text('include = "dash-shell"\n[program]\nargv = ["sh"]\n')
    assert run(str(board))[0] == 2


def test_a_program_that_is_not_installed_is_named(tmp_path: Path) -> None:
    board = tmp_path / "mine.toml"
    board.write_text('title = "x"\n[program]\nargv = ["nosuch-a"]\nargv_or = ["nosuch-b"]\n')
    code, said = run(str(board), "--allow-programs")
    assert (code, "needs nosuch-a or nosuch-b, which is not installed" in said) == (1, True)
