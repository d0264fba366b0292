"""Finding the grid of a console in a picture of unknown scaling: once a change of mode, then it is remembered.

Two sources propose grids. The picture itself: letters leave gaps at a regular pitch, which the Fourier transform of
its changes along each axis shows. And what machines do: their video modes, filling the picture or with bars at the
sides. Proposals are scored by how well a sample of their cells fits the fonts; the best are moved and stretched by
ever smaller steps as long as that makes them fit better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import cv2
import numpy as np

from labd.ocr import match
from labd.ocr.fonts import Array, Font
from labd.ocr.page import Grid

#: Video modes of consoles.
MODES = (
    (720, 400), (640, 400), (640, 480), (800, 600), (1024, 768), (1280, 720), (1280, 800), (1280, 1024), (1366, 768),
    (1440, 900), (1600, 900), (1600, 1200), (1680, 1050), (1920, 1080), (1920, 1200), (2560, 1440), (3840, 2160),
)  # fmt: skip

#: Text screens that UEFI puts in the middle of a larger picture: columns and rows.
CENTRED = ((80, 25), (80, 50), (100, 31), (128, 40), (160, 42), (240, 56))

#: A fit as good as this ends the search.
GOOD = 0.93

#: Cells of a text screen are at least so wide and so high, in pixels of the picture.
_WIDTHS, _HEIGHTS = (4.5, 52.0), (8.0, 110.0)

#: How many cells are compared to score a proposal, one that did well, and one that is refined.
_HASTY, _FEW, _MANY = 20, 60, 160

#: How many proposals did well, of each size of font, and how many are refined at most.
_PROPOSALS_KEPT, _REFINED = 16, 5

#: A proposal that fits no better is of no console.
_HOPELESS = 0.4

#: How much softer a picture may be than its scaling makes it, in pixels of the font.
_SOFTER = (-0.3, 0.3, 0.6)

#: Pixels of the picture by which a grid is moved and stretched, in turn.
_STEPS = (3.0, 1.5, 0.75, 0.35, 0.15)

#: Along (left, top, right, bottom): move, stretch at the far end, stretch at the near end.
_MOVES = (
    (1, 0, 1, 0), (0, 1, 0, 1), (0, 0, 1, 0), (0, 0, 0, 1), (1, 0, 0, 0), (0, 1, 0, 0),
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """A grid, the font that fits best in it, and how well."""

    font: Font
    grid: Grid
    blur: float
    score: float


class Search:
    """One search in one frame (BGR)."""

    def __init__(self, frame: Array, fonts: list[Font]) -> None:
        self.grey = _clearest(frame)
        self.height, self.width = self.grey.shape
        self.fonts = fonts
        self.planes: dict[tuple[int, ...], Array] = {}
        across = np.abs(np.diff(self.grey.astype(np.int16), axis=1, prepend=self.grey[:, :1].astype(np.int16)))
        down = np.abs(np.diff(self.grey.astype(np.int16), axis=0, prepend=self.grey[:1].astype(np.int16)))
        across, down = _above_noise(across), _above_noise(down)
        self.rows = across.sum(axis=1, dtype=np.float64)
        self.columns = down.sum(axis=0, dtype=np.float64)
        self.ink: Array = cv2.integral(np.minimum(across + down, 255).astype(np.uint8))

    def run(self) -> Found | None:
        """The best grid and font, None where there is nothing to read."""
        if not self.columns.any() or not self.rows.any():
            return None
        sizes = {font.size: font for font in reversed(self.fonts)}
        proposed: list[Found] = []
        for font in sizes.values():
            hasty = sorted((self._scored(font, grid, _HASTY) for grid in self._proposals(font)), key=_by_score)
            proposed += [self._scored(font, found.grid, _FEW) for found in hasty[-_PROPOSALS_KEPT:]]
        best: Found | None = None
        for start in sorted(proposed, key=_by_score)[: -_REFINED - 1 : -1]:
            if start.score < _HOPELESS:
                break
            refined = self._choose_font(self._refined(start, _STEPS))
            if refined.blur != start.blur:  # what it is compared with has changed
                refined = self._refined(refined, _STEPS[-3:])
            if best is None or refined.score > best.score:
                best = refined
            if best.score >= GOOD:
                break
        return best

    # --- proposals -------------------------------------------------------------------------------------------------

    def _proposals(self, font: Font) -> Iterator[Grid]:
        tried: set[tuple[int, ...]] = set()
        for grid in (*self._by_spectrum(font), *self._by_mode(font)):
            key = tuple(round(v * 8) for v in (grid.x, grid.y)) + tuple(
                round(v * 200) for v in (grid.cell_width, grid.cell_height)
            )
            if key not in tried and grid.columns >= 2 and grid.rows >= 1:
                tried.add(key)
                yield grid

    def _by_spectrum(self, font: Font) -> Iterator[Grid]:
        letters = [i for i, char in enumerate(font.chars) if char.isascii() and char.isalnum()]
        shape = font.glyphs[letters or slice(None)].sum(axis=0)
        for width, x in pitches(self.columns, _WIDTHS, shape.sum(axis=0)):
            for height, y in pitches(self.rows, _HEIGHTS, shape.sum(axis=1)):
                if 0.8 < (height / font.height) / (width / font.width) < 1.9:
                    yield self.grid(x, y, width, height)

    def _by_mode(self, font: Font) -> Iterator[Grid]:
        for mode in MODES:
            for left, top, right, bottom in self._boxes(mode):
                across, down = (right - left) / mode[0], (bottom - top) / mode[1]
                width, height = font.width * across, font.height * down
                if not (_WIDTHS[0] <= width <= _WIDTHS[1] and _HEIGHTS[0] <= height <= _HEIGHTS[1]):
                    continue
                yield self.grid(left, top, width, height)
                for columns, rows in CENTRED:
                    x, y = (mode[0] - columns * font.width) // 2, (mode[1] - rows * font.height) // 2
                    if x >= 0 and y >= 0 and (y % font.height or x % font.width):
                        yield self.grid(left + x * across, top + y * down, width, height)

    def _boxes(self, mode: tuple[int, int]) -> Iterator[tuple[float, float, float, float]]:
        """Where a picture of `mode` may be in ours: all over, with its own shape, or as the 4:3 of old monitors."""
        yield 0, 0, self.width, self.height
        for shape in (mode[0] / mode[1], 4 / 3):
            width, height = min(self.width, self.height * shape), min(self.height, self.width / shape)
            yield (self.width - width) / 2, (self.height - height) / 2, (self.width + width) / 2, \
                (self.height + height) / 2  # fmt: skip

    def grid(self, x: float, y: float, cell_width: float, cell_height: float) -> Grid:
        """The grid of that pitch through that corner that covers the picture, cells cut off at an edge left out."""
        x -= np.floor(x / cell_width + 0.35) * cell_width
        y -= np.floor(y / cell_height + 0.35) * cell_height
        columns = int((self.width - x) / cell_width + 0.35)
        rows = int((self.height - y) / cell_height + 0.35)
        return Grid(float(x), float(y), cell_width, cell_height, columns, rows)

    # --- scoring ---------------------------------------------------------------------------------------------------

    def _cells_with_ink(self, grid: Grid, most: int) -> tuple[Array, Array]:
        """Rows and columns of at most so many of the cells that show something, from all over the grid."""
        if grid.columns < 1 or grid.rows < 1:
            return np.zeros(0, int), np.zeros(0, int)
        x = np.clip(np.round(grid.x + np.arange(grid.columns + 1) * grid.cell_width), 0, self.width).astype(int)
        y = np.clip(np.round(grid.y + np.arange(grid.rows + 1) * grid.cell_height), 0, self.height).astype(int)
        corners = self.ink[np.ix_(y, x)]
        inside = corners[1:, 1:] - corners[1:, :-1] - corners[:-1, 1:] + corners[:-1, :-1]
        rows, columns = np.nonzero(inside > max(255.0, float(inside.max()) * 0.06))
        some = np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int)
        return rows[some], columns[some]

    def _compared(self, font: Font, grid: Grid, blur: float, cells: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        """As `Matcher.compare`, for some cells of a grid."""
        if not len(cells[0]):
            return np.zeros(0, int), np.zeros(0), np.zeros(0)
        plane = self._plane(font, grid)
        return match.matcher(font, blur).compare(match.sample(plane, font.size, grid, *cells))

    def _score(self, found: Found, cells: tuple[Array, Array], weights: Array | None = None) -> float:
        """How well those cells fit, a mean with `weights`: by default those of `_weights`."""
        best, fit, contrast = self._compared(found.font, found.grid, found.blur, cells)
        return float(fit @ (_weights(best, contrast) if weights is None else weights))

    def _plane(self, font: Font, grid: Grid) -> Array:
        key = match.window(font, grid)
        if key not in self.planes:
            self.planes[key] = match.soften(self.grey, font, grid)
        return self.planes[key]

    def _scored(self, font: Font, grid: Grid, most: int) -> Found:
        found = Found(font, grid, match.blur_for(font, grid), 0.0)
        return replace(found, score=self._score(found, self._cells_with_ink(grid, most)))

    def _choose_font(self, found: Found) -> Found:
        """The same grid with whichever font of that size, and whichever softness, fits best."""
        cells = self._cells_with_ink(found.grid, _MANY)
        best, _, contrast = self._compared(found.font, found.grid, found.blur, cells)
        weights = _weights(best, contrast)

        def best_of(tries: list[Found]) -> Found:
            return max((replace(one, score=self._score(one, cells, weights)) for one in tries), key=_by_score)

        chosen = best_of([replace(found, font=font) for font in self.fonts if font.size == found.font.size])
        return best_of([chosen, *(replace(chosen, blur=round(chosen.blur + more, 1)) for more in _SOFTER)])

    # --- refining --------------------------------------------------------------------------------------------------

    def _refined(self, found: Found, steps: tuple[float, ...]) -> Found:
        """The grid moved and stretched over the cells that show something until nothing makes it fit better."""
        grid = found.grid
        cells = self._cells_with_ink(grid, _MANY)
        if not len(cells[0]):
            return found
        spans = (int(cells[1].min()), int(cells[0].min()), int(cells[1].max()) + 1, int(cells[0].max()) + 1)
        best, _, contrast = self._compared(found.font, grid, found.blur, cells)
        weights = _weights(best, contrast)
        found = replace(found, score=self._score(found, cells, weights))
        for step in steps:
            better = True
            while better:
                better = False
                for move in _MOVES:
                    for sign in (step, -step):
                        tried = replace(found, grid=_moved(found.grid, spans, move, sign))
                        if not _sensible(tried.grid):
                            continue
                        tried = replace(tried, score=self._score(tried, cells, weights))
                        if tried.score > found.score + 1e-4:
                            found, better = tried, True
        grid = found.grid
        return replace(found, grid=self.grid(grid.x, grid.y, grid.cell_width, grid.cell_height))


def _sensible(grid: Grid) -> bool:
    return _WIDTHS[0] <= grid.cell_width <= _WIDTHS[1] and _HEIGHTS[0] <= grid.cell_height <= _HEIGHTS[1]


def _by_score(found: Found) -> float:
    return found.score


def _weights(best: Array, contrast: Array) -> Array:
    """What each cell counts, 1 in all: each different character alike, and cells of little contrast less.

    So the straight edges of windows and bars don't outvote the text: they fit a dash in any grid that is fine enough,
    and are next to nothing in the right one.
    """
    if not len(best):
        return np.zeros(0)
    strong = np.minimum(contrast / max(float(np.percentile(contrast, 60)), 1e-6), 1)
    weights = strong / np.bincount(best)[best]
    total: Array = weights / max(float(weights.sum()), 1e-6)
    return total


def _moved(grid: Grid, spans: tuple[int, int, int, int], move: tuple[int, int, int, int], step: float) -> Grid:
    """The grid with the edges of its used part (`spans`: first column and row, last ones) moved by `step` pixels."""
    left, top, right, bottom = spans
    wider = (move[2] - move[0]) * step / (right - left)
    higher = (move[3] - move[1]) * step / (bottom - top)
    return replace(
        grid,
        x=grid.x + move[0] * step - wider * left,
        y=grid.y + move[1] * step - higher * top,
        cell_width=grid.cell_width + wider,
        cell_height=grid.cell_height + higher,
    )


def _clearest(frame: Array) -> Array:
    """The plane of a frame to look for letters in: grey, or the one colour in which far more is to be seen."""
    grey: Array = cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY)
    if not match.is_coloured(frame):
        return grey

    def edges(plane: Array) -> float:
        return float(np.abs(np.diff(plane[::3].astype(np.int16), axis=1)).mean())

    clearest = max(cv2.split(frame), key=edges)
    return np.ascontiguousarray(clearest) if edges(clearest) > 3 * edges(grey) else grey


def _above_noise(changes: Array) -> Array:
    """Changes from pixel to pixel less what noise makes."""
    some = changes[:: max(1, changes.shape[0] // 200)]
    return np.maximum(changes - max(8.0, 3 * float(np.median(some))), 0).astype(np.float32)


def pitches(profile: Array, bounds: tuple[float, float], shape: Array, most: int = 4) -> list[tuple[float, float]]:
    """The likeliest pitches of a profile within bounds, each with where a cell begins.

    `shape` is the font's mean profile over one cell: where its weight lies says where cells begin.
    """
    size = 1 << 15
    span = len(profile)
    kernel = min(int(bounds[1]) | 1, span)
    flat = profile - np.convolve(profile, np.ones(kernel) / kernel, "same")
    spectrum = np.fft.rfft(flat * np.hanning(span), size)
    power = np.abs(spectrum)
    pitch = np.linspace(bounds[0] ** -1, bounds[1] ** -1, 4000)  # in frequency, evenly
    at = pitch * size
    total = np.interp(at, np.arange(len(power)), power) + 0.5 * np.interp(
        np.minimum(2 * at, len(power) - 1), np.arange(len(power)), power
    )
    peaks = np.flatnonzero((total[1:-1] > total[:-2]) & (total[1:-1] >= total[2:])) + 1
    peaks = peaks[np.argsort(total[peaks])[::-1]][:most]
    phase = np.angle(np.sum(shape * np.exp(-2j * np.pi * (np.arange(len(shape)) + 0.5) / len(shape))))
    found = []
    for peak in peaks:
        cell = 1 / pitch[peak]
        wave = np.sum(flat * np.hanning(span) * np.exp(-2j * np.pi * (np.arange(span) + 0.5) / cell))
        found.append((float(cell), float((phase - np.angle(wave)) / (2 * np.pi) * cell % cell)))
    return found
