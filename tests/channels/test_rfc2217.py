"""`rfc2217://` for real: bytes, line settings, modem lines, break and pulses, each as the far side sees it."""

import socket
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from labd.channels import rfc2217_client
from labd.channels.netport import open_net
from labd.channels.portmodel import Settings
from labd.errors import LabdError, Unreachable
from tests.channels.far import Rfc2217Server, rfc2217, serving
from tests.channels.rig import Rig, with_rig

ALL_BYTES = bytes(range(256)) * 40 + b"\xff" * 1000


def device(server: object) -> str:
    return f"rfc2217://127.0.0.1:{server.port}"  # type: ignore[attr-defined]


async def watch(rig: Rig, server: Rfc2217Server, **more: object) -> dict[str, object]:
    [status] = await rig.channel.watch([rig.config(device=device(server), assert_dtr=True, assert_rts=True, **more)])
    return status


@with_rig
async def test_every_byte_value_passes_both_ways(rig: Rig) -> None:
    with rfc2217(echo=True) as server:
        status = await watch(rig, server)
        assert (status["kind"], status["node"]) == ("rfc2217", f"127.0.0.1:{server.port}")
        await rig.channel.send("console", ALL_BYTES)
        await rig.until(lambda: len(rig.rx()) >= len(ALL_BYTES), "the echo")
        assert bytes(server.heard) == rig.rx() == ALL_BYTES


@with_rig
async def test_what_the_board_said_before_the_open_is_kept_and_nothing_is_purged(rig: Rig) -> None:
    with rfc2217(banner=b"U-Boot 2025.01\xff\r\n") as server:
        await watch(rig, server)
        await rig.until(lambda: rig.rx() == b"U-Boot 2025.01\xff\r\n", "the banner")
        assert server.wires.purged == 0


@with_rig
async def test_the_servers_port_is_set_as_the_lab_says_and_anew_when_the_lab_changes(rig: Rig) -> None:
    with rfc2217() as server:
        await watch(rig, server, parity="even", stopbits=2, bytesize=7)
        wires = server.wires
        assert (wires.baudrate, wires.bytesize, wires.parity, wires.stopbits) == (115200, 7, "E", 2)
        assert (wires.levels("dtr"), wires.levels("rts")) == ([True], [True])
        config = rig.config(device=device(server), baud=1_500_000, assert_dtr=True, assert_rts=False)
        await rig.channel.reconcile([config])
        assert (wires.baudrate, wires.parity) == (1_500_000, "N")
        assert (wires.levels("dtr"), wires.levels("rts")) == ([True], [True, False])
        assert rig.state() == "open"


@with_rig
async def test_lines_that_the_lab_does_not_mention_are_left_alone(rig: Rig) -> None:
    with rfc2217() as server:
        await rig.channel.watch([rig.config(device=device(server), power_button=True)])
        assert (server.wires.levels("dtr"), server.wires.levels("rts")) == ([False], [])


async def exact(act: Callable[[], Awaitable[object]], measured: Callable[[], float], ms: float) -> None:
    """`act` is never too short, and in one of a few tries not even 45 ms too long: the rest is a loaded machine's.

    pyserial's own waits would make each of them at least 50 ms longer.
    """
    took = []
    for _ in range(6):
        await act()
        took.append(measured())
        assert took[-1] >= ms - 3, took
        if took[-1] < ms + 45:
            return
    raise AssertionError(took)


@pytest.mark.parametrize("ms", [20, 150])
def test_a_pulse_is_as_long_on_the_far_side_as_it_was_asked_to_be(tmp_path: Path, ms: int) -> None:
    @with_rig
    async def run(rig: Rig) -> None:
        with rfc2217() as server:
            await watch(rig, server)
            pulsed = await rig.channel.pulse_dtr("console", ms)
            assert server.wires.levels("dtr") == [True, False, True]
            assert (pulsed["rests"], pulsed["pulsed"]) == (True, False)
            [event] = rig.events(kind="reset")
            assert (event["line"], event["ms"]) == ("dtr", ms)
            await exact(lambda: rig.channel.pulse_dtr("console", ms), lambda: server.wires.pulse_ms("dtr"), ms)

    run(tmp_path)


@with_rig
async def test_a_cancelled_pulse_lets_go_on_the_far_side(rig: Rig) -> None:
    with rfc2217() as server:
        await watch(rig, server)
        with trio.move_on_after(0.1):
            await rig.channel.pulse_dtr("console", 20_000)
        assert server.wires.levels("dtr") == [True, False, True]


@with_rig
async def test_two_pulses_at_once_follow_each_other(rig: Rig) -> None:
    with rfc2217() as server:
        await watch(rig, server)
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(rig.channel.pulse_dtr, "console", 30)
        assert server.wires.levels("dtr") == [True, False, True, False, True]


@with_rig
async def test_a_break_is_as_long_as_it_was_asked_to_be(rig: Rig) -> None:
    with rfc2217() as server:
        await watch(rig, server)
        await rig.channel.send_break("console", 100)
        assert server.wires.levels("break") == [True, False]
        [event] = rig.events(kind="break")
        assert event["ms"] == 100 and event["held_ms"] >= 97
        await exact(lambda: rig.channel.send_break("console", 100), lambda: server.wires.pulse_ms("break"), 100)


