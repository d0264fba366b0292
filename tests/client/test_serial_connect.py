"""`labd serial connect`, driven as a person would: in a PTY, by pexpect."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import termios
import tty
from collections.abc import Iterator
from typing import Any

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labd.client import Client
from labd.errors import Usage
from labd.terminal import Keys, escape_byte
from tests.conftest import LAB_OF_ONE, LABD, BenchInAFolder, until


class Person:
    """Somebody at a terminal with `serial connect` in it, started from a shell-like parent that keeps the PTY open."""

    def __init__(self, bench: BenchInAFolder) -> None:
        self.bench = bench
        self.spawned: list[pexpect.spawn] = []

    def connect(self, *words: str, **env: str) -> pexpect.spawn:
        """A new terminal, attached."""
        child = pexpect.spawn(LABD, ["serial", "connect", "dut", *words], timeout=20, dimensions=(24, 120),
                              env={**self.bench.env, "TERM": "xterm", **env}, encoding="utf-8")  # fmt: skip
        child.before_it = termios.tcgetattr(child.child_fd)
        child.delaybeforesend = None
        self.spawned.append(child)
        return child


@pytest.fixture
def person(board: BenchInAFolder) -> Iterator[Person]:
    """Nobody is attached yet."""
    person = Person(board)
    yield person
    for child in person.spawned:
        child.close(force=True)


def log_in(child: pexpect.spawn) -> None:
    child.expect("login: ")
    child.send("root\r")
    child.expect("# ")


def quit_it(child: pexpect.spawn) -> None:
    child.send("\x1dq")
    child.expect(pexpect.EOF)
    child.wait()


def modes(child: pexpect.spawn) -> list[Any]:
    return termios.tcgetattr(child.child_fd)


def terminal_of(child: pexpect.spawn) -> int:
    """The far end of its terminal, open: so that the terminal outlives the program."""
    tty = subprocess.run(["ps", "-o", "tty=", "-p", str(child.pid)], capture_output=True, text=True, check=True)
    return os.open(f"/dev/{tty.stdout.strip()}", os.O_RDWR | os.O_NOCTTY)


def writer(bench: BenchInAFolder) -> Any:
    with Client(bench.env) as client:
        rows = client.request("daemon.status")["channels"]
    return bench.json("serial", "show", "dut")[0].get("writer") if rows else None


def test_what_the_board_says_is_shown_and_keys_go_out_as_typed(person: Person, board: BenchInAFolder):
    child = person.connect()
    child.expect("then q quits")
    log_in(child)
    child.send("echo o\x7fok | nothing\r")
    child.expect(r"\nok \| nothing")
    quit_it(child)
    assert child.exitstatus == 0
    assert "its capture goes on" in child.before
    assert board.json("serial", "show", "dut")[0]["state"] == "open"
    assert "] #" in board.out("serial", "log", "dut", "--tail", "5")
    events = board.out("serial", "log", "dut", "--events", "--tail", "0")
    assert 'tx "' in events and "\\x7f" in events


def test_ctrl_c_goes_to_the_board_and_not_to_us(person: Person, board: BenchInAFolder):
    child = person.connect()
    log_in(child)
    child.send("\x03\x1a\x1c")
    until("the control characters", lambda: r"\x03" in board.out("serial", "log", "dut", "--events", "--tail", "0"))
    assert child.isalive()
    quit_it(child)


def test_the_window_gets_a_title_and_gives_it_back(person: Person):
    child = person.connect()
    child.expect(r"\x1b\[22;2t\x1b\]2;dut\.console — labd\x07")
    child.expect("login: ")
    quit_it(child)
    assert "\x1b[23;2t" in child.before


def test_no_title_for_a_dumb_terminal(person: Person):
    child = person.connect(TERM="dumb")
    child.expect("login: ")
    assert "\x1b]2;" not in child.before
    quit_it(child)


def test_the_escape_key_helps_sends_itself_and_refuses_a_break_where_there_is_none(
    person: Person, board: BenchInAFolder
):
    child = person.connect()
    child.expect("login: ")
    child.send("\x1d?")
    child.expect("send a break")
    child.send("\x1db")
    child.expect(r"\[labd: .*no .*break|\[labd: .*break")
    child.send("\x1dz")
    child.expect("no such command")
    child.send("\x1ds")
    child.expect(r"dut\.console: open.*an interactive session")
    child.send("\x1d\x1d")
    until("the escape key itself", lambda: r"\x1d" in board.out("serial", "log", "dut", "--events", "--tail", "0"))
    quit_it(child)


def test_another_escape_key_leaves_the_usual_one_to_the_board(person: Person, board: BenchInAFolder):
    child = person.connect("--escape", "ctrl-a")
    child.expect("Ctrl-A then q quits")
    child.expect("login: ")
    child.send("\x1d")
    until("Ctrl-]", lambda: r"\x1d" in board.out("serial", "log", "dut", "--events", "--tail", "0"))
    child.send("\x01q")
    child.expect(pexpect.EOF)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_the_terminal_is_restored_when_a_signal_ends_it(person: Person, number: signal.Signals):
    child = person.connect()
    child.expect("login: ")
    until("the raw terminal", lambda: not modes(child)[3] & termios.ICANON)
    slave = terminal_of(child)
    try:
        child.kill(number)
        child.expect("detached")
        child.wait()
        assert child.exitstatus == 128 + number
        assert modes(child) == child.before_it
    finally:
        os.close(slave)


def test_the_terminal_is_restored_on_quit_and_for_a_pause(person: Person):
    child = person.connect()
    child.expect("login: ")
    until("the raw terminal", lambda: not modes(child)[3] & termios.ICANON)
    child.kill(signal.SIGTSTP)
    until("the terminal given back", lambda: modes(child) == child.before_it)
    child.kill(signal.SIGCONT)
    until("the raw terminal again", lambda: not modes(child)[3] & termios.ICANON)
    slave = terminal_of(child)
    try:
        child.send("\x1dq")
        child.expect("detached")
        child.wait()
        assert modes(child) == child.before_it
    finally:
        os.close(slave)


def test_a_signal_ends_it_though_its_terminal_takes_nothing(person: Person, board: BenchInAFolder):
    board.lab.write_text(LAB_OF_ONE.format(dut="flood"))
    child = person.connect()
    child.expect("then q quits")
    child.send("rate 0\r")
    until("a flood larger than the terminal's buffer", lambda: _journal_size(board) > 300_000)
    child.kill(signal.SIGTERM)
    until("its end", lambda: not _lives(child.pid))
    board("serial", "send", "dut", "stop")


def _journal_size(board: BenchInAFolder) -> int:
    return sum(path.stat().st_size for path in (board.root / "state").rglob("rx/*.raw"))


def _lives(pid: int) -> bool:
    """Whether it runs, without taking its exit code from who waits for it."""
    seen = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return seen is None


def test_a_resize_changes_nothing(person: Person):
    child = person.connect()
    log_in(child)
    for size in range(20, 60, 5):
        child.setwinsize(size, size * 2)
    child.send("echo still-$((1+0))\r")
    child.expect("still-")
    quit_it(child)


def test_several_watch_and_one_types(person: Person, board: BenchInAFolder):
    first = person.connect()
    log_in(first)
    second = person.connect()
    second.expect("an interactive session")
    second.expect(pexpect.EOF)
    second.wait()
    assert second.exitstatus == 6
    third = person.connect("--read-only", "--tail", "3")
    third.expect("Welcome to Loopback|Last login")
    third.expect("# ")
    third.send("x")
    third.expect("only watching")
    first.send("echo for-all\r")
    third.expect("for-all")
    refused = board("serial", "send", "dut", "echo from outside", "--wait", "0", check=6)
    assert b"an interactive session" in refused.stderr
    quit_it(third)
    quit_it(first)
    until("a free console", lambda: writer(board) is None)
    board("serial", "send", "dut", "echo from outside")


def test_taking_over_is_told_to_who_had_it(person: Person):
    first = person.connect()
    log_in(first)
    second = person.connect("--take")
    second.expect("# ")
    first.expect("taken over")
    second.send("echo mine\r")
    first.expect("mine")
    first.send("x")
    first.expect("only watching")
    quit_it(second)
    quit_it(first)


def test_a_port_that_is_lost_and_comes_back_is_told(person: Person, board: BenchInAFolder):
    board.lab.write_text(LAB_OF_ONE.format(dut="wanderer"))
    child = person.connect()
    child.expect("> ")
    child.send("vanish for 1\r")
    child.expect(r"\[labd: dut\.console is lost: ")
    child.expect(r"\[labd: dut\.console is back: /dev/")
    child.send("id\r")
    child.expect("wanderer .* boot")
    quit_it(child)


def test_a_stop_and_a_new_watch_are_told(person: Person, board: BenchInAFolder):
    child = person.connect()
    child.expect("login: ")
    board("serial", "stop", "dut")
    child.expect("the capture was stopped")
    board("serial", "watch", "dut")
    child.expect(r"dut\.console is open")
    child.send("\r")
    child.expect("login: |refused")
    quit_it(child)


def test_a_daemon_that_goes_and_returns_is_told(person: Person, board: BenchInAFolder):
    child = person.connect()
    child.expect("login: ")
    board("daemons", "stop")
    child.expect("daemon is away")
    child.send("x")
    child.expect("not sent")
    board("serial", "watch", "dut")
    child.expect("the daemon is back")
    until("the console held again", lambda: writer(board))
    refused = board("serial", "send", "dut", "echo from outside", "--wait", "0", check=6)
    assert b"an interactive session" in refused.stderr
    quit_it(child)


def test_who_types_after_a_restart_is_left_to_it_and_the_session_watches_on(person: Person, board: BenchInAFolder):
    child = person.connect()
    child.expect("login: ")
    board("daemons", "stop")
    child.expect("daemon is away")
    child.kill(signal.SIGSTOP)
    board("serial", "watch", "dut")
    other = board.start("serial", "hold", "dut", "--why", "by hand")
    until("the other's hold", lambda: writer(board))
    child.kill(signal.SIGCONT)
    child.expect("by hand.*watching on without the keyboard")
    other.kill()
    other.communicate()
    quit_it(child)


def test_it_needs_a_terminal_and_says_what_does_not(board: BenchInAFolder):
    done = board("serial", "connect", "dut", check=2)
    assert b"needs a terminal" in done.stderr and b"serial send" in done.stderr


def test_a_simulated_board_can_not_be_opened_by_another_program(person: Person, board: BenchInAFolder):
    board("serial", "watch", "dut")
    child = person.connect("--exclusive")
    child.expect("simulated board")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 7
    assert board.json("serial", "show", "dut")[0]["state"] == "open"


def test_exclusive_stops_the_capture_opens_the_port_itself_and_says_how_to_go_on(person: Person, board: BenchInAFolder):
    far, near = os.openpty()
    try:
        board.lab.write_text(LAB_OF_ONE.replace("loopback:{dut}", os.ttyname(near)))
        board("serial", "watch", "dut")
        child = person.connect("--exclusive")
        child.expect("stopped the capture")
        child.expect("opened by this program alone")
        until("the raw terminal", lambda: not modes(child)[3] & termios.ICANON)
        os.write(far, b"hello from the board\r\n")
        child.expect("hello from the board")
        child.send("hi\x1dq")
        child.expect("labd serial watch dut starts the capture again")
        assert os.read(far, 10) == b"hi"
        assert b"hello" not in board("serial", "log", "dut").stdout
        board("serial", "watch", "dut")
    finally:
        os.close(far)
        os.close(near)


def test_keys_typed_at_once_are_one_event(person: Person, board: BenchInAFolder):
    far, near = os.openpty()
    try:
        tty.setraw(near)
        board.lab.write_text(LAB_OF_ONE.replace("loopback:{dut}", os.ttyname(near)))
        child = person.connect()
        child.expect("then q quits")
        until("the raw terminal", lambda: not modes(child)[3] & termios.ICANON)
        heard = b""
        for key in "echo":
            child.send(key)
            heard += os.read(far, 1)  # no echo, so that nothing but the time brings the record forth
        assert heard == b"echo"

        def told() -> str:
            events = board("serial", "log", "dut", "--events", "--json").stdout.splitlines()
            return "".join(event["data"] + "|" for event in map(json.loads, events) if event.get("event") == "tx")

        whole = until("all keys in the record", lambda: told().replace("|", "") == "echo" and told())
        assert whole.count("|") < 4
        quit_it(child)
    finally:
        os.close(far)
        os.close(near)


def test_only_watching_is_looking_where_the_capture_runs(person: Person, board: BenchInAFolder):
    board("serial", "watch", "dut")
    mark = len(board.records())
    child = person.connect("--read-only", LABD_POLICY="observe", LABD_AS="somebody-else")
    child.expect("only watching")
    quit_it(child)
    mine = [record for record in board.records()[mark:] if record["rec"] == "start"]
    assert {record["effect"] for record in mine} == {"observe"}
    assert {record["decision"] for record in mine} == {"permitted"}
    refused = person.connect(LABD_POLICY="observe")
    refused.expect("refused")
    refused.expect(pexpect.EOF)
    board("serial", "stop", "dut")
    starting = person.connect("--read-only", LABD_POLICY="observe")
    starting.expect("serial watch is refused")
    starting.expect(pexpect.EOF)


@given(st.lists(st.binary(max_size=8)), st.integers(0, 255))
def test_keys_are_the_same_however_they_are_cut(pieces: list[bytes], escape: int):
    cut, whole = Keys(escape), Keys(escape)
    by_piece = [found for piece in pieces for found in cut.feed(piece)]
    at_once = whole.feed(b"".join(pieces))

    def joined(found: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        merged: list[tuple[str, bytes]] = []
        for kind, data in found:
            if kind == "keys" and merged and merged[-1][0] == "keys":
                merged[-1] = (kind, merged[-1][1] + data)
            else:
                merged.append((kind, data))
        return merged

    assert joined(by_piece) == joined(at_once)


@given(st.binary())
def test_without_an_escape_key_every_byte_is_the_boards(data: bytes):
    assert b"".join(part for _, part in Keys(None).feed(data)) == data


def test_the_escape_key_is_one_byte():
    assert (escape_byte("ctrl-]"), escape_byte("^a"), escape_byte("~"), escape_byte("none")) == (0x1D, 1, 0x7E, None)
    with pytest.raises(Usage, match="one byte"):
        escape_byte("f1")
