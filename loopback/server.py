"""Serves a board's port over TCP on this machine: by RFC 2217 (data, settings, modem lines, break), or as bytes alone.

    python -m loopback uboot --rfc2217 7000          rfc2217://127.0.0.1:7000
    python -m loopback uboot --socket 7001           socket://127.0.0.1:7001

A client takes the place of the program that opens the cable's near end, so the faults are the same: `unplug` closes
its connection, and none is taken until `replug`. One client at a time, as a port has one opener; a second one is
turned away at once. Owned by `loopback.player`; on its asyncio loop; listens on loopback addresses only.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

from serial import rfc2217

from .modem import Uart
from .record import Record

LOOK_S = 0.02  # at the lines that go to the client
READ = 4096
LOCAL = ("127.0.0.1", "::1", "localhost")
IAC = b"\xff"


def address(text: str) -> tuple[str, int]:
    """The host and port that `text`, [HOST:]PORT, names. Raises ValueError, saying what is wrong."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or LOCAL[0]
    if host not in LOCAL:
        raise ValueError(f"{host!r}: a board is served on this machine alone: one of {', '.join(LOCAL)}")
    if not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{port!r} is no port: 0 (any that is free) to 65535")
    return host, int(port)


class Server:
    """Serves `near()` (the path of the cable's near end, None while it is unplugged). `uart` None: bytes alone."""

    def __init__(self, near: Callable[[], str | None], uart: Uart | None, record: Record) -> None:
        self._near = near
        self._uart = uart
        self._record = record
        self._server: asyncio.Server | None = None
        self._client: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> str:
        """Listen; returns the URL that pyserial opens."""
        self._server = await asyncio.start_server(self._came, host, port, limit=READ)
        name = self._server.sockets[0].getsockname()
        where = f"[{name[0]}]" if ":" in name[0] else name[0]
        return f"{'rfc2217' if self._uart else 'socket'}://{where}:{name[1]}"

    def close(self) -> None:
        """Turn the client out and listen no more."""
        if self._server is not None:
            self._server.close()
        if self._client is not None:
            self._client.cancel()

    async def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = self._near()
        if path is None or self._client is not None:
            self._record.add("client", state="refused", why="unplugged" if path is None else "busy")
            writer.close()
            return
        self._client = asyncio.current_task()
        self._record.add("client", state="connected")
        fd = -1
        try:
            fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            await _Session(fd, reader, writer, self._uart).run()
        except (OSError, asyncio.CancelledError):
            pass  # unplugged, gone, or the player ends
        finally:
            if fd >= 0:
                os.close(fd)
            self._client = None
            self._record.add("client", state="gone")
            writer.close()


class _Session:
    """One client on one open near end."""

    def __init__(self, fd: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, uart: Uart | None) -> None:
        self._fd = fd
        self._reader = reader
        self._writer = writer
        self._manager = None
        if uart is not None:
            uart.connected()
            self._manager = rfc2217.PortManager(uart, writer)

    async def run(self) -> None:
        """Carry both ways until either side ends; raises OSError when the port hangs up."""
        tasks = [asyncio.ensure_future(part) for part in (self._to_client(), self._to_board(), self._lines())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError, OSError):
                    await task

    async def _to_client(self) -> None:
        while True:
            try:
                data = os.read(self._fd, READ)
            except BlockingIOError:
                await _ready(self._fd, reading=True)
                continue
            if not data:
                return
            self._writer.write(data.replace(IAC, IAC + IAC) if self._manager else data)
            await self._writer.drain()

    async def _to_board(self) -> None:
        while data := await self._reader.read(READ):
            if self._manager is not None:
                data = b"".join(self._manager.filter(data))
            while data:
                try:
                    data = data[os.write(self._fd, data) :]
                except BlockingIOError:
                    await _ready(self._fd, reading=False)

    async def _lines(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if self._manager is not None:
                self._manager.check_modem_lines()


async def _ready(fd: int, *, reading: bool) -> None:
    """Wait until `fd` can be read or written."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    (loop.add_reader if reading else loop.add_writer)(fd, ready.set)
    try:
        await ready.wait()
    finally:
        (loop.remove_reader if reading else loop.remove_writer)(fd)
