"""Native pixels: no error, and what is not known is said to be so."""

from __future__ import annotations

import numpy as np
import pytest

from labd.ocr import exact, reader
from labd.ocr.cells import UNKNOWN
from tests.ocr.rig import draw, screen, truth, vga


@pytest.mark.parametrize(("name", "text"), [("linux_p0", "p0"), ("linux_p1", "p1"), ("linux_c0", "p0")])
def test_real_screens_are_read_without_an_error(name: str, text: str) -> None:
    page = reader.read(screen(name), fonts=[vga()])
    assert page.text == truth(text)
    assert page.hint is not None
    assert page.hint.exact
    assert page.score == 1.0
    assert all(line.confidence == 1.0 for line in page.lines)


def test_the_grid_may_begin_anywhere() -> None:
    picture = draw(vga(), truth("p1").split("\n"), (800, 600), at=(41, 103))
    page = reader.read(picture, fonts=[vga()])
    assert page.text == truth("p1")
    assert page.lines[0].box[:2] == (41, 103)


def test_what_the_font_does_not_have_is_told_apart_from_text() -> None:
    picture = screen("linux_p0")
    picture[96:112, 90:99] = np.random.default_rng(3).integers(0, 2, (16, 9, 1)) * 170
    page = reader.read(picture, fonts=[vga()])
    assert page.lines[6].text[10] == UNKNOWN
    assert page.lines[6].confidence < 1
    wanted = truth("p0").split("\n")
    assert [line.text for line in page.lines[:6]] == wanted[:6]


@pytest.mark.parametrize("thick", [1, 2, 3])
def test_a_cursor_below_a_blank_or_a_letter_is_no_text(thick: int) -> None:
    lines = ["kernel: link up, 1000Mbps", "login: root", "root@vdut:~# "]
    picture = draw(vga(), lines, (720, 400))
    picture[48 - thick : 48, 13 * 9 : 14 * 9] = 170
    assert reader.read(picture, fonts=[vga()]).lines[2].text == "root@vdut:~#"
    picture[32 - thick : 32, 9 : 2 * 9] = 170
    assert reader.read(picture, fonts=[vga()]).lines[1].text == "login: root"


def test_a_photograph_is_not_taken_for_a_drawing() -> None:
    noise = np.random.default_rng(1).integers(0, 255, (400, 720, 3), np.uint8)
    assert not exact.looks_drawn(noise)
    assert exact.looks_drawn(screen("linux_c0"))


def _logo(picture: np.ndarray, left: int, top: int) -> None:
    """A shaded disc in a frame, as firmware shows one beside its text."""
    y, x = np.mgrid[:120, :120]
    shade = np.clip(255 - np.hypot(x - 60, y - 60) * 4, 20, 255).astype(np.uint8)
    picture[top : top + 120, left : left + 120] = np.dstack([shade, shade // 2, 255 - shade])


def test_a_logo_beside_the_text_is_no_text() -> None:
    picture = draw(vga(), truth("p1").split("\n")[:9], (1024, 768))
    _logo(picture, 880, 5)
    page = reader.read(picture, fonts=[vga()])
    assert page.text == "\n".join(truth("p1").split("\n")[:9])
    assert page.score == 1.0


def test_a_line_of_text_is_found_where_a_logo_and_a_bar_have_grids_of_their_own() -> None:
    line = "pci 0000:4e:4f.5: BAR 1: assigned"
    picture = draw(vga(), [line], (1280, 800), at=(243, 125))
    _logo(picture, 543, 371)
    for block in range(100):
        picture[768:784, block * 12 : block * 12 + 11] = 255
    page = reader.read(picture, fonts=[vga()])
    assert page.text.strip() == line
    assert page.lines[0].box[:2] == (243, 125)
