"""The boards that give trouble on purpose: torture, wanderer, sleeper; and the keys of the DUT file that they need."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Play, Terminal

Open = Callable[[str], Terminal]


@pytest.fixture
def case(play: Play, terminal: Open) -> Callable[[str, bytes], bytes]:
    """Play one case of the torture board: what came after the command's echo, up to a pattern."""
    port = terminal(play("torture", "--set", "nonce=t0r").tty)
    port.expect(rb"# ")

    def ask(command: str, until: bytes = rb"# ") -> bytes:
        port.send(command.encode() + b"\r")
        port.expect(re.escape(command.encode()) + rb"\r\n")
        return port.expect(until)

    return ask


Case = Callable[..., bytes]


def test_each_case_sends_exactly_what_it_says(case: Case) -> None:
    assert case("case 1") == b"\xe2\x82\xac\n# "
    assert case("case 2") == b"\xb7\xff\n# "
    assert case("case 3", rb"MARK t0r\r\n# ") == bytes(range(256)) + b"MARK t0r\r\n# "
    assert case("case 4") == b"\x11\x13\rA\r\n# "
    assert case("case 6", rb"login: ") == b"\r\nlogin: "
    assert case("case 14", rb"\x1b\[00m:~# ") == b"\x1b[01;32mroot@x\x1b[00m:~# "
    assert case("case 15") == b"SVVZ[   37.360000] systemd[1]: Time jumped backwards, rotating.\r\nSYBQ\r\n# "
    assert case("case 40") == b"one\r\r\ntwo\r\r\n# "
    assert case("case 45") == b"\xff\xff\x41\xff\xfb\x01\xff\r\n# "


def test_a_progress_bar_is_one_line_of_three_thousand_states(case: Case) -> None:
    got = case("case 5")
    assert (got.count(b"\r"), got.count(b"\n")) == (3001, 1)
    assert got.startswith(b"    1 of 3000 downloading\r") and got.endswith(b"\rdone t0r\r\n# ")


def test_ten_megabytes_come_without_a_line_end(play: Play, terminal: Open) -> None:
    port = terminal(play("torture").tty)
    port.expect(rb"# ")
    port.send(b"longline\r")
    port.expect(rb"longline\r\n")
    assert port.take(10 << 20) == b"0123456789abcdef" * 655360
    assert port.expect(rb"# ") == b"END none\r\n# "


@pytest.mark.parametrize(
    ("command", "before", "after", "gap_s"), [("utf8", rb"\xe2\x82", rb"\xac", 0.05), ("edge", rb"rc=1", rb"27", 0.2)]
)
def test_what_is_cut_in_two_comes_with_a_gap(
    play: Play, terminal: Open, command: str, before: bytes, after: bytes, gap_s: float
) -> None:
    player = play("torture")
    port = terminal(player.tty)
    port.expect(rb"# ")
    port.send(command.encode() + b"\r")
    port.expect(before)
    port.expect(after)
    one, two = [entry for entry in player.records("tx") if "echo" not in entry][-3:-1]
    assert two["t"] - one["t"] >= gap_s * 0.9


def test_a_long_case_ends_by_ctrl_c(play: Play, terminal: Open) -> None:
    port = terminal(play("torture").tty)
    port.expect(rb"# ")
    port.send(b"endless\r")
    port.expect(rb"line 00001000 ")
    port.send(b"\x03")
    port.expect(rb"\^C")
    port.expect(rb"\n?# ")
    port.send(b"echo still here\r")
    port.expect(rb"\nstill here\r\n")


def test_a_deaf_board_takes_no_bytes_for_a_while(play: Play, terminal: Open) -> None:
    player = play("torture", "--set", "stall_ms=600")
    port = terminal(player.tty)
    port.expect(rb"# ")
    port.send(b"deaf\r")
    port.expect(rb"deaf\r\ndeaf\r\n# ")
    player.wait_records("fault", 1)
    begun = time.monotonic()
    port.send(b"echo awake\r")
    port.expect(rb"\nawake\r\n")
    assert time.monotonic() - begun > 0.3


def test_the_wanderer_vanishes_on_command_and_returns_under_another_name(
    play: Play, terminal: Open, tmp_path: Path
) -> None:
    link = str(tmp_path / "console")
    player = play("wanderer", "--link", link, "--set", "gone_ms=50", "--set", "nonce=w4")
    port = terminal(link)
    port.expect(rb"> ")
    first = os.readlink(link)
    port.send(b"vanish\r")
    port.expect(rb"leaving\r\n")
    assert port.hung_up(), "the port did not hang up"
    player.until("the adapter is back", lambda stats: stats["tty"] not in (None, first))
    assert os.readlink(link) != first
    again = terminal(link)
    again.send(b"id\r")
    again.expect(rb"wanderer w4 boot 1 ")


def test_the_wanderer_leaves_by_itself_on_a_timer(play: Play, terminal: Open) -> None:
    player = play("wanderer", "--set", "every_ms=100", "--set", "gone_ms=20")
    first = player.tty
    port = terminal(first)
    port.expect(rb"leaving by itself, time 1\r\n")
    assert port.hung_up(), "the port did not hang up"
    player.until("the adapter is back", lambda stats: stats["tty"] not in (None, first))
    player.until("it left again", lambda _: len(player.records("fault")) >= 2)


def test_a_wander_can_be_asked_for_from_outside(play: Play, terminal: Open) -> None:
    player = play("torture")
    first = player.tty
    port = terminal(first)
    port.expect(rb"# ")
    assert player.ask(fault="wander")["ok"] is False
    player.do(fault="wander", ms=20)
    assert port.hung_up(), "the port did not hang up"
    player.until("the adapter is back", lambda stats: stats["tty"] not in (None, first))


def test_the_sleeper_answers_late_and_still_works_meanwhile(play: Play, terminal: Open) -> None:
    port = terminal(play("sleeper", "--set", "answer_ms=300", "--set", "nonce=zz").tty)
    port.expect(rb"> ")
    begun = time.monotonic()
    port.send(b"ask\r")
    port.expect(rb"answer zz\r\n> ")
    assert time.monotonic() - begun >= 0.3
    port.send(b"later\r")
    port.expect(rb"in the background\r\n> ")
    port.send(b"quick\r")
    port.expect(rb"answer zz\r\n> .*job finished zz\r\n")


def test_the_sleeper_takes_a_minute_by_itself(play: Play, terminal: Open) -> None:
    player = play("sleeper")
    terminal(player.tty).expect(rb"> ")
    assert player.records("start")[0]["variables"]["answer_ms"] == "60000"
