"""The two ends of `labd mcp`'s wire as the SDK wants them, on trio's own descriptors: a line is one message.

The SDK's own transport reads and writes in threads, three hops a call, which cost as much as the call.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import trio
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

#: Bytes of one message; more is an accident, and answered as one.
MESSAGE_BYTES = 16 << 20

#: Bytes of both ends of such a message that are kept, to find its id in.
ENDS_BYTES = 256

#: JSON-RPC's codes for what is no JSON, and for JSON that is no message.
NO_JSON, NO_MESSAGE = -32700, -32600

#: The id in the first or the last bytes of a message that is too long, where nothing is nested before or after it.
_ID = rb'"id"\s*:\s*(-?\d+|"[^"\\]*")\s*'
_FIRST_ID = re.compile(rb"\s*\{[^{}\[\\]*?" + _ID + b"[,}]")
_LAST_ID = re.compile(rb"\}\s*,[^{}\\]*?" + _ID + rb"(?:,[^{}\\]*)?\}\s*$")


@asynccontextmanager
async def streams() -> AsyncIterator[tuple[Any, Any]]:
    """(messages that come in, messages to go out) of this process's standard input and output."""
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    from_us = outgoing.clone()  # what is no message is answered here: the SDK drops it
    sys.stdout = sys.stderr  # whatever prints must not get between the messages
    source, sink = trio.lowlevel.FdStream(os.dup(0)), trio.lowlevel.FdStream(os.dup(1))
    async with source, sink, trio.open_nursery() as nursery:
        nursery.start_soon(_read, source, to_server, from_us)
        nursery.start_soon(_write, from_server, sink)
        yield incoming, outgoing


async def _read(source: trio.lowlevel.FdStream, to_server: Any, from_us: Any) -> None:
    head, held = b"", b""  # head: how a message began that is too long, and is passed over to its end
    async with to_server, from_us:
        while data := await source.receive_some(65536):
            *lines, held = (held + data).split(b"\n")
            if head and lines:
                await from_us.send(_too_long(head, lines.pop(0)))
                head = b""
            for line in lines:
                await _hand_on(line, to_server, from_us)
            if len(held) > MESSAGE_BYTES:
                head = held[:ENDS_BYTES]
            if head:
                held = held[-ENDS_BYTES:]
        if not head:
            await _hand_on(held, to_server, from_us)


async def _hand_on(line: bytes, to_server: Any, from_us: Any) -> None:
    """A line to the server; where it is no message, the error to the client."""
    if not line.strip():
        return
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        await from_us.send(_no_message(line, error))
    else:
        await to_server.send(SessionMessage(message))


def _no_message(line: bytes, error: ValidationError) -> SessionMessage:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return _error(_id_of(line), NO_JSON, f"this line is no JSON: {first['ctx']['error']}")
    return _error(_id_of(line), NO_MESSAGE, 'this is no message of JSON-RPC 2.0: an object with "jsonrpc": "2.0" and a '
                  '"method", and an "id" where an answer is wanted')  # fmt: skip


def _too_long(head: bytes, tail: bytes) -> SessionMessage:
    found = _FIRST_ID.match(head) or _LAST_ID.search(tail)
    told = _id_of(b'{"id":%b}' % found[1]) if found else None
    return _error(told, NO_MESSAGE, f"a message has at most {MESSAGE_BYTES} bytes; this one was passed over")


def _id_of(line: bytes) -> str | int | None:
    """The id of what is otherwise wrong; None where it has none, or can't be read."""
    try:
        told = json.loads(line)
        found = told.get("id") if isinstance(told, dict) else None
        str(found).encode()  # half characters can't be sent back
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _error(to: str | int | None, code: int, text: str) -> SessionMessage:
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=to, error=types.ErrorData(code=code, message=text)))


async def _write(from_server: Any, sink: trio.lowlevel.FdStream) -> None:
    async with from_server:
        async for message in from_server:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await sink.send_all(text.encode() + b"\n")
