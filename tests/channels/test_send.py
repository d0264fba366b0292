"""Sending: whole, in turn, up to a deadline, recorded as far as the port took it, and never queued for later."""

import os

import pytest
import trio

from labd.errors import TimedOut, Unreachable
from tests.channels.rig import Rig, with_rig

ALL_VALUES = bytes(range(256))


@with_rig
async def test_all_256_values_reach_the_board(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    answer = await rig.channel.send("console", ALL_VALUES, who={"pid": 7})
    assert await board.hear(256) == ALL_VALUES
    assert answer["accepted"] == answer["bytes"] == 256
    [event] = rig.events(kind="tx")
    assert event["data"].encode("latin-1") == ALL_VALUES
    assert event["accepted"] == 256
    assert event["who"] == {"pid": 7}


@with_rig
async def test_the_answer_says_where_replies_can_begin(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    board.say(b"=> ")
    await rig.until(lambda: rig.rx() == b"=> ", "the prompt")
    assert (await rig.channel.send("console", b"reset\r"))["rx"] == 3
    assert rig.events(kind="tx")[0]["rx"] == 3


@with_rig
async def test_sending_while_the_port_is_down_fails_and_nothing_arrives_later(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    board.unplug()
    await rig.until(lambda: rig.state() == "lost", "the loss")
    with pytest.raises(Unreachable, match=r"the port is down .*nothing was sent"):
        await rig.channel.send("console", b"reboot\r")
    board.replug()
    await rig.until(lambda: rig.state() == "open", "the return")
    await rig.channel.send("console", b"now\r")
    assert await board.hear(4) == b"now\r"
    assert [event["data"] for event in rig.events(kind="tx")] == ["now\r"]


@with_rig
async def test_two_sends_at_once_do_not_interleave(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    async with trio.open_nursery() as nursery:
        for letter in (b"a", b"b", b"c"):
            nursery.start_soon(lambda text=letter * 40: rig.channel.send("console", text, pace_ms=0.2))
        heard = await board.hear(120)
    assert sorted(heard[at : at + 40] for at in (0, 40, 80)) == [b"a" * 40, b"b" * 40, b"c" * 40]


@with_rig
async def test_pacing_leaves_time_between_the_bytes(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    answer = await rig.channel.send("console", b"0123456789", pace_ms=5)
    assert answer["ms"] >= 9 * 5
    assert await board.hear(10) == b"0123456789"
    assert len(rig.events(kind="tx")) == 1


@with_rig
async def test_a_board_that_stopped_reading_costs_the_sender_its_deadline_and_the_reader_nothing(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()

    async def flood() -> None:
        with pytest.raises(TimedOut, match=r"took \d+ of 200000 bytes in 0\.5 s; the other end is not reading"):
            await rig.channel.send("console", b"x" * 200_000, timeout_s=0.5)
        flooded.set()

    flooded = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood)
        for number in range(20):
            board.say(b"tick %d\n" % number)
            await rig.until(lambda n=number: b"tick %d\n" % n in rig.rx(), f"tick {number} during the send")
        await flooded.wait()
    events = rig.events(kind="tx")
    told = sum(event["accepted"] for event in events)
    assert 0 < told < 200_000
    assert events[-1]["failed"] == "timed out"
    heard = 0
    while True:
        try:
            heard += len(os.read(board.master, 65536))
        except BlockingIOError:
            break
    assert heard == told


@with_rig
async def test_a_send_that_waits_behind_a_stuck_one_has_its_own_deadline(rig: Rig) -> None:
    rig.board()
    await rig.watch()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_stuck, rig)
        await rig.until(lambda: rig.channel._lines["console"].sending.locked(), "the first send to hold the line")
        with pytest.raises(TimedOut, match=r"another send held the line for 0\.2 s; nothing was sent"):
            await rig.channel.send("console", b"y", timeout_s=0.2)


async def _stuck(rig: Rig) -> None:
    with pytest.raises(TimedOut):
        await rig.channel.send("console", b"x" * 200_000, timeout_s=1.0)


@with_rig
async def test_a_port_that_goes_down_in_mid_send_ends_it_with_what_it_took(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    errors = []

    async def flood() -> None:
        try:
            await rig.channel.send("console", b"x" * 200_000, timeout_s=15)
        except Unreachable as error:
            errors.append(error.message)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood)
        await rig.until(lambda: rig.channel._lines["console"].sent, "the first bytes to be taken")
        board.unplug()
    assert "the port went down after" in errors[0]
    assert "of 200000 bytes" in errors[0]


@with_rig
async def test_a_cancelled_send_records_what_was_taken_and_frees_the_line(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: rig.channel.send("console", b"abc" * 1000, pace_ms=50, timeout_s=60))
        await board.hear(2)
        nursery.cancel_scope.cancel()
    [event] = rig.events(kind="tx")
    assert event["failed"] == "cancelled"
    assert event["data"].startswith("ab")
    await rig.channel.send("console", b"!", timeout_s=5)


@with_rig
async def test_xoff_from_the_board_does_not_stop_us_unless_the_lab_says_so(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    board.say(b"\x13")
    await rig.until(lambda: rig.rx() == b"\x13", "the XOFF in the journal")
    await rig.channel.send("console", b"go on", timeout_s=5)
    assert await board.hear(5) == b"go on"


@with_rig
async def test_keys_of_a_moment_are_recorded_in_one_event_and_sent_at_once(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    for key in b"\x1b[A":
        await rig.channel.send("console", bytes([key]), who={"pid": 7}, typed=True)
    assert await board.hear(3) == b"\x1b[A"  # they went out while nothing is written of them yet
    await rig.until(lambda: rig.events(kind="tx"), "the record, with nothing else to bring it forth")
    [event] = rig.events(kind="tx")
    assert (event["data"], event["accepted"], event["total"], event["who"]) == ("\x1b[A", 3, 3, {"pid": 7})


@with_rig
async def test_typed_keys_are_recorded_at_a_line_end_before_their_echo_and_before_what_others_send(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()

    async def key(data: bytes, pid: int = 7) -> None:
        await rig.channel.send("console", data, who={"pid": pid}, typed=True)

    def told() -> list[tuple[str, int]]:
        return [(event["data"], event["rx"]) for event in rig.events(kind="tx")]

    await key(b"l")
    await key(b"s\r")
    assert told() == [("ls\r", 0)]
    await key(b"a")
    board.say(b"a")  # the echo: whoever is woken by it must find what was sent
    await rig.until(lambda: rig.rx() == b"a" and len(told()) == 2, "the echo")
    assert told()[1] == ("a", 0)
    await key(b"b")
    await key(b"c", pid=8)
    await rig.channel.send("console", b"whole", who={"pid": 9})
    assert told()[2:] == [("b", 1), ("c", 1), ("whole", 1)]
    await key(b"d")
    await rig.channel.stop(None)
    assert told()[5:] == [("d", 1)]
