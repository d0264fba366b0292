"""The modem line that follows the board's power (`power_sense_signal`), looked at all the while a port is open.

The inputs of a serial port are active low, and boards are wired so that power pulls the pin up: a line that is *not*
asserted means that the power is on. Each change is a `line` event with its level and what that says of the power, the
first level after an open too. Changes that are over within SAMPLE_S are missed. Looking happens in threads.
"""

import time
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from labd.channels.line import Line
    from labd.channels.port import Port

SAMPLE_S = 0.1
"""How often the line is looked at."""

_LATER_S = 1.0
"""How soon to look again whether the lab names a line now, or after a failure."""


def power_on(level: bool) -> bool:
    """What a sense line's level says of the board's power."""
    return not level


async def follow(line: "Line", port: "Port") -> None:
    """Until cancelled. `line.sensed` is the last that was seen; its failures become `error` events, once each."""
    said = ""
    seen: tuple[str, bool] | None = None
    line.sensed = None
    while True:
        signal = line.config.get("power_sense_signal")
        if not signal:
            seen, line.sensed = None, None
            await trio.sleep(_LATER_S)
            continue
        try:
            levels = await trio.to_thread.run_sync(port.levels, abandon_on_cancel=True, limiter=line.around.limiter)
            level = levels[signal]
            if level is None:
                raise OSError("nobody tells its level")
        except Exception as error:
            line.sensed = None
            text = f"{signal.upper()} can't be sensed on {port.node}: {getattr(error, 'strerror', None) or error}"
            if text != said:
                said = text
                line.tell("error", what="sense", message=text)
            await trio.sleep(_LATER_S)
            continue
        if seen != (signal, level):
            _tell(line, signal, level, first=seen is None or seen[0] != signal)
            seen = (signal, level)
        await trio.sleep(SAMPLE_S)


def _tell(line: "Line", signal: str, level: bool, *, first: bool) -> None:
    more: dict[str, Any] = {"first": True} if first else {}
    line.sensed = {"signal": signal, "level": level, "power_on": power_on(level), "since_ns": time.time_ns()}
    line.tell("line", line=signal, level=level, power_on=power_on(level), **more)
