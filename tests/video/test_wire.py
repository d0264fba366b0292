"""Messages between the daemon and a capture process, in pieces of any size."""

from __future__ import annotations

import pytest

from labd.video.wire import Unpacker, pack

MESSAGES = [({"id": 1, "do": "grab"}, b""), ({"id": 2}, b"\x89PNG\n\n{}" * 1000), ({"news": "alive"}, b""), ({}, b"x")]


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
def test_whole_messages_come_out_whatever_the_pieces(size: int) -> None:
    data = b"".join(pack(message, body) for message, body in MESSAGES)
    unpacker, found = Unpacker(), []
    for start in range(0, len(data), size):
        found += unpacker.feed(data[start : start + size])
    assert found == MESSAGES


@pytest.mark.parametrize(
    "data", [b"not json\n", b"[1]\n", b'{"bytes":-1}\n', b'{"bytes":99999999999}\n', b"a" * 2_000_000]
)
def test_nonsense_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        Unpacker().feed(data)
