"""Reading the Linux console's fonts: PSF versions 1 and 2 with their Unicode tables, plain or gzipped.

The format: `man psfgettable`, and the kbd project's `psf.h`.
"""

from __future__ import annotations

import gzip
import io
import os
import struct
import zlib

from labd.ocr.fonts import CP437, Font, from_bits

#: A font file larger than this is none (the largest of console-setup, unpacked, has 80 KB).
MAX_BYTES = 4 << 20

_PSF1, _PSF2 = b"\x36\x04", b"\x72\xb5\x4a\x86"


def read_psf(path: str) -> Font:
    """The font in a `.psf` or `.psf.gz` file. Raises ValueError for what is no such font, OSError from reading."""
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES)
    if data[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(MAX_BYTES)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is a broken gzip file: {error}") from None
    name = os.path.basename(path).split(".")[0]
    return parse(data, name, path)


def parse(data: bytes, name: str, source: str) -> Font:
    """The font in the bytes of an unpacked PSF file. Raises ValueError."""
    try:
        if data[:2] == _PSF1:
            return _psf1(data, name, source)
        if data[:4] == _PSF2:
            return _psf2(data, name, source)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"{source} is a broken PSF font: {error}") from None
    raise ValueError(f"{source} is no PSF font")


def _psf1(data: bytes, name: str, source: str) -> Font:
    mode, height = data[2], data[3]
    count = 512 if mode & 1 else 256
    end = 4 + count * height
    shown: list[list[str]] = []
    if mode & 6:
        units = struct.unpack(f"<{(len(data) - end) // 2}H", data[end : end + (len(data) - end) // 2 * 2])
        shown = _split(units, stop=0xFFFF, sequence=0xFFFE)
    return _font(data[4:end], 8, height, count, shown, name, source)


def _psf2(data: bytes, name: str, source: str) -> Font:
    _, start, flags, count, size, height, width = struct.unpack_from("<IIIIIII", data, 4)
    if not (0 < width <= 64 and 0 < height <= 128 and 0 < count <= 4096 and size == (width + 7) // 8 * height):
        raise ValueError(f"{source} is a broken PSF font: {count} glyphs of {width}x{height} in {size} bytes each")
    end = start + count * size
    shown = []
    if flags & 1:
        for entry in data[end:].split(b"\xff")[:count]:
            shown.append(list(entry.split(b"\xfe")[0].decode()))
    return _font(data[start:end], width, height, count, shown, name, source)


def _split(units: tuple[int, ...], stop: int, sequence: int) -> list[list[str]]:
    """Version 1's Unicode table: each glyph's characters up to `stop`; sequences behind `sequence` are skipped."""
    found: list[list[str]] = []
    now: list[str] = []
    skipping = False
    for unit in units:
        if unit == stop:
            found.append(now)
            now, skipping = [], False
        elif unit == sequence:
            skipping = True
        elif not skipping:
            now.append(chr(unit))
    return found


def _font(rows: bytes, width: int, height: int, count: int, shown: list[list[str]], name: str, source: str) -> Font:
    """One character a glyph: the first of its table, ASCII first of all; CP437's where there is no table."""
    if height < 4:
        raise ValueError(f"{source} is a broken PSF font: glyphs {height} pixels high")
    chars = [CP437[i] if i < 256 else "\ufffd" for i in range(count)]
    for i, spoken in enumerate(shown[:count]):
        chars[i] = min(spoken, key=lambda c: c > "\x7f") if spoken else "\ufffd"
    return from_bits(name, rows, width, height, tuple(chars), source)
