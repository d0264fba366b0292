"""Where what a target said was interrupted: places at which bytes of before and after stand side by side.

Read from the events, since the bytes don't show it: a port that was opened anew, an overflow in the driver, bytes that
a power cut took. Used by the readers of the journal alone. Pure. Light: `serial log` pays for it, so events are
looked at as bytes, and parsed by nobody.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_KINDS = (b"open", b"reopened", b"overrun", b"repaired")
_STARTS = tuple(b'{"kind":"' + kind + b'"' for kind in _KINDS)


class Seam:
    """An interruption: at the offset `rx`, or somewhere behind `since` where that is less. `lost`: bytes known lost.

    `raw` is the event as it is stored. `wall_ns`: when what stands behind it came, once somebody looked; else 0.
    """

    __slots__ = ("lost", "raw", "rx", "since", "wall_ns")

    def __init__(self, rx: int, since: int, lost: int, raw: bytes = b"") -> None:
        self.rx = rx
        self.since = since
        self.lost = lost
        self.raw = raw
        self.wall_ns = 0

    @property
    def placed(self) -> bool:
        """Whether its very place is known."""
        return self.since == self.rx

    def within(self, offset: int, end: int) -> bool:
        """Whether it lies inside the bytes `offset` to `end`, with bytes of them before it and behind it."""
        return offset < self.rx < end if self.placed else self.since < end and offset < self.rx


def rx_of(raw: bytes) -> int:
    """The rx offset of an event as it is stored; 0 if it can't be made out."""
    return _number(raw, b'"rx":')


def seams(blocks: Iterable[bytes]) -> Iterator[Seam]:
    """The interruptions among events, given as blocks of their stream that begin with a whole event."""
    held = b""
    for block in blocks:
        block = held + block
        cut = block.rfind(b"\n") + 1
        held = block[cut:]
        for place in sorted(_found(block, cut)):
            seam = _seam(block[place : block.find(b"\n", place)])
            if seam is not None:
                yield seam


def _found(block: bytes, stop: int) -> Iterator[int]:
    for start in _STARTS:
        at = block.find(start, 0, stop)
        while at >= 0:
            if not at or block[at - 1] == 10:
                yield at
            at = block.find(start, at + 1, stop)


def _seam(raw: bytes) -> Seam | None:
    rx = rx_of(raw)
    if raw.startswith(_STARTS[0]):
        return None if b'"why":' in raw else Seam(rx, rx, 0, raw)  # with a reason: only its settings changed
    if raw.startswith(_STARTS[1]):
        return Seam(rx, rx, 0, raw)
    if raw.startswith(_STARTS[2]):
        if b'"count":' not in raw:
            return None  # notes of ours, no byte of the target's
        since = _number(raw, b'"since_rx":') if b'"since_rx":' in raw else rx
        return Seam(rx, min(since, rx), _number(raw, b'"count":') if b'"offset":' in raw else 0, raw)
    lost = _number(raw, b'"lost":')
    return Seam(rx, rx, lost, raw) if lost else None


def _number(raw: bytes, name: bytes) -> int:
    at = raw.rfind(name)
    if at < 0:
        return 0
    at += len(name)
    end = at
    while end < len(raw) and 48 <= raw[end] <= 57:
        end += 1
    return int(raw[at:end] or 0)
