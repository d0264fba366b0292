"""A kernel that logs on the console that a shell is using: lines put into the output, also into the middle of one.

A filter between the board and its port. It knows only the bytes that pass, as a UART driver does: where a line
begins, and by its text where a prompt stands. The lines come at counted places ([kernel] in `loopback.dutfile`), so
that a test meets each case every time; only `every_ms` follows the clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from .dutmodel import KernelSpec
from .record import Record
from .template import Lookup

AFTER_PROMPT_S = 0.05
HOLD_S = 0.01  # for the rest of what begins like the prompt
KEPT = 512  # of a line


class Output(Protocol):
    """What a board writes to: its port, or this filter before it."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...


class KernelLog:
    """Writes to `port` what is written here, and the kernel's lines between. `encode` makes bytes of a text."""

    def __init__(
        self, port: Output, spec: KernelSpec, look: Lookup, encode: Callable[[str], bytes], record: Record
    ) -> None:
        self._port = port
        self._spec = spec
        self._look = look
        self._encode = encode
        self._record = record
        self._held = b""
        self._holding: asyncio.TimerHandle | None = None
        self._clock: asyncio.TimerHandle | None = None
        self.reset()

    def reset(self) -> None:
        """The board lost power: forget where in the output it was, and stop the clock."""
        self._line = b""
        self._at_prompt = False
        self._cut = 0  # the column that is cut before; 0: this line stays whole
        self._due = False
        self._lines = self._prompts = self._said = 0
        self._held = b""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    async def drain(self) -> None:
        """As the port's."""
        await self._port.drain()

    def write(self, data: bytes) -> None:
        """Pass `data` on, with what the kernel says in it."""
        if self._clock is None and self._spec.every_ms:
            self._tick()
        data = self._held + data
        self._held = b""
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None
        out = bytearray()
        for piece in _lines(data):
            self._piece(piece, out)
        self._port.write(bytes(out))

    # -- places -------------------------------------------------------------------------------------------------

    def _piece(self, piece: bytes, out: bytearray) -> None:
        """One line, or what has come of it."""
        if not self._line and not self._begin(piece, out):
            return
        length = len(self._line)
        body = piece.rstrip(b"\r\n")
        if self._cut and length <= self._cut < length + len(body):
            at = self._cut - length
            out += piece[:at] + self._says()
            piece, self._line = piece[at:], (self._line + piece[:at])[:KEPT]
            self._cut, self._due = 0, False
        out += piece
        if piece.endswith(b"\n"):
            self._line, self._at_prompt, self._cut = b"", False, 0
            return
        had = len(self._line)
        self._line = (self._line + piece)[:KEPT]
        prompt = self._encode(self._spec.prompt.render(self._look))
        if self._at_prompt and had < len(prompt) <= len(self._line) and _every(self._spec.after_prompt, self._prompts):
            asyncio.get_running_loop().call_later(AFTER_PROMPT_S, self._interject)

    def _begin(self, piece: bytes, out: bytearray) -> bool:
        """A line begins with `piece`. False when it is kept back, since the rest of it decides what it is."""
        prompt = self._encode(self._spec.prompt.render(self._look))
        if prompt and len(piece) < len(prompt) and prompt.startswith(piece):
            self._held = piece
            self._holding = asyncio.get_running_loop().call_later(HOLD_S, self._let_go)
            return False
        self._at_prompt = bool(prompt) and piece.startswith(prompt)
        if self._at_prompt:
            self._prompts += 1
            if _every(self._spec.before_prompt, self._prompts):
                out += self._says()
            if _every(self._spec.in_echo, self._prompts):
                self._cut = len(prompt) + 2
            return True
        self._lines += 1
        if _every(self._spec.between, self._lines):
            out += self._says()
        self._due = self._due or _every(self._spec.mid_line, self._lines)
        self._cut = 1 + self._lines % 4 if self._due else 0  # a line that is too short leaves it to the next one
        return True

    def _let_go(self) -> None:
        held, self._held, self._holding = self._held, b"", None
        self._line = held[:KEPT]
        self._port.write(held)

    # -- lines --------------------------------------------------------------------------------------------------

    def _says(self) -> bytes:
        text = self._spec.lines[self._said % len(self._spec.lines)].render(self._look)
        self._said += 1
        line = self._encode(f"[{self._look('kernel_time', '')}] {text}\n")
        self._record.bytes("tx", line, kernel=True)
        return line

    def _interject(self) -> None:
        self._port.write(self._says())

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        if self._clock is not None:
            self._interject()
        self._clock = loop.call_later(self._spec.every_ms / 1000, self._tick)


def _every(number: int, count: int) -> bool:
    return number > 0 and count % number == 0


def _lines(data: bytes) -> list[bytes]:
    """The lines of `data` with their ends, by line feeds alone."""
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])
