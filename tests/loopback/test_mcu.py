"""The board with a Python REPL, as its tools and its people use it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from loopback import confine

from .conftest import Play, Terminal

Open = Callable[[str], Terminal]

pytestmark = pytest.mark.skipif(confine.why_not() is not None, reason=f"cannot shut programs in: {confine.why_not()}")
PROMPT = rb">>> "


@pytest.fixture
def repl(play: Play, terminal: Open) -> Terminal:
    port = terminal(play("mcu-repl", "--baud", "0", "--set", "nonce=mc7").tty)
    port.expect(rb"MicroPython v[^\n]*\r\nType \"help\(\)\" for more information\.\r\n>>> ")
    return port


def test_people_get_echo_values_blocks_and_tracebacks(repl: Terminal) -> None:
    repl.send(b"6 *+\x08 7\r")
    assert repl.expect(PROMPT) == b"6 *+\b \b 7\r\n42\r\n>>> "
    repl.send(b"for i in range(2):\r")
    repl.expect(rb"\.\.\. ")
    repl.send(b"  print(i)\r")
    repl.expect(rb"\.\.\. ")
    repl.send(b"\r")
    assert repl.expect(PROMPT) == b"\r\n0\r\n1\r\n>>> "
    repl.send(b"1/0\r")
    repl.expect(rb"Traceback \(most recent call last\):\r\n.*ZeroDivisionError: division by zero\r\n>>> ")
    repl.send(b"x = (\r")
    repl.expect(rb"\.\.\. ")
    repl.send(b"\x03")
    repl.expect(PROMPT)
    repl.send(b"x = = 1\r")
    repl.expect(rb"SyntaxError: .*>>> ")


def test_the_machine_has_pins_a_name_and_resets(repl: Terminal) -> None:
    repl.send(b"from machine import Pin, unique_id, reset\r")
    repl.expect(PROMPT)
    repl.send(b"led = Pin(25, Pin.OUT); led.on(); led.value(), unique_id()\r")
    repl.expect(rb"\(1, b'mc7'\)\r\n>>> ")
    repl.send(b"reset()\r")
    repl.expect(rb"MicroPython v.*>>> ")
    repl.send(b"led\r")
    repl.expect(rb"NameError: name 'led' is not defined\r\n>>> ")


def test_ctrl_c_interrupts_and_ctrl_d_forgets(repl: Terminal) -> None:
    repl.send(b"x = 1\r")
    repl.expect(PROMPT)
    repl.send(b"while True: pass\r")
    repl.expect(rb"\.\.\. ")
    repl.send(b"\r")
    repl.expect(rb"\r\n")
    repl.send(b"\x03")
    repl.expect(rb"KeyboardInterrupt: \r\n>>> ")
    repl.send(b"\x04")
    repl.expect(rb"MPY: soft reboot\r\nMicroPython v.*>>> ")
    repl.send(b"x\r")
    repl.expect(rb"NameError")


def test_tools_get_the_raw_repl(repl: Terminal) -> None:
    repl.send(b"\r\x03\x03\x01")
    repl.expect(rb"raw REPL; CTRL-B to exit\r\n>")
    repl.send(b"\x05A\x01")
    assert repl.expect(rb"\x00") == b"R\x00"
    repl.send(b"print('a' * 3)\x04")
    assert repl.expect(rb"\x04>") == b"OKaaa\r\n\x04\x04>"
    repl.send(b"x = 5\n1/0\x04")
    assert re.fullmatch(rb"OK\x04Traceback .*ZeroDivisionError.*\r\n\x04>", repl.expect(rb"\x04>"), re.S)
    repl.send(b"print(x)\x04")
    assert repl.expect(rb"\x04>") == b"OK5\r\n\x04\x04>"
    repl.send(b"\x04")
    repl.expect(rb"OK\r\nMPY: soft reboot\r\nraw REPL; CTRL-B to exit\r\n>")
    repl.send(b"\x02")
    repl.expect(rb"MicroPython v.*>>> ")


def test_paste_mode_runs_lines_together(repl: Terminal) -> None:
    repl.send(b"\x05")
    repl.expect(rb"paste mode; Ctrl-C to cancel, Ctrl-D to finish\r\n=== ")
    repl.send(b"if True:\r    print('pasted')\r\x04")
    repl.expect(rb"\r\npasted\r\n>>> ")
