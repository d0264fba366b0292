"""`socket://`: a TCP stream captured like a tty; what goes wrong with it is said in words and recorded."""

import contextlib
import os
import socket
import threading
import time

import pytest
import trio

from labd.channels import netport
from labd.channels.netport import open_net
from labd.channels.portmodel import Settings
from labd.errors import Busy, LabdError, Unreachable
from tests.channels.far import serving
from tests.channels.rig import DEADLINE_S, Rig, with_rig

ALL_BYTES = bytes(range(256)) * 40


def keep(line: socket.socket) -> None:
    """A server that only keeps the connection."""
    line.recv(1)


def echo(line: socket.socket) -> None:
    while data := line.recv(65536):
        line.sendall(data)


def net(server: object, scheme: str = "socket") -> str:
    return f"{scheme}://127.0.0.1:{server.port}"  # type: ignore[attr-defined]


@with_rig
async def test_every_byte_value_is_captured_and_sent_as_it_is(rig: Rig) -> None:
    with serving(echo) as server:
        [status] = await rig.channel.watch([rig.config(device=net(server))])
        assert (status["kind"], status["node"], status["state"]) == ("socket", f"127.0.0.1:{server.port}", "open")
        assert "no line rate, no modem lines" in status["note"]
        await rig.channel.send("console", ALL_BYTES)
        await rig.until(lambda: len(rig.rx()) >= len(ALL_BYTES), "the echo")
        assert rig.rx() == ALL_BYTES


@with_rig
async def test_a_server_that_goes_and_returns_costs_a_gap_with_its_reason_and_duration(rig: Rig) -> None:
    with serving(lambda line: (line.sendall(b"hello\n"), keep(line))) as server:  # type: ignore[arg-type, return-value]
        await rig.channel.watch([rig.config(device=net(server))])
        await rig.until(lambda: rig.rx() == b"hello\n", "the first greeting")
        server.stop()
        await rig.until(lambda: rig.state() == "lost", "the loss to be noticed")
        with pytest.raises(Unreachable, match=r"the port is down .*nothing was sent"):
            await rig.channel.send("console", b"x")
        await rig.until(lambda: rig.events(kind="error"), "the refusal to be recorded")
        server.start()
        await rig.until(lambda: rig.rx() == b"hello\nhello\n", "the second greeting")
    [lost] = rig.events(kind="lost")
    [again] = rig.events(kind="reopened")
    assert lost["why"] == again["cause"] == f"127.0.0.1:{server.port} closed the connection"
    assert 0 < again["gap_ms"] < DEADLINE_S * 1000
    assert "refused the connection" in rig.events(kind="error")[0]["message"]


@with_rig
async def test_a_broken_connection_is_told_from_a_closed_one(rig: Rig) -> None:
    with serving(lambda line: threading.Event().wait(DEADLINE_S)) as server:  # type: ignore[arg-type, return-value]
        await rig.channel.watch([rig.config(device=net(server))])
        await rig.until(lambda: server.connections, "the connection")
        server.hang_up(reset=True)
        [lost] = await rig.until(lambda: rig.events(kind="lost"), "the loss")
        assert "broke (Connection reset by peer)" in lost["why"]


@with_rig
async def test_a_server_that_hangs_up_at_once_is_not_asked_in_a_tight_circle(rig: Rig) -> None:
    with serving(lambda line: line.close()) as server:
        with contextlib.suppress(Unreachable):  # it may be gone again before the watch has answered
            await rig.channel.watch([rig.config(device=net(server))])
        begin = trio.current_time()
        await rig.until(lambda: len(rig.events(kind="lost")) > 8, "nine hang-ups")
        assert trio.current_time() - begin > 1.0


@with_rig
async def test_a_server_that_stops_reading_costs_the_sender_its_deadline_and_the_reader_nothing(rig: Rig) -> None:
    def talk(line: socket.socket) -> None:
        while not done.wait(0.02):
            line.sendall(b"tick\n")

    done = threading.Event()
    with serving(talk) as server:
        await rig.channel.watch([rig.config(device=net(server))])
        with pytest.raises(LabdError, match="the other end is not reading"):
            await rig.channel.send("console", bytes(16 << 20), timeout_s=0.5)
        size = len(rig.rx())
        await rig.until(lambda: len(rig.rx()) > size, "more of what the server says")
        done.set()


@pytest.mark.parametrize("scheme", ["socket", "rfc2217"])
def test_a_refused_connection_says_so(scheme: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        device = f"{scheme}://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(
            Unreachable, match=r"pico.console: 127.0.0.1:.* refused the connection: no server"
        ) as caught:
            open_net(device, Settings(), label="pico.console")
    assert caught.value.exit_code == 7


@pytest.mark.parametrize("scheme", ["socket", "rfc2217"])
def test_a_host_that_nobody_knows_says_so(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(Unreachable, match="the host bench-9 is not known"):
        open_net(f"{scheme}://bench-9:4000", Settings(), label="pico.console")


@pytest.mark.parametrize("scheme", ["socket", "rfc2217"])
def test_a_server_that_does_not_answer_is_given_up_in_time(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*args: object, **more: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", silent)
    with pytest.raises(Unreachable, match=r"127.0.0.1:9 does not answer within 5 s"):
        open_net(f"{scheme}://127.0.0.1:9", Settings(), label="pico.console")


def test_a_second_interface_on_the_same_server_port_is_told_who_has_it() -> None:
    with serving(keep) as server:
        port = open_net(net(server), Settings(), label="pico.console", owner="pico.console of /lab.toml")
        with pytest.raises(Busy, match=r"in use by pico.console of /lab.toml"):
            open_net(net(server), Settings(), label="pico.bmc")
        port.shut(hung_up=False)
        open_net(net(server), Settings(), label="pico.bmc").shut(hung_up=True)


def test_a_close_reaches_the_server_although_another_process_holds_the_descriptor_too() -> None:
    with serving(keep) as server:
        port = open_net(net(server), Settings(), label="pico.console")
        other = os.dup(port.fd)
        port.shut(hung_up=False)
        assert os.read(other, 1) == b""
        os.close(other)


def test_a_machine_that_vanished_is_found_out_by_keep_alives() -> None:
    with serving(keep) as server, netport.dial("127.0.0.1", server.port, label="x") as line:
        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_KEEPIDLE"):
            idle, step, count = (
                line.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
                for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
            )
            assert idle + step * count <= netport.KEEPALIVE_S


@with_rig
async def test_a_plain_stream_has_no_lines_and_no_break(rig: Rig) -> None:
    with serving(keep) as server:
        await rig.channel.watch([rig.config(device=net(server))])
        for act in (
            lambda: rig.channel.lines("console"),
            lambda: rig.channel.set_lines("console", dtr=True),
            lambda: rig.channel.send_break("console", 100),
            lambda: rig.channel.pulse_dtr("console", 100),
        ):
            with pytest.raises(Unreachable, match="a plain TCP stream has no"):
                await act()


@with_rig
async def test_other_settings_leave_the_stream_open(rig: Rig) -> None:
    with serving(keep) as server:
        await rig.channel.watch([rig.config(device=net(server))])
        begin = time.monotonic()
        await rig.channel.reconcile([rig.config(device=net(server), baud=9600)])
        assert rig.state() == "open" and rig.channel.status()[0]["baud"] == 9600
        assert time.monotonic() - begin < DEADLINE_S
