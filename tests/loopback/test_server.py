"""A board served over TCP: pyserial's own RFC 2217 client at one end, the board's record at the other."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import serial

from .conftest import DEADLINE_S, Play, Playing

LOOP = 'title = "loop"\nmode = "loop"\n'
SHELL = """
title = "shell"
settle_ms = 300
banner = "boot {boots}\\n"
prompt = "# "
[[respond]]
match = "boots"
reply = "{boots}\\n"
"""
Client = Callable[..., serial.SerialBase]

pytestmark = pytest.mark.filterwarnings("ignore:set:DeprecationWarning")  # pyserial's own


@pytest.fixture
def client() -> Iterator[Client]:
    """Open a served board with pyserial."""
    opened: list[serial.SerialBase] = []

    def open_(player: Playing, **settings: object) -> serial.SerialBase:
        opened.append(serial.serial_for_url(player.ready["url"], timeout=DEADLINE_S, **settings))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


def until(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        select.select([], [], [], 0.01)


def pulse(port: serial.SerialBase, ms: float) -> None:
    """Turn DTR over, and back after `ms`; the client itself takes 50 ms for each."""
    port.dtr = not port.dtr
    select.select([], [], [], ms / 1000)
    port.dtr = not port.dtr


@pytest.mark.parametrize("how", ["--rfc2217", "--socket"])
def test_all_bytes_come_back_over_tcp(play: Play, client: Client, how: str) -> None:
    player = play(LOOP, how, "0", "--baud", "0")
    assert player.tty is None
    assert player.ready["url"].startswith(how.strip("-") + "://127.0.0.1:")
    port = client(player)
    data = bytes(range(256)) * 40 + b"\xff\xff\xff\r\n\x00"
    until("the board boots", lambda: player.stats()["powered"])
    port.write(data)
    assert port.read(len(data)) == data


def test_a_pulse_of_dtr_resets_the_board_and_its_length_is_recorded(play: Play, client: Client) -> None:
    player = play(SHELL, "--rfc2217", "0")
    port = client(player)
    assert port.read_until(b"# ").startswith(b"boot 1\r\n")
    pulse(port, 200)
    assert port.read_until(b"# ").endswith(b"boot 2\r\n# ")
    measured = player.wait_records("dtr", 1)
    assert len(measured) == 1
    assert 200 <= measured[0]["ms"] < 1000
    assert measured[0]["level"] is False, "pyserial's DTR rests asserted, so a pulse takes it away"
    assert [entry["by"] for entry in player.records("reset")] == ["dtr"]
    assert not port.cts, "a reset takes no supply away"


def test_opening_and_closing_is_no_pulse(play: Play, client: Client) -> None:
    player = play(SHELL, "--rfc2217", "0")
    for _ in range(2):
        port = client(player)
        port.write(b"boots\r")
        port.read_until(b"# ")
        port.close()
        until("the client is gone", lambda: not player.stats()["open"])
    assert player.records("dtr") == player.records("reset") == []
    assert player.stats()["boots"] == 1


def test_a_board_may_be_reset_by_each_rise_of_dtr(play: Play, client: Client) -> None:
    player = play(SHELL + '[wires]\ndtr = "rise"\n', "--rfc2217", "0")
    port = client(player)
    until("opening has reset it", lambda: len(player.records("reset")) == 1)
    port.read_until(b"# ")
    pulse(port, 10)
    until("the second rise has reset it", lambda: len(player.records("reset")) == 2)
    assert len(player.records("dtr")) == 1


def test_dtr_may_be_the_power_button(play: Play, client: Client) -> None:
    board = SHELL + '[wires]\ndtr = "power-button"\nhold_ms = 400\n'
    player = play(board, "--rfc2217", "0")
    port = client(player)
    port.read_until(b"# ")
    pulse(port, 10)
    until("the press was felt", lambda: len(player.records("button")) == 1)
    assert player.stats()["powered"], "a short press of a running board's button does not switch it off"
    pulse(port, 500)
    until("a long press switches it off", lambda: not player.stats()["powered"])
    until("CTS follows the supply", lambda: port.cts)
    pulse(port, 10)
    port.read_until(b"boot 2\r\n# ")
    assert [entry["ms"] >= 400 for entry in player.records("button")] == [False, True, False]


def test_cts_is_the_supply_active_low_and_the_other_lines_are_set_from_outside(play: Play, client: Client) -> None:
    player = play(SHELL, "--rfc2217", "0")
    port = client(player)
    until("CTS is not asserted: there is power", lambda: not port.cts)
    player.do(power="off")
    until("CTS is asserted: there is none", lambda: port.cts)
    player.do(power="on")
    until("CTS is not asserted again", lambda: not port.cts)
    assert (port.dsr, port.cd, port.ri) == (False, False, False)
    player.do(lines={"dsr": True, "ri": True})
    until("DSR and RI are up", lambda: port.dsr and port.ri)
    assert not port.cd
    levels = player.do(lines={"dsr": False, "cd": True})["lines"]
    until("CD is up, DSR down", lambda: port.cd and not port.dsr)
    assert levels == {"dtr": True, "rts": True, "cts": False, "dsr": False, "cd": True, "ri": True}
    assert "no line 'dtr'" in player.ask(lines={"dtr": True})["error"]


def test_rts_breaks_and_settings_are_recorded(play: Play, client: Client) -> None:
    player = play(SHELL, "--rfc2217", "0")
    port = client(player, baudrate=9600)
    port.rts = False
    port.send_break(0.15)
    port.parity = "E"
    until("the settings came", lambda: any(entry["parity"] == "E" for entry in player.records("settings")))
    assert player.wait_records("break", 1)[0]["ms"] >= 150
    assert any(entry["name"] == "rts" and not entry["level"] for entry in player.records("line"))
    assert player.records("settings")[-1]["baudrate"] == 9600


def test_a_second_client_is_turned_away_and_the_next_one_is_not(play: Play, client: Client) -> None:
    player = play(SHELL, "--socket", "0")
    port = client(player)
    port.read_until(b"# ")
    where = ("127.0.0.1", int(player.ready["url"].rpartition(":")[2]))
    with socket.create_connection(where, DEADLINE_S) as second:
        assert second.recv(1) == b""
    port.write(b"boots\r")
    assert port.read_until(b"# ") == b"boots\r\n1\r\n# "
    port.close()
    until("the first is gone", lambda: not player.stats()["open"])
    port = client(player)
    port.write(b"boots\r")
    assert port.read_until(b"# ") == b"boots\r\n1\r\n# "


def test_unplugging_ends_the_connection_and_none_is_taken_until_replug(play: Play, client: Client) -> None:
    player = play(SHELL, "--socket", "0")
    where = ("127.0.0.1", int(player.ready["url"].rpartition(":")[2]))
    with socket.create_connection(where, DEADLINE_S) as first:
        first.settimeout(DEADLINE_S)
        seen = b""
        while b"# " not in seen:
            seen += first.recv(100)
        player.do(fault="unplug")
        assert first.recv(100) == b""
    with socket.create_connection(where, DEADLINE_S) as second:
        assert second.recv(1) == b""
    player.do(fault="replug")
    port = client(player)
    port.write(b"boots\r")
    assert port.read_until(b"# ") == b"boots\r\n1\r\n# "


def test_a_client_that_reads_nothing_holds_nobody_up(play: Play, client: Client) -> None:
    player = play("flood", "--socket", "0", "--set", "rate=0")
    where = ("127.0.0.1", int(player.ready["url"].rpartition(":")[2]))
    with socket.create_connection(where, DEADLINE_S):
        until("it floods", lambda: player.stats()["to_host"]["carried"] > 100_000)
        assert player.stats()["powered"]
    until("it is gone", lambda: not player.stats()["open"])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("loop", "--rfc2217", "0.0.0.0:0"), "on this machine alone"),
        (("loop", "--rfc2217", "x"), "is no port"),
        (("loop", "--rfc2217", "0", "--link", "/tmp/x"), "one of a cable"),
        (("loop", "--rfc2217", "0", "--socket", "0"), "one of a cable"),
    ],
)
def test_what_cannot_be_served_is_bad_usage(args: tuple[str, ...], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loopback", *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=DEADLINE_S,
    )
    assert done.returncode == 2
    assert said in done.stderr


def test_lines_need_a_served_port(play: Play) -> None:
    player = play(SHELL)
    assert "only with --rfc2217" in player.ask(lines={"dsr": True})["error"]
