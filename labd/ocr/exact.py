"""Reading a console whose pixels come as they were drawn: every cell's bits are looked up in the font.

Quick and without error, and sure of itself: a cell that isn't in the font is known not to be. Colours don't matter, nor
which of the two in a cell is the background. Frames from a camera or a scaler are for `match.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from labd.ocr.cells import UNKNOWN, Cells, without_pictures
from labd.ocr.fonts import Array, Font
from labd.ocr.page import Grid

#: In a drawn screen most pixels are of the same colour as their neighbour; in a camera's picture few are.
SAME_MIN = 0.7

#: The share of the cells with text that must be in the font for the reading to be believed.
KNOWN_MIN = 0.97

#: … and so many letters and digits, where there is more than text: the bits of one don't come about by chance.
LETTERS_MIN = 12

#: A picture with changes in a smaller share of its rows of pixels is sparse enough to try every place of the grid.
_SPARSE = 0.5

#: How many cells are looked up to try a grid.
_SAMPLE = 400

#: Odd numbers that make one key of the 64-bit words of a cell.
_MIX = np.random.default_rng(20).integers(1, 1 << 62, 128, np.uint64) * np.uint64(2) + np.uint64(1)


def looks_drawn(frame: Array) -> bool:
    """Whether a frame (BGR) may be in its native pixels: cheap, and only to be used as a hint."""
    some = frame[:: max(1, frame.shape[0] // 90), :, 1]
    return bool((some[:, 1:] == some[:, :-1]).mean() >= SAME_MIN)


@dataclass(frozen=True)
class _Table:
    """A font to be searched: keys in rising order with their characters, and how many changes of colour its letters
    make in each row and column of a cell."""

    keys: Array
    chars: Array
    letters: Array
    rows: Array
    columns: Array


def find(frame: Array, fonts: list[Font]) -> tuple[Font, Grid] | None:
    """The font and the grid in whose cells nearly everything is known; None where nothing fits."""
    pixels = _pixels(frame)
    rows = np.count_nonzero(pixels[:, 1:] != pixels[:, :-1], axis=1).astype(np.float64)
    columns = np.count_nonzero(pixels[1:] != pixels[:-1], axis=0).astype(np.float64)
    best: tuple[int, Font, Grid] | None = None
    usable = [font for font in fonts if font.exact and font.width <= pixels.shape[1] and font.height <= pixels.shape[0]]
    for thorough in (False, True):
        for font in usable:
            table = _table(font)
            across = range(font.width) if thorough else _phases(columns, table.columns)
            down = range(font.height) if thorough else _phases(rows, table.rows)
            for y in down:
                for x in across:
                    grid = _grid(pixels, font, x, y)
                    known = _known(pixels, rows, font, grid)
                    if known and (best is None or known > best[0]):
                        best = known, font, grid
        if best is not None and believed(read(frame, best[1], best[2])):
            return best[1], best[2]
        if thorough or not rows.any() or np.count_nonzero(rows) > _SPARSE * len(rows):
            break  # a logo or a bar leads astray where there is little text; elsewhere the letters say where they are
    return None


def believed(cells: Cells) -> bool:
    """Whether cells show text of that font: nearly all of them is known, or enough letters beside pictures."""
    known = cells.ink & (cells.chars != UNKNOWN)
    if not known.any():
        return False
    letters = int((known & np.char.isalnum(cells.chars)).sum())
    strange = int((cells.ink & ~known).sum())
    return known.sum() >= KNOWN_MIN * (known.sum() + strange) and (letters >= LETTERS_MIN or not cells.pictures)


def read(frame: Array, font: Font, grid: Grid) -> Cells:
    """Every cell of a grid in native pixels."""
    pixels = _pixels(frame)
    bits = _bits(_blocks(pixels, font, grid).reshape(grid.rows * grid.columns, -1))
    table = _table(font)
    inked = np.flatnonzero(bits.any(axis=1))
    found, known = _look_up(table, bits[inked])
    chars = np.full(len(bits), " ")
    score = np.ones(len(bits), np.float32)
    chars[inked], score[inked] = table.chars[found], known
    strange = inked[~known]
    if strange.size:
        chars[strange], score[strange] = _under_cursor(table, bits[strange], font)
    ink = np.zeros(len(bits), bool)
    ink[inked] = True
    shape = (grid.rows, grid.columns)
    return without_pictures(Cells(chars.reshape(shape), score.reshape(shape), ink.reshape(shape)))


def _pixels(frame: Array) -> Array:
    """One number a pixel: of two colours of a console, different ones."""
    packed: Array = cv2.cvtColor(frame, cv2.COLOR_BGR2BGR565).view(np.uint16)[..., 0]
    return packed


def _blocks(pixels: Array, font: Font, grid: Grid) -> Array:
    """The pixels by cells: rows × columns × height × width, a view or a copy."""
    area = pixels[int(grid.y) :, int(grid.x) :][: grid.rows * font.height, : grid.columns * font.width]
    blocks: Array = area.reshape(grid.rows, font.height, grid.columns, font.width).transpose(0, 2, 1, 3)
    return blocks


def _grid(pixels: Array, font: Font, x: int, y: int) -> Grid:
    height, width = pixels.shape
    return Grid(x, y, font.width, font.height, (width - x) // font.width, (height - y) // font.height)


def _phases(profile: Array, expected: Array, most: int = 3) -> list[int]:
    """Where cells may begin, best first: the changes folded to one cell, held against what the font would make."""
    size = len(expected)
    folded = np.bincount(np.arange(len(profile)) % size, weights=profile, minlength=size)
    fit = [float(np.dot(np.roll(folded, -shift), expected)) for shift in range(size)]
    return [int(i) for i in np.argsort(fit)[::-1][:most]]


def _known(pixels: Array, changes: Array, font: Font, grid: Grid) -> int:
    """How much of a sample of the cells which show anything the font knows: letters and digits count for ten."""
    if grid.rows < 1 or grid.columns < 1:
        return 0
    top = int(grid.y)
    used = changes[top : top + grid.rows * font.height].reshape(grid.rows, font.height).any(axis=1)
    blocks = _blocks(pixels, font, grid)[used]
    blocks = blocks[:: 1 + blocks.shape[0] * blocks.shape[1] // (4 * _SAMPLE)]
    rows, columns = np.nonzero((blocks != blocks[:, :, :1, :1]).any(axis=(2, 3)))
    if not rows.size:
        return 0
    table = _table(font)
    found, known = _look_up(table, _bits(blocks[rows, columns].reshape(len(rows), -1)))
    return int(known.sum()) + 9 * int(table.letters[found[known]].sum())


def _bits(cells: Array) -> Array:
    """Which pixels of some cells (N × height · width) are ink: those of the colour that fewer have."""
    bits = cells != cells[:, :1]
    most_ink = np.count_nonzero(bits, axis=1) * 2 > bits.shape[1]
    ink: Array = bits ^ most_ink[:, None]
    return ink


def _look_up(table: _Table, bits: Array) -> tuple[Array, Array]:
    """(index in the table, whether it is really there) of each cell."""
    keys = _keys(bits)
    at = np.minimum(np.searchsorted(table.keys, keys), len(table.keys) - 1)
    return at, table.keys[at] == keys


def _keys(bits: Array) -> Array:
    packed = np.packbits(bits, axis=1)
    wide = np.zeros((len(bits), (packed.shape[1] + 7) // 8 * 8), np.uint8)
    wide[:, : packed.shape[1]] = packed
    words = wide.view(np.uint64)
    mixed: Array = (words ^ (words >> np.uint64(29))) * _MIX[: words.shape[1]]
    total: Array = mixed.sum(axis=1, dtype=np.uint64)
    return total


def _under_cursor(table: _Table, bits: Array, font: Font) -> tuple[Array, Array]:
    """Characters with a cursor's underline through them; what stays unknown is UNKNOWN, with a score of 0."""
    chars = np.full(len(bits), UNKNOWN)
    score = np.zeros(len(bits), np.float32)
    for cursor in _cursors(font):
        at, known = _look_up(table, bits & ~cursor)
        known &= bits[:, cursor].all(axis=1) & (score == 0)
        chars[known], score[known] = table.chars[at[known]], 0.8
    return chars, score


