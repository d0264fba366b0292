"""A pexpect spawn on a console that labd captures: existing pexpect suites run on it, and the capture goes on.

What is read comes from the journal, through a pump thread and a socket pair whose end is the spawn's descriptor, so
everything that pexpect does with a descriptor works (select, `async_=True`). What is written goes through
`serial send`, byte for byte, in turn with other writers. Any number of spawns may exist; each sees every byte.

Why a descriptor and a thread, rather than reads straight from the journal: a spawn without a descriptor breaks
pexpect's asyncio support and every suite that selects on it, for the gain of a tenth of a millisecond.

The end of the capture (`serial stop`), and of the `Lab`, is EOF. A port that is lost is none: the daemon opens it
again, and the spawn goes on.
"""

from __future__ import annotations

import os
import select
import socket
import termios
import threading
import tty
from pty import STDIN_FILENO, STDOUT_FILENO
from typing import TYPE_CHECKING, Any

from pexpect.exceptions import ExceptionPexpect
from pexpect.fdpexpect import fdspawn

from labd.errors import LabdError, Unreachable
from labd.journal_read import Reader
from labd.lab_console import exact
from labd.thin import write_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from labd.bell import Bell
    from labd.lab_console import Console

#: Seconds between looks when nothing rings.
_IDLE_S = 5.0


class LabSpawn(fdspawn):  # type: ignore[misc]  # pexpect has no types
    """A pexpect spawn. `linesep` is the interface's line end; all else is as in `pexpect.fdpexpect.fdspawn`.

    `cursor` is the offset from which on it reads; by default what comes from now on. `labd_console` is the console.
    """

    child_fd: int
    closed: bool

    def __init__(self, console: Console, *, cursor: int | None = None, **options: Any) -> None:
        reader = console.reader()
        self.labd_console = console
        self._near, self._far = socket.socketpair()
        super().__init__(self._near.fileno(), **options)
        self.name = f"<labd {console.name}>"
        eol = str(console.config["eol"]) or "\n"
        self.linesep = eol if self.encoding is not None else eol.encode()
        self.delaybeforesend = None
        self._bell = console.bell()
        self._pump = _Pump(reader, self._far, self._bell, reader.end_offset if cursor is None else cursor)
        self._pump.start()

    @property
    def cursor(self) -> int:
        """The offset behind what has been handed to pexpect (which may hold some of it unread)."""
        return self._pump.at

    def send(self, s: str | bytes) -> int:
        """Send, whole; the number of bytes. Raises what `Console.send` raises, as an OSError with that text."""
        text = self._coerce_send_string(s)
        self._log(text, "send")
        data: bytes = self._encoder.encode(text, final=False)
        self._transmit(data)
        return len(data)

    def _transmit(self, data: bytes) -> None:
        console = self.labd_console
        where = {"target": console.target, "interface": console.interface}
        try:
            if self.closed:
                raise Unreachable(f"{console.name}: this spawn was closed", hint="console.pexpect() makes another")
            console.still_held()
            if data:
                console.lab.ask("serial.send", {**where, **exact(data)})
        except LabdError as error:
            raise LabSendError(error) from error

    def sendline(self, s: str | bytes = "") -> int:
        """Send with `linesep` behind it."""
        return self.send(self._coerce_send_string(s) + self.linesep)

    def sendcontrol(self, char: str) -> int:
        """Send a control character: `sendcontrol("c")` is Ctrl-C."""
        upper = char.upper()
        if len(upper) != 1 or not ("@" <= upper <= "_" or upper == "?"):
            raise ExceptionPexpect(f"there is no control character {char!r}")
        return self._send_byte(ord(upper) ^ 0x40)

    def sendintr(self) -> None:
        """Send Ctrl-C, the interrupt of a Unix terminal."""
        self._send_byte(3)

    def sendeof(self) -> None:
        """Send Ctrl-D, the end of file of a Unix terminal."""
        self._send_byte(4)

    def _send_byte(self, byte: int) -> int:
        return self.send(chr(byte) if self.encoding is not None else bytes([byte]))

    def isalive(self) -> bool:
        """Whether the capture has not ended and the spawn is not closed."""
        return self.child_fd != -1 and not self._pump.ended.is_set()

    def close(self, force: bool = True) -> None:
        """Stop reading. The capture goes on."""
        if self.child_fd == -1:
            return
        self.closed = True
        self.flush()
        self.child_fd = -1
        self.labd_console.forget(self._bell)
        self._near.close()
        self._pump.join(10)

    def terminate(self, force: bool = False) -> bool:
        """As `close`: there is no process to end."""
        self.close()
        return True

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            self.labd_console.forget(self._bell)

    def interact(self, escape_character: str | None = "\x1d", input_filter: Callable[[bytes], bytes] | None = None,
                 output_filter: Callable[[bytes], bytes] | None = None) -> None:  # fmt: skip
        """As `pexpect.spawn.interact`: this program's terminal on the console, until the escape character is typed or
        the capture ends. Raises `termios.error` where stdin is no terminal.
        """
        escape = None if escape_character is None else escape_character.encode("latin-1")
        self.write_to_stdout(self.buffer)
        self.stdout.flush()
        self._buffer = self.buffer_type()
        modes = termios.tcgetattr(STDIN_FILENO)
        tty.setraw(STDIN_FILENO)
        try:
            while True:
                ready, _, _ = select.select([self.child_fd, STDIN_FILENO], [], [])
                if self.child_fd in ready and not self._show(output_filter):
                    return
                if STDIN_FILENO in ready and not self._typed(escape, input_filter):
                    return
        finally:
            termios.tcsetattr(STDIN_FILENO, termios.TCSAFLUSH, modes)

    def _show(self, change: Callable[[bytes], bytes] | None) -> bool:
        """Show what came; False at the end of the capture."""
        data = os.read(self.child_fd, 65536)
        shown = change(data) if change is not None else data
        self._log(shown if self.encoding is None else self._decoder.decode(shown, final=False), "read")
        write_all(STDOUT_FILENO, shown)
        return bool(data)

    def _typed(self, escape: bytes | None, change: Callable[[bytes], bytes] | None) -> bool:
        """Send what was typed; False behind the escape character, or when the terminal is gone."""
        data = os.read(STDIN_FILENO, 1024)
        data = change(data) if change is not None else data
        data, found, _ = data.partition(escape) if escape else (data, b"", b"")
        self._log(data if self.encoding is None else data.decode(self.encoding, "replace"), "send")
        try:
            self._transmit(data)
        except LabSendError as error:
            write_all(STDOUT_FILENO, f"\r\n[labd: {error}]\r\n".encode("utf-8", "replace"))
        return bool(data) and not found


