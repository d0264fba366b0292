"""macOS logic with stand-ins for kqueue and libproc: refusal falls back to select, nothing is lost, nothing spins."""

import ctypes
import errno
import os
import select
import struct
import time
import tty
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from labd.capture import CaptureLoop
from labd.platform import macos

DEADLINE_S = 20.0


class FakeKqueue:
    """kqueue's calls, done with epoll where there is one. Refuses descriptors in `refused` with EINVAL."""

    refused: ClassVar[set[int]] = set()

    def __init__(self) -> None:
        self._poll = select.epoll() if hasattr(select, "epoll") else select.kqueue()  # type: ignore[attr-defined]

    def fileno(self) -> int:
        return int(self._poll.fileno())

    def control(self, changes: Any, most: int, timeout: float) -> list[Any]:
        for change in changes or []:
            if change.ident in self.refused:
                raise OSError(errno.EINVAL, "Invalid argument")
            if change.flags == API.KQ_EV_ADD:
                self._poll.register(change.ident, select.EPOLLIN)
            else:
                self._poll.unregister(change.ident)
        if not most:
            return []
        gone = select.EPOLLHUP | select.EPOLLERR
        found = self._poll.poll(timeout, most)
        return [SimpleNamespace(ident=fd, flags=API.KQ_EV_EOF if events & gone else 0) for fd, events in found]

    def close(self) -> None:
        self._poll.close()


API = SimpleNamespace(
    kqueue=FakeKqueue,
    kevent=lambda ident, **more: SimpleNamespace(ident=ident, **more),
    KQ_FILTER_READ=-1,
    KQ_EV_ADD=1,
    KQ_EV_DELETE=2,
    KQ_EV_EOF=0x8000,
)

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="the stand-in for kqueue needs epoll")


