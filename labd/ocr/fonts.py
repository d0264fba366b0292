"""A console font as the reader uses it: one small picture a character, all of one size.

Fonts come from files of this machine (`psf.py`, `firmware.py`) or are learned from a known screen (`learn.py`); none is
shipped, as the well-known ones have licences of their own. Here: the form, the names of CP437's characters, and storing
a font as one `.npz` file.
"""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labd.errors import LabdError

Array = npt.NDArray[Any]

#: What the codes 0 to 31 of CP437 look like; the codec knows them as controls.
_LOW = " ☺☻♥♦♣♠•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼"

#: The 256 characters of the PC's own character set, by code.
CP437 = tuple(_LOW) + tuple(bytes(range(32, 127)).decode()) + ("⌂",) + tuple(bytes(range(128, 256)).decode("cp437"))


@dataclass(frozen=True, eq=False)
class Font:
    """`glyphs[i]` (height × width, 0 background to 1 ink) shows `chars[i]`. `source` says where it came from.

    `exact` fonts have only 0 and 1: they can be compared bit by bit with a screen in its native pixels.
    A font is equal to itself alone, so that what is made of it can be kept by it (`same_pictures` compares).
    """

    name: str
    glyphs: Array
    chars: tuple[str, ...]
    source: str

    @property
    def width(self) -> int:
        """Pixels of a cell."""
        return int(self.glyphs.shape[2])

    @property
    def height(self) -> int:
        """Pixels of a cell."""
        return int(self.glyphs.shape[1])

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of a cell in pixels."""
        return self.height, self.width

    @property
    def exact(self) -> bool:
        """Whether every pixel is either ink or background."""
        return bool(np.all((self.glyphs == 0) | (self.glyphs == 1)))

    def same_pictures(self, other: Font) -> bool:
        """Whether both draw the same characters alike."""
        return (
            self.chars == other.chars
            and self.glyphs.shape == other.glyphs.shape
            and bool(np.array_equal(self.glyphs, other.glyphs))
        )


def from_bits(name: str, rows: bytes, width: int, height: int, chars: tuple[str, ...], source: str) -> Font:
    """A font from packed bitmaps: `height` rows of whole bytes a glyph, the leftmost pixel in the highest bit.

    Raises ValueError when there are fewer than `len(chars)` glyphs.
    """
    size = (width + 7) // 8 * height
    table = np.frombuffer(rows, np.uint8)[: len(chars) * size]
    if table.size < len(chars) * size:
        raise ValueError("the font ends early")
    bits = np.unpackbits(table.reshape(len(chars), height, -1), axis=2)[:, :, :width]
    return Font(name, bits.astype(np.float32), chars, source)


def save(font: Font, path: str) -> None:
    """Store a font as `path` (.npz), whole or not at all. Raises LabdError when it can't be written."""
    told = json.dumps({"name": font.name, "chars": font.chars, "source": font.source})
    buffer = io.BytesIO()
    np.savez_compressed(buffer, glyphs=np.round(font.glyphs * 255).astype(np.uint8), told=np.array(told))
    beside = f"{path}.{os.getpid()}.new"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(beside, "wb") as file:
            file.write(buffer.getvalue())
        os.replace(beside, path)
    except OSError as error:
        if os.path.exists(beside):
            os.unlink(beside)
        raise LabdError(f"the font can't be stored: {path}: {error.strerror}") from None


def load(path: str) -> Font:
    """A stored font. Raises ValueError for what is none, OSError when it can't be read."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            told = json.loads(str(stored["told"]))
            glyphs = stored["glyphs"].astype(np.float32) / 255
    except OSError:
        raise
    except Exception as error:  # numpy and zipfile have many words for a broken file
        raise ValueError(f"{path} is no font that labd stored: {error}") from None
    chars = tuple(told["chars"])
    if glyphs.ndim != 3 or len(chars) != len(glyphs):
        raise ValueError(f"{path} is no font that labd stored")
    return Font(told["name"], glyphs, chars, told["source"])
