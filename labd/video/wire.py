"""How the daemon and a screen's capture process talk: messages of one JSON line and a body of bytes. Pure.

To the process go requests `{"id", "do", …}` and `{"drop": id}`. From it come answers `{"id", "ok": {…}}` or
`{"id", "error": {"kind", "message", "hint", "near"}}`, the body behind them, and news `{"news": kind, …}`.
"""

from __future__ import annotations

import json
from typing import Any

#: The file, beside the socket of a virtual board, that its screen passes through.
DUMP = "screen.ppm"
#: A header is at most this long: what is longer is not one.
HEADER_MOST = 1 << 20
#: The longest body: a picture of 8192 x 8192 with three bytes a pixel.
BODY_MOST = 8192 * 8192 * 3


def pack(message: dict[str, Any], body: bytes = b"") -> bytes:
    """A message as it goes over the pipe."""
    head = {**message, "bytes": len(body)} if body else message
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + body


class Unpacker:
    """Bytes as they come in, messages as they are whole. Raises ValueError when it is fed what is none."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0
        self._need = 1
        self._head: dict[str, Any] | None = None

    def feed(self, data: bytes) -> list[tuple[dict[str, Any], bytes]]:
        """The messages that `data` completes, each with its body."""
        self._parts.append(data)
        self._held += len(data)
        if self._head is not None and self._held < self._need:
            return []  # a body is joined once, when it is there
        rest = b"".join(self._parts)
        found = []
        while True:
            if self._head is None:
                line, newline, after = rest.partition(b"\n")
                if not newline:
                    if len(line) > HEADER_MOST:
                        raise ValueError("the header has no end")
                    break
                self._head, rest = self._parse(line), after
            if len(rest) < self._need:
                break
            found.append((self._head, rest[: self._need]))
            rest, self._head = rest[self._need :], None
        self._parts, self._held = [rest], len(rest)
        return found

    def _parse(self, line: bytes) -> dict[str, Any]:
        head = json.loads(line)
        size = head.pop("bytes", 0) if isinstance(head, dict) else -1
        if not isinstance(size, int) or not 0 <= size <= BODY_MOST:
            raise ValueError("not a message")
        self._need = size
        found: dict[str, Any] = head
        return found
