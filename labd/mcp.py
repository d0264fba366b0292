"""`labd mcp`: the bench as tools of the Model Context Protocol, over stdin and stdout, with the official SDK.

A face and no more: `mcp_tools` says which tools there are, `mcp_call` takes a call to the daemon, and here answers
become what a client shows. The client's end is ours: what runs for it is cancelled. Imported by the verb alone, as the
SDK is heavy.
"""

from __future__ import annotations

import base64
import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import trio

from labd import __version__, mcp_tools
from labd.errors import LabdError, NotFound, Unreachable, Usage
from labd.mcp_call import Answer, Request, perform, refused

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.context import ServerRequestContext

    from labd.call import Call

#: Characters of text that one answer shows; the rest is asked for by number.
SHOWN = 24_000

#: Answers that were cut, and are kept to be read on in.
KEPT_ANSWERS = 8

#: Bytes of a picture that are handed to a client; larger ones are for a file.
IMAGE_BYTES = 4 << 20

#: Seconds after which a call that says nothing is said to run, and again each time.
ALIVE_S = 2.0

PNG = b"\x89PNG\r\n"

#: Exit codes as words (design section 6), for an error of labd's own.
MEANINGS = {1: "failed", 2: "bad usage", 3: "refused by policy", 4: "no such thing", 5: "timed out", 6: "busy",
            7: "unreachable", 8: "the target died"}  # fmt: skip


def serve(call: Call) -> int:
    """Serve one client until it ends. Raises Unreachable, with the command that installs it, without the SDK."""
    import sys

    try:
        import mcp.server.lowlevel  # noqa: F401
        import mcp_types  # noqa: F401 - looked for; older ones don't have it
    except ImportError:
        raise Unreachable("labd mcp needs the Python package mcp, 2.3 or newer, which is not installed",
                          hint=f"{sys.executable} -m pip install 'mcp>=2.3'") from None  # fmt: skip
    os.environ["LABD_LAB"] = call.lab_path
    trio.run(_serve)
    return 0


