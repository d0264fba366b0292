"""The bytes of HID reports, and the pointer's place, which a device of absolute reports does not tell. Pure but for
`Place`, which is kept in a file."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from labd.hid import keys
from labd.hid.words import BUTTONS, FAR

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

#: How many keys a boot keyboard's report has room for.
BOOT_KEYS = 6


def keyboard(held: Sequence[int]) -> bytes:
    """The 8 bytes of a boot keyboard: modifiers, a zero, six keys (HID 1.11, appendix B.1)."""
    modifiers = sum(1 << (key - keys.MODIFIERS[0]) for key in set(held) if key in keys.MODIFIERS)
    plain = [key for key in held if key not in keys.MODIFIERS][:BOOT_KEYS]
    return bytes([modifiers, 0, *plain]).ljust(8, b"\0")


def buttons(pressed: Collection[str]) -> int:
    """The bits of mouse buttons: left 1, right 2, middle 4."""
    return sum(1 << number for number, name in enumerate(BUTTONS) if name in pressed)


def pointer(pressed: Collection[str], x: int, y: int, wheel: int = 0) -> bytes:
    """The 6 bytes of an absolute pointer: buttons, x and y as 16 bits each with the low byte first, wheel."""
    return bytes([buttons(pressed), *x.to_bytes(2, "little"), *y.to_bytes(2, "little"), wheel & 0xFF])


def parts(amount: int, most: int = 127) -> list[int]:
    """`amount` as steps of at most `most` either way; a byte of a report holds no more."""
    sign = -1 if amount < 0 else 1
    whole, rest = divmod(abs(amount), most)
    return [sign * most] * whole + ([sign * rest] if rest else [])


class Place:
    """Where the pointer is, for devices whose every report says it: the middle of the screen at first, then where it
    was last put, also by an earlier process, as told by the file at `path`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.x = self.y = (FAR + 1) // 2
        try:
            with open(path, encoding="ascii") as file:
                x, y = (int(word) for word in file.read().split())
            self.x, self.y = _within(x), _within(y)
        except (OSError, ValueError):
            pass

    def put(self, x: int, y: int) -> None:
        """It is at `x`, `y` now, or at the edge where that is outside."""
        self.x, self.y = _within(x), _within(y)
        scratch = f"{self.path}.{os.getpid()}"
        try:
            with open(scratch, "w", encoding="ascii") as file:
                file.write(f"{self.x} {self.y}\n")
            os.replace(scratch, self.path)
        except OSError:
            pass  # a full disk: the next process starts from what was true before


def _within(value: int) -> int:
    return min(max(value, 0), FAR)


class Reporter(ABC):
    """A device that takes whole reports: which keys and buttons are down, and where the pointer is."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @abstractmethod
    def send_keyboard(self, report: bytes) -> None:
        """Send a keyboard's report."""

    @abstractmethod
    def send_pointer(self, report: bytes) -> None:
        """Send a pointer's report."""

    def keys(self, held: Sequence[int], before: Sequence[int]) -> None:
        """Exactly these keys are down now."""
        self.send_keyboard(keyboard(held))

    def buttons(self, held: Collection[str], before: Collection[str]) -> None:
        """Exactly these mouse buttons are down now."""
        self.mouse(held)

    def move(self, dx: int, dy: int, held: Collection[str]) -> None:
        """Move the pointer by this from where it was last put."""
        self.point(self.place.x + dx, self.place.y + dy, held)

    def point(self, x: int, y: int, held: Collection[str]) -> None:
        """Move the pointer there."""
        self.place.put(x, y)
        self.mouse(held)

    def scroll(self, notches: int, held: Collection[str]) -> None:
        """Turn the wheel."""
        for part in parts(notches):
            self.mouse(held, part)

    def mouse(self, held: Collection[str], wheel: int = 0) -> None:
        """Send where the pointer is, which buttons are down, how far the wheel turned."""
        self.send_pointer(pointer(held, self.place.x, self.place.y, wheel))
