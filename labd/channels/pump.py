"""The one trio task that drives the capture loop, and the watchdog that tells when the event loop was held up.

The daemon starts `pump` once, for all channels. It waits on the loop's single descriptor, reads for at most a few
milliseconds, and gives every other task its turn. It knows no port, no journal and no lab.
"""

import time
from collections.abc import Callable

import trio

from labd.capture import CaptureLoop

STALL_MS = 20
"""Longer steps than this endanger capture: at 1 Mbaud a tty's 4 KiB are full after 40 ms."""

_NO_NOTICE_POLL_S = 0.005


async def pump(capture: CaptureLoop, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
    """Capture until cancelled."""
    task_status.started()
    waits = True
    while True:
        if waits:
            try:
                with trio.move_on_after(capture.safety_poll_s or float("inf")) as limit:
                    await trio.lowlevel.wait_readable(capture.fileno())
            except OSError:  # this system can't wait on a nested poller: look often instead
                waits = False
                continue
            if limit.cancelled_caught:
                capture.sweep()
        else:
            await trio.sleep(_NO_NOTICE_POLL_S)
        capture.step()


class StallWatch(trio.abc.Instrument):
    """Times every step of every task: `trio.run(..., instruments=[StallWatch(report)])`.

    `report(task_name, wall_ms, cpu_ms)` is called for each step longer than `limit_ms`, in the loop, right after it.
    Little CPU in much wall time means that the machine, not our code, held us up. `worst_ms` is the longest so far.
    """

    def __init__(self, report: Callable[[str, float, float], None], limit_ms: float = STALL_MS) -> None:
        self._report = report
        self._limit_ns = int(limit_ms * 1e6)
        self._wall = self._cpu = 0
        self.worst_ms = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """trio's hook."""
        self._wall, self._cpu = time.perf_counter_ns(), time.thread_time_ns()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """trio's hook."""
        took = time.perf_counter_ns() - self._wall
        if took > self._limit_ns and self._wall:
            cpu = time.thread_time_ns() - self._cpu
            self.worst_ms = max(self.worst_ms, took / 1e6)
            try:
                self._report(task.name, took / 1e6, cpu / 1e6)
            except Exception:  # a raising instrument is thrown out by trio, and then nobody watches
                pass
