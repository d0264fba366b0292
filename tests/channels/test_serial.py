"""The serial channel as its users meet it: watch, capture, loss and return, several lines, lab edits, stop."""

import os
import shutil
import termios
import time
from typing import Any

import pytest
import trio
import trio.testing

from labd.channels.port import close_port
from labd.errors import Busy, LabdError, NotFound, Unreachable
from tests.channels.rig import DEADLINE_S, Rig, cpu_s, end, process, with_rig

ALL_VALUES = bytes(range(256))


@with_rig
async def test_watch_answers_when_the_port_is_open_and_says_what_it_resolved(rig: Rig) -> None:
    board = rig.board()
    [answer] = await rig.watch()
    assert answer["state"] == "open"
    assert answer["device"] == str(board.path)
    assert answer["node"] == board.node
    assert answer["kind"] == "pty"
    assert answer["baud"] == 115200
    assert "not a UART" in answer["note"]
    [event] = rig.events(kind="open")
    assert event["node"] == board.node
    assert event["settings"]["baud"] == 115200
    assert event["boot"]


@with_rig
async def test_a_second_watch_finds_the_port_open_and_opens_nothing(rig: Rig) -> None:
    rig.board()
    first = await rig.watch()
    second = await rig.watch()
    assert first[0]["node"] == second[0]["node"]
    assert len(rig.events(kind="open")) == 1


@with_rig
async def test_two_watches_at_once_open_one_port(rig: Rig) -> None:
    rig.board()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.watch)
        nursery.start_soon(rig.watch)
    assert len(rig.events(kind="open")) == 1


