"""Reading a frame: which engine, in which grid, and how sure. The one entry to this room.

Three readers, in this order: the bits of native pixels looked up in a font (`exact`), cells correlated with a font
(`search` finds the grid, `match` reads it), and tesseract. The first that is sure of what it reads wins; the page says
which, and why.
"""

from __future__ import annotations

import time
from dataclasses import replace

import cv2
import numpy as np

from labd.errors import Usage
from labd.ocr import exact, match, tess
from labd.ocr.cells import Cells, lines_of, trim
from labd.ocr.fonts import Array, Font
from labd.ocr.library import NO_FONT
from labd.ocr.page import Box, Grid, Hint, Line, Page
from labd.ocr.search import Search

ENGINES = ("auto", "console", "tesseract")

#: Mean score of the letters and digits, and that of the worst twentieth of all cells: from here on the console reader
#: is believed …
SURE = (0.91, 0.62)

#: … and from here on it is better than nothing.
FAIR = (0.885, 0.5)

#: What a page of very few letters must reach beyond that, and one with more pictures: a handful fits by chance.
_FEW_LETTERS, _DOUBT = 24, 0.06

#: At least this share of the cells that show anything are letters or digits on any page of text.
_LETTERS_SHARE = 0.25

#: A picture is searched for a grid at about this size at most: no console that went through a camera is finer.
_SEARCHED_PIXELS = 2048

#: tesseract is believed from this confidence on.
TESSERACT_SURE = 0.6


def read(
    frame: Array,
    *,
    engine: str = "auto",
    fonts: list[Font] | None = None,
    region: Box | None = None,
    hint: Hint | None = None,
    deadline_s: float = tess.DEADLINE_SECONDS,
) -> Page:
    """The text of a frame (uint8, grey or BGR), or of a `region` of it: left, top, right, bottom in pixels.

    `fonts` are those of `library.find_fonts`; `hint` is the last page's for the same screen. Boxes and the grid are in
    pixels of the whole frame. A page without lines says why in `why`. Raises Usage for an engine or a region that
    there isn't.
    """
    started = time.perf_counter()
    if engine not in ENGINES:
        raise Usage(f"no engine {engine!r}", hint=f"# one of {', '.join(ENGINES)}", near=list(ENGINES))
    picture, left, top = _cut(_as_bgr(frame), region)
    page = _read(picture, engine, fonts or [], hint, deadline_s)
    if left or top:
        page = _shifted(page, left, top)
    page.ms = (time.perf_counter() - started) * 1000
    return page


def _read(picture: Array, engine: str, fonts: list[Font], hint: Hint | None, deadline_s: float) -> Page:
    flat = _flatness(picture)
    if flat:
        return Page("none", why=flat)
    console = Page("none", why="")
    if engine != "tesseract":
        console = read_console(picture, fonts, hint)
        if console.lines and (engine == "console" or console.score >= SURE[0]):
            return console
        if engine == "console":
            return replace(console, engine="none", lines=[])
    try:
        lines = tess.read(picture, deadline_s)
    except tess.TesseractFailed as failed:
        return _only_console(console, str(failed))
    return _better(console, lines)


def _better(console: Page, lines: list[Line]) -> Page:
    """The console's page, of which it is not sure, or tesseract's."""
    sure = tess.sure(lines)
    before = f"{console.why}; " if console.why else ""
    if lines and sure >= max(TESSERACT_SURE, console.score if console.lines else 0):
        return Page("tesseract", sure, lines, why=f"{before}tesseract is {sure:.2f} sure")
    return _only_console(console, f"tesseract is only {sure:.2f} sure of what it reads" if lines else
                         "tesseract finds no text")  # fmt: skip


def _only_console(console: Page, why_not: str) -> Page:
    why = f"{console.why}; {why_not}" if console.why else why_not
    if console.lines:
        return replace(console, why=why)
    return Page("none", why=why)


# --- consoles -------------------------------------------------------------------------------------------------------


def read_console(picture: Array, fonts: list[Font], hint: Hint | None = None) -> Page:
    """What the console readers make of a picture (BGR); a page without lines, with its score, where it is no console.

    With a `hint` that still fits, no grid is looked for.
    """
    if not fonts:
        return Page("none", why=NO_FONT)
    size = (int(picture.shape[1]), int(picture.shape[0]))
    drawn = exact.looks_drawn(picture)
    if hint is not None and hint.size == size and (drawn or not hint.exact):
        cells = _by_hint(picture, hint)
        if _believed(cells, hint.exact):
            return _page(cells, hint, size)
    if drawn:
        native = exact.find(picture, fonts)
        if native is not None:
            new = Hint(native[0], native[1], True, 0.0, size)
            return _page(_by_hint(picture, new), new, size)
    found = _searched(picture, fonts)
    if found is None:
        return Page("none", why="nothing in the picture looks like a grid of characters")
    return _page(_by_hint(picture, found), found, size)


