"""Opens and closes that hang, or whose caller goes away: the loop goes on, and no descriptor stays behind."""

import os
import threading
import tty
from collections.abc import Iterator

import pytest
import trio

from labd.channels import opening
from labd.channels.access import Forbidden
from labd.channels.opening import close_in_thread, open_in_thread
from labd.channels.port import Port, Settings, open_port
from labd.errors import Unreachable
from tests.channels.rig import DEADLINE_S


@pytest.fixture
def node() -> Iterator[str]:
    master, slave = os.openpty()
    tty.setraw(slave)
    yield os.ttyname(slave)
    os.close(slave)
    os.close(master)


class Slow:
    """An open that waits for permission to go on, as a blocking driver does."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.started, self.go = threading.Event(), threading.Event()
        self.port: Port | None = None

    def __call__(self) -> Port:
        self.started.set()
        assert self.go.wait(DEADLINE_S)
        self.port = open_port(self.node, Settings(), label="pico.console")
        return self.port


def _closed_in_the_end(slow: Slow) -> bool:
    return slow.port is not None and slow.port.closed


async def _wait(true: object) -> None:
    with trio.fail_after(DEADLINE_S):
        while not true():  # type: ignore[operator]
            await trio.sleep(0.005)


def test_a_cancelled_open_closes_what_its_thread_still_opens(node: str) -> None:
    async def main() -> None:
        slow, limiter = Slow(node), trio.CapacityLimiter(4)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: open_in_thread(slow, label="x", node=node, limiter=limiter))
            await _wait(slow.started.is_set)
            nursery.cancel_scope.cancel()
        slow.go.set()
        await _wait(lambda: _closed_in_the_end(slow))

    trio.run(main)


def test_an_open_that_hangs_is_given_up_and_said(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "OPEN_LIMIT_S", 0.1)

    async def main() -> None:
        slow = Slow(node)
        with pytest.raises(Unreachable, match="opening took longer"):
            await open_in_thread(slow, label="x", node=node, limiter=trio.CapacityLimiter(4))
        slow.go.set()
        await _wait(lambda: _closed_in_the_end(slow))

    trio.run(main)


def test_a_close_that_hangs_never_holds_up_the_loop(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(opening, "CLOSE_LIMIT_S", 0.1)
    real = opening.close_port

    def hang(port: Port, *, hung_up: bool) -> None:
        assert go.wait(DEADLINE_S)
        real(port, hung_up=hung_up)

    monkeypatch.setattr(opening, "close_port", hang)

    async def main() -> None:
        port = open_port(node, Settings(), label="pico.console")
        assert await close_in_thread(port, hung_up=True, limiter=trio.CapacityLimiter(4)) is False
        go.set()
        await _wait(lambda: port.closed)

    trio.run(main)


def test_a_node_that_udev_has_not_finished_is_asked_again(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labd.channels.access.fresh", lambda path, seconds, now: True)
    tries = []

    def opener() -> Port:
        tries.append(1)
        if len(tries) < 3:
            raise Forbidden("not yet")
        return open_port(node, Settings(), label="pico.console")

    async def main() -> None:
        limiter = trio.CapacityLimiter(4)
        port = await open_in_thread(opener, label="x", node=node, limiter=limiter)
        assert await close_in_thread(port, hung_up=True, limiter=limiter)

    trio.run(main)
    assert len(tries) == 3


def test_an_old_node_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labd.channels.access.fresh", lambda path, seconds, now: False)
    tries = []

    def opener() -> Port:
        tries.append(1)
        raise Forbidden("no")

    async def main() -> None:
        with pytest.raises(Forbidden):
            await open_in_thread(opener, label="x", node="/dev/x", limiter=trio.CapacityLimiter(4))

    trio.run(main)
    assert len(tries) == 1
