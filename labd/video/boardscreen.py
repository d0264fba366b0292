"""The screen of a virtual board, by its QMP socket: a picture whenever one is asked for, exact to the pixel."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any

import numpy as np

from labd.video.frame import Picture
from labd.video.sources import Lost, Source
from labd.video.wire import DUMP

#: Seconds between pictures that nobody asked for. The eye asks more often while somebody waits.
EVERY_S = 0.1
#: States of QEMU's in which its machine is off, or was never on.
OFF = ("shutdown", "prelaunch")
#: QEMU answers within this, or is taken to hang, seconds.
ANSWER_S = 4.0
#: After a reset the old picture stays until the firmware sets the display up; no longer than this, seconds.
STALE_S = 10.0


class BoardScreen(Source):
    """One QMP connection. `path` is its socket; pictures pass through a file beside it."""

    every_s = EVERY_S

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(ANSWER_S)
        self._rest = b""
        self._reset_at = 0.0
        self._file = os.path.join(os.path.dirname(path), DUMP)
        self._data = b""
        self._status = ""
        try:
            self._socket.connect(path)
            self._message()  # the greeting
            self._ask("qmp_capabilities")
        except OSError as error:
            self._socket.close()
            raise Lost(f"the board's QEMU does not answer at {path}: {error.strerror or error}") from None

    def take(self) -> int:
        """Have QEMU write the screen to a file. The picture is no older than the answer."""
        began = time.monotonic_ns()
        try:
            self._status = str(self._ask("query-status").get("status"))
            self._ask("screendump", filename=self._file)
            with open(self._file, "rb") as file:
                self._data = file.read()
            os.unlink(self._file)  # this process may be killed at any time
        except OSError as error:
            raise Lost(f"the board's QEMU is gone: {error.strerror or error}") from None
        return began

    def picture(self) -> Picture:
        """The PPM file as a picture."""
        return _from_ppm(self._data)

    def no_signal(self) -> str:
        """A machine that is off goes on showing what it showed."""
        return "the board is off" if self._status in OFF else ""

    def seen(self, *, changed: bool) -> None:
        """What is shown after a reset is of before it until it changes."""
        if changed or time.monotonic() - self._reset_at > STALE_S:
            self.stale = ""

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _ask(self, command: str, **arguments: Any) -> Any:
        request = {"execute": command, "arguments": arguments} if arguments else {"execute": command}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        while True:
            message = self._message()
            if message.get("event") == "RESET":
                self.stale, self._reset_at = "the board was reset, and shows what it showed before", time.monotonic()
            if "error" in message:
                raise Lost(f"QEMU refuses {command}: {message['error'].get('desc')}")
            if "return" in message:
                return message["return"]

    def _message(self) -> dict[str, Any]:
        while b"\n" not in self._rest:
            data = self._socket.recv(65536)
            if not data:
                raise Lost("the board's QEMU has ended")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        message = json.loads(line)
        return message if isinstance(message, dict) else {}


def _from_ppm(data: bytes) -> Picture:
    """Binary PPM (P6) with 8 bits a colour, as QEMU writes it. Raises Lost for anything else."""
    fields = data.split(maxsplit=4)[:4]
    if len(fields) < 4 or fields[0] != b"P6" or fields[3] != b"255":
        raise Lost("QEMU wrote no picture")
    width, height = int(fields[1]), int(fields[2])
    if len(data) < width * height * 3:
        raise Lost("QEMU wrote half a picture")
    pixels = np.frombuffer(data, np.uint8, width * height * 3, len(data) - width * height * 3)
    return np.ascontiguousarray(pixels.reshape(height, width, 3)[:, :, ::-1])
