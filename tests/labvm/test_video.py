"""A capture device with Linux's own V4L2: an HDMI cable from vivid's output to its input carries a real console."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np
import pytest

from tests.labvm.conftest import HEIGHT, WIDTH, Screen, soon
from tests.labvm.vm import LabVm


@pytest.fixture(scope="module")
def cable(vm: LabVm, console: Screen) -> Iterator[None]:
    """The console's picture goes out of /dev/video1 and in at /dev/video0 for as long as the module runs."""
    form = f"width={WIDTH},height={HEIGHT},pixelformat=YUYV"
    vm.sh("v4l2-ctl -d /dev/video0 -i 3; v4l2-ctl -d /dev/video1 -o 1; "
          "for n in 0 1; do v4l2-ctl -d /dev/video$n --set-dv-bt-timings index=0; done; "
          f"v4l2-ctl -d /dev/video0 -v {form}; v4l2-ctl -d /dev/video1 -x {form}; "
          "v4l2-ctl -d /dev/video0 -c loop_video=1,osd_text_mode=2")  # fmt: skip
    vm.sh("nice v4l2-ctl -d /dev/video1 --stream-out-mmap --stream-loop --stream-count=0 "
          f"--stream-from={console.file} >/run/video-out.log 2>&1 & echo $! >/run/video-out.pid")  # fmt: skip
    yield
    vm.labd("video", "stop", "pc", check=None)
    vm.sh("kill $(cat /run/video-out.pid)", check=False)


def watched(vm: LabVm) -> None:
    """Have the screen captured: under emulation, loading OpenCV alone may take longer than a first look waits."""
    soon("the screen", lambda: vm.labd("video", "watch", "pc", check=None).code == 0, 240)


def test_a_console_that_came_over_hdmi_is_captured_to_the_pixel_and_read(vm: LabVm, console: Screen, cable: None):
    assert "vivid-000-vid-cap" in vm.labd("video", "devices").out
    watched(vm)
    vm.labd("video", "shot", "pc", "-o", "/run/bench/shot.png", "--timeout", "60000")
    shot = cv2.imdecode(np.frombuffer(vm.sh("cat /run/bench/shot.png").raw, np.uint8), cv2.IMREAD_COLOR)
    assert shot is not None and shot.shape == (HEIGHT, WIDTH, 3)
    sent = np.frombuffer(console.file.read_bytes(), np.uint8).reshape(HEIGHT, WIDTH, 2)
    grey = cv2.cvtColor(shot, cv2.COLOR_BGR2GRAY)
    assert np.mean((grey > 100) != (sent[:, :, 0] > 100)) < 0.001, "the picture is the one that was sent"
    read = [line.rstrip() for line in vm.labd("video", "read", "pc", "-q", "--timeout", "60000").out.splitlines()]
    assert [line for line in console.lines if line not in read] == [], read


def test_a_cable_that_is_pulled_is_no_signal_never_a_picture(vm: LabVm, console: Screen, cable: None):
    watched(vm)
    shot = ("video", "shot", "pc", "-o", "/run/bench/none.png", "--timeout", "5000")
    vm.sh("v4l2-ctl -d /dev/video0 -c dv_timings_signal_mode=1; sleep 2")
    try:
        missing = vm.labd(*shot, check=5)
        assert "no signal" in missing.out and vm.sh("test -e /run/bench/none.png", check=False).code
    finally:
        vm.sh("v4l2-ctl -d /dev/video0 -c dv_timings_signal_mode=0")
    soon("a picture again", lambda: vm.labd(*shot, check=None).code == 0)
    vm.labd("video", "wait", "pc", console.lines[-1], "--timeout", "90")


def test_a_capture_device_that_goes_away_is_lost_and_captured_again_when_it_is_back(vm: LabVm, cable: None):
    watched(vm)

    def told(word: str) -> int:
        return sum(
            f" {word} " in line for line in vm.labd("timeline", "pc", "--channels", "video", "-q").out.splitlines()
        )

    vm.sh("v4l2-ctl -d /dev/video0 -c disconnect=1", check=False)
    soon("the loss", lambda: told("lost"))
    soon("the device, opened again", lambda: told("back"))
    vm.labd("video", "shot", "pc", "-o", "/run/bench/again.png", "--timeout", "60000")
    assert vm.sh("head -c 4 /run/bench/again.png").raw == b"\x89PNG"
