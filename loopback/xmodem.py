"""X-modem as a board speaks it, receiving or sending: checksum and CRC, 128 and 1024 byte blocks, NAKs and retries.

Pure: bytes and time in, bytes out, so that each case of the protocol can be tried without a line. The receiver asks for
CRC ("C") three times and then for checksums (NAK); the sender does what it is asked for. A block that comes again after
its acknowledgement was lost is acknowledged again and not kept twice. `bad` blocks are refused once each by the
receiver, or sent damaged once each by the sender, so that the other side's retries are tried.
"""

from __future__ import annotations

from collections.abc import Collection

SOH, STX, EOT, ACK, NAK, CAN, CRC, PAD = 1, 2, 4, 6, 0x15, 0x18, 0x43, 0x1A
RETRIES = 10
CRC_TRIES = 3
GAP_S = 1.0  # within a block: then it is refused
MAX_BYTES = 1 << 24


def crc16(data: bytes) -> int:
    """The CRC of X-modem: polynomial 0x1021, from 0."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def block(number: int, data: bytes, with_crc: bool) -> bytes:
    """One block of 128 or 1024 bytes."""
    check = crc16(data).to_bytes(2, "big") if with_crc else bytes([sum(data) & 0xFF])
    return bytes([SOH if len(data) == 128 else STX, number & 0xFF, ~number & 0xFF]) + data + check


class Transfer:
    """What both sides have: `result` is None while it goes on, then "ok" or what went wrong."""

    def __init__(self) -> None:
        self.result: str | None = None
        self.due = 0.0  # when `late` is to be called
        self.retries = 0  # of the whole transfer
        self._tries = 0
        self._cancels = 0

    def _cancelled(self, byte: int) -> bool:
        """Two CANs in a row end a transfer."""
        self._cancels = self._cancels + 1 if byte == CAN else 0
        if self._cancels >= 2:
            self.result = "cancelled"
        return self._cancels >= 2

    def _again(self) -> bool:
        self._tries += 1
        self.retries += 1
        if self._tries > RETRIES:
            self.result = "too many retries"
        return self.result is None


class Receiver(Transfer):
    """Takes a file: `data`, with the padding of its last block."""

    def __init__(self, use_crc: bool, wait_s: float, bad: Collection[int] = ()) -> None:
        super().__init__()
        self.data = bytearray()
        self._crc = use_crc
        self._asked = 0
        self._wait_s = wait_s
        self._bad = set(bad)
        self._next = 1
        self._buffer = bytearray()
        self._begun = False

    def start(self, now: float) -> bytes:
        """What to send at first."""
        self.due = now + self._wait_s
        self._asked += 1
        if self._crc and self._asked > CRC_TRIES:
            self._crc = False
        return bytes([CRC if self._crc else NAK])

    def late(self, now: float) -> bytes:
        """Nothing came until `due`."""
        self._buffer.clear()
        if not self._again():
            return bytes([CAN, CAN])
        if not self._begun:
            return self.start(now)
        self.due = now + self._wait_s
        return bytes([NAK])

    def feed(self, data: bytes, now: float) -> bytes:
        """Bytes came; returns what to send."""
        out = bytearray()
        self._buffer += data
        while self._buffer and self.result is None and (answer := self._take(now)) is not None:
            out += answer
        return bytes(out)

    def _take(self, now: float) -> bytes | None:
        """Deal with what the buffer begins with; None when more of it must come."""
        head = self._buffer[0]
        if head == EOT:
            self.result = "ok"
            return bytes([ACK])
        if head not in (SOH, STX):
            del self._buffer[0]
            self._cancelled(head)
            return b""
        self._cancels = 0
        size = (128 if head == SOH else 1024) + (5 if self._crc else 4)
        self.due = now + (GAP_S if len(self._buffer) < size else self._wait_s)
        if len(self._buffer) < size:
            return None
        frame = bytes(self._buffer[:size])
        del self._buffer[:size]
        return self._block(frame)

    def _block(self, frame: bytes) -> bytes:
        number = frame[1]
        data = frame[3 : -2 if self._crc else -1]
        if frame != block(number, data, self._crc) or self._next in self._bad:
            self._bad.discard(self._next)
            self._buffer.clear()
            return bytes([NAK] if self._again() else [CAN, CAN])
        self._begun = True
        if number == (self._next - 1) & 0xFF and self._next > 1:
            return bytes([ACK])  # again: the acknowledgement was lost
        if number != self._next & 0xFF or len(self.data) > MAX_BYTES:
            self.result = f"block {number} instead of {self._next & 0xFF}"
            return bytes([CAN, CAN])
        self.data += data
        self._next += 1
        self._tries = 0
        return bytes([ACK])


class Sender(Transfer):
    """Gives a file."""

    def __init__(self, data: bytes, size: int, wait_s: float, bad: Collection[int] = ()) -> None:
        super().__init__()
        self._blocks = [data[at : at + size].ljust(size, bytes([PAD])) for at in range(0, len(data), size)]
        self._number = 0  # of the block that is on its way; 0 while the receiver has not asked
        self._crc = False
        self._wait_s = wait_s
        self._bad = set(bad)

    def start(self, now: float) -> bytes:
        """Nothing is sent before the receiver asks."""
        self.due = now + self._wait_s * RETRIES
        return b""

    def late(self, now: float) -> bytes:
        """The receiver said nothing until `due`."""
        if self._number == 0:
            self.result = "nobody asked"
            return bytes([CAN, CAN])
        return self._send(now) if self._again() else bytes([CAN, CAN])

    def feed(self, data: bytes, now: float) -> bytes:
        """Bytes came; returns what to send. Only the last answer counts: a flood of NAKs is one."""
        out = b""
        for byte in data:
            if self.result is None and not self._cancelled(byte) and byte in (ACK, NAK, CRC):
                out = self._answer(byte, now)
        return out

    def _answer(self, byte: int, now: float) -> bytes:
        if self._number == 0:
            if byte == ACK:
                return b""
            self._crc = byte == CRC
            self._number = 1
        elif byte == ACK:
            self._tries = 0
            if self._number > len(self._blocks):
                self.result = "ok"
                return b""
            self._number += 1
        elif byte == CRC and self._number > 1:
            return b""
        elif not self._again():
            return bytes([CAN, CAN])
        return self._send(now)

    def _send(self, now: float) -> bytes:
        if self._number > len(self._blocks):
            self.due = now + self._wait_s
            return bytes([EOT])
        self.due = now + self._wait_s * RETRIES  # the receiver asks again: were both to, a block would go out twice
        frame = bytearray(block(self._number, self._blocks[self._number - 1], self._crc))
        if self._number in self._bad:
            self._bad.discard(self._number)
            frame[10] ^= 0xFF
        return bytes(frame)
