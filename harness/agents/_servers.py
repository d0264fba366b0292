"""An MCP server that a product is told of; each adapter does so in its product's own way."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Seconds that a server may take to start, and a call of a tool.
START_S, CALL_S = 60, 900


@dataclass(frozen=True)
class Server:
    """A server that a product starts by itself: its name, its words, all that it knows of the world."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]

    def entry(self, **more: Any) -> dict[str, Any]:
        """It as most products write it down under `mcpServers`."""
        return {self.name: {"command": self.argv[0], "args": list(self.argv[1:]), "env": dict(self.env), **more}}
