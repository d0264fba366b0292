"""Reading a console whose pixels went through a scaler, a camera or a codec: normalised correlation with the font.

Each cell of the grid is sampled at the font's own size. What says nothing about the character is taken out of it by
projection: its brightness, and light that spills over from the four neighbours into its edge rows and columns. What is
left is compared with every glyph, blurred alike, in one matrix product; the sign tells inverse video. A cell of text
whose colour has the brightness of its background is compared along its dominant colour instead.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import cv2
import numpy as np

from labd.ocr.cells import UNKNOWN, Cells, without_pictures
from labd.ocr.exact import plainness
from labd.ocr.fonts import Array, Font
from labd.ocr.page import Grid

#: A cell that fits nothing better than this shows no character.
FITS_MIN = 0.45

#: Below this score a cell is looked at along its colour too.
_UNSURE = 0.75

#: From here on a letter is one; below the other a cell that stands far from any of them is a piece of a picture.
_LETTER_SURE, _CHANCE = 0.88, 0.8

#: What a cell that is blank in its brightness must reach in its colour: noise of a codec is colourful.
_COLOUR_FITS, _COLOUR_CONTRAST = 0.8, 6.0

#: How much better than the best ASCII character another one must fit: they are rare, and many look alike.
_ODD_COSTS = 0.03
_DRAWN_COSTS = 0.02

#: How many cells are compared at once: bounds the memory.
_BATCH = 8192

#: OpenCV's remap takes no more rows than this.
_REMAP_MOST = 32000


class Matcher:
    """One font, blurred by `blur` of its pixels, ready to be compared with cells. Thread-safe."""

    def __init__(self, font: Font, blur: float) -> None:
        self.font = font
        self.blur = blur
        height, width = font.height, font.width
        self.nuisance = _nuisance(height, width)
        kept = _worth_comparing(font)
        smooth = [_blurred(font.glyphs[i], blur) for i in kept]
        table = np.array(smooth, np.float32).reshape(len(kept), height * width)
        table -= (table @ self.nuisance) @ self.nuisance.T
        table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-6)
        self.table = np.ascontiguousarray(table.T)
        self.chars = np.array([font.chars[i] for i in kept])
        self.costs = np.array([_cost(font.chars[i]) for i in kept], np.float32)

    def compare(self, cells: Array) -> tuple[Array, Array, Array]:
        """(index of the best glyph, its correlation, the cell's contrast) of cells, N × (height · width) float."""
        rest = cells - (cells @ self.nuisance) @ self.nuisance.T
        length = np.linalg.norm(rest, axis=1)
        fit = np.abs(rest @ self.table)  # the sign says which of ink and background is brighter
        best = (fit - self.costs * length[:, None]).argmax(axis=1)
        return best, fit[np.arange(len(best)), best] / np.maximum(length, 1e-6), length / np.sqrt(cells.shape[1])


@lru_cache(maxsize=48)
def matcher(font: Font, blur: float) -> Matcher:
    """The matcher of a font, kept."""
    return Matcher(font, blur)


def blur_for(font: Font, grid: Grid) -> float:
    """How much softer than drawn a picture of that grid is at the least, in pixels of the font."""
    scale = min(grid.cell_width / font.width, grid.cell_height / font.height)
    return 0.7 if scale >= 0.9 else round(min(0.63 / scale, 1.4), 1)


def soften(plane: Array, font: Font, grid: Grid) -> Array:
    """A plane of the picture made ready for being sampled at the font's size: averaged where that is much coarser."""
    size = window(font, grid)
    return plane if size == (1, 1) else cv2.blur(plane, size)


def window(font: Font, grid: Grid) -> tuple[int, int]:
    """How many pixels of the picture are averaged for one of the font: across, down."""
    return max(1, int(grid.cell_width / font.width + 0.3)), max(1, int(grid.cell_height / font.height + 0.3))


def sample(plane: Array, size: tuple[int, int], grid: Grid, rows: Array, columns: Array) -> Array:
    """The given cells of a picture's plane at `size` (height, width) points each, N × (height · width) float32."""
    if len(rows) > _REMAP_MOST:
        parts = [sample(plane, size, grid, rows[part], columns[part]) for part in
                 np.array_split(np.arange(len(rows)), 1 + len(rows) // _REMAP_MOST)]  # fmt: skip
        return np.concatenate(parts)
    height, width = size
    x = grid.x - 0.5 + (columns[:, None] + (np.arange(width) + 0.5) / width) * grid.cell_width
    y = grid.y - 0.5 + (rows[:, None] + (np.arange(height) + 0.5) / height) * grid.cell_height
    shape = (len(rows), height, width)
    map_x = np.broadcast_to(x[:, None, :], shape).reshape(len(rows), -1).astype(np.float32)
    map_y = np.broadcast_to(y[:, :, None], shape).reshape(len(rows), -1).astype(np.float32)
    found = cv2.remap(plane, map_x, map_y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return found.astype(np.float32)


def read(frame: Array, font: Font, grid: Grid, blur: float) -> Cells:
    """Every cell of a grid in a frame (BGR)."""
    by = matcher(font, blur)
    grey = soften(cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY), font, grid)
    rows, columns = np.indices((grid.rows, grid.columns)).reshape(2, -1)
    edges = [*range(0, len(rows), _BATCH), len(rows)]
    parts = [by.compare(sample(grey, font.size, grid, rows[a:b], columns[a:b])) for a, b in pairwise(edges)]
    best, score, contrast = (np.concatenate(column) for column in zip(*parts, strict=True))
    floor = max(1.5, min(2 * float(np.percentile(contrast, 15)), 6.0))
    faint = 0.12 * float(np.percentile(contrast, 95))  # of that, text must be beyond doubt
    blank = (contrast < floor) | ((score < 0.6) & (contrast < 8)) | ((score < 0.82) & (contrast < faint))
    if is_coloured(frame):
        unsure = np.flatnonzero(blank | (score < _UNSURE))
        unsure = unsure[_shows_colour(frame, grid, rows[unsure], columns[unsure])[:_BATCH]]
        _by_colour(frame, by, grid, rows[unsure], columns[unsure], unsure, (best, score, blank))
    chars = by.chars[best]
    chars[blank] = " "
    chars[~blank & (score < FITS_MIN)] = UNKNOWN
    score[blank] = 1.0
    shape = (grid.rows, grid.columns)
    cells = Cells(_in_context(chars.reshape(shape)), score.clip(0, 1).reshape(shape), ~blank.reshape(shape))
    return without_pictures(_no_chance_letters(cells))


def _no_chance_letters(cells: Cells) -> Cells:
    """The same with UNKNOWN for what fits only so well, and stands where no letter fits well: a piece of a picture."""
    sure = np.pad(cells.ink & np.char.isalnum(cells.chars) & (cells.score >= _LETTER_SURE), ((0, 0), (3, 3)))
    near = sure[:, :-6] | sure[:, 1:-5] | sure[:, 2:-4] | sure[:, 4:-2] | sure[:, 5:-1] | sure[:, 6:] | sure[:, 3:-3]
    chance = cells.ink & (cells.score < _CHANCE) & ~near
    chars = np.where(chance, UNKNOWN, cells.chars)
    return replace(cells, chars=chars)


def _in_context(chars: Array) -> Array:
    """A piece of a drawn line that touches no other is the sign of text that looks like it."""
    drawn = np.pad((chars >= "\u2500") & (chars <= "\u259f"), 1)
    beside = drawn[1:-1, :-2] | drawn[1:-1, 2:]
    above = drawn[:-2, 1:-1] | drawn[2:, 1:-1]
    for line, sign, touching in (("─", "-", beside), ("═", "=", beside), ("│", "|", above), ("║", "|", above)):
        chars[(chars == line) & ~touching] = sign
    return chars


def _by_colour(frame: Array, by: Matcher, grid: Grid, rows: Array, columns: Array, where: Array,
               so_far: tuple[Array, Array, Array]) -> None:  # fmt: skip
    """Compare the cells `where` along their dominant colour; what fits better replaces what `so_far` says."""
    best, score, blank = so_far
    if not len(where):
        return
    font = by.font
    planes = [soften(plane, font, grid) for plane in cv2.split(frame)]
    cells = np.stack([sample(plane, font.size, grid, rows, columns) for plane in planes], axis=1)
    cells -= (cells @ by.nuisance) @ by.nuisance.T
    spread = cells @ cells.transpose(0, 2, 1)
    axis = spread.sum(axis=2, keepdims=True) + 1e-3
    for _ in range(3):  # the power method: the direction in which the cell's colours differ most
        axis = spread @ axis
        axis /= np.linalg.norm(axis, axis=1, keepdims=True) + 1e-9
    found, fit, contrast = by.compare((axis.transpose(0, 2, 1) @ cells)[:, 0])
    sure = blank[where] & (fit >= _COLOUR_FITS) & (contrast >= _COLOUR_CONTRAST)
    better = sure | (~blank[where] & (fit > score[where] + 0.1))
    changed = where[better]
    best[changed], score[changed], blank[changed] = found[better], fit[better], False


def _shows_colour(frame: Array, grid: Grid, rows: Array, columns: Array) -> Array:
    """Whether the colour varies within each of the cells, from a few points of each."""
    if not len(rows):
        return np.zeros(0, int)
    spread = [np.ptp(sample(plane, (7, 5), grid, rows, columns), axis=1) for plane in cv2.split(frame)]
    found: Array = np.flatnonzero(np.max(spread, axis=0) > 4 * _COLOUR_CONTRAST)
    return found


def is_coloured(frame: Array) -> bool:
    """Whether more than a little of a frame is not grey."""
    some = frame[::4, ::4].astype(np.int16)
    return bool(((some.max(axis=2) - some.min(axis=2)) > 40).mean() > 0.002)


def _nuisance(height: int, width: int) -> Array:
    """An orthonormal basis (pixels × 5) of what says nothing: brightness, and each edge of the cell."""
    basis = np.zeros((5, height, width))
    basis[0] = 1
    basis[1, 0], basis[2, -1], basis[3, :, 0], basis[4, :, -1] = 1, 1, 1, 1
    ortho, _ = np.linalg.qr(basis.reshape(5, -1).T)
    return ortho.astype(np.float32)


def _worth_comparing(font: Font) -> list[int]:
    """The glyphs that are neither blank nor full, each picture once, the plainest character of those that share it."""
    seen: set[bytes] = set()
    kept = []
    for i in sorted(range(len(font.chars)), key=lambda i: plainness(font.chars[i])):
        glyph = font.glyphs[i]
        key = glyph.tobytes()
        if font.chars[i] in (" ", UNKNOWN, "\xa0") or key in seen or glyph.max() - glyph.min() < 0.5:
            continue
        seen.add(key)
        kept.append(i)
    return kept


def _blurred(glyph: Array, blur: float) -> Array:
    if blur <= 0:
        return glyph
    return cv2.GaussianBlur(glyph.astype(np.float32), (0, 0), blur, borderType=cv2.BORDER_CONSTANT)


def _cost(char: str) -> float:
    if char.isascii():
        return 0.0
    return _DRAWN_COSTS if "\u2190" <= char <= "\u25ff" else _ODD_COSTS
