"""What a reader says of every cell of a grid, and making lines of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labd.ocr.fonts import Array
from labd.ocr.page import Grid, Line

#: Stands for a cell that shows something which is no character of the font.
UNKNOWN = "\ufffd"

#: Character columns and rows of text modes and framebuffer consoles: where a grid most likely begins and ends.
COLUMNS = (80, 90, 100, 106, 128, 132, 160, 170, 180, 200, 210, 213, 240, 320, 480)
ROWS = (25, 28, 30, 31, 33, 37, 40, 42, 43, 45, 48, 50, 53, 56, 60, 64, 65, 67, 75, 90, 135)


@dataclass(frozen=True)
class Cells:
    """Three arrays of rows × columns: the characters, how well each fits (0 to 1), and which cells show anything."""

    chars: Array
    score: Array
    ink: Array
    pictures: int = 0
    """How many cells showed something that stands in no text, and count as blank."""

    @property
    def inked(self) -> int:
        """How many cells show anything."""
        return int(self.ink.sum())

    @property
    def mean(self) -> float:
        """How well the cells that show anything fit, on average."""
        return float(self.score[self.ink].mean()) if self.ink.any() else 0.0

    @property
    def low(self) -> float:
        """The score that 95 % of the cells reach: a wrong font shows here, hardly in the mean."""
        return float(np.percentile(self.score[self.ink], 5)) if self.ink.any() else 0.0


def without_pictures(cells: Cells) -> Cells:
    """The same with what is no character and stands beside none blanked: logos, frames, progress bars.

    A cell that is no character beside a letter or digit stays UNKNOWN: text of which one character can't be read.
    """
    strange = cells.ink & (cells.chars == UNKNOWN)
    if not strange.any():
        return cells
    letters = np.pad(cells.ink & np.char.isalnum(cells.chars), ((0, 0), (2, 2)))
    in_text = letters[:, 1:-3] | letters[:, 3:-1] | (letters[:, :-4] & letters[:, 4:])
    picture = strange & ~in_text
    chars, score = cells.chars.copy(), cells.score.copy()
    chars[picture], score[picture] = " ", 1.0
    return Cells(chars, score, cells.ink & ~picture, int(picture.sum()))


def lines_of(cells: Cells, grid: Grid) -> list[Line]:
    """The rows that show anything, as lines without their blank end."""
    found = []
    for row in np.flatnonzero(cells.ink.any(axis=1)):
        text = "".join(cells.chars[row]).rstrip()
        inked = np.flatnonzero(cells.ink[row])
        if not text:
            continue  # a cursor in an empty line
        box = grid.box(int(row), int(inked[0]), int(inked[-1]))
        found.append(Line(text, float(cells.score[row][inked].mean()), box, int(row)))
    return found


def trim(cells: Cells, grid: Grid, size: tuple[int, int]) -> tuple[Cells, Grid]:
    """Cut a grid that covers the whole picture (`size`: width, height) down to the text screen in it.

    The black bars of a pillarbox look like blank cells, and would put spaces before every line. A screen is in the
    middle of the picture: of the usual numbers of columns and rows, the fewest that hold all that was found are taken.
    """
    if not cells.ink.any():
        return cells, grid
    left, right = _span(np.asarray(cells.ink.any(axis=0)), grid.x, grid.cell_width, size[0], COLUMNS)
    top, bottom = _span(np.asarray(cells.ink.any(axis=1)), grid.y, grid.cell_height, size[1], ROWS)
    part = np.s_[top:bottom, left:right]
    cut = Cells(cells.chars[part], cells.score[part], cells.ink[part], cells.pictures)
    x, y = grid.x + left * grid.cell_width, grid.y + top * grid.cell_height
    return cut, Grid(x, y, grid.cell_width, grid.cell_height, right - left, bottom - top)


def _span(used: Array, start: float, pitch: float, length: int, usual: tuple[int, ...]) -> tuple[int, int]:
    """The first cell and the one behind the last along one axis, of `used` cells from `start` on."""
    inked = np.flatnonzero(used)
    first, last = int(inked[0]), int(inked[-1])
    for count in usual:
        begin = round(((length - count * pitch) / 2 - start) / pitch)
        off = abs((length - count * pitch) / 2 - (start + begin * pitch))
        if begin < 0 or begin + count > len(used):
            continue
        if off <= pitch * 0.3 and begin <= first and last < begin + count:
            return begin, begin + count
    return 0, len(used)
