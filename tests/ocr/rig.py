"""Screens with known text, ways to draw them, and models of what a capture device does to them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from labd.ocr import learn
from labd.ocr.fonts import Array, Font

SCREENS = Path(__file__).parent / "screens"


def screen(name: str) -> Array:
    """A picture of a real screen."""
    found = cv2.imread(str(SCREENS / f"{name}.png"))
    assert found is not None, name
    return found


def truth(name: str) -> str:
    """What it says."""
    return (SCREENS / f"{name}.txt").read_text().rstrip("\n")


@lru_cache(maxsize=1)
def vga() -> Font:
    """The PC's text mode font, as far as the two Linux screens have it: 86 characters, to the pixel."""
    glyphs: dict[str, Array] = {}
    for page in ("p0", "p1"):
        font, _ = learn.learn(screen(f"linux_{page}"), truth(page).split("\n"), "vga", [])
        glyphs |= dict(zip(font.chars, font.glyphs, strict=True))
    return Font("vga", np.array(list(glyphs.values())), tuple(glyphs), "two screens")


def draw(font: Font, lines: list[str], size: tuple[int, int], at: tuple[int, int] = (0, 0), ink: tuple[int, int, int] =
         (170, 170, 170), ground: tuple[int, int, int] = (0, 0, 0)) -> Array:  # fmt: skip
    """A screen of `size` (width, height) with these lines from the pixel `at` on."""
    picture = np.empty((size[1], size[0], 3), np.uint8)
    picture[:] = ground
    glyphs = dict(zip(font.chars, font.glyphs, strict=True))
    for row, line in enumerate(lines):
        for column, char in enumerate(line):
            if char != " ":
                x, y = at[0] + column * font.width, at[1] + row * font.height
                picture[y : y + font.height, x : x + font.width][glyphs[char] > 0] = ink
    return picture


def captured(
    picture: Array,
    size: tuple[int, int],
    box: tuple[float, ...] | None = None,
    *,
    way: int = cv2.INTER_LINEAR,
    blur: float = 0.0,
    sharpen: float = 0.0,
    noise: float = 3.0,
    quality: int = 80,
    contrast: float = 1.0,
    black: float = 0.0,
    limited: bool = False,
) -> Array:
    """The picture as a capture device of `size` gives it, shown in `box` (left, top, right, bottom; all over).

    In this order: scaled, blurred or sharpened, its levels changed (`limited`: 16 to 235), noise, JPEG.
    """
    width, height = size
    left, top, right, bottom = box or (0, 0, width, height)
    if right - left < picture.shape[1] or bottom - top < picture.shape[0]:
        picture = cv2.resize(picture, (round(right - left), round(bottom - top)), interpolation=cv2.INTER_AREA)
    across, down = (right - left) / picture.shape[1], (bottom - top) / picture.shape[0]
    move = np.array([[across, 0, left + across / 2 - 0.5], [0, down, top + down / 2 - 0.5]], np.float32)
    out: Any = cv2.warpAffine(picture, move, size, flags=way).astype(np.float32)
    if blur:
        out = cv2.GaussianBlur(out, (0, 0), blur)
    if sharpen:
        out = out * (1 + sharpen) - sharpen * cv2.GaussianBlur(out, (0, 0), 1.5)
    out = out * contrast + black
    if limited:
        out = 16 + out * 219 / 255
    out += np.random.default_rng(1).normal(0, noise, out.shape)
    jpeg = cv2.imencode(".jpg", np.clip(out, 0, 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    decoded = cv2.imdecode(jpeg, cv2.IMREAD_COLOR)
    assert decoded is not None
    return decoded


#: What capture devices, their scalers and codecs do: name → arguments of `captured`.
MODELS: dict[str, dict[str, Any]] = {
    "720p": {"size": (1280, 720)},
    "1080p": {"size": (1920, 1080)},
    "720p, 4:3 with bars": {"size": (1280, 720), "box": (160, 0, 1120, 720)},
    "1080p, 4:3 with bars": {"size": (1920, 1080), "box": (240, 0, 1680, 1080)},
    "1080p, soft and noisy, q60": {"size": (1920, 1080), "blur": 1.0, "noise": 6, "quality": 60},
    "720p, soft and noisy, q60": {"size": (1280, 720), "blur": 0.8, "noise": 6, "quality": 60},
    "720p, cubic, half a pixel off": {"size": (1280, 720), "box": (0.4, 0.3, 1280.4, 720.3), "way": cv2.INTER_CUBIC},
    "640x480": {"size": (640, 480)},
    "640x360": {"size": (640, 360)},
    "720p, 40 % contrast, q50": {"size": (1280, 720), "contrast": 0.4, "black": 20, "noise": 6, "quality": 50},
    "720p, a window of 640x360": {"size": (1280, 720), "box": (320, 180, 960, 540)},
    "800x600, soft": {"size": (800, 600), "blur": 0.5},
    "1080p, limited range, q50": {"size": (1920, 1080), "limited": True, "quality": 50},
    "720p, much noise": {"size": (1280, 720), "noise": 20},
    "720p, q20": {"size": (1280, 720), "quality": 20},
    "720p, sharpened": {"size": (1280, 720), "sharpen": 1.0, "quality": 70},
    "480x270": {"size": (480, 270)},
    "1080p, very soft": {"size": (1920, 1080), "blur": 2.5},
    "720p, odd margins": {"size": (1280, 720), "box": (12.3, 7.7, 1266, 711)},
    "1080p, odd margins": {"size": (1920, 1080), "box": (21, 11, 1899, 1069.4)},
    "800x600, odd margins": {"size": (800, 600), "box": (6, 5, 790, 596)},
}


def error_rate(wanted: str, got: str) -> float:
    """The character error rate: insertions, losses and mistakes (Levenshtein) for each character wanted."""
    letters = np.array([ord(char) for char in got], np.int64)
    places = np.arange(len(got) + 1)
    row = places.copy()
    for number, char in enumerate(wanted, 1):
        fresh = np.empty_like(row)
        fresh[0] = number
        fresh[1:] = np.minimum(row[1:] + 1, row[:-1] + (letters != ord(char)))
        row = np.minimum.accumulate(fresh - places) + places
    return float(row[-1]) / max(1, len(wanted))