class LabSendError(LabdError, OSError):
    """A send that failed: a labd error, and the OSError that suites for file descriptors expect."""

    def __init__(self, error: LabdError) -> None:
        LabdError.__init__(self, error.message, hint=error.hint, near=error.near)
        self.exit_code, self.name = error.exit_code, error.name

    def __str__(self) -> str:
        return self.message


class _Pump(threading.Thread):
    """Carries the journal's bytes from `at` on into a socket. What is not taken yet stays in the journal."""

    def __init__(self, reader: Reader, out: socket.socket, bell: Bell, at: int) -> None:
        super().__init__(name="labd-pexpect", daemon=True)
        self.reader = reader
        self.out = out
        self.bell = bell
        self.at = at
        self.ended = threading.Event()
        self._events_from = reader.end_offset
        self._last_event = 0
        for event in reader.events(self._events_from):
            self._last_event = event.number

    def run(self) -> None:
        """Until the capture ends or the spawn is closed."""
        try:
            while True:
                self._carry()
                if self._capture_ended() or not self.bell.wait(_IDLE_S):
                    return
                self.reader.refresh()
        except OSError:
            pass  # the spawn was closed, or the journal is gone: either way nobody can read on
        finally:
            self.ended.set()
            self.out.close()
            self.bell.close()

    def _carry(self) -> None:
        for offset, data in self.reader.chunks(self.at):
            self.out.sendall(data)
            self.at = offset + len(data)

    def _capture_ended(self) -> bool:
        """Whether somebody stopped the capture; what had come until then is handed over first."""
        closed = False
        for event in self.reader.events(self._events_from, after=self._last_event):
            self._last_event = event.number
            closed = event.kind == "closed" or (closed and event.kind not in ("open", "reopened"))
        if closed:
            self.reader.refresh()
            self._carry()
        return closed
