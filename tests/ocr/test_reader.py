"""Which engine reads, what is said where nothing can be read, and whatever comes as a picture."""

from __future__ import annotations

import shutil
import time

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from labd.errors import Usage
from labd.ocr import reader, tess
from labd.ocr.library import NO_FONT
from labd.ocr.page import Line
from tests.ocr.rig import screen, truth, vga

RNG = np.random.default_rng(7)


def _no_tesseract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tess, "program", lambda: None)


@pytest.mark.parametrize(
    ("picture", "why"),
    [
        (np.zeros((720, 1280, 3), np.uint8), "of one colour"),
        (np.full((480, 640, 3), 93, np.uint8), "of one colour"),
        (np.zeros((1, 1, 3), np.uint8), "too small"),
        (np.zeros((7, 4000, 3), np.uint8), "too small"),
        (RNG.integers(0, 255, (300, 400, 3), np.uint8), "tesseract is not installed"),
        (np.tile(np.arange(640, dtype=np.uint8)[None, :, None], (480, 1, 3)), "tesseract is not installed"),
        (cv2.resize(RNG.integers(0, 255, (18, 32, 3), np.uint8), (640, 360), interpolation=cv2.INTER_CUBIC),
         "tesseract is not installed"),
        (np.kron(np.arange(8, dtype=np.uint8)[None, :, None] * 36, np.ones((400, 80, 3), np.uint8)),
         "tesseract is not installed"),
    ],
    ids=["black", "grey", "1x1", "a strip", "noise", "a ramp", "clouds", "bars"],
)  # fmt: skip
def test_no_text_is_no_text_and_says_why(monkeypatch: pytest.MonkeyPatch, picture: object, why: str) -> None:
    _no_tesseract(monkeypatch)
    page = reader.read(np.asarray(picture), fonts=[vga()])
    assert (page.engine, page.text, page.lines) == ("none", "", [])
    assert why in page.why


def test_without_any_font_it_says_where_fonts_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    _no_tesseract(monkeypatch)
    page = reader.read(screen("linux_p0"), fonts=[])
    assert not page.lines
    assert NO_FONT in page.why
    assert tess.MISSING in page.why


def test_the_console_reader_wins_where_it_is_sure_and_tesseract_is_not_even_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tess, "read", lambda *args: pytest.fail("tesseract was asked"))
    page = reader.read(screen("linux_p0"), fonts=[vga()])
    assert page.engine == "console"
    assert "vga" in page.why


def test_the_surer_one_wins_where_the_console_reader_is_not_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = np.full((480, 640, 3), 20, np.uint8)
    cv2.putText(picture, "Welcome to the installer", (40, 200), cv2.FONT_HERSHEY_DUPLEX, 1.2, (255, 255, 255), 2)
    said = [Line("Welcome to the installer", 0.93, (40, 170, 560, 210))]
    monkeypatch.setattr(tess, "read", lambda *args: said)
    page = reader.read(picture, fonts=[vga()])
    assert (page.engine, page.text) == ("tesseract", "Welcome to the installer")
    assert "0.93 sure" in page.why
    monkeypatch.setattr(tess, "read", lambda *args: [Line("Vl~lc0rne", 0.35, (40, 170, 560, 210))])
    page = reader.read(picture, fonts=[vga()])
    assert page.engine == "none"
    assert "only 0.35 sure" in page.why


def test_an_engine_that_was_asked_for_is_the_one() -> None:
    noise = RNG.integers(0, 255, (200, 300, 3), np.uint8)
    page = reader.read(noise, fonts=[vga()], engine="console")
    assert page.engine == "none"
    assert "tesseract" not in page.why
    with pytest.raises(Usage, match="no engine"):
        reader.read(noise, engine="guess")


@pytest.mark.parametrize("region", [(0, 0, 0, 10), (-1, 0, 5, 5), (0, 0, 721, 5), (9, 9, 3, 3)])
def test_a_region_outside_the_picture_is_refused(region: tuple[int, int, int, int]) -> None:
    with pytest.raises(Usage, match="720x400"):
        reader.read(screen("linux_p0"), region=region)


@pytest.mark.parametrize(
    "bad", [np.zeros((0, 0, 3), np.uint8), np.zeros((4, 4), np.float32), np.zeros((2, 2, 7), np.uint8)]
)
def test_what_is_no_picture_is_refused(bad: object) -> None:
    with pytest.raises(Usage):
        reader.read(np.asarray(bad))


def test_grey_and_transparent_pictures_are_pictures() -> None:
    grey = cv2.cvtColor(screen("linux_p0"), cv2.COLOR_BGR2GRAY)
    assert reader.read(grey, fonts=[vga()]).text == truth("p0")
    clear = cv2.cvtColor(screen("linux_p0"), cv2.COLOR_BGR2BGRA)
    assert reader.read(clear, fonts=[vga()]).text == truth("p0")


def test_a_huge_picture_is_read_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    _no_tesseract(monkeypatch)
    huge = cv2.resize(screen("linux_p0"), (5760, 3200), interpolation=cv2.INTER_CUBIC)
    began = time.monotonic()
    page = reader.read(huge, fonts=[vga()])
    assert time.monotonic() - began < 20
    assert page.text == truth("p0")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(arrays.arrays(np.uint8, st.tuples(st.integers(1, 48), st.integers(1, 64), st.just(3))))
def test_any_small_picture_gives_a_page(picture: np.ndarray) -> None:
    page = reader.read(picture, fonts=[vga()], engine="console")
    assert page.engine in ("console", "none")
    assert page.why


@pytest.mark.skipif(not shutil.which("tesseract"), reason="tesseract is not installed")
def test_a_proportional_font_is_read_by_the_real_tesseract() -> None:
    picture = np.full((300, 900, 3), 20, np.uint8)
    cv2.putText(picture, "Welcome to the installer", (60, 150), cv2.FONT_HERSHEY_DUPLEX, 1.5, (255, 255, 255), 2)
    page = reader.read(picture, fonts=[vga()])
    assert (page.engine, page.text) == ("tesseract", "Welcome to the installer")
    left, top, right, bottom = page.lines[0].box
    assert 50 < left < 80
    assert 100 < top < bottom < 180
    assert right < 800