def _searched(picture: Array, fonts: list[Font]) -> Hint | None:
    """Where the characters of a picture are; a very large one is looked at in half the size, or less."""
    height, width = picture.shape[:2]
    smaller = max(1, round(max(width, height) / _SEARCHED_PIXELS))
    if smaller > 1:
        reduced: Array = cv2.resize(picture, (width // smaller, height // smaller), interpolation=cv2.INTER_AREA)
    else:
        reduced = picture
    best = Search(reduced, fonts).run()
    if best is None or not best.grid.rows or not best.grid.columns:
        return None
    across, down = width / reduced.shape[1], height / reduced.shape[0]
    grid = best.grid
    grid = replace(grid, x=grid.x * across, y=grid.y * down, cell_width=grid.cell_width * across,
                   cell_height=grid.cell_height * down)  # fmt: skip
    return Hint(best.font, grid, False, best.blur, (width, height))


def _by_hint(picture: Array, hint: Hint) -> Cells:
    if hint.exact:
        return exact.read(picture, hint.font, hint.grid)
    return match.read(picture, hint.font, hint.grid, hint.blur)


def _believed(cells: Cells, is_exact: bool) -> bool:
    """Whether the cells of a grid that was right before show that it still is."""
    if is_exact:
        return exact.believed(cells)
    return cells.low >= SURE[1] and letters_score(cells) >= SURE[0]


def letters_score(cells: Cells) -> float:
    """How sure the letters and digits of a page are, 0 to 1. Lines and blocks alone are no text, whatever they fit."""
    letters = cells.ink & np.char.isalnum(cells.chars)
    count = int(letters.sum())
    if count < 2 or count < cells.inked * _LETTERS_SHARE:
        signs = cells.ink & (cells.chars < "\x7f")
        if not 0 < cells.inked <= _FEW_LETTERS or not signs[cells.ink].all():  # a bare prompt: `=>`
            return 0.0
        letters, count = signs, 0
    doubt = max(0.0, 1 - count / _FEW_LETTERS)
    if cells.pictures > count:  # out of many pieces of pictures, some fit some letters
        doubt = 1.0
    return float(cells.score[letters].mean()) - doubt * _DOUBT


def _page(cells: Cells, hint: Hint, size: tuple[int, int]) -> Page:
    """The page of a grid of cells; without lines, but with its score, where too little of it fits."""
    cells, grid = trim(cells, hint.grid, size)
    score = cells.mean if hint.exact else letters_score(cells)
    if cells.low < SURE[1]:
        score = min(score, SURE[0] - 0.01)
    said = f"console characters of the font {hint.font.name} fit {score:.2f}"
    if not hint.exact and (score < FAIR[0] or cells.low < FAIR[1]):
        return Page("none", score, why=f"{said} at best")
    lines = lines_of(cells, grid)
    if not lines:
        return Page("none", score, why="nothing in the picture looks like characters")
    way = "native pixels" if hint.exact else "scaled"
    return Page("console", score, lines, grid, hint.font.name, why=f"{said} ({way})", hint=hint)


# --- pictures -------------------------------------------------------------------------------------------------------


def _as_bgr(frame: Array) -> Array:
    """Any frame as BGR of a size that can be worked on."""
    if frame.dtype != np.uint8 or frame.ndim not in (2, 3) or (frame.ndim == 3 and frame.shape[2] not in (1, 3, 4)):
        raise Usage(f"a frame of {frame.dtype} with shape {frame.shape} is no picture of 8 bits, grey or BGR")
    if frame.size == 0:
        raise Usage("the frame is empty")
    if frame.ndim == 3 and frame.shape[2] == 3:
        return frame
    flat = frame.ndim == 2 or frame.shape[2] == 1
    bgr: Array = cv2.cvtColor(frame, cv2.COLOR_GRAY2BGR if flat else cv2.COLOR_BGRA2BGR)
    return bgr


def _cut(picture: Array, region: Box | None) -> tuple[Array, int, int]:
    """The region of a picture, and its left top corner. Raises Usage where it is not inside."""
    if region is None:
        return picture, 0, 0
    left, top, right, bottom = region
    height, width = picture.shape[:2]
    if not (0 <= left < right <= width and 0 <= top < bottom <= height):
        raise Usage(f"the region {left},{top},{right},{bottom} is not inside the picture, which is {width}x{height}")
    return np.ascontiguousarray(picture[top:bottom, left:right]), left, top


def _flatness(picture: Array) -> str:
    """Why there can be no text in a picture: it is too small, or of one colour. "" where there can."""
    height, width = picture.shape[:2]
    if height < 8 or width < 8:
        return f"the picture is {width}x{height}: too small for any character"
    if int(np.ptp(cv2.GaussianBlur(picture, (3, 3), 0))) < 12:
        return "the picture is of one colour"
    return ""


def _shifted(page: Page, left: int, top: int) -> Page:
    """The page of a region in the pixels of the whole frame. The hint stays the region's own."""
    lines = [
        replace(line, box=(line.box[0] + left, line.box[1] + top, line.box[2] + left, line.box[3] + top))
        for line in page.lines
    ]
    grid: Grid | None = None if page.grid is None else replace(page.grid, x=page.grid.x + left, y=page.grid.y + top)
    return replace(page, lines=lines, grid=grid)
