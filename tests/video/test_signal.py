"""What is a picture of a screen, and what is a capture device's own."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from labd.video import signal
from labd.video.frame import Picture
from tests.video.camera import console


def noisy(picture: Picture, strength: float = 3.0) -> Picture:
    rough = picture + np.random.default_rng(3).normal(0, strength, picture.shape)
    data = cv2.imencode(".jpg", np.clip(rough, 0, 255).astype(np.uint8))[1]
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8)


def plain(*colour: int) -> Picture:
    return np.full((720, 1280, 3), colour, np.uint8)


def bars(height: int = 720) -> Picture:
    colours = [(191, 191, 191), (0, 191, 191), (191, 191, 0), (0, 191, 0), (191, 0, 191), (0, 0, 191), (191, 0, 0)]
    return np.repeat(np.repeat(np.array([colours], np.uint8), 183, axis=1), height, axis=0)[:, :1280]


@pytest.mark.parametrize("text", ["login: ", "Press F2 for setup", "_", "#"])
@pytest.mark.parametrize("size", [(720, 400), (1280, 720), (1920, 1080)])
def test_a_screen_with_one_short_prompt_is_a_picture(text: str, size: tuple[int, int]) -> None:
    assert signal.missing(console(text, size=size)) == ""
    assert signal.missing(noisy(console(text, size=size))) == ""


@pytest.mark.parametrize("colour", [(0, 0, 0), (255, 0, 0), (40, 40, 40)])
def test_a_plain_colour_is_no_signal_and_named(colour: tuple[int, int, int]) -> None:
    blue, green, red = colour
    assert f"#{red:02x}{green:02x}{blue:02x}" in signal.missing(plain(*colour))
    assert "one plain colour" in signal.missing(noisy(plain(*colour)))


def test_colour_bars_are_no_signal_also_with_a_legend_below() -> None:
    assert "colour bars" in signal.missing(noisy(bars()))
    assert "colour bars" in signal.missing(np.vstack([bars(500), plain(20, 20, 20)[:220]]))


def test_a_page_of_columns_is_a_picture() -> None:
    rows = [" ".join(["abc  def"] * 9)] * 20
    assert signal.missing(console(*rows)) == ""
