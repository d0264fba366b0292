"""While a port is open: who else opens it, and who changes it, is seen and told."""

import termios
import tty

from labd.channels import watchover
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
    assert len(rig.events(kind="suspect")) == 1


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


@with_rig
async def test_a_uart_that_overflowed_is_told_with_its_count(rig: Rig) -> None:
    rig.board()
    await rig.watch()
    line, seen = rig.channel._lines["console"], watchover._Seen(others=False)
    none = {"frame": 0, "overrun": 3, "parity": 0, "breaks": 0, "buffer_overrun": 0}
    for counts in (none, {**none, "overrun": 5, "buffer_overrun": 1}):
        watchover._judge(line, {"changed": [], "holders": [], "counts": counts}, seen)
    [event] = rig.events(kind="overrun")
    assert (event["where"], event["count"], event["overrun"]) == ("uart", 3, 2)


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
