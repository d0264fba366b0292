"""Why a port could not be had, in words, and what to do about it."""

from labd.channels.access import busy


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
