"""The share card, 1200 × 630: one layout of boxes and texts from the projection, drawn as SVG and as PNG. Pure.

Texts are cut to their place by a width that any sans serif keeps to. The PNG is drawn by OpenCV, with its own fonts:
no font of this machine, no browser, so that the same version draws the same bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

WIDTH, HEIGHT = 1200, 630

BACK, PANEL, INK, QUIET, LINE = "#14171a", "#1f2429", "#f0f2f4", "#a3adb7", "#39414a"
GOOD, SOME, BAD, NONE = "#20805b", "#94680f", "#a33a3a", "#4a525b"  # all passed, some, none; not measured
LABEL, LABEL_BACK = "#f2c667", "#453410"

#: Subjects side by side, jobs below each other; what does not fit is counted.
SUBJECTS, JOBS = 3, 4

#: The width of a character, as a share of its size, at most on average.
WIDE = 0.56


@dataclass(frozen=True)
class Box:
    """A filled rectangle; pixels from the top left."""

    x: float
    y: float
    width: float
    height: float
    color: str
    radius: float = 0


@dataclass(frozen=True)
class Text:
    """A line of text on its baseline. `anchor`: start, middle or end of it is at x."""

    x: float
    y: float
    size: int
    color: str
    text: str
    bold: bool = False
    anchor: str = "start"


Shape = Box | Text


def fitted(text: str, size: int, width: float) -> str:
    """The text, cut to a width (pixels)."""
    most = max(int(width / (size * WIDE)), 1)
    return text if len(text) <= most else text[: max(most - 2, 1)].rstrip(" ,;:") + ".."


# -- layout -----------------------------------------------------------------------------------------------------------


def shapes(data: Mapping[str, Any]) -> Iterator[Shape]:
    """All that is on the card, from back to front."""
    yield Box(0, 0, WIDTH, HEIGHT, BACK)
    yield Text(48, 68, 34, INK, fitted(f"CLI workflows: {data['name']}", 34, 780), bold=True)
    yield Text(WIDTH - 48, 66, 20, QUIET, data["published"][:10], anchor="end")
    yield Text(48, 102, 19, QUIET, fitted(_who(data), 19, WIDTH - 96))
    top = 124
    if data["labels"]:
        yield Box(48, 118, WIDTH - 96, 36, LABEL_BACK, 6)
        yield Text(62, 142, 18, LABEL, fitted("; ".join(data["labels"]), 18, WIDTH - 124))
        top = 168
    shown = data["subjects"][:SUBJECTS]
    width = (WIDTH - 96 - 20 * (len(shown) - 1)) / max(len(shown), 1)
    for at, one in enumerate(shown):
        yield from _subject(one, 48 + at * (width + 20), top, width, HEIGHT - 66 - top)
    yield Text(48, HEIGHT - 26, 16, QUIET, fitted(_foot(data), 16, WIDTH - 96))


def _who(data: Mapping[str, Any]) -> str:
    agents = ", ".join(dict.fromkeys(name for one in data["runs"] for name in one["agents"])) or "none"
    models = dict.fromkeys(
        one["model"] or ("scripted" if one["scripted"] else "its own choice") for one in data["runs"]
    )
    return f"Agent {agents}, model {', '.join(models) or 'none'}. Each scenario: trials that passed, of three."


def _foot(data: Mapping[str, Any]) -> str:
    rows = [row for one in data["subjects"] for job in one["jobs"] for stamp in job["controls"]
            for row in stamp["cells"].values()]  # fmt: skip
    held = [found == ("pass" if agent == "reference" else "fail") for row in rows for agent, found in row.items()]
    more = len(data["subjects"]) - SUBJECTS
    rest = f"; {more} more subjects" if more > 0 else ""
    return f"{sum(held)} of {len(held)} controls held. Nothing is averaged over journeys, nor with readiness{rest}."


def _subject(one: Mapping[str, Any], x: float, y: float, width: float, height: float) -> Iterator[Shape]:
    told = one["readiness"]
    yield Box(x, y, width, height, PANEL, 12)
    left, inner = x + 24, width - 48
    version = fitted(f"{one['subject']}", 26, inner * 0.5)
    yield Text(left, y + 42, 26, INK, version, bold=True)
    yield Text(x + width - 24, y + 41, 16, QUIET, fitted(told["version"] if told else "", 16, inner * 0.55),
               anchor="end")  # fmt: skip
    end = yield from _journeys(one["jobs"], left, y + 62, inner)
    yield from _readiness(told, left, end + 12, inner, y + height - end - 24)


def _journeys(jobs: Sequence[Mapping[str, Any]], x: float, y: float, width: float) -> Iterator[Shape]:
    """The jobs, a row each with its three scenarios. Comes to where they end."""
    cell = min(96.0, width * 0.17)
    first = x + width - 3 * cell
    heads = ("normal", "ambiguous", "recovery") if cell > 75 else ("norm.", "ambig.", "recov.")
    for at, name in enumerate(heads if jobs else ()):
        yield Text(first + at * cell + cell / 2, y + 14, 14, QUIET, name, anchor="middle")
    y += 24
    for job in jobs[:JOBS]:
        lines = wrapped(job["title"], 15, first - x - 12)
        for at, line in enumerate(lines):
            yield Text(x, y + 21 + (at - (len(lines) - 1) / 2) * 17, 15, INK, line)
        for at, scenario in enumerate(job["scenarios"][:3]):
            yield from _cell(scenario["cells"], first + at * cell + 3, y, cell - 6)
        y += 40
    if not jobs or len(jobs) > JOBS:
        yield Text(x, y + 16, 15, QUIET, "Journeys: not measured" if not jobs else f"and {len(jobs) - JOBS} jobs more")
        y += 24
    return y


def wrapped(text: str, size: int, width: float) -> list[str]:
    """The text on one line or two, cut where it is longer than that."""
    if fitted(text, size, width) == text:
        return [text]
    line, words = "", text.split()
    while words and fitted(longer := f"{line} {words[0]}".strip(), size, width) == longer:
        line = longer
        words.pop(0)
    return [line, fitted(" ".join(words), size, width)] if line else [fitted(text, size, width)]


def _cell(cells: Sequence[Mapping[str, Any]], x: float, y: float, width: float) -> Iterator[Shape]:
    text, color = _n(cells)
    yield Box(x, y, width, 34, color, 5)
    middle = x + width / 2
    if text:
        yield Text(middle, y + 23, 17 if len(text) < 6 else 13, INK, text, bold=True, anchor="middle")
    else:
        yield Text(middle, y + 14, 12, INK, "not", anchor="middle")
        yield Text(middle, y + 28, 12, INK, "measured" if width > 60 else "meas.", anchor="middle")


def _n(cells: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """The n of a scenario, short, and its colour; none where it was not measured, which is no zero."""
    valid = [cell for cell in cells if cell["valid"]]
    if not valid:
        return "", NONE
    text = " ".join(f"{cell['passed']}/{cell['valid']}" for cell in valid[:2]) + (" .." if len(valid) > 2 else "")
    if all(cell["passed"] == cell["valid"] for cell in valid):
        return text, GOOD
    return text, SOME if any(cell["passed"] for cell in valid) else BAD


def _readiness(told: Mapping[str, Any] | None, x: float, y: float, width: float, height: float) -> Iterator[Shape]:
    """The six domains as bars, and the whole where there is one."""
    whole = None if told is None else told["overall"]
    text = "Not measured" if whole is None else f"{100 * whole:.0f} %"
    yield Box(x, y, width, 1, LINE)
    yield Text(x, y + 28, 18, INK, "Interface readiness", bold=True)
    yield Text(x + width, y + 28, 18, INK, text, bold=True, anchor="end")
    if told is None:
        return
    step = min(38.0, (height - 40) / max(len(told["domains"]), 1))
    size = max(10, min(16, int(step * 0.9)))
    for at, domain in enumerate(told["domains"]):
        line = y + 34 + (at + 0.7) * step
        yield Text(x, line, size, QUIET, fitted(domain["title"], size, width * 0.66))
        bar = width * 0.28
        if domain["score"] is None:
            said = "not measured" if domain["applicable"] else "not applicable"
            yield Text(x + width, line, min(13, size), QUIET, said, anchor="end")
            continue
        yield Box(x + width - bar, line - 10, bar, 8, LINE, 4)
        if domain["score"] > 0:
            yield Box(x + width - bar, line - 10, bar * domain["score"], 8, GOOD if domain["score"] == 1 else SOME, 4)


# -- SVG --------------------------------------------------------------------------------------------------------------


def title(data: Mapping[str, Any]) -> tuple[str, str]:
    """What the card is and says, for those who do not see it."""
    jobs = [f"{one['subject']} {job['job']} {scenario['variant']}: {scenario['result']}" for one in data["subjects"]
            for job in one["jobs"] for scenario in job["scenarios"]]  # fmt: skip
    ready = [f"readiness of {one['subject']}: "
             + ("not measured" if not one["readiness"] or one["readiness"]["overall"] is None
                else f"{100 * one['readiness']['overall']:.0f} %") for one in data["subjects"]]  # fmt: skip
    return f"Release {data['name']}", "; ".join([*data["labels"], *jobs, *ready])


def svg(data: Mapping[str, Any]) -> bytes:
    """The card as SVG: no script, no font and no picture from elsewhere."""
    name, about = title(data)
    lines = [(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
             f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t d" '
             "font-family=\"Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif\">"),
             f'<title id="t">{escape(name)}</title>', f'<desc id="d">{escape(about)}</desc>',
             *map(_element, shapes(data)), "</svg>"]  # fmt: skip
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _element(one: Shape) -> str:
    if isinstance(one, Box):
        return (f'<rect x="{one.x:g}" y="{one.y:g}" width="{one.width:g}" height="{one.height:g}" rx="{one.radius:g}" '
                f"fill={quoteattr(one.color)}/>")  # fmt: skip
    weight = ' font-weight="700"' if one.bold else ""
    return (f'<text x="{one.x:g}" y="{one.y:g}" font-size="{one.size}" fill={quoteattr(one.color)}{weight} '
            f'text-anchor="{one.anchor}">{escape(one.text)}</text>')  # fmt: skip


# -- PNG --------------------------------------------------------------------------------------------------------------


def png(data: Mapping[str, Any]) -> bytes:
    """The same card as PNG."""
    import cv2
    import numpy as np

    picture: Any = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    for one in shapes(data):
        if isinstance(one, Box):
            _fill(cv2, picture, one)
        else:
            _write(cv2, picture, one)
    ok, encoded = cv2.imencode(".png", picture, [cv2.IMWRITE_PNG_COMPRESSION, 9])
    if not ok:
        raise OSError("the card could not be encoded as PNG")
    return bytes(encoded.tobytes())


def painter() -> str:
    """What draws the PNG; another version may draw other bytes."""
    from importlib.metadata import version

    return f"opencv {version('opencv-python')}"


def _bgr(color: str) -> tuple[int, int, int]:
    return int(color[5:7], 16), int(color[3:5], 16), int(color[1:3], 16)


def _fill(cv2: Any, picture: Any, one: Box) -> None:
    """A rectangle with round corners."""
    color, (x, y) = _bgr(one.color), (round(one.x), round(one.y))
    right, low = round(one.x + one.width) - 1, round(one.y + one.height) - 1
    r = int(min(one.radius, (right - x) / 2, (low - y) / 2))
    if r < 1:
        cv2.rectangle(picture, (x, y), (right, max(low, y)), color, -1)
        return
    cv2.rectangle(picture, (x + r, y), (right - r, low), color, -1)
    cv2.rectangle(picture, (x, y + r), (right, low - r), color, -1)
    for corner in ((x + r, y + r), (right - r, y + r), (x + r, low - r), (right - r, low - r)):
        cv2.circle(picture, corner, r, color, -1, cv2.LINE_AA)


def _write(cv2: Any, picture: Any, one: Text) -> None:
    if hasattr(cv2, "FontFace"):  # OpenCV 5 has TrueType fonts of its own
        face, weight = cv2.FontFace("sans"), 700 if one.bold else 400
        (_, _, width, _) = cv2.getTextSize((WIDTH, HEIGHT), one.text, (0, 0), face, one.size, weight)
        cv2.putText(picture, one.text, (_left(one, width), round(one.y)), _bgr(one.color), face, one.size, weight)
        return
    text = one.text.encode("ascii", "replace").decode()
    face, scale, thick = cv2.FONT_HERSHEY_DUPLEX, one.size / 32, 2 if one.bold and one.size > 20 else 1
    (width, _), _ = cv2.getTextSize(text, face, scale, thick)
    at = (_left(one, width), round(one.y))
    cv2.putText(picture, text, at, face, scale, _bgr(one.color), thick, cv2.LINE_AA)


def _left(one: Text, width: float) -> int:
    return round(one.x - {"start": 0.0, "middle": width / 2, "end": float(width)}[one.anchor])
