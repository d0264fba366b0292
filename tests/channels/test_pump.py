"""The pump on systems that can't wait on a nested poller, and the watchdog of the event loop."""

import os
import time
import tty

import trio

from labd.capture import CaptureLoop
from labd.channels.pump import StallWatch, pump
from tests.channels.rig import DEADLINE_S


def test_a_step_that_holds_up_the_loop_is_reported_with_its_task() -> None:
    told: list[tuple[str, float, float]] = []

    async def culprit() -> None:
        until = time.perf_counter() + 0.05
        while time.perf_counter() < until:
            pass

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(culprit)

    watch = StallWatch(lambda *what: told.append(what))
    trio.run(main, instruments=[watch])
    mine = [what for what in told if "culprit" in what[0]]
    assert len(mine) == 1
    assert mine[0][1] >= 45
    assert watch.worst_ms >= 45


def test_a_report_that_raises_does_not_end_the_watch() -> None:
    calls = []

    def report(task: str, wall_ms: float, cpu_ms: float) -> None:
        calls.append(task)
        raise ValueError

    async def main() -> None:
        for _ in range(3):
            time.sleep(0.03)
            await trio.lowlevel.checkpoint()

    trio.run(main, instruments=[StallWatch(report)])
    assert len(calls) >= 3


class _Unwaitable:
    """A poller whose descriptor the event loop refuses, as kqueue in kqueue may be."""

    def __init__(self) -> None:
        from labd.platform import current

        self._real = current().new_poller()
        self.safety_poll_s = 1.0

    def fileno(self) -> int:
        return os.open(os.devnull, os.O_RDONLY)  # epoll and kqueue both refuse what can't be waited on

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


def test_without_notices_the_pump_looks_often_instead() -> None:
    master, slave = os.openpty()
    tty.setraw(slave)
    os.set_blocking(slave, False)
    got = bytearray()

    async def main() -> None:
        capture = CaptureLoop(_Unwaitable())  # type: ignore[arg-type]
        capture.add(slave, lambda data, wall, mono: got.extend(data), lambda reason: None)
        async with trio.open_nursery() as nursery:
            await nursery.start(pump, capture)
            os.write(master, b"seen")
            with trio.fail_after(DEADLINE_S):
                while bytes(got) != b"seen":
                    await trio.sleep(0.002)
            nursery.cancel_scope.cancel()
        capture.close()

    trio.run(main)
    os.close(master)
    os.close(slave)
