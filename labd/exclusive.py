"""A serial port opened by the caller's own process, for `serial connect --exclusive`: no daemon, journal or sharing.

A plain terminal program on pyserial. The capture must have been stopped before.
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, Any

from labd.errors import Busy, Unreachable
from labd.terminal import Keys, key_name

if TYPE_CHECKING:
    from labd.terminal import Terminal

_PARITY = {"none": "N", "even": "E", "odd": "O", "mark": "M", "space": "S"}
#: Seconds between looks at a port that has no descriptor of its own.
POLL_S = 0.02


class Port:
    """The port of an interface of the lab, open within `with`. Raises Unreachable for what no program can open."""

    def __init__(self, line: dict[str, Any], name: str) -> None:
        import serial

        device = str(line["device"])
        if device.startswith(("loopback:", "board:")):
            raise Unreachable(f"{name} is a simulated board, which the daemon alone can play",
                              hint="leave --exclusive out")  # fmt: skip
        self.name = name
        self.device = device
        self._serial: Any = serial.serial_for_url(device, do_not_open=True)
        self._serial.baudrate = line["baud"]
        self._serial.bytesize = line["bytesize"]
        self._serial.parity = _PARITY.get(str(line["parity"]), "N")
        self._serial.stopbits = line["stopbits"]
        self._serial.rtscts = line["flow"] == "rtscts"
        self._serial.xonxoff = line["flow"] == "xonxoff"
        self._serial.dtr = line["assert_dtr"]
        self._serial.rts = line["assert_rts"]
        self._serial.timeout = 0
        if "://" not in device:
            self._serial.exclusive = True

    def __enter__(self) -> Port:
        import serial

        try:
            self._serial.open()
        except serial.SerialException as error:
            busy = "lock" in str(error).lower() or "busy" in str(error).lower()
            kind = Busy if busy else Unreachable
            raise kind(f"{self.name}: {self.device} can't be opened: {error}", hint="labd serial devices") from None
        return self

    def __exit__(self, *exc: object) -> None:
        self._serial.close()

    @property
    def fd(self) -> int | None:
        """A descriptor to select on, where there is one."""
        try:
            return int(self._serial.fileno())
        except (OSError, AttributeError):
            return None

    def read(self) -> bytes:
        """What is there. Raises Unreachable when the port is gone."""
        return bytes(self._try(lambda: self._serial.read(65536)))

    def write(self, data: bytes) -> None:
        """Send, waiting as long as the port takes."""
        self._try(lambda: self._serial.write(data))

    def send_break(self) -> None:
        """A quarter of a second of break."""
        self._try(lambda: self._serial.send_break(0.25))

    def _try(self, act: Any) -> Any:
        import serial

        try:
            return act()
        except (serial.SerialException, OSError) as error:
            raise Unreachable(f"{self.name}: the port is gone: {error}") from None


def converse(port: Port, terminal: Terminal, escape: int | None) -> None:
    """Carry bytes both ways until the person quits."""
    keys = Keys(escape)
    fd = port.fd
    while True:
        ready, _, _ = select.select(
            [terminal.fd] + ([] if fd is None else [fd]), [], [], POLL_S if fd is None else None
        )
        if fd is None or fd in ready:
            terminal.write(port.read())
        if terminal.fd not in ready:
            continue
        try:
            typed = os.read(terminal.fd, 65536)
        except OSError:
            typed = b""
        if not typed:
            return
        for kind, part in keys.feed(typed):
            if kind == "keys":
                port.write(part)
            elif part in (b"q", b"Q", b"."):
                return
            elif part == b"b":
                port.send_break()
                terminal.say("break sent")
            else:
                name = key_name(escape or 0)
                terminal.say(f"{name} then q quits, b sends a break, {name} sends {name} itself")
