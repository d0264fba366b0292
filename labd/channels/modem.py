"""DTR as a button: pressed and released on the open handle, with the port captured all the while.

A second handle would reset many boards by being opened; closing would release the line. Both are why this works on
the line's own port only.
"""

import errno
import fcntl
import struct
import termios
from typing import TYPE_CHECKING, Any

import trio

from labd.errors import Unreachable

if TYPE_CHECKING:
    from labd.channels.line import Line
    from labd.channels.port import Port


async def pulse_dtr(line: "Line", ms: float, who: dict[str, Any]) -> dict[str, Any]:
    """Turn DTR over from where it rests, for `ms`, and back, also when cancelled meanwhile; a `reset` event tells.

    Returns `{interface, line, rests, pulsed, ms, rx}`: levels as true (asserted) or false. Raises Unreachable when
    the port is down or has no modem lines.
    """
    port = line.port
    if port is None:
        raise Unreachable(f"{line.label}: the port is down ({line.why}); DTR was not touched")
    limiter = line.around.limiter
    try:
        rests = await trio.to_thread.run_sync(_level, port, limiter=limiter)
        before = line.rx_end
        line.tell("reset", line="dtr", ms=ms, pulsed=not rests, who=who)
        try:
            await trio.to_thread.run_sync(_set, port, not rests, limiter=limiter)
            await trio.sleep(ms / 1000)
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(2.0):
                await trio.to_thread.run_sync(_set, port, rests, abandon_on_cancel=True, limiter=limiter)
    except OSError as error:
        if error.errno in (errno.ENOTTY, errno.EINVAL):
            what = "a PTY" if port.kind != "tty" else "this port"
            raise Unreachable(f"{line.label}: {what} has no DTR line") from None
        raise Unreachable(f"{line.label}: DTR could not be set ({error.strerror or error})") from None
    return {"interface": line.name, "line": "dtr", "rests": rests, "pulsed": not rests, "ms": ms, "rx": before}


def _level(port: "Port") -> bool:
    with port.lock:
        raw = fcntl.ioctl(_fd(port), termios.TIOCMGET, b"\0\0\0\0")
    return bool(struct.unpack("I", raw)[0] & termios.TIOCM_DTR)


def _set(port: "Port", level: bool) -> None:
    act = termios.TIOCMBIS if level else termios.TIOCMBIC
    with port.lock:
        fcntl.ioctl(_fd(port), act, struct.pack("I", termios.TIOCM_DTR))


def _fd(port: "Port") -> int:
    if port.closed:
        raise OSError(errno.EIO, "the port went down")
    return port.fd