@lru_cache(maxsize=64)
def _table(font: Font) -> _Table:
    area = font.height * font.width
    glyphs = font.glyphs.reshape(len(font.chars), area) > 0
    inked = np.flatnonzero(glyphs.any(axis=1) & ~glyphs.all(axis=1))
    order = sorted(inked, key=lambda i: plainness(font.chars[i]))
    # Ink is what there is less of, also where a glyph is mostly ink.
    bits = np.array([glyphs[i] ^ (glyphs[i].sum() * 2 > area) for i in order] + _cursors(font))
    chars = np.array([font.chars[i] for i in order] + [" "] * (len(bits) - len(order)))
    keys, first = np.unique(_keys(bits), return_index=True)  # of glyphs that look alike, the plainest
    return _Table(
        keys,
        chars[first],
        np.char.isalnum(chars[first]),
        _changes(font, axis=2),
        _changes(font, axis=1),
    )


def plainness(char: str) -> int:
    """How odd a character is: of two that look alike, the smaller one is meant."""
    return ord(char) if char != UNKNOWN else 0x110000


def _cursors(font: Font) -> list[Array]:
    """The underlines that consoles show as cursors: one to three whole lines of pixels at the foot of a blank cell."""
    found = []
    for thick in (1, 2, 3):
        for up in (0, 1, 2):
            cell = np.zeros((font.height, font.width), bool)
            cell[font.height - up - thick : font.height - up] = True
            found.append(cell.ravel())
    return found


def _changes(font: Font, axis: int) -> Array:
    """How many changes along `axis` the plain letters make at each place of the other one, less the mean."""
    plain = [i for i, char in enumerate(font.chars) if char.isascii() and char.isalnum()]
    glyphs = font.glyphs[plain or slice(None)]
    edges = np.abs(np.diff(glyphs, axis=axis, prepend=0, append=0))
    profile: Array = edges.sum(axis=(0, axis)).astype(np.float64)
    centred: Array = profile - profile.mean()
    return centred
