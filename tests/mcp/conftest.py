"""An MCP client of the official SDK, talking to the installed `labd mcp` as an agent's program would."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
import trio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.conftest import LABD, BenchInAFolder

Session = Callable[..., Awaitable["Told"]]


class Told:
    """What a tool answered: its texts joined, whether it is an error, and the content as it came."""

    def __init__(self, result: Any) -> None:
        self.content = result.content
        self.error = result.is_error
        self.text = "\n".join(part.text for part in result.content if part.type == "text")


@asynccontextmanager
async def a_client(bench: BenchInAFolder, name: str = "tester", mode: str = "auto",
                   **env: str) -> AsyncIterator[tuple[Client, Session]]:  # fmt: skip
    """A connected client, and a function that calls a tool: `await ask("labd_read", "serial log dut")`."""
    server = StdioServerParameters(command=LABD, args=["mcp"], env={**bench.env, **env}, cwd=bench.root)
    info = types.Implementation(name=name, version="1.0")
    async with Client(server, client_info=info, mode=mode) as client:

        async def ask(tool: str, command: str | None = None, **more: Any) -> Told:
            options = {key: more.pop(key) for key in ("progress_callback",) if key in more}
            given = {**({"command": command} if command is not None else {}), **more}
            with trio.fail_after(60):
                return Told(await client.call_tool(tool, given, **options))

        yield client, ask


@pytest.fixture
def run(board: BenchInAFolder) -> Callable[..., Any]:
    """Run `async def test(client, ask)` against a bench with a simulated Linux board `dut`."""

    def go(body: Callable[[Client, Session], Awaitable[Any]], **how: Any) -> Any:
        async def main() -> Any:
            async with a_client(board, **how) as (client, ask):
                return await body(client, ask)

        return trio.run(main)

    return go
