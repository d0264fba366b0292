"""The deliberately bad subject: a serial logger as it is written in an afternoon, with pyserial, lines and text."""

from __future__ import annotations

import base64
import re
import threading
import time
from typing import Any

import serial
import tomlkit
from talk import serve


class Naive:
    """Reads lines into a text log, searches all of it again and again, and hopes."""

    def open(self, path: str, baud: int, log: str, prompt: str = "", **_: Any) -> None:
        self.prompt = prompt
        self.text = ""
        self.said = ""
        self.log = open(log, "w", encoding="utf-8")  # noqa: SIM115
        self.port = serial.serial_for_url(path, baud, timeout=0.02)
        threading.Thread(target=self._read, args=(self.port,), daemon=True).start()

    def open_net(self, host: str, port: int, log: str) -> None:
        self.open(f"rfc2217://{host}:{port}", 115200, log)

    def _read(self, port: Any) -> None:
        line = b""
        try:
            while True:
                more = port.read(max(1, port.in_waiting))
                line += more
                *whole, line = line.split(b"\n")
                if not more and line:
                    whole, line = [line], b""
                text = "".join(each.decode("utf-8", "replace").rstrip("\r\n") + "\n" for each in whole)
                self.text += text
                self.log.write(text)
                self.log.flush()
        except Exception as error:
            self.said = f"read: {error}"

    def _search(self, pattern: str, begin: int, within_s: float) -> Any:
        wanted, deadline, size = re.compile(pattern), time.monotonic() + within_s, -1
        while time.monotonic() < deadline:
            if len(self.text) != size:
                size = len(self.text)
                match = wanted.search(self.text, begin)
                if match:
                    return match
            time.sleep(0.002)
        return None

    def expect(self, pattern: str, within_s: float, begin: int = 0) -> Any:
        match = self._search(pattern, begin, within_s)
        return match and {"text": match[0], "groups": match.groups()}

    def ask(self, line: str, pattern: str, within_s: float) -> Any:
        begin = len(self.text)
        self.port.write(line.encode() + b"\r")
        return self.expect(pattern, within_s, begin)

    def send(self, data: str) -> Any:
        return {"accepted": self.port.write(base64.b64decode(data)), "said": ""}

    def run(self, command: str, within_s: float) -> Any:
        self._search(re.escape(self.prompt), 0, 5)
        begin = len(self.text)
        self.port.write(f"{command}; echo rc=$?\r".encode())
        match = self._search(r"rc=(\d+)", begin, within_s)
        if match is None:
            raise TimeoutError("no rc=")
        return {"code": int(match[1]), "out": self.text[begin : match.start()].partition("\n")[2]}

    def told(self) -> str:
        return self.said

    def lines(self) -> str:
        return f"cts {self.port.cts} dsr {self.port.dsr} dcd {self.port.cd}"

    def send_break(self) -> str:
        self.port.send_break(0.01)
        return "break sent"

    def edit(self, path: str, target: str, key: str, value: str) -> None:
        with open(path, encoding="utf-8-sig") as file:
            document = tomlkit.parse(file.read())
        document["targets"][target][key] = value  # type: ignore[index]
        with open(path, "w") as file:
            file.write(tomlkit.dumps(document))

    def close(self) -> None:
        self.port.flush()
        self.port.close()


if __name__ == "__main__":
    serve(Naive(), f"pyserial {serial.__version__}")
