"""A client of QEMU's machine protocol (QMP) on a UNIX socket: one command at a time, errors as LabdError.

QEMU talks to one client of a socket at a time; a second one is connected and hears nothing until the first has left.
"""

import json
import socket
import time
from typing import Any

from labd.errors import Busy, LabdError, TimedOut, Unreachable

#: Seconds for the greeting, and for an answer.
GREETING_SECONDS, ANSWER_SECONDS = 5.0, 15.0


class Qmp:
    """A connection to the QEMU whose socket is at `path`. Raises Unreachable or Busy when there is none to be had."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._data = b""
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._connect()
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> "Qmp":
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()

    def __call__(self, command: str, **arguments: Any) -> Any:
        """What QEMU returns for a command. Raises LabdError with QEMU's own words, TimedOut, Unreachable."""
        request = {"execute": command, **({"arguments": arguments} if arguments else {})}
        deadline = time.monotonic() + ANSWER_SECONDS
        try:
            self._socket.settimeout(ANSWER_SECONDS)
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            while True:
                message = self._message(deadline)
                if "error" in message:
                    raise LabdError(f"QEMU refuses {command}: {message['error'].get('desc', message['error'])}")
                if "return" in message:
                    return message["return"]
        except TimeoutError:
            raise TimedOut(f"QEMU did not answer {command} within {ANSWER_SECONDS:g} s") from None
        except OSError as error:
            raise self._gone(error) from None

    def _connect(self) -> None:
        try:
            self._socket.settimeout(GREETING_SECONDS)
            self._socket.connect(self.path)
        except FileNotFoundError:
            raise Unreachable(f"no QEMU here: {self.path} does not exist",
                              hint="start it with -qmp unix:PATH,server=on,wait=off") from None  # fmt: skip
        except ConnectionRefusedError:
            raise Unreachable(f"the QEMU of {self.path} has ended") from None
        except OSError as error:
            raise Unreachable(f"{self.path}: {error.strerror or error}") from None
        try:
            greeting = self._message(time.monotonic() + GREETING_SECONDS)
        except TimeoutError:
            raise Busy(f"somebody else is talking to QEMU at {self.path}, or it hangs: no greeting within "
                       f"{GREETING_SECONDS:g} s") from None  # fmt: skip
        except OSError as error:
            raise self._gone(error) from None
        if "QMP" not in greeting:
            raise Unreachable(f"what answers at {self.path} is no QEMU machine protocol")
        self("qmp_capabilities")

    def _message(self, deadline: float) -> dict[str, Any]:
        """The next message that is no event. Raises OSError, TimeoutError."""
        while True:
            line, newline, rest = self._data.partition(b"\n")
            if newline:
                self._data = rest
                try:
                    message = json.loads(line)
                except ValueError:
                    raise OSError(f"not understood: {line[:80]!r}") from None
                if "event" not in message:
                    return dict(message)
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            more = self._socket.recv(65536)
            if not more:
                raise ConnectionResetError("it closed the connection")
            self._data += more

    def _gone(self, error: OSError) -> Unreachable:
        return Unreachable(f"QEMU at {self.path} went away: {error.strerror or error}")
