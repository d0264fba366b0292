"""labgrid on a serial port: SerialDriver, its console log, ShellDriver for a command, and txdelay as its pacing."""

from __future__ import annotations

import base64
import os
from importlib.metadata import version
from typing import Any

import pexpect
from labgrid import Target
from labgrid.consoleloggingreporter import ConsoleLoggingReporter
from labgrid.driver import SerialDriver, ShellDriver
from labgrid.resource import NetworkSerialPort, RawSerialPort
from talk import serve


class Labgrid:
    """It reads only while it expects; its log is the ConsoleLoggingReporter's."""

    def __init__(self) -> None:
        self.count = 0

    def open(self, path: str, baud: int, log: str, tx_delay_ms: int, prompt: str) -> None:
        self.prompt = prompt
        target = self._target(log)
        RawSerialPort(target, None, port=path, speed=baud)
        self._activate(txdelay=tx_delay_ms / 1000)

    def open_net(self, host: str, port: int, log: str) -> None:
        target = self._target(log)
        NetworkSerialPort(target, None, host=host, port=port, protocol="rfc2217")
        self._activate()

    def _activate(self, **settings: Any) -> None:
        self.serial = SerialDriver(self.target, None, **settings)
        self.target.activate(self.serial)

    def _target(self, log: str) -> Any:
        self.count += 1
        self.shell: Any = None
        folder = os.path.dirname(log)
        if self.count == 1:
            ConsoleLoggingReporter.start(folder)
        name = os.path.basename(log)
        self.target = Target(name)
        os.unlink(log)
        os.symlink(os.path.join(folder, f"console_{name}"), log)
        open(log, "ab").close()
        return self.target

    def settle(self, marker: str, within_s: float) -> bool:
        import re

        return self.expect(re.escape(marker), within_s) is not None

    def expect(self, pattern: str, within_s: float) -> Any:
        try:
            _, _, match, _ = self.serial.expect(pattern, timeout=within_s)
        except pexpect.TIMEOUT:
            return None
        return {"text": match[0].decode("latin-1"), "groups": [str(g, "latin-1") for g in match.groups()]}

    def ask(self, line: str, pattern: str, within_s: float) -> Any:
        self.serial.sendline(line)
        return self.expect(pattern, within_s)

    def send(self, data: str) -> Any:
        return {"accepted": self.serial.write(base64.b64decode(data)), "said": ""}

    def run(self, command: str, within_s: float) -> Any:
        if self.shell is None:
            self.shell = ShellDriver(self.target, None, prompt=self.prompt, login_prompt="login: ", username="root",
                                     login_timeout=10)  # fmt: skip
            self.target.activate(self.shell)
        out, _, code = self.shell.run(command, timeout=within_s)
        return {"code": code, "out": "\n".join(out)}

    def told(self) -> str:
        return ""

    def close(self) -> None:
        self.target.cleanup()


if __name__ == "__main__":
    serve(Labgrid(), version("labgrid"))
