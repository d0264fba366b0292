"""Asks the terminal where its cursor is after each prompt (ESC[6n), as busybox does, for a program that does not.

The answer, ESC[row;columnR, is kept from the program, as busybox's line editor keeps it from the line.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

ASK = b"\x1b[6n"
ASK_S = 0.01
ANSWER = re.compile(rb"\x1b\[\d+;\d+R")
BEGUN = re.compile(rb"\x1b(?:\[(?:\d+(?:;\d*)?)?)?\Z")
HOLD_S = 0.05  # an escape key alone is passed on after this


class Question:
    """`send` writes to the terminal, `type_` to the program."""

    def __init__(self, prompt: bytes, send: Callable[[bytes], None], type_: Callable[[bytes], None]) -> None:
        self._prompt = prompt
        self._send = send
        self._type = type_
        self._tail = b""
        self._asked = False
        self._held = b""
        self._timer: asyncio.TimerHandle | None = None

    def printed(self, data: bytes) -> None:
        """The program printed `data`."""
        self._tail = (self._tail + data)[-len(self._prompt) - len(ASK) :]
        if self._tail.endswith(self._prompt):
            asyncio.get_running_loop().call_later(ASK_S, self._ask)

    def _ask(self) -> None:
        if self._tail.endswith(self._prompt):
            self._tail = b""
            self._asked = True
            self._send(ASK)

    def typed(self, data: bytes) -> None:
        """`data` was typed at the terminal; what answers the question goes no further."""
        if not self._asked:
            self._type(data)
            return
        if self._timer is not None:
            self._timer.cancel()
        data = ANSWER.sub(b"", self._held + data)
        begun = BEGUN.search(data)
        self._held = data[begun.start() :] if begun else b""
        self._type(data[: begun.start()] if begun else data)
        self._timer = asyncio.get_running_loop().call_later(HOLD_S, self._let_go) if begun else None

    def _let_go(self) -> None:
        held, self._held, self._timer = self._held, b"", None
        self._type(held)