@with_rig
async def test_all_256_values_are_stored_as_they_came(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    board.say(ALL_VALUES)
    await rig.until(lambda: len(rig.rx()) >= 256, "256 bytes in the journal")
    assert rig.rx() == ALL_VALUES


@with_rig
async def test_a_prompt_without_newline_is_in_the_journal_at_once(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    board.say(b"\r\nlogin: ")
    await rig.until(lambda: rig.rx() == b"\r\nlogin: ", "the prompt")


@with_rig
async def test_bytes_that_were_said_before_the_open_are_kept(rig: Rig) -> None:
    board = rig.board()
    board.say(b"early\n")
    await rig.watch()
    await rig.until(lambda: rig.rx() == b"early\n", "what was said before the open")


@with_rig
async def test_a_missing_device_fails_the_watch_and_is_not_tried_again(rig: Rig) -> None:
    with pytest.raises(Unreachable, match=r"pico\.console: .*tty-console is not there"):
        await rig.watch()
    await rig.until(lambda: not rig.channel.status(), "the line to be forgotten")
    assert not (rig.tmp / "journal" / "console").exists()


@with_rig
async def test_a_link_to_nothing_says_where_it_points(rig: Rig) -> None:
    os.symlink("/dev/ttyUSB77", rig.tmp / "tty-console")
    with pytest.raises(Unreachable, match="is a link to /dev/ttyUSB77, which is not there"):
        await rig.watch()


@with_rig
async def test_a_port_that_another_process_holds_is_busy_and_names_it(rig: Rig) -> None:
    board = rig.board()
    holder = process(
        "import os,sys; os.open(sys.argv[1], os.O_RDWR|os.O_NOCTTY); print('ready', flush=True); sys.stdin.read()",
        board.node,
        "a-rival-terminal",
    )
    try:
        with pytest.raises(Busy) as caught:
            await rig.watch()
        assert f"pid {holder.pid}" in caught.value.message
        assert "a-rival-terminal" in caught.value.message
    finally:
        end(holder)
    assert (await rig.watch())[0]["state"] == "open"


@with_rig
async def test_a_second_lab_that_names_the_same_device_is_told_who_has_it(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    with pytest.raises(Busy, match=r"in use by pico\.console of .*lab\.toml, in this daemon"):
        await rig.channel.watch([rig.config("twin", device=str(board.path))])


@with_rig
async def test_one_missing_interface_fails_the_watch_and_the_others_stay_open(rig: Rig) -> None:
    rig.board("console")
    with pytest.raises(Unreachable, match=r"tty-bmc is not there .*\(console is open\)"):
        await rig.watch("bmc", "console")
    assert rig.state("console") == "open"
    assert rig.state("bmc") == "closed"


@with_rig
async def test_a_board_that_returns_under_another_node_is_captured_within_half_a_second(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    board.say(b"before\n")
    await rig.until(lambda: b"before\n" in rig.rx(), "the first line")
    first = board.node
    board.unplug()
    await rig.until(lambda: rig.state() == "lost", "the loss to be noticed")
    board.replug(elsewhere=True)
    back = time.monotonic()
    board.say(b"after\n")
    await rig.until(lambda: b"after\n" in rig.rx(), "what the board said on its return")
    assert time.monotonic() - back < 0.5 + 0.5  # the half is the machine's, if others load it
    assert rig.rx() == b"before\nafter\n"
    assert board.node != first
    [lost] = rig.events(kind="lost")
    [again] = rig.events(kind="reopened")
    assert "hang-up" in lost["why"]
    assert lost["rx"] == again["rx"] == len(b"before\n")
    assert again["node"] == board.node
    assert 0 <= again["gap_ms"] < DEADLINE_S * 1000
    assert rig.channel.status()[0]["reopened"] == 1


@with_rig
async def test_nothing_is_lost_around_many_replugs(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    said = b""
    for number in range(8):
        line = b"life %d of the board\n" % number
        board.say(line)  # at once after the node is there, before the channel can have opened it
        said += line
        await rig.until(lambda wanted=said: rig.rx() == wanted, f"line {number}")
        board.unplug()
        await rig.until(lambda: rig.state() == "lost", "the loss to be noticed")
        board.replug(elsewhere=number % 2 == 0)
    await rig.until(lambda: len(rig.events(kind="reopened")) == 8, "the last return")
    assert len(rig.events(kind="lost")) == 8


@with_rig
async def test_raw_mode_is_set_again_on_a_reopened_port(rig: Rig) -> None:
    import termios

    board = rig.board()
    await rig.watch()
    board.unplug()
    await rig.until(lambda: rig.state() == "lost", "the loss")
    master, slave = os.openpty()  # as cooked as a fresh node is
    board.master = master
    assert termios.tcgetattr(slave)[0] & termios.IXON
    os.symlink(os.ttyname(slave), board.path)
    os.close(slave)
    await rig.until(lambda: rig.state() == "open", "the port to be open again")
    board.say(ALL_VALUES)
    await rig.until(lambda: len(rig.rx()) >= 256, "256 bytes")
    assert rig.rx() == ALL_VALUES


@with_rig
async def test_a_lost_port_costs_next_to_no_cpu(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    board.unplug()
    await rig.until(lambda: rig.state() == "lost", "the loss")
    before = cpu_s()
    with trio.move_on_after(1.0):  # the span that is measured, not a wait for anything
        await trio.sleep_forever()
    assert cpu_s() - before < 0.3


@with_rig
async def test_a_watch_on_a_lost_port_fails_with_the_reason_and_the_line_goes_on_trying(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    board.unplug()
    await rig.until(lambda: rig.state() == "lost", "the loss")
    with pytest.raises(Unreachable, match="is not there"):
        await rig.watch()
    board.replug()
    await rig.until(lambda: rig.state() == "open", "the return")


@with_rig
async def test_losing_one_line_never_touches_another(rig: Rig) -> None:
    console, bmc = rig.board("console"), rig.board("bmc")
    await rig.watch("console", "bmc")
    console.unplug()
    await rig.until(lambda: rig.state("console") == "lost", "the loss")
    bmc.say(b"still here\n")
    await rig.until(lambda: rig.rx("bmc") == b"still here\n", "the other line")
    assert rig.state("bmc") == "open"


@with_rig
async def test_a_crash_in_one_line_is_an_event_there_and_the_line_starts_over(rig: Rig) -> None:
    console, bmc = rig.board("console"), rig.board("bmc")
    await rig.watch("console", "bmc")
    line = rig.channel._lines["console"]
    carry, calls = line._carry, []

    async def broken(port: Any) -> None:
        calls.append(port)
        if len(calls) == 1:
            close_port(port, hung_up=True)
            raise ZeroDivisionError("a mistake of ours")
        await carry(port)

    line._carry = broken
    console.unplug()
    console.replug()
    await rig.until(lambda: rig.state("console") == "open" and len(calls) == 2, "the line to start over")
    [event] = rig.events("console", "error")
    assert "ZeroDivisionError" in event["message"]
    bmc.say(b"unharmed\n")
    await rig.until(lambda: rig.rx("bmc") == b"unharmed\n", "the other line")


@with_rig
async def test_a_journal_that_raises_costs_its_own_line_a_reopen_only(rig: Rig) -> None:
    console, bmc = rig.board("console"), rig.board("bmc")
    await rig.watch("console", "bmc")
    token = rig.capture._tokens[rig.channel._lines["console"].port.fd]  # type: ignore[union-attr]

    def broken(data: bytes, wall: int, mono: int) -> None:
        raise RuntimeError("no room")

    token.sink = broken
    console.say(b"x")
    await rig.until(lambda: rig.events("console", "reopened"), "the reopen")
    assert "no room" in rig.events("console", "lost")[0]["why"]
    bmc.say(b"unharmed\n")
    console.say(b"again\n")
    await rig.until(lambda: rig.rx("bmc") == b"unharmed\n", "the other line")
    await rig.until(lambda: rig.rx("console") == b"again\n", "the line itself")


@with_rig
async def test_stop_stores_what_has_arrived_and_frees_the_port(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    board.say(b"last words")
    assert await rig.channel.stop() == ["console"]
    assert rig.rx() == b"last words"
    assert rig.events()[-1]["kind"] == "closed"
    assert rig.channel.status() == []
    assert (await rig.watch())[0]["state"] == "open"


@with_rig
async def test_stop_by_name_leaves_the_others(rig: Rig) -> None:
    rig.board("console"), rig.board("bmc")
    await rig.watch("console", "bmc")
    assert await rig.channel.stop(["bmc", "no-such"]) == ["bmc"]
    assert rig.state("console") == "open"


@with_rig
async def test_a_cancelled_watch_leaves_nothing_undone(rig: Rig) -> None:
    rig.board()
    with trio.CancelScope() as scope:
        scope.cancel()
        await rig.watch()
    assert (await rig.watch())[0]["state"] == "open"


def test_cancelling_the_channel_closes_ports_and_journals(tmp_path: Any) -> None:
    from labd.channels.pump import pump

    rig = Rig(tmp_path)
    board = rig.board()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(pump, rig.capture)
            await nursery.start(rig.channel.run)
            await rig.watch()
            nursery.cancel_scope.cancel()

    fds = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    trio.run(main)
    if fds is not None:
        assert len(os.listdir("/proc/self/fd")) == fds
    assert rig.events()[-1]["kind"] == "closed"
    assert rig.events()[-1]["why"] == "the daemon stops"
    rig.capture.close()
    board.close()


# Lab edits while it runs ------------------------------------------------------------------------------------------


@with_rig
async def test_a_new_baud_rate_is_set_without_closing_the_port(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    said = await rig.channel.reconcile([rig.config(baud=9600)])
    assert said == ["console: now 9600 baud, still open"]
    assert rig.channel.status()[0]["baud"] == 9600
    assert not rig.events(kind="lost")
    board.say(ALL_VALUES)
    await rig.until(lambda: rig.rx() == ALL_VALUES, "every value, after the change")


@with_rig
async def test_an_edit_that_does_not_matter_here_does_nothing(rig: Rig) -> None:
    rig.board()
    await rig.watch()
    assert await rig.channel.reconcile([rig.config(prompt="# $", eol="\n")]) == []


@with_rig
async def test_another_device_in_the_lab_is_opened_instead(rig: Rig) -> None:
    rig.board()
    other = rig.board("other")
    await rig.watch()
    await rig.channel.reconcile([rig.config(device=str(other.path))])
    await rig.until(lambda: rig.state() == "open" and rig.events(kind="reopened"), "the other device")
    other.say(b"other\n")
    await rig.until(lambda: rig.rx() == b"other\n", "the other device's line")


@with_rig
async def test_a_device_that_changes_while_it_is_opened_is_never_the_wrong_one(rig: Rig) -> None:
    slow, right = rig.board("slow"), rig.board("right")
    starting, go = trio.Event(), trio.Event()

    async def start() -> str:
        starting.set()
        await go.wait()
        return str(slow.path)

    rig.duts["console"] = start
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.channel.watch, [rig.config(device="loopback:slow")])
        await starting.wait()
        nursery.start_soon(rig.channel.watch, [rig.config(device=str(right.path))])
        await trio.testing.wait_all_tasks_blocked()
        go.set()
    assert [row["node"] for row in rig.channel.status()] == [right.node]
    right.say(b"right\n")
    await rig.until(lambda: rig.rx() == b"right\n", "the right board's line")


@with_rig
async def test_a_journal_whose_files_were_removed_ends_no_capture_and_is_told(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    shutil.rmtree(rig.tmp / "journal" / "console")
    for _ in range(3):
        board.say(b"on\n")
        await trio.sleep(0.5)  # past the journal's look at its files, each second
    assert rig.state() == "open"


@with_rig
async def test_an_interface_that_left_the_lab_is_closed(rig: Rig) -> None:
    rig.board("console"), rig.board("bmc")
    await rig.watch("console", "bmc")
    assert await rig.channel.reconcile([rig.config("console")]) == ["bmc: closed, it is no longer in the lab"]
    assert rig.events("bmc")[-1]["why"] == "no longer in the lab"
    assert rig.state("console") == "open"


@with_rig
async def test_a_new_interface_is_opened_only_if_the_whole_target_is_watched(rig: Rig) -> None:
    rig.board("console"), rig.board("bmc")
    both = [rig.config("console"), rig.config("bmc")]
    await rig.watch("console")
    assert await rig.channel.reconcile(both) == []
    await rig.watch("console", whole=True)
    assert await rig.channel.reconcile(both) == ["bmc: opened, it is new in the lab"]


# Simulated boards -------------------------------------------------------------------------------------------------


@with_rig
async def test_a_simulated_board_is_started_and_started_again_when_it_died(rig: Rig) -> None:
    board = rig.board("sim")
    started: list[int] = []

    async def start() -> str:
        started.append(1)
        return str(board.path)

    rig.duts["console"] = start
    [answer] = await rig.channel.watch([rig.config(device="loopback:uboot")])
    assert (answer["kind"], answer["device"], answer["node"]) == ("loopback", "loopback:uboot", board.node)
    board.unplug()
    await rig.until(lambda: rig.state() == "lost", "the loss")
    board.replug()
    await rig.until(lambda: rig.state() == "open", "the return")
    assert len(started) >= 2


@with_rig
async def test_a_simulated_board_that_does_not_start_fails_the_watch(rig: Rig) -> None:
    async def start() -> str:
        raise NotFound("no simulated board 'ubot'", near=["uboot"])

    rig.duts["console"] = start
    with pytest.raises(NotFound) as caught:
        await rig.channel.watch([rig.config(device="loopback:ubot")])
    assert caught.value.near == ["uboot"]


@with_rig
async def test_asking_for_a_line_that_is_not_watched_says_which_are(rig: Rig) -> None:
    with pytest.raises(Unreachable, match="is not being watched"):
        await rig.channel.send("console", b"x")
    rig.board()
    await rig.watch()
    with pytest.raises(NotFound, match="console is") as caught:
        await rig.channel.send("consol", b"x")
    assert caught.value.near == ["console"]


@with_rig
async def test_a_pty_has_no_dtr_and_says_so(rig: Rig) -> None:
    rig.board()
    await rig.watch()
    with pytest.raises(Unreachable, match="a PTY has no DTR line"):
        await rig.channel.pulse_dtr("console", 10)


@with_rig
async def test_every_error_is_of_the_closed_vocabulary(rig: Rig) -> None:
    (rig.tmp / "tty-console").write_text("not a tty")
    with pytest.raises(LabdError, match="is not a serial port"):
        await rig.watch()


async def same_number_again(name: str) -> tuple[int, int]:
    """A new terminal of that name, as a stranger's: (master, slave); the old one may still be closing."""
    for _ in range(100):
        spare: list[int] = []
        try:
            while len(spare) < 32:
                pair = os.openpty()
                if os.ttyname(pair[1]) == name:
                    return pair
                spare += pair
        finally:
            for fd in spare:
                os.close(fd)
        await trio.sleep(0.02)
    pytest.skip("another program took the number")


@with_rig
async def test_a_strangers_terminal_of_the_same_name_is_not_taken_up_until_somebody_asks_for_it(rig: Rig) -> None:
    master, slave = os.openpty()
    name = os.ttyname(slave)
    os.close(slave)
    await rig.channel.watch([rig.config(device=name)])
    os.close(master)
    await rig.until(lambda: rig.state() == "lost", "the loss")
    far, near = await same_number_again(name)
    try:
        cooked = termios.tcgetattr(near)
        await rig.until(lambda: "another one now" in rig.channel.status()[0]["why"], "the refusal")
        await trio.sleep(0.6)  # more than one try
        assert rig.state() == "lost" and termios.tcgetattr(near) == cooked
        refused = [event for event in rig.events(kind="error") if "another one now" in event["message"]]
        assert len(refused) == 1
        [row] = await rig.channel.watch([rig.config(device=name)])
        assert row["state"] == "open"
        os.write(far, b"mine now")
        await rig.until(lambda: rig.rx() == b"mine now", "its bytes")
    finally:
        os.close(far)
        os.close(near)
