"""Sending on one line: whole, in turn, up to a deadline, and recorded as far as the port took it.

A peer that stopped reading fills the tty's buffer; then writing waits here, and only here: capture goes on. Nothing
is ever queued for later, and nothing is sent on a descriptor that is no longer this port's.
"""

import os
import time
from typing import TYPE_CHECKING, Any

import trio

from labd.errors import TimedOut, Unreachable

if TYPE_CHECKING:
    from labd.channels.line import Line
    from labd.channels.port import Port

TX_EVENT_S = 1.0
"""A send that takes longer is recorded in parts, so that a crash in its midst loses at most a second of record."""


class _Record:
    """What one send has had accepted, told to the journal in one `tx` event, or in one a second."""

    def __init__(self, line: "Line", total: int, who: dict[str, Any]) -> None:
        self._line = line
        self._fields = {"total": total, "who": who}
        self._data = bytearray()
        self._since = time.monotonic()
        self.rx_before = line.rx_end
        self.accepted = 0

    def took(self, data: bytes) -> None:
        """The port accepted `data`."""
        self._data += data
        self.accepted += len(data)
        self._line.sent += len(data)
        if time.monotonic() - self._since > TX_EVENT_S:
            self.tell()

    def tell(self, **more: Any) -> None:
        """Put what is not told yet into the journal."""
        if self._data or more:
            data, self._data = bytes(self._data), bytearray()
            self._since = time.monotonic()
            self._line.tell_sent(data, accepted=len(data), **self._fields, **more)


async def send(line: "Line", data: bytes, *, pace_ms: float, who: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """Send `data`, `pace_ms` after each byte if that is above 0. Waits for its turn on the line.

    Returns `{interface, bytes, accepted, rx, ms}`: `rx` is the offset of the first byte that can be an answer.
    Raises Unreachable when the port is down or goes down (with how much it took), TimedOut after `timeout_s`.
    """
    begin = time.monotonic()
    deadline = trio.current_time() + timeout_s
    port = _open_port(line)
    try:
        with trio.fail_at(deadline):
            await line.sending.acquire()
    except trio.TooSlowError:
        raise TimedOut(f"{line.label}: another send held the line for {timeout_s:g} s; nothing was sent") from None
    try:
        if line.port is not port:
            port = _open_port(line)
        record = _Record(line, len(data), who)
        await _write_all(line, port, data, record, pace_ms, deadline, timeout_s)
    finally:
        line.sending.release()
    return {
        "interface": line.name,
        "bytes": len(data),
        "accepted": record.accepted,
        "rx": record.rx_before,
        "ms": round((time.monotonic() - begin) * 1000, 3),
    }


def _open_port(line: "Line") -> "Port":
    if line.port is None:
        raise Unreachable(f"{line.label}: the port is down ({line.why}); nothing was sent", hint="labd serial watch")
    return line.port


async def _write_all(
    line: "Line", port: "Port", data: bytes, record: _Record, pace_ms: float, deadline: float, timeout_s: float
) -> None:
    size = len(data)
    ended = "cancelled"
    try:
        with trio.fail_at(deadline):
            while record.accepted < size:
                await _write_some(line, port, data, record, 1 if pace_ms > 0 else size)
                if pace_ms > 0 and record.accepted < size:
                    await trio.sleep(pace_ms / 1000)
        ended = ""
    except trio.TooSlowError:
        ended = "timed out"
        raise TimedOut(
            f"{line.label}: the port took {record.accepted} of {size} bytes in {timeout_s:g} s; "
            "the other end is not reading",
            hint="labd serial show, and look at flow control",
        ) from None
    except (OSError, trio.ClosedResourceError) as error:
        ended = f"the port went down ({error})" if str(error) else "the port went down"
        raise Unreachable(f"{line.label}: the port went down after {record.accepted} of {size} bytes") from None
    finally:
        record.tell(**({"failed": ended} if ended else {}))


async def _write_some(line: "Line", port: "Port", data: bytes, record: _Record, most: int) -> None:
    """Hand the port what it takes at once, at most `most` bytes; wait first if it takes nothing."""
    while True:
        if line.port is not port:  # closed, and its descriptor's number may be somebody else's by now
            raise trio.ClosedResourceError
        piece = data[record.accepted : record.accepted + most]
        try:
            count = os.write(port.fd, piece)
        except BlockingIOError:
            count = 0
        if count:
            record.took(piece[:count])
            return
        await trio.lowlevel.wait_writable(port.fd)
