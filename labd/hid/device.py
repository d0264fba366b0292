"""What an input device has to be able to do, and how fast it is driven. Implemented by the bundled helpers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class Pace(NamedTuple):
    """Times in seconds: how long a key is held and how long nothing is between two; the same for typed characters, and
    how much longer each is for every further key of a chord; how long a lock key is held; how long the pointer rests
    before a click, and how long a click is."""

    hold: float = 0.03
    gap: float = 0.03
    char_hold: float = 0.01
    char_gap: float = 0.005
    further: float = 0.0
    lock_hold: float = 0.2
    settle: float = 0.06
    click: float = 0.08


class Device(Protocol):
    """One keyboard and pointer. Every method raises LabdError when the device did not take it."""

    implementation: str
    """Name and version, and what it can beyond the words."""
    most_keys: int | None
    """How many keys, beside modifiers, can be down at once; None: any number."""
    lacks: Collection[int]
    """Keys that it has not."""

    def keys(self, held: Sequence[int], before: Sequence[int]) -> None:
        """Exactly the keys `held` are down now, where `before` were."""

    def buttons(self, held: Collection[str], before: Collection[str]) -> None:
        """Exactly these mouse buttons are down now, where the pointer is."""

    def move(self, dx: int, dy: int, held: Collection[str]) -> None:
        """Move the pointer by this, with these buttons down."""

    def point(self, x: int, y: int, held: Collection[str]) -> None:
        """Move the pointer there, 0 to 32767 on both axes, with these buttons down."""

    def scroll(self, notches: int, held: Collection[str]) -> None:
        """Turn the wheel, up if positive, with these buttons down."""

    def release_all(self) -> None:
        """Let go of every key and button, also of those that somebody before us held."""

    def ping(self) -> None:
        """Raise unless it answers."""

    def ready(self) -> None:
        """Raise unless what is sent now reaches a target, as far as the device can tell."""

    def settled(self) -> None:
        """Return once all that was sent has been taken, where the device can say so."""
