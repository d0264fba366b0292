"""Google's generateContent API, as Gemini CLI speaks it."""

import re
from collections.abc import Iterator
from typing import Any

from harness.model_server.play import Exchange, Item, turns_taken
from harness.model_server.tools import Reply
from harness.model_server.wire import event, pieces

_ERRORS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
           429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}  # fmt: skip

#: How the product tells what a command printed: framed, after a word, and with facts about its end after it.
_OUTPUT = re.compile(r"(?s)(?:\A|.*?\n)Output: (.*?)(?:\n(?:Error|Exit Code|Signal|Process Group PGID|Background PIDs):"
                     r".*|\n</untrusted_context>.*)?\Z")  # fmt: skip


def read(body: dict[str, Any], path: str) -> Exchange:
    """The request `POST /v1beta/models/MODEL:generateContent`, or `:streamGenerateContent`."""
    contents = body.get("contents") or []
    users = [content for content in contents if content.get("role") != "model"]
    first = "\n".join(part.get("text", "") for content in users for part in content.get("parts") or [])
    offered = frozenset(one["name"] for tool in body.get("tools") or []
                        for one in tool.get("functionDeclarations") or [])  # fmt: skip
    model = path.rpartition("/models/")[2].partition(":")[0]
    return Exchange(model, first, turns_taken(_items(contents)), offered, ":stream" in path)


def _items(contents: list[dict[str, Any]]) -> Iterator[Item]:
    for content in contents:
        for part in content.get("parts") or []:
            if content.get("role") == "model":
                yield Item("model")
            elif "functionResponse" in part:
                given = part["functionResponse"].get("response") or {}
                yield Item("result", "", _printed(str(given.get("output", given.get("error", "")))))
            else:
                yield Item("other")


def _printed(text: str) -> str:
    found = _OUTPUT.fullmatch(text)
    return found[1] if found else text


def _chunk(reply: Reply, parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
    said = reply.usage
    taken = said.input + said.cache_read + said.cache_write
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    usage = {"promptTokenCount": taken, "candidatesTokenCount": said.output, "thoughtsTokenCount": said.reasoning,
             "cachedContentTokenCount": said.cache_read,
             "totalTokenCount": taken + said.output + said.reasoning}  # fmt: skip
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": reply.model, "responseId": reply.id}


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [{"functionCall": {"name": use.name, "args": use.input}} for use in reply.uses]


def whole(reply: Reply) -> dict[str, Any]:
    """The answer in one piece."""
    said = [{"text": reply.text}] if reply.text or not reply.uses else []
    return _chunk(reply, [*said, *_calls(reply)], last=True)


def stream(reply: Reply) -> Iterator[bytes]:
    """The answer as events; the last has the calls and the reason why it ended."""
    *before, last = list(pieces(reply.text)) or [""]
    for piece in before:
        yield event(_chunk(reply, [{"text": piece}], last=False))
    said = [{"text": last}] if last or not reply.uses else []
    yield event(_chunk(reply, [*said, *_calls(reply)], last=True))


def error(status: int, message: str) -> dict[str, Any]:
    """What an error's body holds."""
    return {"error": {"code": status, "message": message, "status": _ERRORS.get(status, "UNKNOWN")}}
