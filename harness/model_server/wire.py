"""What the APIs share on the wire: server-sent events, texts in several shapes."""

import json
from collections.abc import Iterator
from typing import Any

#: Characters in one delta of a streamed text.
PIECE = 48


def event(data: dict[str, Any], name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def pieces(text: str) -> Iterator[str]:
    """A text as a model streams it, bit by bit."""
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def words(content: Any) -> str:
    """The text in a content: a string, or a list of parts of which some have text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(found for part in content if (found := words(part)))
    if isinstance(content, dict):
        return words(content.get("text", content.get("content")))
    return ""
