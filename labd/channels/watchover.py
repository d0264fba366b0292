"""While a port is open: who else opened it, is it still raw, does the driver lose bytes. Each finding is one event.

Locks are advice and root passes all of them, `stty` changes a terminal under anybody, and a UART's FIFO overflows
silently; the only defence is to look. Looking happens in threads, every few seconds, and can't harm the capture.
"""

import termios
from typing import TYPE_CHECKING, Any

import trio

from labd.channels import raw
from labd.platform import current

if TYPE_CHECKING:
    from labd.channels.line import Line
    from labd.channels.port import Port


async def watch_over(line: "Line", port: "Port") -> None:
    """Look every `watch_every_s` until cancelled. Its own failures become `error` events, once each."""
    said = ""
    state = _Seen(others=port.kind == "loopback")
    while True:
        await trio.sleep(line.around.watch_every_s)
        try:
            found = await trio.to_thread.run_sync(
                lambda: _look(port, line.around.watch_every_s / 2), abandon_on_cancel=True, limiter=line.around.limiter
            )
            _judge(line, found, state)
        except Exception as error:
            if str(error) != said:
                said = str(error)
                line.tell("error", what="watch over", message=f"{type(error).__name__}: {error}")


class _Seen:
    """What was found before, so that it is told once. `others`: a cable's holders at the first look are its own."""

    def __init__(self, *, others: bool) -> None:
        self.accept_first = others
        self.known: set[int] = set()
        self.counts: dict[str, int] | None = None


def _look(port: "Port", max_age_s: float) -> dict[str, Any]:
    """In a thread. Puts a changed terminal back at once: every byte since was altered.

    `max_age_s`: ports that look at about the same time share one walk through all processes.
    """
    changed: list[str] = []
    counts = None
    with port.lock:
        if not port.closed:
            changed = _restore(port)
            counts = current().line_errors(port.fd)
    holders = current().holders(port.node, max_age_s=max_age_s)
    return {"changed": changed, "holders": [h for h in holders if not h["master"]], "counts": counts}


def _restore(port: "Port") -> list[str]:
    flow = port.settings.flow == "xonxoff"
    try:
        changed = raw.faults(port.fd, xonxoff=flow)
        if changed:
            raw.make_raw(port.fd, xonxoff=flow)
    except (termios.error, OSError):  # it is going down; the reader tells
        return []
    return changed


def _judge(line: "Line", found: dict[str, Any], seen: _Seen) -> None:
    if found["changed"]:
        names = ", ".join(found["changed"])
        line.tell("error", what="settings", message=f"another program set {names}; raw mode is restored")
    _judge_holders(line, found["holders"], seen)
    counts = found["counts"]
    if counts is not None and seen.counts is not None:
        more = {key: counts[key] - seen.counts[key] for key in counts if counts[key] > seen.counts[key]}
        lost = {key: more[key] for key in ("overrun", "buffer_overrun") if key in more}
        if lost:
            line.tell("overrun", where="uart", count=sum(lost.values()), **more)
    seen.counts = counts or seen.counts


def _judge_holders(line: "Line", holders: list[dict[str, Any]], seen: _Seen) -> None:
    pids = {holder["pid"] for holder in holders}
    if seen.accept_first:
        seen.accept_first = False
        seen.known = pids
        return
    for holder in holders:
        if holder["pid"] not in seen.known:
            line.tell("suspect", pid=holder["pid"], command=holder["command"])
    line.suspects = [holder for holder in holders if holder["pid"] not in seen.known or holder in line.suspects]
    seen.known = pids | (seen.known if line.kind == "loopback" else set())
