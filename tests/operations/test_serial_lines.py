"""`serial lines` and `serial show` as a person uses them, on a port that a server here serves by RFC 2217."""

from collections.abc import Iterator

import pytest

from tests.channels.far import Rfc2217Server, rfc2217
from tests.conftest import BenchInAFolder, until

LAB = """\
[targets.pico]
[[targets.pico.serial]]
name = "console"
device = "rfc2217://127.0.0.1:{port}"
power_sense_signal = "cts"
{more}
"""


@pytest.fixture
def far() -> Iterator[Rfc2217Server]:
    with rfc2217(banner=b"hello\r\n") as server:
        yield server


def bench(labd: BenchInAFolder, far: Rfc2217Server, more: str = "") -> BenchInAFolder:
    labd.lab.write_text(LAB.format(port=far.port, more=more))
    return labd


def test_lines_are_shown_live_and_say_what_they_mean_for_the_power(labd: BenchInAFolder, far: Rfc2217Server) -> None:
    bench(labd, far)("serial", "watch", "pico")
    assert labd.out("serial", "lines", "pico") == (
        "pico.console: driven here  DTR on  RTS on\n"
        "pico.console: driven there CTS off  DSR off  DCD off  RI off\n"
        "pico.console: power on (CTS is not asserted)\n"
    )
    far.wires.cts = far.wires.dsr = True
    found = labd.json("serial", "lines", "pico")
    assert (found["cts"], found["dsr"], found["power_on"]) == (True, True, False)


def test_rts_can_be_driven_and_dtr_only_where_it_is_a_button(labd: BenchInAFolder, far: Rfc2217Server) -> None:
    bench(labd, far)("serial", "watch", "pico")
    assert labd.json("serial", "lines", "pico", "--rts", "off")["rts"] is False
    assert far.wires.levels("rts") == [True, False]
    refused = labd("serial", "lines", "pico", "--dtr", "off", check=3)
    assert b"has not opted in to DTR" in refused.stderr
    assert far.wires.levels("dtr") == [True]
    bench(labd, far, "power_button = true")
    until("the lab's change to be taken up", lambda: far.wires.levels("dtr") == [True, False])
    assert labd.json("serial", "lines", "pico", "--dtr", "on")["dtr"] is True
    assert far.wires.levels("dtr") == [True, False, True]
    said = labd.out("serial", "reset", "pico", "--ms", "30")
    assert said == "pico.console: DTR released for 30 ms; it rests asserted\n"
    assert far.wires.levels("dtr") == [True, False, True, False, True]
    labd("serial", "lines", "pico", "--dtr", "off")
    said = labd.out("serial", "dtr", "pico", "--ms", "30")
    assert said == "pico.console: DTR asserted for 30 ms; it rests released\n"
    pulsed = labd.json("serial", "dtr", "pico", "--ms", "30")
    assert (pulsed["rests"], pulsed["pulsed"]) == (False, True) and pulsed["held_ms"] >= 30


def test_looking_is_no_act_and_driving_is(labd: BenchInAFolder, far: Rfc2217Server) -> None:
    bench(labd, far)("serial", "watch", "pico")
    labd("serial", "lines", "pico", env={"LABD_POLICY": "observe"})
    labd("serial", "lines", "pico", "--rts", "off", env={"LABD_POLICY": "observe"}, check=3)
    assert far.wires.levels("rts") == [True]
    effects = [record["effect"] for record in labd.records() if record.get("operation") == "serial lines"]
    assert effects == ["observe", "actuate"]


@pytest.mark.parametrize("words", [("--cts", "on"), ("--dtr", "high"), ("--dtr",)])
def test_a_line_or_level_that_there_is_not_is_bad_usage(
    labd: BenchInAFolder, far: Rfc2217Server, words: tuple[str, ...]
) -> None:
    bench(labd, far)("serial", "lines", "pico", *words, check=2)
    assert far.wires.driven == []


def test_a_simulated_boards_pty_has_no_lines(board: BenchInAFolder) -> None:
    board("serial", "watch")
    for words in (("lines",), ("lines", "--rts", "on")):
        assert b"a PTY has no" in board("serial", *words, check=7).stderr


def test_show_says_complete_and_then_why_not(labd: BenchInAFolder, far: Rfc2217Server) -> None:
    bench(labd, far)("serial", "watch", "pico")
    until("the banner", lambda: b"hello" in labd("serial", "log", "pico").stdout)
    shown = labd.out("serial", "show", "pico")
    assert "complete since #1" in shown and "power on (CTS is not asserted)" in shown
    far.stop()
    until("the loss", lambda: "it has not come back" in labd.out("serial", "show", "pico"))
    far.start()
    until("the return", lambda: "open" in labd.json("serial", "show", "pico")[0]["state"])
    [row] = labd.json("serial", "show", "pico")
    assert row["capture"]["complete"] is False and row["capture"]["since_seq"] == 2
    assert row["capture"]["text"].startswith("incomplete since #2, because 127.0.0.1:")
    labd("serial", "stop", "pico")
    labd("serial", "watch", "pico")
    assert labd.json("serial", "show", "pico")[0]["capture"]["complete"] is True


def test_a_refused_connection_is_exit_7_with_the_reason(labd: BenchInAFolder, far: Rfc2217Server) -> None:
    far.stop()
    said = bench(labd, far)("serial", "watch", "pico", check=7).stderr.decode()
    assert "refused the connection: no server listens there" in said
