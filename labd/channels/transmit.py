"""Sending on one line: whole, in turn, up to a deadline, and recorded as far as the port took it.

A peer that stopped reading fills the tty's buffer; then writing waits here, and only here: capture goes on. Nothing
is ever queued for later, and nothing is sent on a descriptor that is no longer this port's.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import trio

from labd.errors import Busy, TimedOut, Unreachable

if TYPE_CHECKING:
    from labd.channels.line import Line
    from labd.channels.port import Port

TX_EVENT_S = 1.0
"""A send that takes longer is recorded in parts, so that a crash in its midst loses at most a second of record."""


class _Record:
    """What one send has had accepted, told to the journal in one `tx` event, or in one a second."""

    def __init__(self, line: "Line", total: int, who: dict[str, Any], *, typed: bool = False) -> None:
        self._line = line
        self._typed = typed
        self._who = who
        # Bytes that came while a long send went on are an echo of it, though its events are written later.
        self._fields = {"total": total, "who": who, "rx_before": line.rx_end}
        self._data = bytearray()
        self._since = time.monotonic()
        self._at = self.rx_before = line.rx_end
        self.accepted = 0

    def before_write(self) -> None:
        """Bytes are about to go: what the board answers lies behind here, however soon another process stores it."""
        if not self._data:
            self._at = self._line.rx_end

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
            if self._typed and not more:
                self._line.typed.add(data, rx=self._at, who=self._who)
                return
            self._line.tell_sent(data, accepted=len(data), rx=self._at, **self._fields, **more)


async def send(
    line: "Line",
    data: bytes,
    *,
    pace_ms: float,
    who: dict[str, Any],
    timeout_s: float,
    line_pace_ms: float = 0.0,
    may_go_on: Callable[[], None] = lambda: None,
    typed: bool = False,
) -> dict[str, Any]:
    """Send `data`, `pace_ms` after each byte and `line_pace_ms` after each line's end. Waits for its turn on the line.

    `may_go_on()` is asked before each piece of a paced send; what it raises ends the send. `typed`: keys of somebody at
    a terminal, which are recorded together with those of the same moment (`labd.channels.typed`).

    Returns `{interface, bytes, accepted, rx, ms}`: `rx` is the offset of the first byte that can be an answer.
    Raises Unreachable when the port is down or goes down (with how much it took), TimedOut after `timeout_s`.
    """
    begin = time.monotonic()
    deadline = trio.current_time() + timeout_s
    port = open_port(line)
    try:
        with trio.fail_at(deadline):
            await line.sending.acquire()
    except trio.TooSlowError:
        raise TimedOut(f"{line.label}: another send held the line for {timeout_s:g} s; nothing was sent") from None
    try:
        if line.port is not port:
            port = open_port(line)
        record = _Record(line, len(data), who, typed=typed)
        pieces = _pieces(data, pace_ms / 1000, line_pace_ms / 1000)
        await _write_all(line, port, data, record, pieces, may_go_on, deadline, timeout_s)
    finally:
        line.sending.release()
    return {
        "interface": line.name,
        "bytes": len(data),
        "accepted": record.accepted,
        "rx": record.rx_before,
        "ms": round((time.monotonic() - begin) * 1000, 3),
    }


def open_port(line: "Line") -> "Port":
    """The line's port. Raises Unreachable while it is down."""
    if line.port is None:
        raise Unreachable(f"{line.label}: the port is down ({line.why}); nothing was sent",
                          hint=f"labd serial show {line.label.partition('.')[0]}")  # fmt: skip
    return line.port


def send_now(line: "Line", data: bytes, *, who: dict[str, Any]) -> int:
    """Hand the port what it takes of `data` in this very step; how much. 0 when it is down or others are writing.

    For reactions that can't wait for their turn. Never blocks, never raises; runs in the loop.
    """
    port = line.port
    if port is None or port.closed or line.sending.locked():
        return 0
    record = _Record(line, len(data), who)
    try:
        count = os.write(port.fd, data)
    except OSError:
        return 0
    record.took(data[:count])
    record.tell()
    return count


def _pieces(data: bytes, pace_s: float, line_pace_s: float) -> Iterator[tuple[int, float]]:
    """(offset where a piece ends, seconds to wait behind it)."""
    if pace_s <= 0 and line_pace_s <= 0:
        yield len(data), 0.0
        return
    for at, byte in enumerate(data, 1):
        ends_line = byte == 0x0A or (byte == 0x0D and data[at : at + 1] != b"\n")
        pause = max(pace_s, line_pace_s if ends_line else 0.0)
        if pause > 0 or at == len(data):
            yield at, pause


async def _write_all(
    line: "Line",
    port: "Port",
    data: bytes,
    record: _Record,
    pieces: Iterator[tuple[int, float]],
    may_go_on: Callable[[], None],
    deadline: float,
    timeout_s: float,
) -> None:
    size = len(data)
    ended = "cancelled"
    try:
        with trio.fail_at(deadline):
            for end, pause in pieces:
                while record.accepted < end:
                    await _write_some(line, port, data, record, end - record.accepted)
                if pause > 0 and end < size:
                    await trio.sleep(pause)
                    may_go_on()
        ended = ""
    except Busy as error:
        ended = "taken over"
        error.message = f"{error.message} (the port took {record.accepted} of {size} bytes before that)"
        raise
    except trio.TooSlowError:
        ended = "timed out"
        raise TimedOut(
            f"{line.label}: the port took {record.accepted} of {size} bytes in {timeout_s:g} s; "
            "the other end is not reading",
            hint="look at flow control: labd serial show",
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
        record.before_write()
        try:
            count = os.write(port.fd, piece)
        except BlockingIOError:
            count = 0
        if count:
            record.took(piece[:count])
            return
        await trio.lowlevel.wait_writable(port.fd)
