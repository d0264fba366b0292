"""What a DUT file can say, each thing once, on a real port."""

from __future__ import annotations

import time
from collections.abc import Callable

from .conftest import Play, Terminal

Open = Callable[[str], Terminal]

FAST = "[line]\nbaud = 0\n"


def test_the_smallest_inline_board_greets_and_answers(play: Play, terminal: Open) -> None:
    player = play(
        """
title = "inline"
banner = "hello {nonce}\\n"
prompt = "# "
unknown = "what?\\n"
[[respond]]
match = 'ping (\\d+)'
reply = "pong {1} {{{nonce}}}\\n"
[[respond]]
match = "job"
reply = "started\\n"
followup = ["step {nonce}\\n", "done\\n"]
followup_ms = 40
[[respond]]
match = "slow"
delay_ms = 300
reply = "finally\\n"
""",
        "--set",
        "nonce=7x",
        "--baud",
        "0",
    )
    port = terminal(player.tty)
    assert port.expect(rb"# ") == b"hello 7x\r\n# "
    port.send(b"ping 5\r")
    assert port.expect(rb"# ") == b"ping 5\r\npong 5 {7x}\r\n# "
    port.send(b"job\r")
    assert port.expect(rb"done\r\n") == b"job\r\nstarted\r\n# step 7x\r\ndone\r\n"
    began = time.monotonic()
    port.send(b"slow\r")
    port.expect(rb"finally\r\n# ")
    assert time.monotonic() - began >= 0.29
    port.send(b"else\r")
    port.expect(rb"what\?\r\n# ")
    assert player.recorded("rx") == b"ping 5\rjob\rslow\relse\r"
    start = player.records("start")[0]
    assert start["variables"] == {"nonce": "7x"}


def test_cr_lf_ends_two_lines_as_on_a_real_tty(play: Play, terminal: Open) -> None:
    player = play('title = "t"\nprompt = "# "\n[[respond]]\nmatch = "a"\nreply = "A\\n"\n' + FAST)
    port = terminal(player.tty)
    port.expect(rb"# ")
    port.send(b"a\r\n")
    assert port.take(12) == b"a\r\n\r\nA\r\n# # "
    port.send(b"a\n")
    assert port.take(8) == b"a\r\nA\r\n# "


def test_editing_keys_work_and_control_c_ends_a_line(play: Play, terminal: Open) -> None:
    player = play('title = "t"\nprompt = "# "\n[[respond]]\nmatch = "ok"\nreply = "fine\\n"\n' + FAST)
    port = terminal(player.tty)
    port.expect(rb"# ")
    port.send(b"xx\x15oj\x7fk\r")
    port.expect(rb"fine\r\n# ")
    port.send(b"half\x03")
    assert port.expect(rb"# ") == b"half^C\r\n# "
    port.send(b"ok\r")
    port.expect(rb"fine\r\n# ")


def test_control_c_stops_what_is_being_printed(play: Play, terminal: Open) -> None:
    text = "".join(f"line {number}\\n" for number in range(100))
    player = play(f'title = "t"\nprompt = "# "\nline_ms = 100\n[[respond]]\nmatch = "go"\nreply = "{text}"\n{FAST}')
    port = terminal(player.tty)
    port.expect(rb"# ")
    port.send(b"go\r")
    port.expect(rb"line 1\r\n")
    port.send(b"typed ahead\r\x03")
    assert b"line 9\r\n" not in port.expect(rb"\^C\r\n# ")
    port.send(b"x")
    assert port.take(1) == b"x", "one prompt, not two"


def test_output_comes_by_itself_after_silence_and_is_put_off_by_input(play: Play, terminal: Open) -> None:
    player = play(
        'title = "t"\nprompt = "# "\n[[after]]\nms = 400\nprint = "idle {n}\\n"\n'
        '[[after]]\nms = 100\nsince = "enter"\nrepeat = true\nprint = "beat {n:03d}\\n"\n' + FAST
    )
    port = terminal(player.tty)
    seen = port.expect(rb"idle 1\r\n")
    assert seen.startswith(b"# beat 001\r\nbeat 002\r\n")
    assert b"idle" not in port.expect(rb"beat 01\d\r\n"), "without repeat it fires once"


def test_input_and_a_timer_that_is_due_do_not_starve_each_other(play: Play, terminal: Open) -> None:
    player = play(
        'title = "t"\nprompt = "# "\n[[after]]\nms = 20\nsince = "enter"\nrepeat = true\nprint = "."\n'
        '[[respond]]\nmatch = "busy"\ndelay_ms = 60\nreply = "free\\n"\n' + FAST
    )
    port = terminal(player.tty)
    port.expect(rb"# ")
    port.send(b"busy\r" * 5)
    port.expect(rb"(free.*){5}")
    port.expect(rb"\.\.")


