"""The wires beside the data: DTR as a button, DTR and RTS as levels, a break, and what the board answers with.

All on the open handle, with the port captured all the while: a second handle would reset many boards by being opened,
closing would release the line. One act at a time a line, each in a thread, each an event in the journal.
"""

import errno
from typing import TYPE_CHECKING, Any

import trio

from labd.channels.portmodel import OUTPUTS
from labd.errors import Unreachable

if TYPE_CHECKING:
    from labd.channels.line import Line
    from labd.channels.port import Port

LET_GO_S = 5.0
"""How long putting a wire back may take when its caller is gone."""


async def pulse_dtr(line: "Line", ms: float, who: dict[str, Any]) -> dict[str, Any]:
    """Turn DTR over from where it rests, for `ms`, and back, also when cancelled meanwhile; a `reset` event tells.

    Returns `{interface, line, rests, pulsed, ms, held_ms, rx}`: levels as true (asserted) or false, `held_ms` as
    measured here. Raises Unreachable when the port is down or has no modem lines.
    """
    async with line.wires:
        port = _port(line, "DTR was not touched")
        try:
            levels = await trio.to_thread.run_sync(port.levels, limiter=line.around.limiter)
        except OSError as error:
            raise _cannot(line, port, "dtr", error) from None
        rests = levels["dtr"] is not False  # nobody told it: a port's driver raises it
        before = line.rx_end
        line.tell("reset", line="dtr", ms=ms, pulsed=not rests, who=who)
        held = await _for_a_while(line, port, "dtr", not rests, ms)
    return {"interface": line.name, "line": "dtr", "rests": rests, "pulsed": not rests, "ms": ms, "held_ms": held,
            "rx": before}  # fmt: skip


async def send_break(line: "Line", ms: float, who: dict[str, Any]) -> dict[str, Any]:
    """Hold the line in a break for `ms`, between what others send; a `break` event tells.

    Returns `{interface, ms, held_ms, rx}`. Raises Unreachable when the port is down or has no break (a PTY).
    """
    async with line.wires, line.sending:
        port = _port(line, "no break was sent")
        before = line.rx_end
        held = await _for_a_while(line, port, "break", True, ms)
        line.tell("break", ms=ms, held_ms=held, who=who)
    return {"interface": line.name, "ms": ms, "held_ms": held, "rx": before}


async def set_lines(line: "Line", wanted: dict[str, bool], who: dict[str, Any]) -> dict[str, Any]:
    """Drive DTR and RTS to the levels in `wanted`; a `line` event for each. Returns what `lines` does.

    They stay so until the port is reopened, which sets them as the lab says.
    """
    async with line.wires:
        port = _port(line, "no line was touched")
        for wire in OUTPUTS:
            if wire in wanted:
                try:
                    await trio.to_thread.run_sync(port.put, wire, wanted[wire], limiter=line.around.limiter)
                except OSError as error:
                    raise _cannot(line, port, wire, error) from None
                line.tell("line", line=wire, level=wanted[wire], who=who)
    return await lines(line)


async def lines(line: "Line") -> dict[str, Any]:
    """All modem lines, read now: `{interface, dtr, rts, cts, dsr, dcd, ri}`, None for what nobody can know."""
    port = _port(line, "its lines can't be read")
    try:
        levels = await trio.to_thread.run_sync(port.levels, limiter=line.around.limiter)
    except OSError as error:
        raise _cannot(line, port, "modem", error) from None
    return {"interface": line.name, **levels}


def _port(line: "Line", so: str) -> "Port":
    if line.port is None:
        raise Unreachable(f"{line.label}: the port is down ({line.why}); {so}")
    return line.port


async def _for_a_while(line: "Line", port: "Port", wire: str, level: bool, ms: float) -> float:
    """Put a wire to `level` and, `ms` later, back; how long that was, in ms."""
    limiter = line.around.limiter
    try:
        begin = trio.current_time()
        try:
            await trio.to_thread.run_sync(port.put, wire, level, limiter=limiter)
            # From the request on, not from its answer: that of a server far away comes later than its act.
            await trio.sleep_until(max(begin + ms / 1000, trio.current_time()))
        finally:
            end = trio.current_time()
            with trio.CancelScope(shield=True), trio.move_on_after(LET_GO_S):
                await trio.to_thread.run_sync(port.put, wire, not level, abandon_on_cancel=True, limiter=limiter)
    except OSError as error:
        raise _cannot(line, port, wire, error) from None
    return round((end - begin) * 1000, 1)


def _cannot(line: "Line", port: "Port", wire: str, error: OSError) -> Unreachable:
    name = wire if wire in ("break", "modem") else wire.upper()
    if error.errno in (errno.ENOTTY, errno.EINVAL, errno.EOPNOTSUPP):
        what = {"tty": "this port", "rfc2217": "the server's port", "socket": "a plain TCP stream"}
        return Unreachable(f"{line.label}: {what.get(port.kind, 'a PTY')} has no {name} line{'s' * (wire == 'modem')}")
    return Unreachable(f"{line.label}: the {name} line could not be used ({error.strerror or error})")
