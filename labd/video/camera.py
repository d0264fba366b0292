"""A capture device of this machine: V4L2 on Linux, AVFoundation on macOS."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import time

import cv2

from labd.video.sources import FORMATS, READ_MS, SIZE, Captured, Lost

#: linux/videodev2.h: VIDIOC_ENUMINPUT and VIDIOC_G_INPUT, struct v4l2_input and the bits of its status.
_ENUMINPUT, _G_INPUT = 0xC050561A, 0x80045626
_INPUT = struct.Struct("<I32sIIIQII16x")
_NO_POWER, _NO_SIGNAL, _NO_SYNC = 0x1, 0x2, 0x10000
#: Seconds between asking the device whether it has a signal.
ASK_S = 0.5
#: A stamp of the driver's that is older than this is no stamp, seconds.
STAMP_S = 5.0


class Camera(Captured):
    """One capture device, at the best size that it has. `path` is its node, on macOS its index."""

    def __init__(self, path: str) -> None:
        if sys.platform == "darwin":
            super().__init__(cv2.VideoCapture(int(path), cv2.CAP_AVFOUNDATION), f"capture device {path}")
            self._fd = -1
        else:
            self._fd = _opened(path)
            # This backend takes its limit from here alone: as a parameter of the opening, it refuses the device for it.
            os.environ.setdefault("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", str(READ_MS // 1000))
            try:
                super().__init__(cv2.VideoCapture(path, cv2.CAP_V4L2), path)
            except Lost:
                os.close(self._fd)
                raise Lost(f"{path} can't be captured from: it is in use, or is no capture device") from None
        self._asked = 0.0
        self._why = ""
        self._ask_for_much()

    def _ask_for_much(self) -> None:
        """The format comes first: OpenCV's own choice may be one that the driver has to convert."""
        got = next((name for name in FORMATS if self._take_format(name)), "")
        if got != "YUYV":  # uncompressed, the largest size comes at a few frames a second
            self.capture.set(cv2.CAP_PROP_FRAME_WIDTH, SIZE[0])
            self.capture.set(cv2.CAP_PROP_FRAME_HEIGHT, SIZE[1])

    def _take_format(self, name: str) -> bool:
        code = cv2.VideoWriter.fourcc(*name)
        return bool(self.capture.set(cv2.CAP_PROP_FOURCC, code)) and int(self.capture.get(cv2.CAP_PROP_FOURCC)) == code

    def take(self) -> int:
        """As the driver stamped the frame, where it does so with the clock that we use."""
        now = super().take()
        stamp = int(float(self.capture.get(cv2.CAP_PROP_POS_MSEC)) * 1e6)
        return stamp if 0 <= now - stamp < STAMP_S * 1e9 else now

    def no_signal(self) -> str:
        """What the driver says of the input; capture sticks with their own USB chip mostly say nothing."""
        now = time.monotonic()
        if self._fd >= 0 and now - self._asked >= ASK_S:
            self._asked, self._why = now, _input_says(self._fd)
        return self._why

    def close(self) -> None:
        """Give the device back."""
        super().close()
        if self._fd >= 0:
            os.close(self._fd)


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        raise Lost(f"{path} may not be opened by this user; its group may (labd doctor says which)") from None
    except OSError as error:
        raise Lost(f"{path}: {error.strerror}") from None


def _input_says(fd: int) -> str:
    try:
        (index,) = struct.unpack("<i", fcntl.ioctl(fd, _G_INPUT, bytes(4)))
        answer = fcntl.ioctl(fd, _ENUMINPUT, _INPUT.pack(index, b"", 0, 0, 0, 0, 0, 0))
    except OSError:
        return ""
    status = _INPUT.unpack(answer)[6]
    if status & _NO_POWER:
        return "the device says that its input has no power"
    return "the device says that its input has no signal" if status & (_NO_SIGNAL | _NO_SYNC) else ""
