"""Moves a file between a board and its console by X-modem (`loopback.xmodem`), over the board's raw bytes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

from . import xmodem
from .discipline import Event
from .dutmodel import XmodemSpec
from .record import Record


async def run(
    spec: XmodemSpec,
    content: bytes,
    event: Callable[[float], Awaitable[Event]],
    send: Callable[[bytes], None],
    clock: Callable[[], float],
) -> tuple[xmodem.Transfer, bytes]:
    """Transfer until it has ended; returns it and the file. `event(wait_s)` raises TimeoutError."""
    wait_s = spec.wait_ms / 1000
    transfer: xmodem.Receiver | xmodem.Sender
    if spec.role == "receive":
        transfer = xmodem.Receiver(spec.crc, wait_s, spec.bad)
    else:
        transfer = xmodem.Sender(content, spec.size, wait_s, spec.bad)
    send(transfer.start(clock()))
    while transfer.result is None:
        try:
            found = await event(max(0.0, transfer.due - clock()))
            send(transfer.feed(found.data, clock()))
        except TimeoutError:
            if clock() >= transfer.due:
                send(transfer.late(clock()))
        await asyncio.sleep(0)
    return transfer, bytes(transfer.data) if isinstance(transfer, xmodem.Receiver) else content


def facts(spec: XmodemSpec, transfer: xmodem.Transfer, data: bytes, record: Record) -> dict[str, object]:
    """What texts can say of it, which is recorded too. Padding at the end of what was received counts for nothing."""
    data = data.rstrip(bytes([xmodem.PAD])) if spec.role == "receive" else data
    found: dict[str, object] = {
        "file_bytes": len(data),
        "file_sha256": hashlib.sha256(data).hexdigest(),
        "retries": transfer.retries,
        "result": transfer.result,
    }
    record.add("transfer", role=spec.role, **found)
    return found
