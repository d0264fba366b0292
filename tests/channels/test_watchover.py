"""While a port is open: who else opens it, and who changes it, is seen and told."""

import contextlib
import dataclasses
import termios
import tty
from collections.abc import Iterator

from labd.channels import watchover
from labd.platform import current
from tests.channels.rig import Rig, end, process, with_rig

OPENER = "import os,sys; os.open(sys.argv[1], os.O_RDWR|os.O_NOCTTY); print('ready', flush=True); sys.stdin.read()"


@with_rig
async def test_a_second_reader_is_named_in_an_event_and_in_the_status(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    termios_fd = rig.channel._lines["console"].port.fd  # type: ignore[union-attr]
    import fcntl

    fcntl.ioctl(termios_fd, termios.TIOCNXCL)  # so that the thief need not be root
    thief = process(OPENER, board.node, "byte-thief")
    try:
        [event] = await rig.until(lambda: rig.events(kind="suspect"), "the event")
        assert event["pid"] == thief.pid
        assert "byte-thief" in event["command"]
        assert "bytes may be missing" in rig.channel.status()[0]["note"]
    finally:
        end(thief)
    await rig.until(lambda: not rig.channel.status()[0]["suspects"], "the suspicion to end with the process")
    [began, ended] = rig.events(kind="suspect")
    assert "ended" not in began and (ended["pid"], ended["ended"]) == (thief.pid, True)


@with_rig
async def test_a_terminal_that_another_program_set_is_set_back_and_told(rig: Rig) -> None:
    board = rig.board()
    await rig.watch()
    port = rig.channel._lines["console"].port
    assert port is not None
    mode = termios.tcgetattr(port.fd)
    mode[tty.IFLAG] |= termios.IXON | termios.ICRNL
    termios.tcsetattr(port.fd, termios.TCSANOW, mode)
    [event] = await rig.until(lambda: rig.events(kind="error"), "the event")
    assert "another program set ICRNL, IXON" in event["message"]
    board.say(b"\x11\x13\r")
    await rig.until(lambda: rig.rx() == b"\x11\x13\r", "the bytes, unchanged")


@with_rig
async def test_a_cables_own_holder_is_no_suspect(rig: Rig) -> None:
    board = rig.board("sim")
    mine = process(OPENER, board.node)

    async def start() -> str:
        return str(board.path)

    rig.duts["console"] = start
    try:
        await rig.channel.watch([rig.config(device="loopback:uboot")])
        line = rig.channel._lines["console"]
        seen = watchover._Seen(others=True)
        found = watchover._look(line.port, 0.0)  # type: ignore[arg-type]
        assert [holder["pid"] for holder in found["holders"]] == [mine.pid]
        watchover._judge(line, found, seen)
        watchover._judge(line, found, seen)
        assert rig.events(kind="suspect") == []
    finally:
        end(mine)


NONE_LOST = {"frame": 0, "overrun": 3, "parity": 0, "breaks": 0, "buffer_overrun": 0}


@with_rig
async def test_a_uart_that_overflowed_is_told_with_its_count_and_since_where(rig: Rig) -> None:
    board = rig.board()
    with driver_counts(NONE_LOST) as counts:
        await rig.watch()
        board.say(b"whole\n")
        await rig.until(lambda: rig.rx() == b"whole\n", "the line")
        seen = counts.looks
        await rig.until(lambda: counts.looks >= seen + 3, "a look that finds nothing")
        counts.update(overrun=5, buffer_overrun=1)
        board.say(b"torn\n")
        [event] = await rig.until(lambda: rig.events(kind="overrun"), "the event")
        assert (event["where"], event["count"], event["overrun"], event["buffer_overrun"]) == ("uart", 3, 2, 1)
        assert event["since_rx"] >= len(b"whole\n")
        counts.update(frame=4)
        await rig.until(lambda: rig.events(kind="error"), "the framing errors")
    assert "4 frame errors: is the baud rate right?" in rig.events(kind="error")[0]["message"]
    assert len(rig.events(kind="overrun")) == 1


@with_rig
async def test_what_overflowed_between_the_last_look_and_the_close_is_told_too(rig: Rig) -> None:
    rig.board()
    rig.channel._around = dataclasses.replace(rig.channel._around, watch_every_s=600.0)
    with driver_counts(NONE_LOST) as counts:
        await rig.watch()
        await rig.until(lambda: counts.looks, "the counts at the open")
        counts.update(overrun=4)
        await rig.channel.stop()
    [event] = rig.events(kind="overrun")
    assert event["count"] == 1


class Counts(dict[str, int]):
    """What a driver counts; `looks`: how often it was asked."""

    looks = 0

    def look(self, fd: int) -> dict[str, int]:
        self.looks += 1
        return dict(self)


@contextlib.contextmanager
def driver_counts(first: dict[str, int]) -> Iterator[Counts]:
    """A driver that counts losses, as a PTY's does not; what is yielded may be changed."""
    counts = Counts(first)
    system = current()
    real = system.line_errors
    system.line_errors = counts.look  # type: ignore[method-assign]
    try:
        yield counts
    finally:
        system.line_errors = real  # type: ignore[method-assign]


@with_rig
async def test_a_watch_that_fails_itself_is_told_once(rig: Rig) -> None:
    import labd.channels.watchover as module

    rig.board()
    real = module._look

    def broken(port: object, max_age_s: float) -> dict[str, object]:
        raise ValueError("odd")

    module._look = broken  # type: ignore[assignment]
    try:
        await rig.watch()
        await rig.until(lambda: rig.events(kind="error"), "the event")
    finally:
        module._look = real
    assert rig.state() == "open"
