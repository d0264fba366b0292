"""The simulated line: exact where a real one is exact, lossy where a real one is lossy."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import Play, Playing, Terminal

Open = Callable[[str], Terminal]

ALL = bytes(range(256)) * 4
QUIET = 'title = "says nothing by itself"\nmode = "mute"\nboot = "at-start"\n'


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playing]:
    folder = tmp_path_factory.mktemp("quiet")
    (folder / "quiet.toml").write_text(QUIET)
    args = (
        str(folder / "quiet.toml"),
        "--baud",
        "0",
        "--record",
        str(folder / "record"),
        "--link",
        str(folder / "link"),
    )
    playing = Playing(*args, cwd=folder)
    yield playing
    assert playing.end() == 0
    playing.shut()


@pytest.fixture
def quiet(shared: Playing) -> Playing:
    """A silent board on an unpaced line that nobody has open: one process for many tests."""
    shared.until("the last test's port is seen closed", lambda stats: not stats["open"])
    shared.do(fault="clear")
    shared.do(fault="baud", baud=0)
    shared.zero()
    return shared


def latin(data: bytes) -> str:
    return data.decode("latin-1")


def test_all_256_values_arrive_unchanged_in_both_directions(quiet: Playing, terminal: Open) -> None:
    port = terminal(quiet.ready["link"])
    quiet.until("the port is seen open", lambda stats: stats["open"])
    quiet.do(say=latin(ALL))
    assert port.take(len(ALL)) == ALL
    port.send(ALL)
    quiet.until("the board got it all", lambda stats: stats["to_dut"]["delivered"] == len(ALL))
    quiet.until("the board recorded it all", lambda _: len(quiet.recorded("rx")) >= len(ALL))
    assert quiet.recorded("rx") == ALL


def test_a_loop_gives_every_byte_back(play: Play, terminal: Open) -> None:
    player = play("loop", "--set", "baud=0")
    port = terminal(player.tty)
    player.until("the board is powered", lambda stats: stats["state"] == "main")
    port.send(ALL)
    assert port.take(len(ALL)) == ALL


def best_time(nominal: float, once: Callable[[], float]) -> float:
    """The quickest of a few tries, so that a loaded machine is not taken for a slow line; none may be too quick."""
    best = once()
    for _ in range(4):
        if best <= nominal * 1.03:
            break
        best = min(best, once())
    return best


def test_9600_baud_takes_the_time_that_9600_baud_takes(play: Play, terminal: Open) -> None:
    player = play(QUIET, "--baud", "9600")
    port = terminal(player.tty)
    player.until("the port is seen open", lambda stats: stats["open"])

    def once() -> float:
        player.do(say="x" * 481)
        port.take(1)
        began = time.monotonic()
        port.take(480)
        return time.monotonic() - began

    took = best_time(0.5, once)
    assert 0.49 <= took <= 0.52, f"480 characters of 10 bits at 9600 baud take 0.500 s, these took {took:.3f} s"


def test_input_to_the_board_is_paced_too(play: Play, terminal: Open) -> None:
    player = play(QUIET, "--baud", "9600")
    port = terminal(player.tty)

    def once() -> float:
        player.zero()
        began = time.monotonic()
        port.send(b"y" * 480)
        player.until("the board got it all", lambda stats: stats["to_dut"]["delivered"] == 480)
        return time.monotonic() - began

    took = best_time(0.53, once)
    assert 0.5 <= took <= 0.6, f"480 characters at 9600 baud take 0.500 s, these took {took:.3f} s"


def test_a_reader_that_keeps_up_loses_nothing(play: Play, terminal: Open) -> None:
    player = play(QUIET + "[line]\nbaud = 500000\nfifo = 64\n")
    port = terminal(player.tty)
    player.until("the port is seen open", lambda stats: stats["open"])
    sent = os.urandom(15000)
    player.do(say=latin(sent))
    assert port.take(len(sent)) == sent
    assert player.stats()["to_host"]["overrun"] == 0


def test_a_reader_that_stops_loses_what_its_buffers_cannot_hold_and_it_is_counted(play: Play, terminal: Open) -> None:
    player = play(QUIET + "[line]\nbaud = 3000000\nfifo = 64\n")
    port = terminal(player.tty)
    player.until("the port is seen open", lambda stats: stats["open"])
    sent = os.urandom(60000)
    player.do(say=latin(sent))
    counts = player.until("all was carried", lambda stats: stats["to_host"]["carried"] == len(sent))["to_host"]
    assert counts["overrun"] > 0
    kept = len(sent) - counts["overrun"]
    assert port.take(kept) == sent[:kept]


@pytest.mark.parametrize("line", ['baud = 3000000\nflow = "rtscts"', "baud = 0"])
def test_flow_control_or_an_unpaced_line_hold_the_sender_instead(play: Play, terminal: Open, line: str) -> None:
    player = play(QUIET + f"[line]\n{line}\nfifo = 64\n")
    port = terminal(player.tty)
    player.until("the port is seen open", lambda stats: stats["open"])
    sent = os.urandom(60000)
    player.do(say=latin(sent))
    player.until("the reader's buffer is full", lambda stats: stats["to_host"]["delivered"] > 4000)
    assert port.take(len(sent)) == sent
    assert player.stats()["to_host"]["overrun"] == 0


def test_dropped_and_flipped_bytes_are_exactly_those_asked_for(quiet: Playing, terminal: Open) -> None:
    port = terminal(quiet.ready["link"])
    quiet.until("the port is seen open", lambda stats: stats["open"])
    quiet.do(fault="drop", count=2)
    quiet.do(say="abcdef")
    assert port.take(4) == b"cdef"
    quiet.do(fault="flip", every=3, bit=0)
    quiet.do(say="aaaaaa")
    assert port.take(6) == b"aa`aa`"
    quiet.do(fault="clear")
    quiet.do(say="aaa")
    assert port.take(3) == b"aaa"
    counts = quiet.stats()["to_host"]
    assert (counts["dropped"], counts["flipped"]) == (2, 2)


def test_bytes_to_the_board_can_be_dropped(play: Play, terminal: Open) -> None:
    player = play("loop", "--set", "baud=0")
    port = terminal(player.tty)
    player.until("the board is powered", lambda stats: stats["state"] == "main")
    player.do(fault="drop", every=2, direction="to_dut")
    port.send(b"123456")
    assert port.take(3) == b"135"


def test_a_stall_delays_and_loses_nothing(quiet: Playing, terminal: Open) -> None:
    port = terminal(quiet.ready["link"])
    quiet.until("the port is seen open", lambda stats: stats["open"])
    quiet.do(fault="stall")
    quiet.do(say="late")
    assert quiet.stats()["to_host"]["carried"] == 0
    quiet.do(fault="resume")
    assert port.take(4) == b"late"
    began = time.monotonic()
    quiet.do(fault="stall", ms=300)
    quiet.do(say="later")
    assert port.take(5) == b"later"
    assert time.monotonic() - began >= 0.29


def test_unplug_hangs_up_and_replug_comes_back_under_another_node_with_the_symlink(
    play: Play, terminal: Open, tmp_path: Path
) -> None:
    link = tmp_path / "console"
    player = play(QUIET, "--link", str(link))
    assert os.readlink(link) == player.tty == player.ready["tty"]
    port = terminal(str(link))
    player.until("the port is seen open", lambda stats: stats["open"])
    player.do(fault="unplug")
    assert port.hung_up()
    assert not os.path.lexists(link)
    assert player.stats()["tty"] is None
    port.close()
    back = player.do(fault="replug")
    assert back["tty"] != player.tty
    assert os.readlink(link) == back["tty"]
    again = terminal(str(link))
    player.until("the port is seen open again", lambda stats: stats["open"])
    player.do(say="hello again")
    assert again.take(11) == b"hello again"


def test_what_is_said_while_unplugged_is_lost(quiet: Playing, terminal: Open) -> None:
    quiet.do(fault="unplug")
    quiet.do(say="into the void")
    quiet.until("it was carried", lambda stats: stats["to_host"]["unheard"] == 13)
    port = terminal(quiet.do(fault="replug")["tty"])
    quiet.until("the port is seen open", lambda stats: stats["open"])
    quiet.do(say="heard")
    assert port.take(5) == b"heard"


def test_a_late_opener_gets_no_backlog(quiet: Playing, terminal: Open) -> None:
    quiet.do(say="before anybody listened")
    quiet.until("it was carried", lambda stats: stats["to_host"]["unheard"] == 23)
    port = terminal(quiet.ready["link"])
    quiet.until("the port is seen open", lambda stats: stats["open"])
    quiet.do(say="now")
    assert port.take(3) == b"now"


def test_what_the_last_opener_left_unread_is_not_handed_to_the_next(quiet: Playing, terminal: Open) -> None:
    first = terminal(quiet.ready["link"])
    quiet.until("the port is seen open", lambda stats: stats["open"])
    quiet.do(say="unread")
    quiet.until("it waits in the port", lambda stats: stats["to_host"]["delivered"] == 6)
    first.close()
    quiet.until("the port is seen closed", lambda stats: not stats["open"])
    second = terminal(quiet.ready["link"])
    quiet.until("the port is seen open", lambda stats: stats["open"])
    quiet.do(say="fresh")
    assert second.take(5) == b"fresh"


def test_what_was_written_before_closing_still_reaches_the_board(play: Play, terminal: Open) -> None:
    player = play(QUIET, "--baud", "9600")
    port = terminal(player.tty)
    port.send(b"z" * 200)
    port.close()
    player.until("the board got it all", lambda stats: stats["to_dut"]["delivered"] == 200)
    player.until("then the port is seen closed", lambda stats: not stats["open"])


def test_the_port_is_raw_for_whoever_opens_it(quiet: Playing, terminal: Open) -> None:
    port = terminal(quiet.ready["link"])
    quiet.until("the port is seen open", lambda stats: stats["open"])
    port.send(b"\x11\x13\r\x03A")
    quiet.do(say="\x11\x13\r\x03A")
    assert port.take(5) == b"\x11\x13\r\x03A"


@pytest.mark.parametrize("opened_before", [False, True])
def test_a_closed_port_costs_no_cpu(play: Play, terminal: Open, opened_before: bool) -> None:
    player = play('title = "ticks"\nboot = "at-start"\n[[after]]\nms = 300\nprint = "tick\\n"\nrepeat = true\n')
    if opened_before:
        port = terminal(player.tty)
        player.until("the port is seen open", lambda stats: stats["open"])
        port.close()
        player.until("the port is seen closed", lambda stats: not stats["open"])
    ticks = len(player.records("tx"))
    before = player.stats()["cpu_s"]
    player.wait_records("tx", ticks + 3)
    spent = player.stats()["cpu_s"] - before
    assert spent < 0.09, f"{spent:.3f} s of CPU in about 0.9 s with nobody there"


def test_a_stalled_line_whose_opener_left_costs_no_cpu(play: Play, terminal: Open) -> None:
    player = play('title = "ticks"\nboot = "at-start"\n[[after]]\nms = 300\nprint = "tick\\n"\nrepeat = true\n')
    port = terminal(player.tty)
    player.until("the port is seen open", lambda stats: stats["open"])
    player.do(fault="stall", direction="both")
    port.send(b"never arrives")
    port.close()
    ticks = len(player.records("tx"))
    before = player.stats()["cpu_s"]
    player.wait_records("tx", ticks + 2)
    assert player.stats()["cpu_s"] - before < 0.1


def test_a_killed_player_takes_the_port_away(play: Play, terminal: Open, tmp_path: Path) -> None:
    link = tmp_path / "console"
    player = play(QUIET, "--link", str(link))
    port = terminal(str(link))
    player.until("the port is seen open", lambda stats: stats["open"])
    player.kill()
    assert port.hung_up()
    with contextlib.suppress(OSError):
        assert os.read(port.fd, 10) == b""
    port.close()
    assert os.path.lexists(link), "nobody was left to remove it"
    after = play(QUIET, "--link", str(link))
    assert os.readlink(link) == after.tty


def test_two_players_do_not_disturb_each_other(play: Play, terminal: Open) -> None:
    players = [play("loop", "--set", "baud=0"), play("loop", "--set", "baud=0")]
    assert players[0].tty != players[1].tty
    ports = [terminal(player.tty) for player in players]
    for player in players:
        player.until("the board is powered", lambda stats: stats["state"] == "main")
    for port, data in zip(ports, (b"one" * 100, b"two" * 100), strict=True):
        port.send(data)
    assert ports[0].take(300) == b"one" * 100
    assert ports[1].take(300) == b"two" * 100
    assert players[0].end() == 0
    ports[1].send(b"still here")
    assert ports[1].take(10) == b"still here"


def test_the_speed_can_change_while_it_plays(quiet: Playing, terminal: Open) -> None:
    port = terminal(quiet.ready["link"])
    quiet.until("the port is seen open", lambda stats: stats["open"])
    quiet.do(fault="baud", baud=9600)
    began = time.monotonic()
    quiet.do(say="x" * 240)
    port.take(240)
    assert time.monotonic() - began >= 0.24
