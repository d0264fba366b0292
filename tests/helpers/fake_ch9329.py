"""A CH9329 played on a pseudo-terminal: hears only its own rate, checks sums, answers as the chip's document says."""

from tests.helpers.serial_rig import SerialRig


class FakeCh9329(SerialRig):
    """`taken` are (command, data) that it carried out. `rate` is the one that it hears; `fail` are reasons for its next
    refusals; `noise` comes before each answer; `connected` says whether a target has taken up its keyboard."""

    def __init__(self, rate: int = 9600) -> None:
        self.taken: list[tuple[int, bytes]] = []
        self.rate = rate
        self.stored = rate
        self.fail: list[int] = []
        self.noise = b""
        self.connected = True
        self.lights = 0b010
        self.heard_at: set[int] = set()
        self._data = b""
        super().__init__()

    def take(self, data: bytes) -> None:
        self.heard_at.add(self.baud)
        if self.baud != self.rate:
            self._data = b""
            return
        self._data += data
        while len(self._data) >= 6:
            end = 5 + self._data[4]
            if self._data[:3] != b"\x57\xab\x00":
                self._data = self._data[1:]
                continue
            if len(self._data) <= end:
                return
            whole, self._data = self._data[: end + 1], self._data[end + 1 :]
            self._took(whole[3], whole[5:end], sum(whole[:end]) & 0xFF == whole[end])

    def _took(self, command: int, data: bytes, right: bool) -> None:
        if self.fail or not right:
            self._answer(command | 0xC0, bytes([self.fail.pop(0) if self.fail else 0xE4]))
            return
        self.taken.append((command, data))
        if command == 0x01:
            self._answer(0x81, bytes([0x31, int(self.connected), self.lights, 0, 0, 0, 0, 0]))
        elif command == 0x08:
            self._answer(0x88, b"\x80\x80\x00" + self.stored.to_bytes(4, "big") + bytes(range(43)))
        else:
            self._answer(command | 0x80, b"\x00")
        if command == 0x09:
            assert len(data) == 50 and data[7:] == bytes(range(43))
            self.stored = int.from_bytes(data[3:7], "big")
        if command == 0x0F:
            self.rate = self.stored

    def _answer(self, command: int, data: bytes) -> None:
        body = b"\x57\xab\x00" + bytes([command, len(data)]) + data
        self.say(self.noise + body + bytes([sum(body) & 0xFF]))

    @property
    def sent(self) -> list[str]:
        """What it sent to its target, as `command data` in hex."""
        return [f"{command:02x} {data.hex()}" for command, data in self.taken if command in (2, 4, 5)]
