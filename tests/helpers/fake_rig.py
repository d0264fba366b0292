"""A hidrig played on a pseudo-terminal: takes frames as documented, answers control, makes trouble when told to."""

from tests.helpers.serial_rig import SerialRig


class FakeRig(SerialRig):
    """`frames` are those that it took. `noise` is said before each answer; `refusal` is answered in place of a result;
    `mute` answers nothing."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.noise = b""
        self.refusal = ""
        self.mute = False
        self._data = b""
        super().__init__()

    def take(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 3 and len(self._data) >= 3 + self._data[2]:
            if self._data[0] not in (1, 2, 3):
                self._data = self._data[1:]
                continue
            end = 3 + self._data[2]
            self._took(self._data[:end])
            self._data = self._data[end:]

    def _took(self, frame: bytes) -> None:
        self.frames.append(frame)
        if frame[0] == 2 and not self.mute:
            words = (self.refusal or {1: "", 2: "dual-control/1", 3: "OK"}[frame[1]]).encode()
            self.say(self.noise + bytes([2, frame[1], len(words)]) + words)

    @property
    def hid(self) -> list[str]:
        """The reports that it took, as hex."""
        return [frame.hex() for frame in self.frames if frame[0] == 1]
