"""Reading pictures with tesseract: for graphic screens and proportional fonts, which have no grid.

pytesseract says how the program is called and takes its table apart. It is not what runs it: its own call has no limit
of threads, leaves children behind at its timeout, and writes to disk. The shim runs it: one thread, a deadline, and a
process group that is ended whole.
"""

from __future__ import annotations

import os
import shutil
import statistics
from typing import NamedTuple

import cv2
import numpy as np

from labd import shim
from labd.errors import LabdError
from labd.ocr.fonts import Array
from labd.ocr.page import Line

#: Seconds that tesseract gets for one picture.
DEADLINE_SECONDS = 20.0

#: Lines that tesseract is less sure of, 0 to 1, are noise.
_SURE = 0.4

#: Letters are brought up to about the size that tesseract was trained on: pictures smaller than this are doubled.
_SMALL = 1000

MISSING = "tesseract is not installed: install tesseract-ocr (Homebrew: tesseract)"


class TesseractFailed(Exception):
    """It is missing, was too slow, or failed; the message says which in one sentence."""


def program() -> str | None:
    """The path of tesseract, None where there is none."""
    from pytesseract import pytesseract

    return shutil.which(str(pytesseract.tesseract_cmd))


def read(frame: Array, deadline_s: float = DEADLINE_SECONDS) -> list[Line]:
    """The lines of text in a frame (BGR) with their confidence. Raises TesseractFailed."""
    path = program()
    if path is None:
        raise TesseractFailed(MISSING)
    picture, scale = _prepared(frame)
    done, data = cv2.imencode(".png", picture, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    if not done:
        raise TesseractFailed("the picture can't be encoded for tesseract")
    env = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    argv = [path, "stdin", "stdout", "--psm", "6", "tsv"]
    try:
        ended = shim.run_hook(argv, cwd="/", env=env, timeout_s=deadline_s, stdin=data.tobytes())
    except LabdError as error:
        raise TesseractFailed(error.message) from None
    if ended.code is None:
        raise TesseractFailed(f"tesseract did not end within {deadline_s:g} s and was killed")
    if ended.code:
        said = ended.err.decode("utf-8", "replace").strip().splitlines()
        raise TesseractFailed(f"tesseract failed with exit code {ended.code}: {said[-1] if said else 'no word of why'}")
    return lines_of(ended.out.decode("utf-8", "replace"), scale)


def sure(lines: list[Line]) -> float:
    """How sure tesseract is of a page, 0 to 1, by its letters."""
    letters = sum(len(line.text) for line in lines)
    return sum(line.confidence * len(line.text) for line in lines) / letters if letters else 0.0


def lines_of(table: str, scale: float) -> list[Line]:
    """Lines from tesseract's table of words, its boxes divided by `scale`."""
    from pytesseract import pytesseract

    words = pytesseract.file_to_dict(table, "\t", -1)
    grouped: dict[tuple[int, ...], list[_Word]] = {}
    for i, text in enumerate(words.get("text", ())):
        if str(text).strip() and float(words["conf"][i]) >= 0:
            key = tuple(int(words[name][i]) for name in ("block_num", "par_num", "line_num"))
            edges = [float(words[name][i]) / scale for name in ("left", "top", "width", "height")]
            grouped.setdefault(key, []).append(_Word(str(text).strip(), float(words["conf"][i]) / 100, *edges))
    letter = statistics.median([w.width / len(w.text) for line in grouped.values() for w in line] or [1.0])
    lines = [_line(found, letter) for found in grouped.values()]
    return [line for line in lines if line.confidence >= _SURE]


class _Word(NamedTuple):
    text: str
    confidence: float
    left: float
    top: float
    width: float
    height: float


def _line(words: list[_Word], letter: float) -> Line:
    """One line of words, with as many blanks between them as letters of that width would take.

    A gap is wider than its blanks by the margins of the letters beside it.
    """
    text, end = "", words[0].left
    for word in words:
        text += " " * (max(1, round((word.left - end) / letter - 0.6)) if text else 0) + word.text
        end = word.left + word.width
    confidence = sum(word.confidence * len(word.text) for word in words) / sum(len(word.text) for word in words)
    top, bottom = min(word.top for word in words), max(word.top + word.height for word in words)
    return Line(text, min(confidence, 1.0), (round(words[0].left), round(top), round(end), round(bottom)))


def _prepared(frame: Array) -> tuple[Array, float]:
    """Dark letters on a light ground, large enough; and its scale."""
    grey: Array = cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY)
    if float(np.median(grey)) < 128:
        grey = 255 - grey
    scale = 2.0 if max(grey.shape) < _SMALL * 2 else 1.0
    if scale != 1:
        grey = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    return grey, scale
