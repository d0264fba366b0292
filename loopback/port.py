"""The board's own end of the line, through pyserial-asyncio: a second serial stack, independent of the bench's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import serial
import serial_asyncio

from .dutmodel import Line

PARITY = {"none": serial.PARITY_NONE, "even": serial.PARITY_EVEN, "odd": serial.PARITY_ODD}


class Port(asyncio.Protocol):
    """An open serial port. `received(data)` is called for what arrives, `lost(why)` once when the device goes."""

    def __init__(self, received: Callable[[bytes], None], lost: Callable[[str], None]) -> None:
        self._received = received
        self._lost = lost
        self._room = asyncio.Event()
        self._room.set()
        self._transport: serial_asyncio.SerialTransport | None = None

    @classmethod
    async def open(cls, path: str, line: Line, received: Callable[[bytes], None], lost: Callable[[str], None]) -> Port:
        """Open `path` with the settings of `line`. Raises serial.SerialException."""
        loop = asyncio.get_running_loop()
        _, port = await serial_asyncio.create_serial_connection(
            loop,
            lambda: cls(received, lost),
            path,
            baudrate=line.baud or 115200,
            bytesize=line.bytesize,
            parity=PARITY[line.parity],
            stopbits=line.stopbits,
            rtscts=line.flow == "rtscts",
        )
        assert isinstance(port, cls)
        return port

    def write(self, data: bytes) -> None:
        """Queue `data`; `drain()` before queueing much more."""
        if self._transport is not None and data:
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the queue is short again."""
        await self._room.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received(data)

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._room.set()
        self._lost(str(exc or "closed"))
