"""What pictures come from: a capture device, a stream, a file, a virtual board. Each is owned by one thread.

A source raises Lost when it has no picture to give any more: it is closed then and opened anew. `take` waits for the
next picture; `picture` decodes what was taken, so that pictures nobody looks at cost little.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from typing import Any

import cv2
import numpy as np

from labd.lab.redact import redact
from labd.video.frame import Picture
from labd.video.names import Found

#: How long a stream may take to open, and to give its next frame, ms. OpenCV's own defaults are 30 s.
OPEN_MS, READ_MS = 5000, 4000
#: The largest size that a capture device is asked for; it gives the nearest that it has.
SIZE = (1920, 1080)
#: Picture formats that a capture device is asked for, best first: MJPEG fits through USB 2 at full rate.
FORMATS = ("MJPG", "YUYV")
#: A picture's file is looked at this often by itself, seconds.
FILE_S = 0.1


class Lost(Exception):
    """The source has no picture to give; the words say why."""


class Source(ABC):
    """One open source."""

    #: Seconds between two pictures, where they come when asked for; None where they come by themselves.
    every_s: float | None = None
    #: Whether what it shows is of before the target was reset (`why`), and the content has not changed since.
    stale = ""

    #: Before this moment nothing of the picture that was taken had come in, monotonic ns; None: as `take` says.
    floor_ns: int | None = None

    @abstractmethod
    def take(self) -> int:
        """Wait for the next picture; when it was taken, monotonic ns. Raises Lost."""

    def poke(self) -> None:  # noqa: B027 - only streams need it
        """Somebody waits for a new picture from now on. Called from other threads."""

    @abstractmethod
    def picture(self) -> Picture:
        """The picture that was taken. Raises Lost."""

    def no_signal(self) -> str:
        """Why the device itself says that it has no signal; empty when it does not say so."""
        return ""

    def seen(self, *, changed: bool) -> None:  # noqa: B027 - most need not know
        """Hears of each picture that was looked at whether its content had changed."""

    def close(self) -> None:  # noqa: B027 - a file holds nothing
        """Let go of what it holds."""


def open_source(found: Found) -> Source:
    """Open what a device's name led to. Raises Lost."""
    if found.kind == "board":
        from labd.video.boardscreen import BoardScreen

        return BoardScreen(found.where)
    if found.kind == "picture":
        return PictureFile(found.where)
    if found.kind == "film":
        return Film(found.where)
    if found.kind == "url":
        return _open_url(found.where)
    from labd.video.camera import Camera

    return Camera(found.where)


def _open_url(url: str) -> Source:
    """An MJPEG stream by our own hands where it is one; by FFmpeg whatever it opens."""
    from labd.video.mjpeg import Mjpeg, NoMjpeg

    if url.lower().startswith("http://"):
        try:
            return Mjpeg(url)
        except NoMjpeg:
            pass
    return Stream(url)


class Captured(Source):
    """Whatever OpenCV captures from. `capture` is open."""

    def __init__(self, capture: Any, what: str) -> None:
        if not capture.isOpened():
            capture.release()
            raise Lost(f"{what} can't be opened")
        self.capture = capture
        self.what = what

    def take(self) -> int:
        """Blocks at most as long as the capture's own time limit."""
        if not self.capture.grab():
            raise Lost(f"{self.what} gives no more frames")
        return time.monotonic_ns()

    def picture(self) -> Picture:
        """In colour, whatever the device delivers."""
        done, picture = self.capture.retrieve()
        if not done or picture is None or not picture.size:
            raise Lost(f"{self.what} delivers frames that can't be decoded")
        return in_colour(picture)

    def close(self) -> None:
        """In the thread that reads: OpenCV must not be released while a read blocks."""
        self.capture.release()


class Stream(Captured):
    """RTSP and whatever else FFmpeg opens. It can't tell how long a frame has waited in a socket."""

    def __init__(self, url: str) -> None:
        limits = [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, OPEN_MS, cv2.CAP_PROP_READ_TIMEOUT_MSEC, READ_MS,
                  cv2.CAP_PROP_N_THREADS, 1]  # fmt: skip
        super().__init__(cv2.VideoCapture(url, cv2.CAP_FFMPEG, limits), redact(url))


class Film(Captured):
    """A video file, played at its own pace; it is lost at its end, and so begins again."""

    def __init__(self, path: str) -> None:
        super().__init__(cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1]), path)
        rate = float(self.capture.get(cv2.CAP_PROP_FPS))
        self._step_s = 1 / rate if 1 <= rate <= 240 else 1 / 25
        self._began = time.monotonic()
        self._count = 0

    def take(self) -> int:
        """Waits until the next frame is due."""
        due = self._began + self._count * self._step_s
        time.sleep(max(0.0, due - time.monotonic()))
        self._count += 1
        if not self.capture.grab():
            raise Lost(f"{self.what} has been played to its end")
        return time.monotonic_ns()


class PictureFile(Source):
    """A picture's file: what it shows now. For tests and demonstrations."""

    every_s = FILE_S

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._picture: Picture | None = None
        self.take()

    def take(self) -> int:
        """Read the file again where it is another one by now."""
        now_ns = time.monotonic_ns()
        try:
            facts = os.stat(self._path)
        except OSError as error:
            raise Lost(f"{self._path}: {error.strerror}") from None
        seen = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        if seen != self._seen:
            picture = cv2.imread(self._path, cv2.IMREAD_COLOR)
            if picture is None:
                raise Lost(f"{self._path} is no picture that OpenCV can read")
            self._seen, self._picture = seen, in_colour(picture)
        return now_ns

    def picture(self) -> Picture:
        """What was read last."""
        assert self._picture is not None
        return self._picture


def in_colour(picture: Any) -> Picture:
    """Blue, green and red, 8 bits each, in an array of its own: a capture may use its buffer again."""
    array = np.asarray(picture)
    if array.dtype != np.uint8:
        array = (array >> 8).astype(np.uint8) if array.dtype == np.uint16 else array.astype(np.uint8)
    if array.ndim == 2:
        array = np.asarray(cv2.cvtColor(array, cv2.COLOR_GRAY2BGR))
    elif array.shape[2] == 4:
        array = np.asarray(cv2.cvtColor(array, cv2.COLOR_BGRA2BGR))
    return np.ascontiguousarray(array)
