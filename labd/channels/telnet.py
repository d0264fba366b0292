"""The Telnet layer of RFC 2217, both ways: data and commands told apart, however the network cut them. Pure.

No byte of data is changed: 0xFF is data when doubled, and nothing else is special. (pyserial's own reader does the
same a byte and a lock at a time, which costs a hundred times as much.)
"""

from collections.abc import Iterator

IAC, SB, SE = 0xFF, 0xFA, 0xF0
_NEGOTIATIONS = range(0xFB, 0xFF)  # WILL, WONT, DO, DONT
_OPTION_MOST = 1024

Item = tuple[str, bytes]


def escape(data: bytes) -> bytes:
    """Data as it is sent."""
    return data.replace(b"\xff", b"\xff\xff")


def torn(sent: bytes) -> bool:
    """Whether a piece of escaped data ends between the two halves of a doubled 0xFF."""
    return (len(sent) - len(sent.rstrip(b"\xff"))) % 2 == 1


class Parser:
    """What comes from the server, piece by piece."""

    def __init__(self) -> None:
        self._mode = "data"
        self._option: bytearray | None = None
        self._verb = 0

    def feed(self, data: bytes) -> Iterator[Item]:
        """("data", bytes), ("negotiate", verb and option), ("option", a subnegotiation's body), ("command", one byte).

        In the order in which they came. Data in one piece comes in one item as far as no 0xFF is in it.
        """
        at = 0
        while at < len(data):
            if self._mode == "data":
                end = data.find(b"\xff", at)
                end = len(data) if end < 0 else end
                if end > at:
                    yield from self._text(data[at:end])
                if end < len(data):
                    self._mode = "iac"
                at = end + 1
                continue
            byte = data[at]
            at += 1
            if self._mode == "verb":
                self._mode = "data"
                yield "negotiate", bytes((self._verb, byte))
            else:
                self._mode = "data"
                yield from self._command(byte)

    def _text(self, piece: bytes) -> Iterator[Item]:
        if self._option is None:
            yield "data", piece
        else:
            self._option += piece[: _OPTION_MOST - len(self._option)]

    def _command(self, byte: int) -> Iterator[Item]:
        if byte == IAC:
            yield from self._text(b"\xff")
        elif byte == SB:
            self._option = bytearray()
        elif byte == SE:
            if self._option is not None:
                body, self._option = bytes(self._option), None
                yield "option", body
        elif byte in _NEGOTIATIONS:
            self._verb, self._mode = byte, "verb"
        else:
            yield "command", bytes((byte,))