@pytest.fixture
def pty(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    monkeypatch.setattr(FakeKqueue, "refused", set())
    master, slave = os.openpty()
    tty.setraw(slave)
    os.set_blocking(slave, False)
    yield master, slave
    for fd in (master, slave):
        try:
            os.close(fd)
        except OSError:
            pass


def turn(loop: CaptureLoop, until: Any, what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not until():
        assert time.monotonic() < deadline, f"still not: {what}"
        select.select([loop.fileno()], [], [], 0.1)
        loop.step()


@pytest.mark.parametrize("refuse", [False, True], ids=["kqueue", "select thread"])
def test_bytes_arrive_whether_kqueue_takes_the_port_or_not(pty: tuple[int, int], refuse: bool) -> None:
    master, slave = pty
    FakeKqueue.refused = {slave} if refuse else set()
    loop, got, gone = CaptureLoop(macos.KqueuePoller(API)), bytearray(), []
    token = loop.add(slave, lambda data, wall, mono: got.extend(data), gone.append)
    for number in range(20):
        os.write(master, b"line %d\n" % number)
        turn(loop, lambda n=number: got.endswith(b"line %d\n" % n), f"line {number}")
    os.close(master)
    turn(loop, lambda: gone, "the hang-up")
    assert len(gone) == 1
    assert not token.live
    loop.close()


def test_a_refused_port_that_was_removed_is_not_reported_any_more(pty: tuple[int, int]) -> None:
    master, slave = pty
    FakeKqueue.refused = {slave}
    loop, got = CaptureLoop(macos.KqueuePoller(API)), bytearray()
    token = loop.add(slave, lambda data, wall, mono: got.extend(data), lambda reason: None)
    loop.remove(token)
    os.write(master, b"x")
    select.select([loop.fileno()], [], [], 0.05)
    assert loop.step() == []
    assert got == b""
    loop.close()


def test_the_select_thread_does_not_spin_on_a_port_that_nobody_reads(pty: tuple[int, int]) -> None:
    master, slave = pty
    FakeKqueue.refused = {slave}
    poller = macos.KqueuePoller(API)
    poller.add(slave)
    os.write(master, b"unread")
    deadline = time.monotonic() + DEADLINE_S
    while not (ready := poller.ready()):
        assert time.monotonic() < deadline, "never reported"
    assert ready == [(slave, False)]
    before = time.process_time()
    select.select([], [], [], 0.3)  # the span that is measured
    assert time.process_time() - before < 0.15
    assert poller.ready() == []
    poller.done(slave)
    while not poller.ready():
        assert time.monotonic() < deadline, "not reported again, although there is still input"
    poller.close()


def test_other_refusals_are_raised(pty: tuple[int, int]) -> None:
    poller = macos.KqueuePoller(API)
    with pytest.raises(OSError) as caught:
        poller.add(9999)
    assert caught.value.errno == errno.EBADF
    poller.remove(9999)
    poller.close()


def test_its_notices_are_not_trusted_alone() -> None:
    assert macos.KqueuePoller.safety_poll_s == 1.0


def test_pty_names(tmp_path: Any) -> None:
    assert macos._PTY.fullmatch("/dev/ttys003")
    assert not macos._PTY.fullmatch("/dev/tty.usbserial-1")
    assert not macos.is_pty(str(tmp_path / "ttys003"))
    assert not macos.is_pty("/dev/null")


def test_a_tty_node_is_opened_as_its_cu_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macos.os.path, "exists", lambda path: path == "/dev/cu.usbserial-1")
    assert macos.callout("/dev/tty.usbserial-1") == "/dev/cu.usbserial-1"
    assert macos.callout("/dev/tty.other") == "/dev/tty.other"
    assert macos.callout("/dev/ttys001") == "/dev/ttys001"


class FakeLibproc:
    """Two processes; the second has `/dev/tty.usbserial-1` open, the other node of the same port."""

    def proc_listallpids(self, room: Any, size: int) -> int:
        if room is None:
            return 2
        room[0], room[1] = 71, 72
        return 2

    def proc_pidinfo(self, pid: int, flavour: int, arg: Any, room: Any, size: int) -> int:
        if pid == 71:
            return 0  # another user's
        facts = struct.pack("iIiI", 0, 0, 5, 1)
        if room is not None:
            ctypes.memmove(room, facts, len(facts))
        return len(facts)

    def proc_pidfdinfo(self, pid: int, fd: int, flavour: int, room: Any, size: int) -> int:
        assert (pid, fd) == (72, 5)
        path = b"/dev/tty.usbserial-1\0"
        ctypes.memmove(ctypes.byref(room, macos._VNODE_PATH_AT), path, len(path))
        return size

    def proc_pidpath(self, pid: int, room: Any, size: int) -> int:
        ctypes.memmove(room, b"/usr/local/bin/minicom\0", 23)
        return 22


def test_a_holder_of_the_ports_other_node_is_a_holder() -> None:
    found = macos._holders("/dev/cu.usbserial-1", FakeLibproc())
    assert found == [{"pid": 72, "command": "/usr/local/bin/minicom", "master": False}]
    assert macos._holders("/dev/cu.usbserial-2", FakeLibproc()) == []


def test_without_libproc_nobody_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: object) -> None:
        raise OSError("no such library")

    monkeypatch.setattr(macos.ctypes, "CDLL", missing)
    assert macos.holders("/dev/cu.x") == []
    assert macos.boot_id() == "unknown"


def test_ports_are_cu_nodes_and_twins_know_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from serial.tools import list_ports

    def port(device: str, serial: str | None) -> Any:
        return SimpleNamespace(
            device=device, description="UART", manufacturer=None, product=None, vid=0x1A86, pid=0x7523,
            serial_number=serial, interface=None, location="20-1",
        )  # fmt: skip

    monkeypatch.setattr(list_ports, "comports", lambda: [port("/dev/tty.wch1", None), port("/dev/cu.wch2", None)])
    ports = macos.serial_ports()
    assert [p["node"] for p in ports] == ["/dev/cu.wch1", "/dev/cu.wch2"]
    assert ports[0]["twins"] == ["/dev/cu.wch2"]
    assert ports[0]["vid"] == "1a86"
    who = macos.identity("/dev/tty.wch1")
    assert who is not None and who["topology"] == "20-1"
    assert macos.identity("/dev/ttys001") is None
    assert macos.find(who) == "/dev/cu.wch1"
