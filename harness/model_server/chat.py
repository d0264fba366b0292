"""OpenAI's Chat Completions API, as opencode speaks it."""

import json
from collections.abc import Iterator
from typing import Any

from harness.model_server.play import Exchange, Item, turns_taken
from harness.model_server.responses import error
from harness.model_server.tools import Reply
from harness.model_server.wire import event, pieces, words

__all__ = ["error", "read", "stream", "whole"]


def read(body: dict[str, Any], path: str) -> Exchange:
    """The request `POST /v1/chat/completions`."""
    messages = body.get("messages") or []
    first = next((words(message.get("content")) for message in messages if message.get("role") == "user"), "")
    offered = frozenset(tool["function"]["name"] for tool in body.get("tools") or [] if "function" in tool)
    return Exchange(str(body.get("model")), first, turns_taken(_items(messages)), offered, bool(body.get("stream")))


def _items(messages: list[dict[str, Any]]) -> Iterator[Item]:
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            yield Item("model")
            for call in message.get("tool_calls") or []:
                yield Item("model", str(call.get("id", "")))
        elif role == "tool":
            yield Item("result", str(message.get("tool_call_id", "")), words(message.get("content")))
        else:
            yield Item("other")


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [{"index": index, "id": use.id, "type": "function",
             "function": {"name": use.name, "arguments": json.dumps(use.input)}}
            for index, use in enumerate(reply.uses)]  # fmt: skip


def _usage(reply: Reply) -> dict[str, Any]:
    said = reply.usage
    taken = said.input + said.cache_read + said.cache_write
    return {"prompt_tokens": taken, "completion_tokens": said.output, "total_tokens": taken + said.output,
            "prompt_tokens_details": {"cached_tokens": said.cache_read},
            "completion_tokens_details": {"reasoning_tokens": said.reasoning}}  # fmt: skip


def _ended(reply: Reply) -> str:
    return "tool_calls" if reply.uses else "stop"


def whole(reply: Reply) -> dict[str, Any]:
    """The answer in one piece."""
    calls = {"tool_calls": _calls(reply)} if reply.uses else {}
    message = {"role": "assistant", "content": reply.text or None, **calls}
    choice = {"index": 0, "message": message, "finish_reason": _ended(reply)}
    return {"id": f"chatcmpl-{reply.id}", "object": "chat.completion", "created": 0, "model": reply.model,
            "choices": [choice], "usage": _usage(reply)}  # fmt: skip


def stream(reply: Reply) -> Iterator[bytes]:
    """The answer as events; usage comes in one of its own at the end."""
    base = {"id": f"chatcmpl-{reply.id}", "object": "chat.completion.chunk", "created": 0, "model": reply.model}

    def chunk(delta: dict[str, Any], ended: str | None = None) -> bytes:
        return event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": ended}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(reply.text):
        yield chunk({"content": piece})
    for call in _calls(reply):
        yield chunk({"tool_calls": [call]})
    yield chunk({}, _ended(reply))
    yield event({**base, "choices": [], "usage": _usage(reply)})
    yield b"data: [DONE]\n\n"
