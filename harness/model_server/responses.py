"""OpenAI's Responses API, as Codex speaks it."""

import json
from collections.abc import Iterator
from typing import Any

from harness.model_server.play import Exchange, Item, turns_taken
from harness.model_server.tools import Reply
from harness.model_server.wire import event, pieces, words

_ERRORS = {400: "invalid_request_error", 401: "invalid_api_key", 429: "rate_limit_exceeded", 500: "server_error"}

#: What Codex puts between the facts about a command and what it printed.
_OUTPUT = "\nOutput:\n"


def read(body: dict[str, Any], path: str) -> Exchange:
    """The request `POST /v1/responses`. Codex puts its notes among the user's texts: all of them tell the thread."""
    given = body.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    first = "\n".join(words(item.get("content")) for item in items if item.get("role") == "user")
    offered = frozenset(name for tool in body.get("tools") or [] for name in _names(tool))
    return Exchange(str(body.get("model")), first, turns_taken(_items(items)), offered, bool(body.get("stream")))


def _names(tool: dict[str, Any]) -> Iterator[str]:
    """What a tool is called by; those of an MCP server stand in a space of names: `space.name`."""
    name = tool.get("name") or tool.get("type", "")
    inner = [one["name"] for one in tool.get("tools") or [] if "name" in one]
    yield from (f"{name}.{one}" for one in inner) if inner else [name]


def _items(items: list[dict[str, Any]]) -> Iterator[Item]:
    for item in items:
        kind = item.get("type", "message")
        if kind.endswith("_call_output"):
            text = words(item.get("output"))
            yield Item("result", str(item.get("call_id", "")), text.partition(_OUTPUT)[2] or text)
        elif item.get("role") == "assistant" or kind.endswith("_call") or kind == "reasoning":
            yield Item("model", str(item.get("call_id", "")))
        else:
            yield Item("other")


def _output(reply: Reply) -> list[dict[str, Any]]:
    text = {"type": "output_text", "text": reply.text, "annotations": []}
    said = {"type": "message", "id": f"msg_{reply.id}", "role": "assistant", "status": "completed", "content": [text]}
    calls = [{"type": "function_call", "id": f"fc_{use.id}", "call_id": use.id, **_called(use.name),
              "arguments": json.dumps(use.input), "status": "completed"} for use in reply.uses]  # fmt: skip
    return [*([said] if reply.text or not calls else []), *calls]


def _called(name: str) -> dict[str, str]:
    space, dot, inner = name.rpartition(".")
    return {"namespace": space, "name": inner} if dot else {"name": name}


def whole(reply: Reply) -> dict[str, Any]:
    """The answer in one piece."""
    said = reply.usage
    taken = said.input + said.cache_read + said.cache_write
    usage = {"input_tokens": taken, "input_tokens_details": {"cached_tokens": said.cache_read},
             "output_tokens": said.output, "output_tokens_details": {"reasoning_tokens": said.reasoning},
             "total_tokens": taken + said.output}  # fmt: skip
    return {"id": f"resp_{reply.id}", "object": "response", "created_at": 0, "status": "completed",
            "model": reply.model, "output": _output(reply), "usage": usage}  # fmt: skip


def stream(reply: Reply) -> Iterator[bytes]:
    """The answer as events."""
    done = whole(reply)
    yield _event("response.created", response={**done, "status": "in_progress", "output": [], "usage": None})
    for index, item in enumerate(done["output"]):
        begun = {**item, "status": "in_progress"} | ({"content": []} if item["type"] == "message" else {})
        yield _event("response.output_item.added", output_index=index, item=begun)
        if item["type"] == "message":
            for piece in pieces(reply.text):
                yield _event("response.output_text.delta", output_index=index, content_index=0, item_id=item["id"],
                             delta=piece)  # fmt: skip
        yield _event("response.output_item.done", output_index=index, item=item)
    yield _event("response.completed", response=done)


def _event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)


def error(status: int, message: str) -> dict[str, Any]:
    """What an error's body holds."""
    code = _ERRORS.get(status, "server_error")
    return {"error": {"message": message, "type": code, "param": None, "code": code}}