@with_rig
async def test_lines_are_read_live_and_set(rig: Rig) -> None:
    with rfc2217() as server:
        await watch(rig, server)
        server.wires.cts = server.wires.ri = True
        found = await rig.channel.lines("console")
        assert found == {"interface": "console", "dtr": True, "rts": True, "cts": True, "dsr": False, "dcd": False,
                         "ri": True}  # fmt: skip
        server.wires.cts, server.wires.cd = False, True
        found = await rig.channel.set_lines("console", dtr=False, rts=False)
        assert (found["cts"], found["dcd"], found["dtr"], found["rts"]) == (False, True, False, False)
        assert (server.wires.levels("dtr"), server.wires.levels("rts")) == ([True, False], [True, False])
        told = [(event["line"], event["level"]) for event in rig.events(kind="line")]
        assert told == [("dtr", False), ("rts", False)]


@with_rig
async def test_the_power_line_is_followed_while_the_port_is_open(rig: Rig) -> None:
    with rfc2217() as server:
        server.wires.cts = True
        await watch(rig, server, power_sense_signal="cts")
        await rig.until(lambda: rig.events(kind="line"), "the level at the open")
        assert rig.channel.status()[0]["sense"]["power_on"] is False
        server.wires.cts = False
        await rig.until(lambda: len(rig.events(kind="line")) == 2, "the change")
        assert rig.channel.status()[0]["sense"]["power_on"] is True
        server.wires.cts = True
        await rig.until(lambda: len(rig.events(kind="line")) == 3, "the change back")
    found = [(event["line"], event["level"], event["power_on"]) for event in rig.events(kind="line")]
    assert found == [("cts", True, False), ("cts", False, True), ("cts", True, False)]


@with_rig
async def test_a_server_that_goes_in_mid_use_is_a_loss_with_its_reason_and_all_that_came_is_kept(rig: Rig) -> None:
    with rfc2217() as server:
        await watch(rig, server)
        server.say(b"last words")
        server.stop()
        await rig.until(lambda: rig.state() == "lost", "the loss")
        for act in (rig.channel.lines, lambda name: rig.channel.pulse_dtr(name, 10)):
            with pytest.raises(Unreachable, match=r"the port is down|the server closed"):
                await act("console")
        server.start()
        await rig.until(lambda: rig.state() == "open", "the return")
        server.say(b", first words")
        await rig.until(lambda: rig.rx() == b"last words, first words", "all that was said")
    assert rig.events(kind="lost")[0]["why"] == f"127.0.0.1:{server.port} closed the connection"


@with_rig
async def test_what_was_taken_and_never_left_is_counted(rig: Rig) -> None:
    with rfc2217() as server:
        await watch(rig, server)
        server.reading.clear()
        with pytest.raises(LabdError, match="the other end is not reading"):
            await rig.channel.send("console", bytes(8 << 20), timeout_s=1.0)
        server.hang_up(reset=True)
        [lost] = await rig.until(lambda: rig.events(kind="lost"), "the loss")
        assert lost["unsent"] > 0
        server.reading.set()


def test_a_server_without_control_of_lines_is_opened_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rfc2217_client, "ANSWER_S", 0.2)
    real = Rfc2217Server._write

    def mute(self: Rfc2217Server, line: socket.socket, data: bytes) -> None:
        if data[:4] != b"\xff\xfa\x2c\x69":  # no answer to SET_CONTROL, as some servers have it
            real(self, line, data)

    monkeypatch.setattr(Rfc2217Server, "_write", mute)
    with rfc2217() as server:
        port = open_net(device(server), Settings(dtr=True, rts=True), label="pico.console")
        assert "the server does not control modem lines" in port.notes[0]
        begin = time.monotonic()
        with pytest.raises(OSError, match="does not control"):
            port.put("dtr", False)
        assert time.monotonic() - begin < 0.1
        port.shut(hung_up=False)


def test_a_server_that_is_no_rfc2217_server_is_told_by_what_it_says() -> None:
    def full(line: socket.socket) -> None:
        line.sendall(b"Port already in use\r\n")
        line.shutdown(socket.SHUT_WR)
        while line.recv(100):  # a close with something unread would take the text back
            pass

    says = "said 'Port already in use' and did not negotiate"
    with serving(full) as server, pytest.raises(Unreachable, match=says):
        open_net(device(server), Settings(), label="pico.console")
    says = "(closed|broke) the connection.* during negotiation"
    with serving(lambda line: line.close()) as server, pytest.raises(Unreachable, match=says):
        open_net(device(server), Settings(), label="pico.console")


def test_a_server_that_keeps_silent_is_given_up_and_another_scheme_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    with serving(lambda line: over.wait(20)) as server:  # type: ignore[arg-type, return-value]
        with pytest.raises(Unreachable, match="does not speak RFC 2217") as caught:
            open_net(device(server) + "?timeout=0.3", Settings(), label="pico.console")
        over.set()
    assert "socket://127.0.0.1" in (caught.value.hint or "")


def test_opening_and_closing_leave_no_thread_and_no_descriptor_behind() -> None:
    import os

    with rfc2217() as server:
        open_net(device(server), Settings(), label="pico.console").shut(hung_up=False)
        before = len(os.listdir("/dev/fd"))
        begin = time.monotonic()
        for _ in range(3):
            port = open_net(device(server), Settings(), label="pico.console")
            port.shut(hung_up=False)
        assert time.monotonic() - begin < 5
        assert not [thread for thread in threading.enumerate() if "127.0.0.1" in thread.name]
        mine = [line for line in server.connections if line.fileno() >= 0]
        assert len(os.listdir("/dev/fd")) <= before + len(mine)
