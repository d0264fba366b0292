"""Reading the fonts of PC firmware out of the firmware images that are installed here, as emulators need them.

Nothing is copied or shipped: the tables are found in the user's own files by the shape of a letter.

- A VGA BIOS (SeaBIOS's vgabios*.bin) has the PC's 8x16 font, drawn in cells of 9x16 in text mode.
- U-Boot (u-boot.rom for x86) has the 8x16 font that the Linux kernel's framebuffer console uses too.
- EDK2 (OVMF.fd) has the 8x19 font of UEFI's shell and menus, in a volume packed with LZMA.
"""

from __future__ import annotations

import lzma
import re

import numpy as np

from labd.ocr.fonts import CP437, Font, from_bits

#: A firmware image larger than this is not looked at.
MAX_BYTES = 64 << 20

#: The letter A as every 8x16 font of PCs draws it: how a table is found.
_LETTER_A = bytes.fromhex("000010386cc6c6fec6c6c6c600000000")

#: How an option ROM, such as a VGA BIOS, begins.
_OPTION_ROM = b"\x55\xaa"

#: The GUID of an EFI section that is packed with LZMA, as it is written in a volume.
_LZMA_SECTION = bytes.fromhex("98584eee143959429d6edc7bd79403cf")

#: Glyphs of EDK2's tables in a row, each a character (two bytes), its attributes, 19 rows: that of the letters, and
#: that of the arrows in its menus.
_NARROW = (
    re.compile(rb"\x21\x00\x00.{19}\x22\x00\x00.{19}\x23\x00\x00", re.DOTALL),
    re.compile(rb"\x91\x21\x00.{19}\x93\x21\x00", re.DOTALL),
)

#: The codes whose ninth column a VGA repeats from the eighth: lines must join.
_JOINED = range(0xC0, 0xE0)


def read_firmware(path: str) -> list[Font]:
    """The fonts in a firmware image; none where nothing is found. Raises OSError when it can't be read."""
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES)
    found = _pc_fonts(data, path)
    return found or _efi_fonts(data, path)


def _pc_fonts(data: bytes, path: str) -> list[Font]:
    at = data.find(_LETTER_A) - ord("A") * 16
    if at < 0 or len(data) < at + 4096 or any(data[at : at + 16]):
        return []
    table = data[at : at + 4096]
    if data[:2] != _OPTION_ROM:
        return [from_bits("kernel-8x16", table, 8, 16, CP437, path)]
    eight = from_bits("vga-8x16", table, 8, 16, CP437, path)
    return [eight, _nine_wide(eight)]


def _nine_wide(eight: Font) -> Font:
    """The same font in the cells of the PC's text mode, 720x400."""
    nine = np.zeros((256, 16, 9), np.float32)
    nine[:, :, :8] = eight.glyphs
    nine[_JOINED.start : _JOINED.stop, :, 8] = eight.glyphs[_JOINED.start : _JOINED.stop, :, 7]
    return Font("vga-9x16", nine, CP437, eight.source)


def _efi_fonts(data: bytes, path: str) -> list[Font]:
    for section in re.finditer(re.escape(_LZMA_SECTION), data):
        offset = int.from_bytes(data[section.end() : section.end() + 2], "little")
        packed = data[section.start() - 4 + offset :]
        try:
            volume = lzma.LZMADecompressor(format=lzma.FORMAT_ALONE).decompress(packed, MAX_BYTES)
        except lzma.LZMAError:
            continue  # the GUID in other words, such as a list of what can be unpacked
        glyphs: dict[str, bytes] = {}
        for table in filter(None, (pattern.search(volume) for pattern in _NARROW)):
            glyphs |= _narrow_glyphs(volume, table.start())
        if "A" in glyphs:
            return [from_bits("efi-8x19", b"".join(glyphs.values()), 8, 19, tuple(glyphs), path)]
    return []


def _narrow_glyphs(volume: bytes, at: int) -> dict[str, bytes]:
    """The rows of one of EDK2's tables by character: records of 22 bytes, ended by one without a character."""
    glyphs: dict[str, bytes] = {}
    while at + 22 <= len(volume):
        code = int.from_bytes(volume[at : at + 2], "little")
        if not 0x20 < code < 0x3000 or volume[at + 2]:
            break
        glyphs.setdefault(chr(code), volume[at + 3 : at + 22])
        at += 22
    return glyphs
