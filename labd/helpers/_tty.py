"""The serial port of an input rig: opened by this process alone, read and written with deadlines."""

import errno
import os
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import serial

from labd.errors import Busy, TimedOut, Unreachable

#: Seconds that a write may take: a rig that is stuck takes nothing more.
WRITE_SECONDS = 2.0


class Tty:
    """The port at `path`. Raises Unreachable when it is not there, Busy when another program has it."""

    def __init__(self, path: str, baud: int) -> None:
        self.path = path
        try:
            self._port = serial.Serial(path, baud, timeout=0, write_timeout=WRITE_SECONDS, exclusive=True)
        except serial.SerialException as error:
            if "lock" in str(error) or error.errno == errno.EBUSY:
                raise Busy(f"{path} is in use by another program", hint="labd daemons") from None
            raise Unreachable(f"{path} can't be opened: {_why(error)}", hint="labd discover") from None

    def __enter__(self) -> "Tty":
        return self

    def __exit__(self, *exc: object) -> None:
        self._port.close()

    def set_baud(self, baud: int) -> None:
        """Speak at another rate, and forget what came at the old one."""
        with self._gone():
            self._port.baudrate = baud
            self._port.reset_input_buffer()

    def forget(self) -> None:
        """Drop what has come in. Raises Unreachable when the port is gone."""
        with self._gone():
            self._port.reset_input_buffer()

    def write(self, data: bytes) -> None:
        """Send all of `data`. Raises TimedOut when it takes nothing more, Unreachable when it is gone."""
        with self._gone():
            self._port.write(data)

    def read(self, deadline: float) -> bytes:
        """What comes next, at least a byte; nothing at `deadline` (monotonic). Raises Unreachable when it is gone."""
        with self._gone():
            self._port.timeout = max(0.0, deadline - time.monotonic())
            first: bytes = self._port.read(1)
            return first + self._port.read(self._port.in_waiting) if first else b""

    @contextmanager
    def _gone(self) -> Iterator[None]:
        """What a port that was pulled out raises, as the errors that are promised."""
        try:
            yield
        except serial.SerialTimeoutException:
            raise TimedOut(f"{self.path} takes nothing more") from None
        except (serial.SerialException, OSError, termios.error) as error:
            raise Unreachable(f"{self.path} is gone: {_why(error)}") from None


def _why(error: BaseException) -> str:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else getattr(error, "errno", None)
    return os.strerror(number) if number else str(error)
