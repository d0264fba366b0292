"""Is what a capture device delivers the target's picture? Judged by the picture alone. Pure.

Devices deliver frames also without a signal: one plain colour, colour bars, a page of their own. A screen with one
prompt on it is a picture; only what has nothing on it at all, or nothing but vertical bars, is none.
"""

from __future__ import annotations

import cv2
import numpy as np

from labd.video.frame import Picture, grey, hash_of

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
    levels = grey(picture)
    small = cv2.resize(levels, LOOK, interpolation=cv2.INTER_AREA) if levels.shape[1] > LOOK[0] else levels
    least, most = cv2.minMaxLoc(small)[:2]
    if most - least < ANYTHING:
        blue, green, red = (int(value) for value in np.median(picture[::16, ::16].reshape(-1, 3), axis=0))
        return f"the picture is one plain colour, #{red:02x}{green:02x}{blue:02x}"
    upper = small[: small.shape[0] * 3 // 5].astype(np.int16)
    middle = upper[len(upper) // 2]
    if int(np.abs(upper - middle).max()) < ANYTHING and _bars(middle) >= 5:
        return "the picture is a test pattern of colour bars"
    return ""


def _bars(row: np.ndarray[tuple[int, ...], np.dtype[np.int16]]) -> int:
    """How many vertical bars there are: steps along a row, and one."""
    step = np.abs(np.diff(row)) > ANYTHING
    return int(np.count_nonzero(step[1:] & ~step[:-1])) + 1
