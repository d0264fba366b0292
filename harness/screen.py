"""A screen of a trial that stands outside the bench: a picture's file that shows lines of text, as a console does.

What it showed, and when, goes into the desk's record. Owns its two files under the sandbox's `dev`; grades nothing.
"""

import contextlib
import functools
import glob
import itertools
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from labd.ocr import firmware, library, psf
from labd.ocr.fonts import Font

#: What has a console font, where there is none.
PACKAGE = "seabios"
SIZE = (720, 400)
_INK = (170, 170, 170)
_TEXT = frozenset(map(chr, range(0x21, 0x7F)))


@functools.cache
def font() -> Font | None:
    """A console font of this machine, one of those that a reader of screens can find as well."""
    return next((one for one in _candidates() if set(one.chars) >= _TEXT), None)


def _candidates() -> Iterator[Font]:
    for place, name in itertools.product(library.PSF_PLACES, library.PSF_NAMES):
        for path in sorted(glob.glob(os.path.join(place, name))):
            with contextlib.suppress(ValueError, OSError):
                yield psf.read_psf(path)
    for path in itertools.chain.from_iterable(library.FIRMWARE):
        with contextlib.suppress(ValueError, OSError):
            yield from firmware.read_firmware(path)


class Screen:
    """`device` is the file that shows it, `other` a screen beside it that never changes."""

    def __init__(self, directory: Path, record: Path) -> None:
        self.device, self.other = str(directory / "screen.png"), str(directory / "screen2.png")
        self._record = record
        record.touch()
        _put(self.other, ["another machine's screen"])

    def show(self, text: str) -> None:
        """Show these lines and nothing else, at once and whole."""
        _put(self.device, text.splitlines())
        with self._record.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": "shown", "text": text, "wall_ns": time.time_ns()}) + "\n")


def _put(path: str, lines: list[str]) -> None:
    letters = font()
    assert letters is not None, "asked for only where there is one"
    glyphs = dict(zip(letters.chars, letters.glyphs, strict=True))
    picture = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    for row, line in enumerate(lines):
        for column, char in enumerate(line):
            if char != " ":
                x, y = column * letters.width, row * letters.height
                picture[y : y + letters.height, x : x + letters.width][glyphs[char] > 0] = _INK
    fresh = path + ".new.png"
    cv2.imwrite(fresh, picture)
    os.replace(fresh, path)
