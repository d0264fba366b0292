"""The change detector through what capture devices do to a console's picture."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import cv2
import numpy as np
import pytest

from labd.video.change import CURSOR_S, Detector
from labd.video.frame import Grey, Picture, grey
from tests.video.camera import NOISES, console, noises

#: (size of the capture, blur, noise, JPEG quality, contrast): measured/virtual-bench's capture models, the worst too.
MODELS = {
    "exact": None,
    "720p": ((1280, 720), 0.0, 3.0, 80, 1.0),
    "1080p, blurred, noisy": ((1920, 1080), 1.0, 6.0, 60, 1.0),
    "little contrast": ((1280, 720), 0.0, 6.0, 50, 0.4),
    "blocky": ((960, 540), 0.0, 3.0, 20, 1.0),
}
#: Few: what counts is how long something lasts.
FPS = 10
PAGE = [f"[    {n}.{n * 7919 % 1000000:06d}] usb 1-{n}: new high-speed USB device number {n}" for n in range(20)]
PROMPT = [*PAGE, "", "debian login: "]


class Seen:
    """Frames of one capture model, FPS a second, given to a detector."""

    def __init__(self, model: str) -> None:
        self.model = MODELS[model]
        self.frames = 0
        self.time = 100.0
        self.detector: Detector | None = None

    def through(self, picture: Picture) -> Grey:
        """What the capture device makes of a picture."""
        if self.model is None:
            return grey(picture)
        size, blur, noise, quality, contrast = self.model
        rough = cv2.resize(grey(picture), size, interpolation=cv2.INTER_LINEAR)
        if blur:
            rough = cv2.GaussianBlur(rough, (0, 0), blur)
        self.frames += 1
        pixels = cv2.addWeighted(rough, contrast, rough, 0, 20 * (1 - contrast), dtype=cv2.CV_16S)
        pixels = np.clip(pixels + noises((size[1], size[0]), noise)[self.frames % NOISES], 0, 255).astype(np.uint8)
        data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
        return np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE), np.uint8)

    def frame(self, picture: Picture) -> bool:
        """Whether the next frame, with this picture, is a change."""
        self.time += 1 / FPS
        levels = self.through(picture)
        if self.detector is None:
            self.detector = Detector(levels)
            return True
        return self.detector.changed(levels, self.time)

    def changes(self, picture: Picture, frames: int) -> int:
        """How many changes there are in so many frames with this picture."""
        return sum(self.frame(picture) for _ in range(frames))


@functools.cache
def prompt(model: str) -> list[Grey]:
    """A second of frames with the prompt's page."""
    seen, picture = Seen(model), console(*PROMPT)
    return [seen.through(picture) for _ in range(FPS)]


@pytest.fixture(params=MODELS)
def seen(request: pytest.FixtureRequest) -> Iterator[Seen]:
    """A detector that has looked at the prompt's page for a second."""
    made = Seen(request.param)
    made.detector = Detector(prompt(request.param)[0])
    for levels in prompt(request.param)[1:]:
        made.time += 1 / FPS
        assert not made.detector.changed(levels, made.time)
    yield made


@pytest.mark.parametrize(
    "after",
    [
        pytest.param([*PAGE, "", "debian login: root"], id="a typed word"),
        pytest.param([*PAGE, "", "debian login: no"], id="two typed letters"),
        pytest.param([*PAGE, f"{'x' * 3} one more line", "debian login: "], id="a new line"),
        pytest.param(["[    0.000000] usb 1-0: old" + PAGE[0][27:], *PROMPT[1:]], id="a word became another"),
        pytest.param([*PAGE[1:], "debian login: ", ""], id="scrolled by a line"),
    ],
)
def test_sees_what_was_typed_or_printed_at_its_first_frame(seen: Seen, after: list[str]) -> None:
    assert seen.frame(console(*after))
    assert seen.changes(console(*after), 6) == 0, "it changed once"


def test_sees_an_answer_that_was_swapped(seen: Seen) -> None:
    seen.changes(console(*PAGE, "Continue? [Y/n]"), 10)
    assert seen.frame(console(*PAGE, "Continue? [y/N]"))


def test_noise_is_no_change(seen: Seen) -> None:
    assert seen.changes(console(*PROMPT), 15) == 0


@pytest.mark.parametrize("half_period", [2, 5])
def test_a_blinking_cursor_is_no_change_and_does_not_hide_what_is_typed_at_it(seen: Seen, half_period: int) -> None:
    def blink(line: str, frames: int) -> int:
        on, off = (console(*PAGE, "", line, cursor=place) for place in ((len(line), 21), None))
        return sum(seen.frame(on if n // half_period % 2 else off) for n in range(frames))

    assert blink("debian login: ", 6 * half_period) == 0
    assert blink("debian login: r", 1 + half_period * 2) == 1, "one letter, and the cursor is in the next cell"
    assert blink("debian login: r", 4 * half_period) == 0


def test_one_letter_without_a_cursor_is_seen_once_it_has_stayed(seen: Seen) -> None:
    after = console(*PAGE, "", "debian login: r")
    assert seen.changes(after, int(CURSOR_S * FPS) - 1) == 0
    assert seen.detector is not None and seen.detector.doubtful
    assert seen.changes(after, 10) == 1


def test_a_digit_that_counts_is_no_cursor(seen: Seen) -> None:
    assert sum(seen.changes(console(*PAGE, f"Hit any key: {n}"), 4) for n in range(9, 0, -1)) >= 4


def test_another_size_is_a_change() -> None:
    detector = Detector(np.zeros((400, 720), np.uint8))
    assert detector.changed(np.zeros((480, 640), np.uint8), 1.0)
    assert not detector.changed(np.zeros((480, 640), np.uint8), 2.0)


def test_a_creeping_bar_is_seen_within_a_cell() -> None:
    detector, changes = Detector(np.zeros((400, 720), np.uint8)), 0
    for n in range(90):
        picture = np.zeros((400, 720), np.uint8)
        picture[200:216, 40 : 40 + n] = 170
        changes += detector.changed(picture, n / 30)
    assert changes >= 5
