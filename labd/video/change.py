"""Has the content of a picture changed? Sees one typed word in a noisy MJPEG picture, ignores noise and a cursor.

Both pictures are blurred by a pixel, which takes most of the noise away and leaves strokes; the mean difference of
each block of 8 x 8 is then far above what noise makes of it. What noise does is learned for each block while the
content is still. A change that is not larger than a character cell may be a blinking cursor: if it goes away again it
was one, and is known from then on by both its looks; if it stays it is a change. Pure, but for its memory.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from labd.video.frame import Grey

#: Pixels of a block's side.
BLOCK = 8
#: Mean difference of a block, grey levels, that is a change without any noise; noise is added NOISE_TIMES.
FLOOR = 3.0
NOISE_TIMES = 2.5
#: What noise is taken to be before it was measured, grey levels: that of a bad camera.
NOISE_FIRST = 2.0
#: How quickly the measured noise follows.
NOISE_RATE = 0.2
#: A cursor is at most this many times a cell of 80 x 25 characters, and two pixels.
CELL_TIMES = 1.15
COLUMNS, ROWS = 80, 25
#: A small change that has stayed this long is no cursor (they blink every 0.2 to 0.6 s), seconds.
CURSOR_S = 1.2
#: So many looks of cursors are remembered.
LOOKS_MOST = 8
#: The reference is the mean of this many frames: that halves its noise, and a creeping change is still seen.
MEAN_OF = 4

Box = tuple[int, int, int, int]


class Detector:
    """Compares pictures with the content that it holds. Owned by one thread."""

    def __init__(self, first: Grey) -> None:
        self._noise: NDArray[np.float32] | None = None
        self._hold(_blurred(first))

    def _hold(self, blurred: Grey) -> None:
        self._reference = blurred
        self._averaged = 1
        self._looks: list[tuple[Box, Grey]] = []
        self._small: tuple[float, Box, Grey] | None = None
        height, width = blurred.shape
        blocks = (max(1, height // BLOCK), max(1, width // BLOCK))
        if self._noise is None or self._noise.shape != blocks:
            self._noise = np.full(blocks, NOISE_FIRST, np.float32)
        self._cursor: tuple[float, float] = (width / COLUMNS * CELL_TIMES + 2, height / ROWS * CELL_TIMES + 2)

    @property
    def doubtful(self) -> bool:
        """Whether a small change is there of which it is not known yet whether it is a cursor."""
        return self._small is not None

    def changed(self, picture: Grey, at_s: float) -> bool:
        """Whether the content differs from what is held; then it is held instead. `at_s` is the picture's time."""
        blurred = _blurred(picture)
        if blurred.shape != self._reference.shape:
            self._hold(blurred)
            return True
        difference = cv2.absdiff(blurred, self._reference).astype(np.uint8, copy=False)
        means = _block_means(difference)
        where = self._places(means, blurred)
        if where is None:
            self._still(blurred, means)
            return False
        box = _tight(difference, where)
        if self._may_be_cursor(box) and not self._stayed(box, blurred, at_s):
            return False
        self._hold(blurred)
        return True

    def _places(self, means: NDArray[np.float32], blurred: Grey) -> Box | None:
        """The box, in pixels, of the blocks that differ by more than noise and known cursors make; None for none."""
        assert self._noise is not None
        over = means > FLOOR + NOISE_TIMES * self._noise
        if not over.any():
            return None
        for (x, y, width, height), look in self._looks:
            now = blurred[y : y + height, x : x + width]
            if float(cv2.absdiff(now, look).mean()) <= FLOOR + NOISE_TIMES * NOISE_FIRST / 2:
                over[y // BLOCK : (y + height) // BLOCK, x // BLOCK : (x + width) // BLOCK] = False
        rows, columns = np.flatnonzero(over.any(axis=1)), np.flatnonzero(over.any(axis=0))
        if not rows.size:
            return None
        x, y = int(columns[0]) * BLOCK, int(rows[0]) * BLOCK
        return x, y, int(columns[-1] + 1) * BLOCK - x, int(rows[-1] + 1) * BLOCK - y

    def _may_be_cursor(self, box: Box) -> bool:
        width, height = self._cursor
        return box[2] <= width and box[3] <= height

    def _stayed(self, box: Box, blurred: Grey, at_s: float) -> bool:
        """Whether a small change is there for so long that it is no cursor's."""
        if self._small is None:
            self._small = (at_s, box, blurred)
            return False
        return at_s - self._small[0] >= CURSOR_S

    def _still(self, blurred: Grey, means: NDArray[np.float32]) -> None:
        """Nothing differs: learn the noise, better the reference, and know the cursor that has just gone."""
        assert self._noise is not None
        if self._small is not None:
            _, box, look = self._small
            self._remember(box, look)
            self._small = None
        self._noise += (np.minimum(means, 4 * NOISE_FIRST) - self._noise) * NOISE_RATE
        if self._averaged < MEAN_OF and not self._looks:
            self._averaged += 1
            share = 1 / self._averaged
            mixed = cv2.addWeighted(blurred, share, self._reference, 1 - share, 0)
            self._reference = mixed.astype(np.uint8, copy=False)

    def _remember(self, box: Box, blurred: Grey) -> None:
        """A cursor's other look, in whole blocks."""
        x, y = box[0] // BLOCK * BLOCK, box[1] // BLOCK * BLOCK
        right = min(-(-(box[0] + box[2]) // BLOCK) * BLOCK, blurred.shape[1])
        bottom = min(-(-(box[1] + box[3]) // BLOCK) * BLOCK, blurred.shape[0])
        look = blurred[y:bottom, x:right].copy()
        self._looks = [*self._looks[-LOOKS_MOST + 1 :], ((x, y, right - x, bottom - y), look)]


def differ(one: Grey, other: Grey) -> bool:
    """Whether the contents of two pictures differ: as Detector, without knowing their noise or waiting for a cursor.

    A difference that is no larger than a cursor is none.
    """
    return one.shape != other.shape or Detector(one).changed(other, 0.0)


def _blurred(picture: Grey) -> Grey:
    return cv2.blur(picture, (3, 3)).astype(np.uint8, copy=False)


def _block_means(difference: Grey) -> NDArray[np.float32]:
    height, width = difference.shape
    size = (max(1, width // BLOCK), max(1, height // BLOCK))
    return cv2.resize(difference, size, interpolation=cv2.INTER_AREA).astype(np.float32)


def _tight(difference: Grey, box: Box) -> Box:
    """The box of the pixels in `box` that differ by a good part of the most."""
    x, y, width, height = box
    part = difference[y : y + height, x : x + width]
    strong = part > max(8.0, float(part.max()) / 4)
    rows, columns = np.flatnonzero(strong.any(axis=1)), np.flatnonzero(strong.any(axis=0))
    if not rows.size:
        return box
    left, top = int(columns[0]), int(rows[0])
    return x + left, y + top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top
