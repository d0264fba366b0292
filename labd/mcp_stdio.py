"""The two ends of `labd mcp`'s wire as the SDK wants them, on trio's own descriptors: a line is one message.

The SDK's own transport reads and writes in threads, three hops a call, which cost as much as the call.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import trio
from mcp.shared.message import SessionMessage

#: Bytes of one message; more is an accident, and ends the session.
MESSAGE_BYTES = 16 << 20


@asynccontextmanager
async def streams() -> AsyncIterator[tuple[Any, Any]]:
    """(messages that come in, messages to go out) of this process's standard input and output."""
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    sys.stdout = sys.stderr  # whatever prints must not get between the messages
    source, sink = trio.lowlevel.FdStream(os.dup(0)), trio.lowlevel.FdStream(os.dup(1))
    async with source, sink, trio.open_nursery() as nursery:
        nursery.start_soon(_read, source, to_server)
        nursery.start_soon(_write, from_server, sink)
        yield incoming, outgoing


async def _read(source: trio.lowlevel.FdStream, to_server: Any) -> None:
    held = b""
    async with to_server:
        while data := await source.receive_some(65536):
            *lines, held = (held + data).split(b"\n")
            for line in filter(None, lines):
                await to_server.send(_message(line))
            if len(held) > MESSAGE_BYTES:
                return


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _write(from_server: Any, sink: trio.lowlevel.FdStream) -> None:
    async with from_server:
        async for message in from_server:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await sink.send_all(text.encode() + b"\n")
