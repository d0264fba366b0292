"""Is what a capture device delivers the target's picture? Judged by the picture alone. Pure.

Devices deliver frames also without a signal: one plain colour, colour bars, a page of their own. A screen with one
prompt on it is a picture; only what has nothing on it at all, or nothing but vertical bars, is none.
"""

from __future__ import annotations

import cv2
import numpy as np

from labd.video.frame import Picture, hash_of

#: Grey levels by which pixels differ at least where there is anything, above noise.
ANYTHING = 12
#: The picture is looked at in this size: noise is averaged out, strokes are not.
LOOK = (320, 180)

#: What QEMU shows while no firmware has set up the display ("Guest has not initialized the display (yet)."): its hash.
PLACEHOLDERS = frozenset({"59609ebfc5cec4f0"})
PLACEHOLDER_SHAPE = (480, 640, 3)


def missing(picture: Picture) -> str:
    """Why this is no picture of a screen; empty when it is one."""
    if picture.shape == PLACEHOLDER_SHAPE and hash_of(picture) in PLACEHOLDERS:
        return "no firmware has set up the board's display yet"
    small = cv2.resize(picture, LOOK, interpolation=cv2.INTER_AREA) if picture.shape[1] > LOOK[0] else picture
    spread = small.max(axis=(0, 1)).astype(int) - small.min(axis=(0, 1)).astype(int)
    if int(spread.max()) < ANYTHING:
        blue, green, red = (int(value) for value in np.median(small.reshape(-1, 3), axis=0))
        return f"the picture is one plain colour, #{red:02x}{green:02x}{blue:02x}"
    upper = small[: small.shape[0] * 3 // 5].astype(np.int16)
    if int(np.abs(upper - np.median(upper, axis=0)).max()) < ANYTHING and _bars(upper) >= 5:
        return "the picture is a test pattern of colour bars"
    return ""


def _bars(upper: np.ndarray[tuple[int, ...], np.dtype[np.int16]]) -> int:
    """How many vertical bars there are: steps along a row, and one."""
    row = np.median(upper, axis=0)
    step = np.abs(np.diff(row, axis=0)).max(axis=1) > ANYTHING
    return int(np.count_nonzero(step[1:] & ~step[:-1])) + 1
