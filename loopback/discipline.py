"""What a board's tty makes of the bytes that arrive: echo, line editing, events. Pure: bytes in, echo and events out.

As a real tty with ICRNL does it: CR and LF each end a line, so CR LF ends two. Backspace and DEL erase a character,
^U the line, ^W a word; ^C and ^D are events; other control characters echo as ^X and stay in the line.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_LINE = 4095  # as the kernel's canonical mode: what is typed beyond is refused with a bell

ERASE = (0x08, 0x7F)
KILL, WERASE, INTR, EOF, TAB = 0x15, 0x17, 0x03, 0x04, 0x09
ENDS = (0x0D, 0x0A)


@dataclass(frozen=True)
class Event:
    """One thing that the board's software gets to see: kind "line", "key", "raw", "intr" or "eof"."""

    kind: str
    data: bytes = b""


class Discipline:
    """The editing state of one tty. `mode` and `echo` are the current state's."""

    def __init__(self, eol: bytes) -> None:
        self.mode = "mute"
        self.echo = False
        self._eol = eol
        self._line = bytearray()

    def reset(self) -> None:
        """Forget what was typed so far."""
        self._line.clear()

    def feed(self, data: bytes) -> tuple[bytes, list[Event]]:
        """The echo to send back at once, and the events, in order."""
        if self.mode == "mute":
            return b"", []
        if self.mode == "loop":
            return data, []
        if self.mode == "raw":
            return b"", [Event("raw", data)]
        if self.mode == "key":
            return b"", [Event("key", bytes([byte])) for byte in data]
        echo = bytearray()
        events: list[Event] = []
        for byte in data:
            self._type(byte, echo, events)
        return (bytes(echo) if self.echo else b""), events

    def _type(self, byte: int, echo: bytearray, events: list[Event]) -> None:
        line = self._line
        if byte in ENDS:
            echo += self._eol
            events.append(Event("line", bytes(line)))
            line.clear()
        elif byte in ERASE:
            self._erase(1, echo)
        elif byte == KILL:
            self._erase(len(line), echo)
        elif byte == WERASE:
            kept = line.rstrip(b" ")
            self._erase(len(line) - (kept.rfind(b" ") + 1), echo)
        elif byte == INTR:
            echo += b"^C" + self._eol
            line.clear()
            events.append(Event("intr"))
        elif byte == EOF:
            if not line:
                events.append(Event("eof"))
        elif len(line) >= MAX_LINE:
            echo += b"\a"
        else:
            line.append(byte)
            plain = byte >= 0x20 or byte == TAB
            echo += bytes([byte]) if plain else b"^" + bytes([byte ^ 0x40])

    def _erase(self, count: int, echo: bytearray) -> None:
        for _ in range(count):
            if not self._line:
                return
            byte = self._line.pop()
            while byte & 0xC0 == 0x80 and self._line:  # a UTF-8 character goes as one
                byte = self._line.pop()
            echo += b"\b \b" * (1 if byte >= 0x20 or byte == TAB else 2)
