"""The far end of a serial port, played by a thread on a pseudo-terminal, for devices that speak in frames."""

import os
import select
import termios
import threading
import tty


class SerialRig:
    """`path` is the port; `take(data)` is called with what came. A subclass answers with `say`."""

    def __init__(self) -> None:
        self.master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def take(self, data: bytes) -> None:
        raise NotImplementedError

    def say(self, data: bytes) -> None:
        os.write(self.master, data)

    @property
    def baud(self) -> int:
        """The rate at which the port is open just now."""
        speed = termios.tcgetattr(self._slave)[4]
        return next(int(name[1:]) for name in vars(termios) if name[0] == "B" and name[1:].isdigit()
                    and getattr(termios, name) == speed)  # fmt: skip

    def _run(self) -> None:
        while not self._end.is_set():
            if select.select([self.master], [], [], 0.05)[0]:
                self.take(os.read(self.master, 65536))

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        os.close(self.master)
        os.close(self._slave)
