"""The other deliberately bad subject: `cat NODE >> LOG`, which leaves the terminal as it finds it."""

from __future__ import annotations

import os
import threading
from typing import Any

from talk import serve


class Cat:
    """Reads what the line discipline makes of the bytes."""

    def open(self, path: str, log: str, **_: Any) -> None:
        self.said = ""
        self.fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
        threading.Thread(target=self._read, args=(self.fd, log), daemon=True).start()

    def _read(self, fd: int, log: str) -> None:
        with open(log, "ab", buffering=0) as file:
            try:
                while data := os.read(fd, 65536):
                    file.write(data)
            except OSError as error:
                self.said = str(error)

    def told(self) -> str:
        return self.said

    def close(self) -> None:
        os.close(self.fd)


if __name__ == "__main__":
    serve(Cat(), "as coreutils")