async def _serve() -> None:
    from labd.mcp_stdio import streams

    server = server_of(Desk())
    async with streams() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def server_of(desk: Desk) -> Any:
    """The SDK's server over a desk."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def listed(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in desk.tools.values()])

    server = Server("labd", version=__version__, instructions=mcp_tools.INSTRUCTIONS, on_list_tools=listed,
                    on_call_tool=desk.answer)  # fmt: skip
    server.middleware.clear()  # the SDK's tracing, which nobody reads here
    return server


def _described(tool: mcp_tools.Tool) -> types.Tool:
    import mcp_types as types

    hints = types.ToolAnnotations(read_only_hint=tool.read_only, destructive_hint=tool.destroys,
                                  open_world_hint=False)  # fmt: skip
    return types.Tool(name=tool.name, title=tool.title, description=tool.description, input_schema=tool.schema,
                      annotations=hints)  # fmt: skip


class Desk:
    """Where one client's calls come in: its tools, and the long answers that it may read on in."""

    def __init__(self) -> None:
        self.tools = {tool.name: tool for tool in mcp_tools.tools()}
        self.kept: OrderedDict[int, str] = OrderedDict()
        self.count = 0

    async def answer(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run one tool call."""
        import mcp_types as types

        client = _client_of(context)
        try:
            tool = self._tool(params.name)
            given = _given(tool, params.arguments or {})
            if tool.name == "labd_more":
                return types.CallToolResult(content=[self._rest(given["answer"], given["from"])])
            words = self._words(tool, given, client)
            ended = words if isinstance(words, Answer) else await self._run(context, words, given, client)
        except LabdError as error:
            ended = refused([params.name], client, error)
        return types.CallToolResult(content=self._content(ended), is_error=ended.code != 0)

    def _tool(self, name: str) -> mcp_tools.Tool:
        if name not in self.tools:
            raise NotFound(f"no tool {name!r}; there is {', '.join(self.tools)}")
        return self.tools[name]

    def _words(self, tool: mcp_tools.Tool, given: dict[str, Any], client: str) -> list[str] | Answer:
        """What is to be run, or the answer to what may not be. Raises Usage."""
        if tool.name == "labd_help":
            return mcp_tools.help_words(given.get("about", ""))
        words = mcp_tools.words_of_line(given["command"])
        try:
            mcp_tools.check(tool, words)
        except LabdError as error:
            return refused(words, client, error)
        return words

    async def _run(self, context: Any, words: list[str], given: dict[str, Any], client: str) -> Answer:
        limit = given.get("limit_s", mcp_tools.LIMIT_S)
        if not 0 < limit <= mcp_tools.MOST_S:
            raise Usage(f"limit_s is above 0 and at most {mcp_tools.MOST_S} seconds, not {limit:g}")
        progress = _Progress(context)
        stdin = given.get("stdin", "").encode("utf-8", "surrogateescape")
        request = Request(words, stdin, client, progress.tell)
        with trio.move_on_after(limit) as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(progress.stay_alive)
                await _performed(request)
                nursery.cancel_scope.cancel()
        answer = request.answer
        if scope.cancelled_caught:
            answer.code = 5
            answer.err += f"labd: ended after {limit:g} s, as limit_s says; what acts may have been done\n".encode()
        elif answer.code == 2 and (hint := mcp_tools.shell_words(words)):
            answer.err += f"{hint}\n".encode()
        return answer

    def _content(self, ended: Answer) -> list[Any]:
        """The answer first, then what was said beside it, then the exit code where it is not 0."""
        content: list[Any] = []
        if ended.out.startswith(PNG):
            content.append(_picture(bytes(ended.out)))
        elif ended.out:
            content.append(self._text(_readable(ended.out)))
        told = _readable(ended.err)
        if ended.dropped:
            told += f"labd: {ended.dropped} more bytes were not kept; ask for less, or write to a file\n"
        if ended.code:
            ours = told.startswith("labd:") or '"error":' in told[:200]
            meaning = f" ({MEANINGS[ended.code]})" if ours and ended.code in MEANINGS else ""
            told += f"exit {ended.code}{meaning}"
        if told or not content:
            content.append(self._text(told or "(done; nothing to say)"))
        return content

    def _text(self, text: str) -> Any:
        import mcp_types as types

        if len(text) <= SHOWN:
            return types.TextContent(text=text)
        self.count += 1
        self.kept[self.count] = text
        while len(self.kept) > KEPT_ANSWERS:
            self.kept.popitem(last=False)
        return self._rest(self.count, 0)

    def _rest(self, number: int, at: int) -> Any:
        """A kept answer from a character on. Raises NotFound, Usage."""
        import mcp_types as types

        if number not in self.kept:
            raise NotFound(f"answer {number} is not kept any more (the last {KEPT_ANSWERS} that were cut are)",
                           hint="ask again, for less: --tail, --since, --grep")  # fmt: skip
        text = self.kept[number]
        if at > len(text):
            raise Usage(f"answer {number} has {len(text)} characters; there is none at {at}")
        piece = text[at : at + SHOWN]
        if at + SHOWN < len(text) and "\n" in piece:
            piece = piece[: piece.rindex("\n") + 1]
        end = at + len(piece)
        if end < len(text):
            go_on = f'labd_more {{"answer": {number}, "from": {end}}}'
            piece += f"\n[cut: characters {at} to {end} of {len(text)}; go on: {go_on}]"
        return types.TextContent(text=piece)


async def _performed(request: Request) -> None:
    """Run it; a bench that can't be reached is an answer, too."""
    from labd.render import error_text

    try:
        await perform(request)
    except LabdError as error:
        request.answer.code = error.exit_code
        request.answer.err += error_text(error).encode() + b"\n"


class _Progress:
    """Tells a client that asked for it how a call goes."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.began = trio.current_time()
        self.said = 0

    async def tell(self, text: str) -> None:
        """A note of the call, as it comes."""
        self.said += 1
        await self.context.session.report_progress(self.said, None, text)

    async def stay_alive(self) -> None:
        """For ever: say that it still runs."""
        while True:
            await trio.sleep(ALIVE_S)
            await self.tell(f"still running, {trio.current_time() - self.began:.0f} s")


def _client_of(context: Any) -> str:
    """The client's name and version, as one word or two for the record."""
    told = context.session.client_params
    if told is None:
        return "unnamed"
    name = f"{told.client_info.name} {told.client_info.version}"
    return "".join(char if char.isprintable() else "?" for char in name)[:80].strip() or "unnamed"


_TYPES: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float)}


def _given(tool: mcp_tools.Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, held against the tool's schema; `command` is `about` for help. Raises Usage."""
    properties = tool.schema["properties"]
    if tool.name == "labd_help" and "command" in arguments and "about" not in arguments:
        arguments = {("about" if name == "command" else name): value for name, value in arguments.items()}
    takes = ", ".join(properties)
    for name, value in arguments.items():
        if name not in properties:
            raise Usage(f"{tool.name} has no argument {name!r}; it takes {takes}")
        wanted = properties[name]["type"]
        if isinstance(value, bool) or not isinstance(value, _TYPES[wanted]):
            raise Usage(f"{name} of {tool.name} is a {wanted}, not {value!r}")
        if wanted != "string" and (value != value or value < properties[name].get("minimum", value)):
            raise Usage(f"{name} of {tool.name} can't be {value!r}")
    missing = [name for name in tool.schema["required"] if name not in arguments]
    if missing:
        raise Usage(f"{tool.name} needs {' and '.join(missing)}; it takes {takes}")
    return arguments


def _readable(data: bytes | bytearray) -> str:
    """Bytes as text; what is no UTF-8 shows as `\\xNN`."""
    return bytes(data).decode("utf-8", "backslashreplace")


def _picture(png: bytes) -> Any:
    import mcp_types as types

    if len(png) > IMAGE_BYTES:
        return types.TextContent(
            text=f"a picture of {len(png)} bytes, too large to show; write it to a file with -o FILE"
        )
    return types.ImageContent(data=base64.b64encode(png).decode("ascii"), mime_type="image/png")
