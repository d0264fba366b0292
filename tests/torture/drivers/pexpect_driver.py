"""pexpect on a serial port, as its documentation and pexpect-serial have it: `fdspawn` on pyserial's descriptor."""

from __future__ import annotations

import base64
from typing import Any

import pexpect
import pexpect.fdpexpect
import serial
from talk import serve


class Pexpect:
    """It reads only while it expects; its log is `logfile_read`."""

    def open(self, path: str, baud: int, log: str, **_: Any) -> None:
        self.port = serial.serial_for_url(path, baud)
        self.spawn = pexpect.fdpexpect.fdspawn(self.port.fileno())
        self.spawn.logfile_read = open(log, "ab", buffering=0)  # noqa: SIM115

    def settle(self, marker: str, within_s: float) -> bool:
        return self.spawn.expect_exact([marker.encode("latin-1"), pexpect.TIMEOUT], timeout=within_s) == 0

    def expect(self, pattern: str, within_s: float) -> Any:
        if self.spawn.expect([pattern.encode(), pexpect.TIMEOUT], timeout=within_s):
            return None
        match = self.spawn.match
        return {"text": match[0].decode("latin-1"), "groups": [str(g, "latin-1") for g in match.groups()]}

    def ask(self, line: str, pattern: str, within_s: float) -> Any:
        self.spawn.send(line.encode() + b"\r")
        return self.expect(pattern, within_s)

    def send(self, data: str) -> Any:
        return {"accepted": self.spawn.send(base64.b64decode(data)), "said": ""}

    def told(self) -> str:
        return ""

    def close(self) -> None:
        self.port.close()


if __name__ == "__main__":
    serve(Pexpect(), str(pexpect.__version__))
