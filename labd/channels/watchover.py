"""While a port is open: who else opened it, is it still raw, does the driver lose bytes. Each finding is one event.

Locks are advice and root passes all of them, `stty` changes a terminal under anybody, and a UART's FIFO overflows
silently; the only defence is to look. Looking happens in threads, every few seconds, and can't harm the capture.
"""

import termios
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from labd.channels import raw
from labd.channels.port import TtyPort
from labd.platform import current

if TYPE_CHECKING:
    from labd.channels.line import Line
    from labd.channels.portmodel import Port

LAST_LOOK_S = 1.0
"""How long the last look may hold up a close."""

_T = TypeVar("_T")


async def watch_over(line: "Line", port: "Port") -> None:
    """Look every `watch_every_s` until cancelled. Its own failures become `error` events, once each.

    The counts of lost bytes are compared from the open on, and once more at the end. A network port has nothing to
    look at: what happens on the other machine is not seen from here.
    """
    if not isinstance(port, TtyPort):
        return
    said = ""
    state = _Seen(others=port.kind == "loopback", rx=line.rx_end)
    try:
        state.counts = await _in_thread(line, lambda: _counts(port))
        while True:
            await trio.sleep(line.around.watch_every_s)
            try:
                _judge(line, await _in_thread(line, lambda: _look(port, line.around.watch_every_s / 2)), state)
            except Exception as error:
                if str(error) != said:
                    said = str(error)
                    line.tell("error", what="watch over", message=f"{type(error).__name__}: {error}")
    finally:
        with trio.CancelScope(shield=True), trio.move_on_after(LAST_LOOK_S):
            _judge_counts(line, await _in_thread(line, lambda: _counts(port)), state)


async def _in_thread(line: "Line", function: Callable[[], _T]) -> _T:
    return await trio.to_thread.run_sync(function, abandon_on_cancel=True, limiter=line.around.limiter)


class _Seen:
    """What was found before, so that it is told once. `others`: a cable's holders at the first look are its own.

    `rx`: the offset at the last look; whatever is found now may have touched any byte from there on.
    """

    def __init__(self, *, others: bool, rx: int = 0) -> None:
        self.accept_first = others
        self.known: dict[int, str] = {}
        self.counts: dict[str, int] | None = None
        self.rx = rx


def _look(port: "TtyPort", max_age_s: float) -> dict[str, Any]:
    """In a thread. Puts a changed terminal back at once: every byte since was altered.

    `max_age_s`: ports that look at about the same time share one walk through all processes.
    """
    changed: list[str] = []
    with port.lock:
        if not port.closed:
            changed = _restore(port)
    holders = current().holders(port.node, max_age_s=max_age_s)
    return {"changed": changed, "holders": [h for h in holders if not h["master"]], "counts": _counts(port)}


def _counts(port: "TtyPort") -> dict[str, int] | None:
    with port.lock:
        return None if port.closed else current().line_errors(port.fd)


def _restore(port: "TtyPort") -> list[str]:
    flow = port.settings.flow == "xonxoff"
    try:
        changed = raw.faults(port.fd, xonxoff=flow)
        if changed:
            raw.make_raw(port.fd, xonxoff=flow)
    except (termios.error, OSError):  # it is going down; the reader tells
        return []
    return changed


def _judge(line: "Line", found: dict[str, Any], seen: _Seen) -> None:
    now = line.rx_end
    if found["changed"]:
        names = ", ".join(found["changed"])
        line.tell(
            "error", what="settings", since_rx=seen.rx, message=f"another program set {names}; raw mode is restored"
        )
    _judge_holders(line, found["holders"], seen)
    _judge_counts(line, found["counts"], seen)
    seen.rx = now


def _judge_counts(line: "Line", counts: dict[str, int] | None, seen: _Seen) -> None:
    """One event a look: bytes that the driver lost are an `overrun`, bytes that came broken an `error`."""
    if counts is None:
        return
    before, seen.counts = seen.counts, counts
    if before is None:
        return
    more = {key: counts[key] - before[key] for key in counts if counts[key] > before[key]}
    lost = sum(more.get(key, 0) for key in ("overrun", "buffer_overrun"))
    if lost:
        line.tell("overrun", where="uart", count=lost, since_rx=seen.rx, **more)
    elif "frame" in more or "parity" in more:
        text = " and ".join(f"{more[key]} {key} errors" for key in ("frame", "parity") if key in more)
        line.tell("error", what="uart", since_rx=seen.rx, message=f"{text}: is the baud rate right?", **more)


def _judge_holders(line: "Line", holders: list[dict[str, Any]], seen: _Seen) -> None:
    now = {int(holder["pid"]): str(holder["command"]) for holder in holders}
    if seen.accept_first:
        seen.accept_first = False
        seen.known = now
        return
    fresh = [holder for holder in holders if holder["pid"] not in seen.known]
    for holder in fresh:
        line.tell("suspect", pid=holder["pid"], command=holder["command"], since_rx=seen.rx)
    for suspect in line.suspects:
        if suspect["pid"] not in now:
            line.tell("suspect", pid=suspect["pid"], command=suspect["command"], ended=True)
    line.suspects = [suspect for suspect in line.suspects if suspect["pid"] in now] + fresh
    seen.known = now | (seen.known if line.kind == "loopback" else {})
