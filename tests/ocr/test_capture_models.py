"""Consoles through capture devices of unknown geometry: below half a percent of wrong characters."""

from __future__ import annotations

import pytest

from labd.ocr import reader
from tests.ocr.rig import MODELS, captured, draw, error_rate, screen, truth, vga

#: What the colours of each word may cost, where they cost anything: (codec, scale, contrast).
COLOURED = {"720p, 40 % contrast, q50": 0.06, "480x270": 0.05, "1080p, very soft": 0.02, "720p, q20": 0.02,
            "720p, a window of 640x360": 0.04, "640x360": 0.01}  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_a_mono_page_is_read_through_every_model(model: str) -> None:
    page = reader.read(captured(screen("linux_p0"), **MODELS[model]), fonts=[vga()])
    assert page.engine == "console", page.why
    assert error_rate(truth("p0"), page.text) < 0.005
    assert page.grid is not None
    assert (page.grid.columns, page.grid.rows) == (80, 25)
    assert page.score > 0.9


@pytest.mark.parametrize("model", ["720p", "1080p, 4:3 with bars", "640x480", "720p, q20", "720p, 40 % contrast, q50"])
def test_a_page_with_a_colour_for_each_word(model: str) -> None:
    page = reader.read(captured(screen("linux_c0"), **MODELS[model]), fonts=[vga()])
    assert page.engine == "console", page.why
    assert error_rate(truth("p0"), page.text) <= COLOURED.get(model, 0.005)


def test_text_of_the_brightness_of_its_background_is_read_by_its_colour() -> None:
    lines = truth("p1").split("\n")
    picture = draw(vga(), lines, (720, 400), ink=(0, 0, 170), ground=(170, 27, 0))
    page = reader.read(captured(picture, (1280, 720)), fonts=[vga()], engine="console")
    assert error_rate(truth("p1"), page.text) < 0.01


def test_inverse_video() -> None:
    page = reader.read(captured(255 - screen("linux_p0"), (1280, 720), noise=6, quality=60), fonts=[vga()])
    assert error_rate(truth("p0"), page.text) < 0.005


@pytest.mark.parametrize("text", ["login:", "Press F2 for setup", "=>"])
def test_a_screen_with_next_to_nothing_on_it(text: str) -> None:
    picture = draw(vga(), ["", text], (720, 400))
    for model in ("1080p", "720p, 4:3 with bars"):
        page = reader.read(captured(picture, **MODELS[model]), fonts=[vga()])
        assert page.text == text, (model, page.why)


def test_the_hint_finds_the_grid_again_and_survives_a_change_of_mode() -> None:
    first = reader.read(captured(screen("linux_p0"), (1280, 720)), fonts=[vga()])
    second = reader.read(captured(screen("linux_p1"), (1280, 720)), fonts=[vga()], hint=first.hint)
    assert second.hint is first.hint
    assert error_rate(truth("p1"), second.text) < 0.005
    other = reader.read(captured(screen("linux_p1"), (1280, 720), box=(160, 0, 1120, 720)), fonts=[vga()],
                        hint=first.hint)  # fmt: skip
    assert other.hint is not first.hint
    assert error_rate(truth("p1"), other.text) < 0.005


def test_a_region_is_read_alone_and_its_boxes_are_of_the_whole_picture() -> None:
    page = reader.read(screen("linux_p0"), fonts=[vga()], region=(0, 32, 720, 64))
    assert page.text == "\n".join(truth("p0").split("\n")[2:4])
    assert [line.box for line in page.lines] == [(0, 32, 47 * 9, 48), (0, 48, 79 * 9, 64)]
