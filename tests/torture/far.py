"""The device's side of a console: a PTY under a lasting name, which can be unplugged, replugged, deaf or cooked.

A subject opens `Far.path`; what is said here is what the device says. Raw bytes and timing, no protocol. Nobody else's
process may have the node open: a daemon that outlived its run re-opens recycled `/dev/pts/N` and eats half of
everything. So a node that is open elsewhere is not used, and one dummy PTY is held for as long as this module lives.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

_dummy: list[int] = []
_taken: list[int] = []


class Far:
    """A device on a PTY, under the symbolic link `path`. `plug` makes a node for it, `unplug` hangs up."""

    def __init__(self, folder: Path, *, cooked: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "tty"
        self.node = ""
        self._master = -1
        self._spare: list[int] = []
        if not _dummy:
            _dummy.extend(os.openpty())
        self.plug(cooked=cooked)

    def plug(self, *, cooked: bool = False, elsewhere: bool = False) -> None:
        """A fresh node, raw unless `cooked` (as a kernel hands it out); `elsewhere`: not the number that was freed."""
        if elsewhere:
            self._spare += os.openpty()
        while True:
            self._master, slave = os.openpty()
            self.node = os.ttyname(slave)
            if not list(holders(self.node)):
                break
            _taken.extend((self._master, slave))
        if not cooked:
            tty.setraw(slave)
        os.chmod(self.node, 0o666)  # so that only what the kernel and the programs do keeps a second opener out
        os.close(slave)
        os.set_blocking(self._master, False)
        fresh = self.path.with_name("tty.new")
        os.symlink(self.node, fresh)
        os.replace(fresh, self.path)

    def unplug(self) -> None:
        """Hang up: the node and its name are gone, and whoever had it open gets EIO."""
        self.path.unlink(missing_ok=True)
        os.close(self._master)
        self._master = -1

    def say(self, data: bytes, within_s: float = 60.0) -> None:
        """Say all of it; TimeoutError when nobody takes it in time."""
        deadline = time.monotonic() + within_s
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._master, view[:4096]) :]
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{len(view)} of {len(data)} bytes were never taken") from None
                select.select([], [self._master], [], min(left, 0.05))

    def hear(self, within_s: float, enough: Callable[[bytes], bool] = bool) -> bytes:
        """What was sent to the device, as soon as it is `enough`, or whatever came within the time."""
        got, deadline = b"", time.monotonic() + within_s
        while not enough(got) and (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([self._master], [], [], min(left, 0.05))
            try:
                got += os.read(self._master, 65536) if ready else b""
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                time.sleep(0.005)  # nobody has the near end open
        return got

    @property
    def modes(self) -> tuple[int, int, int, int]:
        """The node's iflag, oflag, cflag and lflag, as whoever opened it left them."""
        iflag, oflag, cflag, lflag, *_ = termios.tcgetattr(self._master)
        return iflag, oflag, cflag, lflag

    def close(self) -> None:
        """Give all nodes back."""
        for fd in [*self._spare, *([self._master] if self._master >= 0 else [])]:
            os.close(fd)
        self._spare, self._master = [], -1
        self.path.unlink(missing_ok=True)


def holders(node: str) -> Iterator[int]:
    """The pids of other processes that have the node open."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{fd}") == node and int(pid) != os.getpid():
                        yield int(pid)


class Shell:
    """Plays a device that echoes a line and answers it `later_s` after it came, then prompts; `answered` is when."""

    def __init__(self, far: Far, answer: Callable[[bytes], bytes], later_s: float) -> None:
        self._far, self._answer, self._later = far, answer, later_s
        self.answered = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            line = self._far.hear(0.2, lambda got: got[-1:] in (b"\r", b"\n"))
            if line.strip():
                self._far.say(line.rstrip(b"\r\n") + b"\r\n")
                self._over.wait(self._later)
                self.answered = time.monotonic()
                self._far.say(self._answer(line))

    def stop(self) -> None:
        self._over.set()
        self._thread.join(10)
