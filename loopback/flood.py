"""Numbered lines without end, as a kernel gone mad prints them: what a bench must keep up with.

The numbers have no gaps, so whoever reads can count what was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from .template import Lookup, Template

if TYPE_CHECKING:
    from .kernel import Output

BATCH = 256  # lines a write at full speed
TICK_S = 0.01


class Flood:
    """A generator on one port. `rate` is in lines a second, 0 for as many as the port takes."""

    def __init__(
        self, port: Output, line: Template, lookup: Lookup, eol: str, rate: int, first: int, uptime: Callable[[], float]
    ) -> None:
        self._port = port
        self._lookup = lookup
        self._line = line
        self._eol = eol
        self._uptime = uptime
        self.rate = rate
        self.next = first
        self.sent = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None

    def start(self) -> None:
        """Go on from the next number; nothing if it runs already."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Stop after a whole line."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _compiled(self) -> Callable[[range, float], bytes]:
        """Many lines at once: one %-format of the whole batch is ten times faster than a template a line."""
        pieces: list[str | None] = []  # None: the time, which is one for a batch
        counts = 0
        for part in self._line.parts:
            if isinstance(part, str):
                pieces.append(part.replace("%", "%%"))
            elif part.name == "t":
                pieces.append(None)
            elif part.name == "n":
                pieces.append(f"%{part.arg.rstrip('d')}d")
                counts += 1
            else:
                pieces.append(str(self._lookup(part.name, part.arg)).replace("%", "%%"))

        def lines(numbers: range, now: float) -> bytes:
            pattern = "".join(f"{now:12.6f}" if piece is None else piece for piece in pieces)
            pattern = pattern.rstrip("\n") + self._eol
            values = numbers if counts == 1 else [number for number in numbers for _ in range(counts)]
            return ((pattern * len(numbers)) % tuple(values)).encode()

        return lines

    async def _run(self) -> None:
        lines = self._compiled()
        loop = asyncio.get_running_loop()
        began, done, rate = loop.time(), 0, self.rate
        while True:
            if rate != self.rate:
                began, done, rate = loop.time(), 0, self.rate
            count = BATCH if not rate else int((loop.time() - began) * rate) - done
            if count > 0:
                count = min(count, 4 * BATCH)
                self._port.write(lines(range(self.next, self.next + count), self._uptime()))
                self.next += count
                self.sent += count
                done += count
            if rate:
                await asyncio.sleep(TICK_S)
            else:
                await self._port.drain()
                await asyncio.sleep(0)
