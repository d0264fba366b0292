"""`labd mcp`: the bench for programs that speak the Model Context Protocol. The server is `labd.mcp`."""

from __future__ import annotations

from labd.operations.model import Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args


def _mcp(call: Call, args: Args) -> Any:
    if args.tools:
        from labd.mcp_tools import tools

        return {"tools": [{"name": tool.name, "effects": list(tool.effects), "read_only": tool.read_only,
                           "description": tool.description, "schema": tool.schema} for tool in tools()]}  # fmt: skip
    from labd.mcp import serve

    return Answer(None, code=serve(call), text="")


def _text(data: Any, call: Call) -> str:
    from labd.render import columns

    rows: list[tuple[str, ...]] = [(tool["name"], tool["description"]) for tool in data["tools"]]
    return columns(rows, call.columns, "")


OPERATIONS = (
    Operation(
        ("mcp",),
        "serve the bench to an MCP client over stdin and stdout",
        effect="help",
        where="client",
        terminal=True,
        params=(
            Param("tools", "only print the tools that it offers", kind="switch", flags=("--tools",), default=False),
        ),
        handler=_mcp,
        text=_text,
        doc="An agent's program starts this by itself, once it is told to (`claude mcp add labd -- labd mcp`). A tool "
        "takes a command line, and there is one an effect: looking, editing the lab and acting can be permitted "
        "apart. Policy, record and claims are those of typed commands, by the server's environment: LABD_POLICY, "
        "LABD_LAB, LABD_AS. It ends with its client, and cancels what runs for it. Needs the Python package mcp, which "
        "comes with the extra of that name.",
        examples=(
            ("labd mcp --tools", "which tools an agent gets"),
            ("labd mcp --lab bench.toml", "what an agent's program starts, for the lab in that file"),
        ),
    ),
)  # fmt: skip
