"""A picture with its facts, and parts of pictures. Runs in the capture process and in the OCR, knows no camera."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from labd.errors import Usage

#: Rows of pixels of blue, green and red (uint8, H x W x 3).
Picture = NDArray[np.uint8]
#: Rows of grey levels (uint8, H x W).
Grey = NDArray[np.uint8]

_HASH = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Frame:
    """What was seen at one moment. `hash` names the content: it stays while nothing changes but noise and a cursor.

    `signal` is `ok`, `none` (no signal: the picture is the device's own) or `stale` (of before a reset), with `why`.
    `wall_ns` and `mono_ns` say when it was taken: as the camera stamped it, else when it had come in. Nothing of it had
    come in before `floor_ns`.
    """

    n: int
    wall_ns: int
    mono_ns: int
    floor_ns: int
    picture: Picture
    hash: str
    signal: str
    why: str

    def facts(self) -> dict[str, Any]:
        """All but the picture, as plain data."""
        height, width = self.picture.shape[:2]
        return {"n": self.n, "wall_ns": self.wall_ns, "mono_ns": self.mono_ns, "hash": self.hash, "width": width,
                "height": height, "signal": self.signal, "why": self.why}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Region:
    """A part of the picture, pixels: its left edge, top edge, width and height."""

    x: int
    y: int
    width: int
    height: int

    @classmethod
    def parse(cls, text: str) -> Region:
        """From `X,Y,W,H`. Raises Usage."""
        words = text.split(",")
        if len(words) != 4 or not all(word.strip().isdigit() for word in words):
            raise Usage(f"a region is X,Y,WIDTH,HEIGHT in pixels, not {text!r}", hint="--region 0,0,640,100")
        x, y, width, height = (int(word) for word in words)
        if not width or not height:
            raise Usage(f"the region {text} is empty", hint="--region 0,0,640,100")
        return cls(x, y, width, height)

    def of(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """That part of a picture. Raises Usage where it reaches beyond the edges."""
        height, width = picture.shape[:2]
        if self.x + self.width > width or self.y + self.height > height:
            raise Usage(
                f"the region {self.x},{self.y},{self.width},{self.height} reaches beyond the picture, "
                f"which is {width}x{height}"
            )
        return picture[self.y : self.y + self.height, self.x : self.x + self.width]


def hash_of(picture: Picture) -> str:
    """16 hex digits that name these very pixels."""
    shape = "x".join(str(size) for size in picture.shape)
    return hashlib.blake2b(np.ascontiguousarray(picture).data, digest_size=8, key=shape.encode()).hexdigest()


def check_hash(text: str) -> str:
    """`text` as a hash of ours. Raises Usage."""
    if not _HASH.fullmatch(text.lower()):
        raise Usage(f"{text!r} is no hash of a picture: those have 16 hex digits", hint="labd video shot --help")
    return text.lower()


def grey(picture: Picture) -> Grey:
    """Its grey levels."""
    return cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY).astype(np.uint8, copy=False)


def png(picture: Picture) -> bytes:
    """As a PNG file: quick rather than small. Without any colour it has but grey levels: a third of the work."""
    blue, green, red = cv2.split(picture)
    if np.array_equal(green, blue) and np.array_equal(green, red):
        picture = np.asarray(green, np.uint8)
    quick = [cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE, cv2.IMWRITE_PNG_COMPRESSION, 1]
    return _encoded(".png", picture, quick)


def jpeg(picture: Picture, quality: int = 80) -> bytes:
    """As a JPEG file."""
    return _encoded(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])


def _encoded(kind: str, picture: Picture, how: list[int]) -> bytes:
    done, data = cv2.imencode(kind, picture, how)
    if not done:
        raise ValueError(f"a picture of {picture.shape} can't be encoded as {kind}")
    return data.tobytes()
