"""What a board's shell is not to be sent at the end of a ZMODEM transfer."""

from labd.transfer_end import FIN, PATIENCE_S, Ending

FRAME = FIN + b"\r\x8a"


def test_a_second_farewell_is_dropped_once_the_sender_is_over_and_out() -> None:
    end = Ending()
    assert end.says(b"data" + FRAME, 0.0) == b"data" + FRAME
    end.hears(b"\x11")
    assert end.says(FRAME, 0.01) == b""
    end.hears(b"O")
    end.hears(b"O$ ")
    assert (end.over, end.due(9.0), end.says(FRAME, 9.0)) == (True, b"", b"")


def test_both_farewells_in_one_breath_are_one() -> None:
    end = Ending()
    assert end.says(FRAME + FRAME, 0.0) == FRAME
    end.hears(b"OO")
    assert end.due(9.0) == b""


def test_a_lost_farewell_is_said_again_after_a_while_and_again() -> None:
    end = Ending()
    end.says(FRAME, 0.0)
    assert end.says(FRAME, 0.1) == b""
    assert end.due(PATIENCE_S / 2) == b""
    assert end.due(PATIENCE_S + 0.1) == FRAME
    assert end.says(FRAME, PATIENCE_S + 0.2) == b""
    assert end.due(2 * PATIENCE_S + 0.2) == FRAME


def test_what_comes_before_the_end_is_not_held() -> None:
    end = Ending()
    end.hears(b"OO is also data")
    assert end.says(b"**\x18B0100000023be50", 0.0) == b"**\x18B0100000023be50"
    assert end.says(FRAME, 1.0) == FRAME
    assert not end.over