def test_silence_starts_anew_with_each_key(play: Play, terminal: Open) -> None:
    player = play('title = "t"\n[[after]]\nms = 300\nprint = "idle\\n"\n' + FAST)
    port = terminal(player.tty)
    player.until("the board is up", lambda stats: stats["state"] == "main")
    for _ in range(3):
        began = time.monotonic()
        port.send(b"k")
        assert port.take(1) == b"k"
        while time.monotonic() < began + 0.1:
            player.stats()
    began = time.monotonic()
    port.send(b"k")
    port.expect(rb"idle")
    assert time.monotonic() - began >= 0.29


def test_states_change_by_answer_by_timer_and_by_key(play: Play, terminal: Open) -> None:
    player = play(
        """
title = "t"
start = "one"
[states.one]
prompt = "1> "
respond = [{ match = "two", goto = "two" }]
[states.two]
mode = "key"
enter = "press k\\n"
respond = [{ match = "k", reply = "thanks\\n", goto = "three" }]
[states.three]
after = [{ ms = 50, print = "over\\n", goto = "one" }]
"""
        + FAST
    )
    port = terminal(player.tty)
    port.expect(rb"1> ")
    port.send(b"two\r")
    port.expect(rb"two\r\npress k\r\n")
    port.send(b"jk")
    assert port.expect(rb"1> ") == b"thanks\r\nover\r\n1> "
    assert [entry["state"] for entry in player.records("state")] == ["one", "two", "three", "one"]


def test_a_reboot_prints_the_banner_counts_and_forgets(play: Play, terminal: Open) -> None:
    player = play(
        """
title = "t"
banner = "boot {boots}\\n"
prompt = "{mood}> "
variables = { mood = "calm" }
respond = [{ match = "be (.*)", set = { mood = "{1}" } }, { match = "reboot", reply = "bye\\n", reboot = true }]
"""
        + FAST
    )
    port = terminal(player.tty)
    port.expect(rb"^boot 1\r\ncalm> ")
    port.send(b"be cross\r")
    port.expect(rb"cross> ")
    port.send(b"reboot\r")
    port.expect(rb"bye\r\nboot 2\r\ncalm> ")
    assert player.stats()["boots"] == 2


def test_power_can_be_cut_and_given_back(play: Play, terminal: Open) -> None:
    player = play('title = "t"\nbanner = "up {boots}\\n"\nprompt = "# "\n' + FAST)
    port = terminal(player.tty)
    port.expect(rb"up 1\r\n# ")
    player.do(power="off")
    port.send(b"anybody?\r")
    player.until("the dead board got it", lambda stats: stats["to_dut"]["delivered"] == 9)
    assert player.stats()["powered"] is False
    player.do(power="on")
    assert port.expect(rb"# ") == b"up 2\r\n# ", "nothing was echoed and nothing kept"
    player.do(power="cycle")
    port.expect(rb"up 3\r\n# ")
    assert [entry["on"] for entry in player.records("power")] == [True, False, True, False, True]


def test_a_board_that_resets_when_the_port_is_opened(play: Play, terminal: Open) -> None:
    player = play('title = "t"\nboot = "each-open"\nbanner = "up {boots}\\n"\nsettle_ms = 50\n' + FAST)
    for boot in (b"up 1\r\n", b"up 2\r\n"):
        port = terminal(player.tty)
        port.expect(boot)
        port.close()
        player.until("the port is seen closed", lambda stats: not stats["open"])


def test_a_board_waits_for_its_first_opener_and_does_not_boot_for_the_second(play: Play, terminal: Open) -> None:
    player = play('title = "t"\nbanner = "up {boots}\\n"\nprompt = "# "\n' + FAST)
    assert player.stats()["boots"] == 0
    port = terminal(player.tty)
    port.expect(rb"up 1\r\n# ")
    port.close()
    player.until("the port is seen closed", lambda stats: not stats["open"])
    again = terminal(player.tty)
    player.until("the port is seen open", lambda stats: stats["open"])
    again.send(b"\r")
    assert again.expect(rb"# ") == b"\r\n# "


def test_invalid_utf_8_comes_back_as_it_was_typed(play: Play, terminal: Open) -> None:
    player = play('title = "t"\n[[respond]]\nmatch = "echo (.*)"\nreply = "<{1}>"\n' + FAST)
    port = terminal(player.tty)
    player.until("the board is up", lambda stats: stats["state"] == "main")
    port.send(b"echo \xff\xb7\xe2\x82\r")
    assert port.expect(rb">") == b"echo \xff\xb7\xe2\x82\r\n<\xff\xb7\xe2\x82>"
