"""What was read from a picture. Light: imports nothing of the reading itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labd.ocr.fonts import Font

#: A rectangle of the picture in pixels: left, top, right, bottom (the last two outside it).
Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class Line:
    """A line of text. `confidence` is 0 to 1; `row` its place in the grid (None: there is no grid)."""

    text: str
    confidence: float
    box: Box
    row: int | None = None


@dataclass(frozen=True)
class Grid:
    """Cells of one size over the picture: the first one's top left corner and the pitch, in pixels of the picture."""

    x: float
    y: float
    cell_width: float
    cell_height: float
    columns: int
    rows: int

    def box(self, row: int, first: int, last: int) -> Box:
        """The rectangle of the cells `first` to `last` of a row."""
        return (
            round(self.x + first * self.cell_width),
            round(self.y + row * self.cell_height),
            round(self.x + (last + 1) * self.cell_width),
            round(self.y + (row + 1) * self.cell_height),
        )


@dataclass(frozen=True)
class Hint:
    """What a read found that makes the next one of the same screen quick: hand it back as it is."""

    font: Font
    grid: Grid
    exact: bool
    blur: float
    size: tuple[int, int]


@dataclass
class Page:
    """All that was read. `engine` is console, tesseract or none; `score` 0 to 1; `why` says how it was chosen, or why
    there is no text. `ms` is how long the reading took."""

    engine: str
    score: float = 0.0
    lines: list[Line] = field(default_factory=list)
    grid: Grid | None = None
    font: str | None = None
    ms: float = 0.0
    why: str = ""
    hint: Hint | None = None

    @property
    def text(self) -> str:
        """The lines as a person would copy them: blank rows between them kept, those around them not."""
        out: list[str] = []
        last: int | None = None
        for line in self.lines:
            if line.row is not None and last is not None:
                out += [""] * (line.row - last - 1)
            out.append(line.text)
            last = line.row
        return "\n".join(out)

    def as_data(self) -> dict[str, Any]:
        """As JSON-able data; boxes are [left, top, right, bottom] in pixels of the picture."""
        return {
            "engine": self.engine,
            "score": round(self.score, 4),
            "why": self.why,
            "text": self.text,
            "lines": [
                {"text": line.text, "confidence": round(line.confidence, 3), "box": list(line.box), "row": line.row}
                for line in self.lines
            ],
            "grid": None if self.grid is None else {
                "x": round(self.grid.x, 2), "y": round(self.grid.y, 2), "cell_width": round(self.grid.cell_width, 3),
                "cell_height": round(self.grid.cell_height, 3), "columns": self.grid.columns, "rows": self.grid.rows,
            },
            "font": self.font,
            "ms": round(self.ms, 1),
        }  # fmt: skip
