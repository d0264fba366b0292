"""Where the last boot of a target begins in its journal: `serial log --since-boot`. Imported only for that.

Two kinds of evidence, and the newest boot that either shows is taken:

- events: `reset`, a `dut` event with state `started` or `reset`, any that says `on` or `cycle` (`power`, `dut`);
- banners at the beginning of a line (a kernel's time stamp may stand before them), listed in `BANNERS` with the stage
  that prints them. Stages of one boot follow each other in rising order (SPL, then U-Boot, then Linux); a stage that
  is not later than the one before begins a boot of its own.

A banner that somebody asked for is no boot: `version` in U-Boot, `dmesg`, `cat /proc/version` print the same words;
so a banner whose line before is such a command does not count, nor a bare `Linux version` without a time stamp.
"""

from __future__ import annotations

from labd.journal_read import Event, Reader
from labd.view import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: (stage, text). Lower stages come earlier in a boot.
BANNERS: tuple[tuple[int, bytes], ...] = (
    (0, b"RomBOOT"),
    (0, b"ESP-ROM:"),
    (0, b"ets Jun "),
    (0, b"ets Jul "),
    (0, b"DDR Version "),
    (0, b"RPi: BOOTLOADER"),
    (0, b"RPi: BOOTSYS"),
    (0, b"coreboot-"),
    (0, b"SeaBIOS (version"),
    (0, b"UEFI firmware (version"),
    (0, b"NOTICE:  BL1:"),
    (0, b"U-Boot TPL "),
    (1, b"U-Boot SPL "),
    (2, b"NOTICE:  BL2:"),
    (3, b"NOTICE:  BL31:"),
    (3, b"OpenSBI v"),
    (4, b"U-Boot 20"),
    (4, b"barebox 20"),
    (5, b"*** Booting Zephyr OS"),
    (5, b"Starting kernel ..."),
    (6, b"Booting Linux on physical CPU"),
    (7, b"Linux version "),
)
#: How late the news of a simulated board's boot may be: behind so many bytes, and by so long.
LATE_BYTES, LATE_NS = 1 << 14, 3 * 10**9

_NEEDS_TIME = (b"Booting Linux on physical CPU", b"Linux version ")
_ASKED = ("version", "dmesg", "cat ", "grep ", "journalctl")
_BLOCK = 1 << 18
_LONGEST = max(len(text) for _, text in BANNERS)
_LEAD = 256


class Boot:
    """The beginning of a boot: the rx offset, the line there, and the evidence in words."""

    __slots__ = ("offset", "seq", "why")

    def __init__(self, offset: int, seq: int, why: str) -> None:
        self.offset = offset
        self.seq = seq
        self.why = why


def last_boot(reader: Reader) -> Boot | None:
    """The newest boot that is kept; None if nothing looks like one."""
    event = _last_event(reader)
    floor = max(reader.first_offset, event.rx if event else 0)
    found = _last_chain(reader, floor)
    if found is not None and (event is None or found[1]):
        return _by_banner(reader, found[0])
    if event is None or event.rx < reader.first_offset:
        return None
    overtaken = _overtaken(reader, event) if event.kind == "dut" else None
    if overtaken is not None:
        return _by_banner(reader, overtaken)
    return Boot(event.rx, reader.seq_at(event.rx), " ".join([event.kind, *filter(None, [_state(event)])]))


def _by_banner(reader: Reader, offset: int) -> Boot:
    banner = plain(reader.bytes(offset, offset + 200).split(b"\n")[0], partial=True)
    return Boot(offset, reader.seq_at(offset), f"its banner: {banner[:60].rstrip()}")


def _last_event(reader: Reader) -> Event | None:
    """The newest event that says that a boot began."""
    for event in reader.events_backwards(("reset", "dut", "power")):
        state = _state(event)
        if event.kind == "reset" or (event.kind == "dut" and state in ("started", "reset")) or state in ("on", "cycle"):
            return event
    return None


def _state(event: Event) -> str | None:
    return event.fields.get("state") or event.fields.get("action")


def _overtaken(reader: Reader, event: Event) -> int | None:
    """Where the boot really began that a simulated board's event tells of: its first words can be faster than the news
    of it, which takes another way."""
    found = _last_chain(reader, max(reader.first_offset, event.rx - LATE_BYTES))
    if found is None or found[0] >= event.rx:
        return None
    first = reader.record_at(found[0])
    return found[0] if first is not None and first.wall_ns >= event.wall_ns - LATE_NS else None


def _last_chain(reader: Reader, floor: int) -> tuple[int, bool] | None:
    """(offset, whether another boot's banner lies before it) of the newest boot's first banner."""
    chain: tuple[int, int] | None = None
    for offset, stage in _banners_backwards(reader, floor):
        if chain is None or stage < chain[1] or _asked_for(reader, chain[0]):
            chain = (offset, stage)
        else:
            return (chain[0], True)
    if chain is None or _asked_for(reader, chain[0]):
        return None
    return (chain[0], False)


def _banners_backwards(reader: Reader, floor: int) -> Iterator[tuple[int, int]]:
    """(offset of its line, stage) of every banner at or behind `floor`, newest first."""
    end = reader.end_offset
    while end > floor:
        start = max(floor, end - _BLOCK)
        block = reader.bytes(start, min(end + _LONGEST, reader.end_offset))
        found = []
        for stage, text in BANNERS:
            at = block.find(text)
            while 0 <= at < end - start:
                found.append((start + at, stage, text))
                at = block.find(text, at + 1)
        for at, stage, text in sorted(found, reverse=True):
            line = _line_begin(reader, at, text)
            if line is not None:
                yield line, stage
        end = start


def _line_begin(reader: Reader, offset: int, text: bytes) -> int | None:
    """Where the banner's line begins, if nothing but a time stamp is before the banner in it."""
    start = max(reader.first_offset, offset - _LEAD)
    before = reader.bytes(start, offset)
    begin = before.rfind(b"\n") + 1
    if not begin and start > reader.first_offset:
        return None
    lead = plain(before[begin:]).strip()
    stamped = lead.startswith("[") and lead.endswith("]") and any(c.isdigit() for c in lead)
    if lead and not stamped:
        return None
    if text in _NEEDS_TIME and not stamped:
        return None
    return start + begin


def _asked_for(reader: Reader, offset: int) -> bool:
    """Whether the line before is a command that prints such words."""
    start = max(reader.first_offset, offset - _LEAD)
    before = reader.bytes(start, max(start, offset - 1))
    command = plain(before[before.rfind(b"\n") + 1 :])
    return any(word in command for word in _ASKED)
