"""A kernel that logs on a console in use: each place that [kernel] names, at its count."""

from __future__ import annotations

import re
from collections.abc import Callable

from .conftest import Play, Terminal

Open = Callable[[str], Terminal]

BOARD = """
title = "chatty"
prompt = "# "
[kernel]
prompt = "# "
lines = ["one", "two"]
{}
[[respond]]
match = "three"
reply = "alpha\\nbravo\\ncharlie\\n"
[[respond]]
match = "short"
reply = "a\\nb\\nlonger\\n"
"""
LOG = rb"\[ +\d+\.\d{6}\] "


def answer(play: Play, terminal: Open, keys: str, command: bytes, until: bytes) -> bytes:
    port = terminal(play(BOARD.format(keys), "--baud", "0").tty)
    port.expect(rb"# ")
    port.send(command + b"\r")
    return re.sub(LOG, b"[t] ", port.expect(until))


def test_a_line_comes_between_the_output_and_the_prompt(play: Play, terminal: Open) -> None:
    got = answer(play, terminal, "before_prompt = 2", b"three", rb"\n# ")
    assert got == b"three\r\nalpha\r\nbravo\r\ncharlie\r\n[t] one\r\n# "


def test_a_line_comes_between_lines(play: Play, terminal: Open) -> None:
    got = answer(play, terminal, "between = 2", b"three", rb"\n# ")
    assert got == b"three\r\nalpha\r\n[t] one\r\nbravo\r\ncharlie\r\n# "


def test_a_line_comes_in_the_middle_of_a_line(play: Play, terminal: Open) -> None:
    got = answer(play, terminal, "mid_line = 2", b"three", rb"\n# ")
    assert got == b"three\r\nalpha\r\nbra[t] one\r\nvo\r\ncharlie\r\n# "


def test_a_line_that_is_too_short_to_be_cut_leaves_it_to_the_next(play: Play, terminal: Open) -> None:
    got = answer(play, terminal, "mid_line = 2", b"short", rb"\n# ")
    assert got == b"short\r\na\r\nb\r\n[t] one\r\nlonger\r\n# " or got.count(b"[t]") == 1
    assert re.search(rb"\r\nb\r\nl?o?n?g?\[t\] one\r\n", got)


def test_a_line_comes_in_the_middle_of_the_echo(play: Play, terminal: Open) -> None:
    got = answer(play, terminal, "in_echo = 1", b"three", rb"\n# ")
    assert got.startswith(b"th[t] one\r\nree\r\nalpha\r\n")


def test_a_line_comes_after_the_prompt_which_is_not_printed_again(play: Play, terminal: Open) -> None:
    got = answer(play, terminal, "after_prompt = 2", b"three", rb"one\r\n")
    assert got.endswith(b"charlie\r\n# [t] one\r\n")


def test_lines_come_by_the_clock_and_none_without_power(play: Play, terminal: Open) -> None:
    player = play(BOARD.format("every_ms = 20"), "--baud", "0")
    port = terminal(player.tty)
    port.expect(rb"one\r\n.*two\r\n.*one\r\n")
    assert [entry["kernel"] for entry in player.records("tx") if "kernel" in entry][:3] == [True] * 3
    player.do(power="off")
    sent = player.stats()["to_host"]["carried"]
    port.send(b"three\r")
    player.until("the line was carried", lambda stats: stats["to_dut"]["carried"] >= 6)
    assert player.stats()["to_host"]["carried"] <= sent + 30


def test_the_chatty_board_is_a_shell_whose_answers_can_be_told_apart(play: Play, terminal: Open) -> None:
    player = play("chatty-kernel", "--set", "mid_line=0", "--set", "between=0", "--baud", "0")
    port = terminal(player.tty)
    port.expect(rb"root@chatty:~# ")
    port.send(b"printf 'a\\nb\\n'; false\r")
    got = re.sub(LOG + rb"[^\n]*\n", b"", port.expect(rb"\nroot@chatty:~# "))
    assert got.endswith(b"false\r\na\r\nb\r\nroot@chatty:~# ")
    port.send(b"echo rc=$?\r")
    port.expect(rb"\r\nrc=1\r\n" + LOG)
