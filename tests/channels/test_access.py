"""Why a port could not be had, in words, and what to do about it."""

import pytest

from labd.channels.access import busy
from labd.channels.port import Settings, open_port
from labd.errors import Unreachable


def test_a_port_that_labd_itself_holds_elsewhere_is_got_back_by_labd() -> None:
    holder = {"pid": 41, "command": "/opt/python -m labd.capture_process /run/old/labd"}
    error = busy("/dev/ttyUSB0", "dut.console", [holder])
    assert "/run/old/labd (pid 41)" in str(error)
    assert error.hint is not None
    assert error.hint.startswith("labd daemons ")


def test_a_port_that_others_hold_is_their_owners_business() -> None:
    holder = {"pid": 42, "command": "minicom"}
    error = busy(
        "/dev/ttyUSB0", "dut.console", [holder, {"pid": 41, "command": "/opt/python -m labd.daemon /run/labd"}]
    )
    assert error.hint == "ask its owner, or if it is yours: kill 42 41"


def test_what_is_no_terminal_is_told_in_words() -> None:
    with pytest.raises(Unreachable, match=r"/dev/null is not a serial port that can be set \(Inappropriate ioctl"):
        open_port("/dev/null", Settings(), label="a.b")
