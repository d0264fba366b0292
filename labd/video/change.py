"""Has the content of a picture changed? Sees one typed word in a noisy MJPEG picture, ignores noise and a cursor.

Both pictures are blurred by a pixel, which takes most of the noise away and leaves strokes; the mean difference of
each block of 8 x 8 is then far above what noise makes of it. What noise does is learned for each block while the
content is still. A change that is not larger than a character cell may be a blinking cursor: if it goes away again it
was one, and is known from then on by both its looks; if it stays, or has a third look, it is a change. Pure, but for
its memory.
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
#: Mean difference, grey levels, up to which a place has a look that is known.
LOOK_LIKE = 5.5
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
        self._noise: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self._hold(_blurred(first))

    def _hold(self, blurred: Grey) -> None:
        self._reference = blurred
        self._averaged = 1
        self._looks: list[tuple[Box, Grey]] = []
        self._small: tuple[float, Box, Grey] | None = None
        height, width = blurred.shape
        blocks = (max(1, height // BLOCK), max(1, width // BLOCK))
        if self._noise.shape != blocks:
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
        over = self._over(means, blurred)
        if not over.any():
            self._still(blurred, means)
            return False
        box = _tight(difference, _box_of(over))
        if self._may_be_cursor(box) and not self._stayed(box, blurred, at_s):
            return False
        self._unlearn(over)
        self._hold(blurred)
        return True

    def _over(self, means: NDArray[np.float32], blurred: Grey) -> NDArray[np.bool_]:
        """Which blocks differ by more than noise and known cursors make."""
        over = means > FLOOR + NOISE_TIMES * self._noise
        if not over.any():
            return over
        for (x, y, width, height), look in self._looks:
            if float(cv2.absdiff(blurred[y : y + height, x : x + width], look).mean()) <= LOOK_LIKE:
                over[y // BLOCK : (y + height) // BLOCK, x // BLOCK : (x + width) // BLOCK] = False
        return over

    def _unlearn(self, over: NDArray[np.bool_]) -> None:
        """Where there is something else now, noise is another one too: as much as the noisiest places had."""
        self._noise[over] = max(NOISE_FIRST, float(np.percentile(self._noise, 99)))

    def _may_be_cursor(self, box: Box) -> bool:
        width, height = self._cursor
        return box[2] <= width and box[3] <= height

    def _stayed(self, box: Box, blurred: Grey, at_s: float) -> bool:
        """Whether a small change is no cursor's: it is there for so long, or has a third look (a digit that counts)."""
        if self._small is None:
            self._small = (at_s, box, blurred)
            return False
        since, _, look = self._small
        return at_s - since >= CURSOR_S or _far(box, blurred, look) > FLOOR + NOISE_TIMES * NOISE_FIRST

    def _still(self, blurred: Grey, means: NDArray[np.float32]) -> None:
        """Nothing differs: learn the noise, better the reference, and know the cursor that has just gone."""
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


def _far(box: Box, one: Grey, other: Grey) -> float:
    """The mean difference of two pictures in a box."""
    x, y, width, height = box
    return float(cv2.absdiff(one[y : y + height, x : x + width], other[y : y + height, x : x + width]).mean())


def _blurred(picture: Grey) -> Grey:
    return cv2.blur(picture, (3, 3)).astype(np.uint8, copy=False)


def _block_means(difference: Grey) -> NDArray[np.float32]:
    height, width = difference.shape
    size = (max(1, width // BLOCK), max(1, height // BLOCK))
    return cv2.resize(difference, size, interpolation=cv2.INTER_AREA).astype(np.float32)


def _box_of(over: NDArray[np.bool_]) -> Box:
    """What encloses these blocks, in pixels."""
    rows, columns = np.flatnonzero(over.any(axis=1)), np.flatnonzero(over.any(axis=0))
    x, y = int(columns[0]) * BLOCK, int(rows[0]) * BLOCK
    return x, y, int(columns[-1] + 1) * BLOCK - x, int(rows[-1] + 1) * BLOCK - y


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
