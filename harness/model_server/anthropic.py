"""Anthropic's Messages API, as Claude Code speaks it."""

import json
from collections.abc import Iterator
from typing import Any

from harness.model_server.play import Exchange, Item, turns_taken
from harness.model_server.tools import Reply
from harness.model_server.wire import event, pieces, words

_ERRORS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
           413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}  # fmt: skip


def read(body: dict[str, Any], path: str) -> Exchange:
    """The request `POST /v1/messages`."""
    messages = body.get("messages") or []
    first = words(messages[0].get("content")) if messages else ""
    offered = frozenset(tool["name"] for tool in body.get("tools") or [] if "name" in tool)
    return Exchange(str(body.get("model")), first, turns_taken(_items(messages)), offered, bool(body.get("stream")))


def _items(messages: list[dict[str, Any]]) -> Iterator[Item]:
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for block in blocks:
            if message.get("role") == "assistant":
                yield Item("model", str(block.get("id", "")))
            elif block.get("type") == "tool_result":
                yield Item("result", str(block.get("tool_use_id", "")), words(block.get("content")))
            else:
                yield Item("other")


def _usage(reply: Reply, output: int) -> dict[str, int]:
    said = reply.usage
    return {"input_tokens": said.input, "output_tokens": output, "cache_creation_input_tokens": said.cache_write,
            "cache_read_input_tokens": said.cache_read}  # fmt: skip


def _message(reply: Reply, content: list[Any], stop: str | None, output: int) -> dict[str, Any]:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model, "content": content,
            "stop_reason": stop, "stop_sequence": None, "usage": _usage(reply, output)}  # fmt: skip


def _stop(reply: Reply) -> str:
    return "tool_use" if reply.uses else "end_turn"


def whole(reply: Reply) -> dict[str, Any]:
    """The answer in one piece."""
    content: list[Any] = [{"type": "text", "text": reply.text}] if reply.text or not reply.uses else []
    content += [{"type": "tool_use", "id": use.id, "name": use.name, "input": use.input} for use in reply.uses]
    return _message(reply, content, _stop(reply), reply.usage.output)


def stream(reply: Reply) -> Iterator[bytes]:
    """The answer as events. Usage at the start counts one token of output, as the real one does."""
    yield _event("message_start", message=_message(reply, [], None, 1))
    for index, block in enumerate(whole(reply)["content"]):
        if block["type"] == "text":
            yield _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
            for piece in pieces(block["text"]):
                yield _event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
        else:
            yield _event("content_block_start", index=index, content_block={**block, "input": {}})
            for piece in pieces(json.dumps(block["input"])):
                delta = {"type": "input_json_delta", "partial_json": piece}
                yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ended = {"stop_reason": _stop(reply), "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage={"output_tokens": reply.usage.output})
    yield _event("message_stop")


def _event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)


def error(status: int, message: str) -> dict[str, Any]:
    """What an error's body holds."""
    return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": message}}
