"""A person's terminal while it is a console's: raw, titled, and given back as it was on every way out.

For `serial connect`. `Keys` tells what was typed from what was asked of us; it is pure. `Terminal` owns the terminal's
modes and the signals that would end this process, and neither reads nor sends.
"""

from __future__ import annotations

import os
import signal
import termios
import tty
from typing import Any

from labd.errors import Usage

#: The signals that end a session as they end a program; the exit code is 128 and the number.
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


class Ended(BaseException):
    """A signal asked this process to end. Not an Exception, so that nothing on the way takes it for its own."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def escape_byte(name: str) -> int | None:
    """The escape key as a byte; None for `none`. Raises Usage for a key that sends more than one byte."""
    from labd.keys import key

    if name.lower() == "none":
        return None
    data = key(name)
    if len(data) != 1:
        raise Usage(f"--escape is a key that sends one byte, not {name!r}", hint="--escape ctrl-a")
    return data[0]


def key_name(byte: int) -> str:
    """How a key is written for people: `Ctrl-]`, `~`."""
    return f"Ctrl-{chr(byte + 0x40)}" if byte < 0x20 else chr(byte) if byte < 0x7F else f"0x{byte:02x}"


class Keys:
    """Splits what was typed into bytes for the board and commands for us: the escape key, then a letter.

    The escape key typed twice is that key for the board.
    """

    def __init__(self, escape: int | None) -> None:
        self.escape = escape
        self._escaped = False

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        """("keys", bytes) and ("command", one byte) in the order in which they were typed."""
        found: list[tuple[str, bytes]] = []
        plain = bytearray()
        for byte in data:
            if self._escaped:
                self._escaped = False
                if byte == self.escape:
                    plain.append(byte)
                else:
                    if plain:
                        found.append(("keys", bytes(plain)))
                        plain.clear()
                    found.append(("command", bytes([byte])))
            elif byte == self.escape:
                self._escaped = True
            else:
                plain.append(byte)
        if plain:
            found.append(("keys", bytes(plain)))
        return found


class Terminal:
    """The terminal on `fd`, raw within `with`. Raises Usage where `fd` is none.

    Within, the signals of `ENDING` raise `Ended`, and a stop (SIGTSTP) gives the terminal back until it goes on.
    """

    def __init__(self, fd: int = 0, out: int = 1, *, title: str = "") -> None:
        if not os.isatty(fd):
            raise Usage(
                "serial connect needs a terminal on its stdin",
                hint="in scripts: labd serial send TEXT; labd serial expect PATTERN; labd serial log --follow",
            )
        self.fd = fd
        self.out = out
        self.title = title if os.isatty(out) and os.environ.get("TERM", "dumb") != "dumb" else ""
        self._saved: list[Any] = []
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Terminal:
        self._saved = termios.tcgetattr(self.fd)
        try:
            for number in ENDING:
                self._handlers[number] = signal.signal(number, self._ended)
            self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._stopped)
            self._raw()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *exc: object) -> None:
        for number in self._handlers:
            signal.signal(number, signal.SIG_IGN)  # a second signal must not keep the terminal from being restored
        if kind is Ended:
            self._discard()
        self._restore()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()

    def write(self, data: bytes) -> None:
        """Show bytes as they are."""
        while data:
            try:
                data = data[os.write(self.out, data) :]
            except BlockingIOError:
                from select import select

                select([], [self.out], [])

    def say(self, text: str) -> None:
        """A line of ours among the board's."""
        self.write(f"\r\n[labd: {text}]\r\n".encode("utf-8", "replace"))

    def _raw(self) -> None:
        tty.setraw(self.fd, termios.TCSADRAIN)
        if self.title:
            self.write(b"\x1b[22;2t\x1b]2;" + self.title.encode("utf-8", "replace") + b"\x07")

    def _discard(self) -> None:
        """Throw away what a terminal that takes nothing still has to show: nothing else could ever be written to it."""
        try:
            termios.tcflush(self.fd, termios.TCOFLUSH)
        except termios.error:
            pass  # the terminal itself is gone

    def _restore(self) -> None:
        try:
            termios.tcsetattr(self.fd, termios.TCSADRAIN, self._saved)
            self.write((b"\x1b[23;2t" if self.title else b"") + (b"\x1b[0m" if os.isatty(self.out) else b""))
        except (termios.error, OSError):
            pass  # the terminal itself is gone

    def _ended(self, number: int, frame: object) -> None:
        raise Ended(number)

    def _stopped(self, number: int, frame: object) -> None:
        self._restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._saved = termios.tcgetattr(self.fd)  # the shell may have changed it meanwhile
        self._raw()
