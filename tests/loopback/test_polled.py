"""Consoles that are polled or lossy: without pacing input is lost, with it none is."""

from __future__ import annotations

import re
import select
import time
from collections.abc import Callable

from .conftest import Play, Terminal

Open = Callable[[str], Terminal]

POLLED = """
title = "polled"
banner = "> "
[input]
poll_ms = 20
fifo = 2
[[respond]]
match = "print"
steps = [{ text = "0123456789012345678901234567890123456789\\n", count = 60 }]
[[respond]]
match = "work"
delay_ms = 600
reply = "worked\\n"
[[respond]]
match = "(?:ab)+"
reply = "got {0}\\n"
"""


def paced(port: Terminal, data: bytes, pace_s: float = 0.06) -> None:
    """Send `data` a byte at a time, waiting for no echo."""
    for byte in data:
        port.send(bytes([byte]))
        begun = time.monotonic()
        while time.monotonic() < begun + pace_s:
            select.select([], [], [], pace_s)


def echoed(port: Terminal, data: bytes) -> None:
    """Send `data` a byte at a time, each when the one before has been echoed."""
    for byte in data:
        port.send(bytes([byte]))
        port.expect(rb"\r\n" if byte == 0x0D else re.escape(bytes([byte])))


def test_a_polled_uboot_loses_unpaced_input_and_takes_a_single_key(play: Play, terminal: Open) -> None:
    player = play("uboot-polled", "--set", "bootdelay=60")
    port = terminal(player.tty)
    port.expect(rb"60 ")
    port.send(b" ")
    port.expect(rb"=> ")
    port.send(b"printenv bootdelay\r")
    stats = player.until("input was lost", lambda stats: stats["lost_input"] > 5)
    assert stats["lost_input"] < len(b"printenv bootdelay\r")
    assert player.wait_records("lost", 1)[0]["data"]


def test_every_length_of_unpaced_command_is_damaged_at_every_speed(play: Play, terminal: Open) -> None:
    for baud in ("9600", "115200", "0"):
        player = play(POLLED, "--baud", baud)
        port = terminal(player.tty)
        port.expect(rb"> ")
        for count in (2, 3, 8):
            lost = player.stats()["lost_input"]
            port.send(b"ab" * count + b"\r")
            player.until(f"{count} at {baud} baud lost some", lambda stats, lost=lost: stats["lost_input"] > lost)


def test_bytes_that_wait_for_their_echo_all_arrive(play: Play, terminal: Open) -> None:
    player = play("uboot-polled", "--set", "bootdelay=60")
    port = terminal(player.tty)
    port.expect(rb"60 ")
    port.send(b" ")
    port.expect(rb"=> ")
    echoed(port, b"printenv bootdelay\r")
    port.expect(rb"bootdelay=60\r\n=> ")
    assert player.stats()["lost_input"] == 0


def test_bytes_paced_by_the_clock_arrive(play: Play, terminal: Open) -> None:
    port = terminal(play(POLLED).tty)
    port.expect(rb"> ")
    paced(port, b"abab\r")
    port.expect(rb"got abab\r\n")


def test_a_line_typed_while_the_board_prints_is_lost_however_its_bytes_are_paced(play: Play, terminal: Open) -> None:
    player = play(POLLED, "--baud", "9600")
    port = terminal(player.tty)
    port.expect(rb"> ")
    echoed(port, b"print\r")
    paced(port, b"abab\r", 0.05)
    assert player.stats()["lost_input"] >= 2, "it was read while the board printed for two seconds"


def test_a_working_boot_loader_throws_input_away_but_for_ctrl_c(play: Play, terminal: Open) -> None:
    player = play(POLLED)
    port = terminal(player.tty)
    port.expect(rb"> ")
    echoed(port, b"work\r")
    paced(port, b"ab", 0.04)
    player.until("both were thrown away", lambda stats: stats["lost_input"] == 2)
    port.send(b"\x03")
    port.expect(rb"\^C\r\n")
    echoed(port, b"ab\r")
    assert b"worked" not in port.expect(rb"got ab\r\n")


def test_the_lossy_board_loses_each_7th_byte_of_fast_input_and_none_of_slow(play: Play, terminal: Open) -> None:
    player = play("lossy")
    port = terminal(player.tty)
    port.expect(rb"# ")
    command = b"echo " + b"0123456789" * 5 + b"\r"
    port.send(command)
    got = port.expect(rb"# ").partition(b"\r\n")[0]
    assert len(command) - 1 - len(got) == (len(command) - 8) // 7
    assert player.stats()["to_dut"]["dropped"] == (len(command) - 8) // 7
    dropped = player.stats()["to_dut"]["dropped"]
    paced(port, b"echo abcdefghijklmnop\r", 0.005)
    port.expect(rb"\nabcdefghijklmnop\r\n")
    assert player.stats()["to_dut"]["dropped"] == dropped


def test_the_lossy_board_flips_when_it_is_told_to(play: Play, terminal: Open) -> None:
    player = play("lossy", "--set", "drop_every=0", "--set", "flip_every=5")
    port = terminal(player.tty)
    port.expect(rb"# ")
    port.send(b"echo " + b"0" * 40 + b"\r")
    assert b"1" in port.expect(rb"# ").partition(b"\r\n")[0]
    counts = player.stats()["to_dut"]
    assert (counts["dropped"], counts["flipped"]) == (0, (46 - 8) // 5)
