"""The modem lines between a served port and the board: DTR wired to its reset or its power button, CTS to its supply.

A serial port's inputs are active low, and the supply pulls CTS's pin up as on a real adapter: while the board has power
CTS is not asserted.

`Uart` is what pyserial's RFC 2217 server takes for a serial port: it sets attributes here and reads them. What the
lines do to the board is the player's business (`on_reset`, `on_button`). The record gets:

- "line": `name` ("dtr", "rts") and `level`, each time that one changes;
- "dtr": a pulse, DTR turned over from where it rests and back: `ms`, how long, and `level`, that in the pulse. DTR
  rests where a client first puts it;
- "break": `ms`;
- "settings": baud, bytesize, parity, stopbits, as a client asked for them; they change nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .dutmodel import Line, Wires
from .record import Record

INPUTS = ("dsr", "cd", "ri")


class Uart:
    """The server's end of the line. `supply()` says whether the board has power, `held(True)` that reset is pulled,
    `pressed(ms)` that the power button was; `touched()` is called for all that a client sets."""

    def __init__(
        self,
        wires: Wires,
        line: Line,
        record: Record,
        supply: Callable[[], bool],
        held: Callable[[bool], None],
        pressed: Callable[[float], None],
        touched: Callable[[], None],
    ) -> None:
        self._wires = wires
        self._record = record
        self._supply = supply
        self._held = held
        self._pressed = pressed
        self._touched = touched
        self._outputs = {"dtr": False, "rts": False}
        self._rest: bool | None = None
        self._since = 0.0
        self._break_since: float | None = None
        self._settings: dict[str, Any] = {
            "baudrate": line.baud or 115200,
            "bytesize": line.bytesize,
            "parity": line.parity[0].upper(),
            "stopbits": line.stopbits,
        }
        self.inputs = dict.fromkeys(INPUTS, False)
        self.rtscts = self.xonxoff = False

    def connected(self) -> None:
        """A client came: DTR rests where this one puts it."""
        self._rest = None

    @property
    def levels(self) -> dict[str, bool]:
        """All six lines, for `stats`."""
        return {**self._outputs, "cts": self.cts, **self.inputs}

    # -- what the board hears of ----------------------------------------------------------------------------------

    @property
    def dtr(self) -> bool:
        return self._outputs["dtr"]

    @dtr.setter
    def dtr(self, level: bool) -> None:
        before = self._outputs["dtr"]
        self._set("dtr", level)
        if self._rest is None:
            self._rest = level
            if level and not before and self._wires.dtr == "rise":
                self._reset_by_edge()
        elif level != before and self._wires.dtr == "rise":
            self._pulse(level)
            if level:
                self._reset_by_edge()
        elif level != before:
            self._pulse(level)

    def _pulse(self, level: bool) -> None:
        away = level != self._rest
        if self._wires.dtr == "reset":
            self._held(away)
        if away:
            self._since = time.monotonic()
            return
        ms = round((time.monotonic() - self._since) * 1000, 1)
        self._record.add("dtr", ms=ms, level=not level)
        if self._wires.dtr == "power-button":
            self._pressed(ms)

    def _reset_by_edge(self) -> None:
        self._held(True)
        self._held(False)

    @property
    def rts(self) -> bool:
        return self._outputs["rts"]

    @rts.setter
    def rts(self, level: bool) -> None:
        self._set("rts", level)

    def _set(self, name: str, level: bool) -> None:
        self._touched()
        if self._outputs[name] != level:
            self._outputs[name] = level
            self._record.add("line", name=name, level=level)

    @property
    def break_condition(self) -> bool:
        return self._break_since is not None

    @break_condition.setter
    def break_condition(self, level: bool) -> None:
        now = time.monotonic()
        if level and self._break_since is None:
            self._break_since = now
        elif not level and self._break_since is not None:
            self._record.add("break", ms=round((now - self._break_since) * 1000, 1))
            self._break_since = None

    # -- what the client sees -------------------------------------------------------------------------------------

    @property
    def cts(self) -> bool:
        return not self._supply()

    @property
    def dsr(self) -> bool:
        return self.inputs["dsr"]

    @property
    def cd(self) -> bool:
        return self.inputs["cd"]

    @property
    def ri(self) -> bool:
        return self.inputs["ri"]

    # -- settings -------------------------------------------------------------------------------------------------

    def _setting(self, name: str, value: Any) -> None:
        self._touched()
        if self._settings[name] != value:
            self._settings[name] = value
            self._record.add("settings", **self._settings)

    @property
    def baudrate(self) -> int:
        return int(self._settings["baudrate"])

    @baudrate.setter
    def baudrate(self, value: int) -> None:
        self._setting("baudrate", value)

    @property
    def bytesize(self) -> int:
        return int(self._settings["bytesize"])

    @bytesize.setter
    def bytesize(self, value: int) -> None:
        self._setting("bytesize", value)

    @property
    def parity(self) -> str:
        return str(self._settings["parity"])

    @parity.setter
    def parity(self, value: str) -> None:
        self._setting("parity", value)

    @property
    def stopbits(self) -> float:
        return float(self._settings["stopbits"])

    @stopbits.setter
    def stopbits(self, value: float) -> None:
        self._setting("stopbits", value)

    def reset_input_buffer(self) -> None:
        """Nothing is buffered here."""
        self._touched()

    def reset_output_buffer(self) -> None:
        """Nothing is buffered here."""
        self._touched()
