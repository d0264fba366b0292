"""Learning a console's font from a screen whose text is known: a chart that was printed there, or what a serial console
of the same board said.

The grid is found without a font. Letters leave gaps at a regular pitch; of the grids that are likely, the one is right
whose cells are blank where the text is and inked where it is, and in which the cells of one character look alike. Each
glyph is the mean of its cells. What was learned is read back, and is a font only if that gives the known text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from labd.errors import LabdError
from labd.ocr import exact, match
from labd.ocr.fonts import Array, Font
from labd.ocr.page import Grid
from labd.ocr.search import Search, pitches

#: The share of known characters that must be read back.
RIGHT_MIN = 0.98

#: Fewer known characters on the screen are not enough to tell a grid.
CHARACTERS_MIN = 40

#: How well blanks and words must fit: 1 where each cell is as it should be.
AGREE_MIN = 0.9

#: Of the grids in which they fit, so many are refined.
_TRIED = 4

#: How many cells are compared to refine one.
_COMPARED = 400

_STEPS = (1.0, 0.5, 0.25, 0.12)
_BOUNDS = (5.0, 52.0), (8.0, 110.0)


def learn(picture: Array, lines: list[str], name: str, known: list[Font]) -> tuple[Font, dict[str, Any]]:
    """A font from a picture (BGR) that shows some of these lines, one under the other from some row on; and its facts.

    `known` fonts are not needed; they say nothing about the new one. Raises LabdError where the text isn't there.
    """
    lines = [line.rstrip() for line in lines]
    laid = sorted(_all_laid(picture, lines), key=lambda found: -found[0])[:_TRIED]
    if not laid:
        raise LabdError(
            "the screen does not show that text: nothing on it has its words and blanks where they should be",
            hint="labd video learn-font --chart",
        )
    fit = max((fit.refined() for _, fit in laid), key=_Fit.alike)
    font = fit.font(name)
    right = fit.right(font)
    if right < RIGHT_MIN:
        raise LabdError(f"the screen does not show that text: read back, only {right:.0%} of it are right",
                        hint="labd video learn-font --chart")  # fmt: skip
    facts = {"characters": len(font.chars), "width": font.width, "height": font.height, "lines": len(fit.rows_used),
             "exact": font.exact, "right": round(right, 4)}  # fmt: skip
    return font, facts


class _Fit:
    """A grid with the known characters in it: `cells` are rows, columns, and the characters there."""

    def __init__(self, picture: Array, grid: Grid, rows: Array, columns: Array, chars: Array) -> None:
        self.picture = picture
        self.drawn = exact.looks_drawn(picture)
        self.grey: Array = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
        self.grid = grid
        self.rows, self.columns, self.chars = rows, columns, chars
        self.size = max(4, round(grid.cell_height)), max(4, round(grid.cell_width))
        if max(self.size) > 40:  # a screen that is scaled up: no font needs so many pixels
            self.size = round(self.size[0] / 2), round(self.size[1] / 2)
        self.classes, self.of = np.unique(chars, return_inverse=True)

    @property
    def rows_used(self) -> list[int]:
        """The rows that show known text."""
        return sorted(set(self.rows.tolist()))

    def cells(self, grid: Grid) -> Array:
        """The known cells, background 0 and ink up to about 1."""
        cells = match.sample(self.grey, self.size, grid, self.rows, self.columns)
        ground = np.median(cells)
        cells = cells - ground
        peak = float(np.percentile(np.abs(cells), 99.5)) or 1.0
        sign = 1.0 if abs(float(cells.max())) >= abs(float(cells.min())) else -1.0
        clean: Array = cells * (sign / peak)
        return clean

    def means(self, cells: Array) -> Array:
        """The mean cell of each class."""
        total = np.zeros((len(self.classes), cells.shape[1]), np.float32)
        np.add.at(total, self.of, cells)
        mean: Array = np.divide(total, np.bincount(self.of)[:, None])
        return mean

    def alike(self, grid: Grid | None = None) -> float:
        """How alike the cells of one character are, and how unlike those of different ones: 1 is perfect."""
        cells = self.cells(grid or self.grid)
        means = self.means(cells)
        within = float(((cells - means[self.of]) ** 2).mean())
        between = float(means.var(axis=0).mean())
        return float(between / (between + within + 1e-9))

    def refined(self) -> _Fit:
        """The same on the grid, moved and stretched a little, in which they are most alike."""
        if self.drawn:
            return self
        some = np.arange(0, len(self.rows), 1 + len(self.rows) // _COMPARED)
        part = _Fit(self.picture, self.grid, self.rows[some], self.columns[some], self.chars[some])
        best, score = self.grid, part.alike()
        spans = max(1, int(self.columns.max())), max(1, int(self.rows.max()))
        for step in _STEPS:
            better = True
            while better:
                better = False
                for field, size in (("x", step), ("y", step), ("cell_width", step / spans[0]),
                                    ("cell_height", step / spans[1])):  # fmt: skip
                    for sign in (1, -1):
                        tried = replace(best, **{field: getattr(best, field) + sign * size})
                        now = part.alike(tried)
                        if now > score + 1e-5:
                            best, score, better = tried, now, True
        return _Fit(self.picture, best, self.rows, self.columns, self.chars)

    def font(self, name: str) -> Font:
        """The glyphs; of bits alone where the picture was drawn in these very pixels."""
        means = self.means(self.cells(self.grid)).reshape(len(self.classes), *self.size)
        bits = (means > 0.5).astype(np.float32)
        pure = float(np.abs(means - bits).max()) < 0.02
        glyphs = bits if pure else np.clip(means, 0, 1)
        return Font(name, glyphs, tuple(str(c) for c in self.classes), "learned from a screen")

    def right(self, font: Font) -> float:
        """The share of the known characters that the font reads as they are."""
        if font.exact and self.drawn:
            read = exact.read(self.picture, font, self.grid)
        else:
            read = match.read(self.picture, font, self.grid, 0.0)
        return float((read.chars[self.rows, self.columns] == self.chars).mean())


def _all_laid(picture: Array, lines: list[str]) -> Iterator[tuple[float, _Fit]]:
    """The known text laid over every likely grid, each with how well its blanks and words fit there."""
    for grid in _grids(picture):
        found = _laid(picture, grid, lines) if grid.columns >= 2 and grid.rows >= 1 else None
        if found is not None:
            yield found


def _grids(picture: Array) -> Iterator[Grid]:
    """The likely grids, without a font: pitches of the spectrum, whole ones too where the picture was drawn so."""
    search = Search(picture, [])
    drawn = exact.looks_drawn(picture)
    centred = np.array([0, 0.6, 1, 1, 1, 1, 0.8, 0])  # where the ink of letters is in a cell
    tall = np.array([0, 0, 0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0.3, 0.2, 0, 0])
    for width, x in pitches(search.columns, _BOUNDS[0], centred, 6):
        for height, y in pitches(search.rows, _BOUNDS[1], tall, 6):
            if not 1.0 < height / width < 4.5:
                continue
            if not drawn:
                yield search.grid(x, y, width, height)
                continue
            wide, high = round(width), round(height)
            for left in dict.fromkeys((0, round(x) % wide)):
                for top in dict.fromkeys((0, round(y) % high)):
                    yield Grid(left, top, wide, high, (search.width - left) // wide, (search.height - top) // high)


def _laid(picture: Array, grid: Grid, lines: list[str]) -> tuple[float, _Fit] | None:
    """The known text where its words and blanks fit best in a grid, and how well they do; None where they don't."""
    ink = _ink(picture, grid)
    width = min(max(len(line) for line in lines), grid.columns)
    known = np.array([[char != " " for char in line[:width].ljust(width)] for line in lines], np.float32)
    here = np.pad(ink, ((len(lines), len(lines)), (0, 0)))
    real = np.pad(np.ones_like(ink), ((len(lines), len(lines)), (0, 0)))
    both = cv2.matchTemplate(here, known, cv2.TM_CCORR)
    wanted = cv2.matchTemplate(real, known, cv2.TM_CCORR)
    there = cv2.matchTemplate(here, np.ones_like(known), cv2.TM_CCORR)
    agree = np.where(wanted >= CHARACTERS_MIN, 2 * both / np.maximum(wanted + there, 1), 0)
    top, left = (int(i) for i in np.unravel_index(int(agree.argmax()), agree.shape))
    if agree[top, left] < AGREE_MIN:
        return None
    cells = [
        (top - len(lines) + number, left + column, char)
        for number, line in enumerate(lines)
        for column, char in enumerate(line[:width])
        if char != " " and 0 <= top - len(lines) + number < grid.rows
    ]
    rows, columns, chars = zip(*cells, strict=True)
    return float(agree[top, left]), _Fit(picture, grid, np.array(rows), np.array(columns), np.array(chars))


def _ink(picture: Array, grid: Grid) -> Array:
    """Which cells show anything, rows × columns of 0 and 1."""
    grey: Array = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    rows, columns = np.indices((grid.rows, grid.columns)).reshape(2, -1)
    spread = np.ptp(match.sample(grey, (9, 7), grid, rows, columns), axis=1)
    shows: Array = (spread > max(24.0, 0.3 * float(np.percentile(spread, 98)))).reshape(grid.rows, grid.columns)
    return shows.astype(np.float32)
