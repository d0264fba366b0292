"""What the lab calls a capture device, and what that opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labd.errors import NotFound
from labd.video.names import look_up

DEVICES: list[dict[str, Any]] = [
    {"index": 0, "device": "/dev/video0", "name": "Integrated Camera", "id": None},
    {"index": 2, "device": "/dev/video2", "name": "USB3. 0 capture", "id": "/dev/v4l/by-id/usb-MACROSILICON_2109"},
    {"index": 4, "device": "/dev/video4", "name": "USB3. 0 capture", "id": "/dev/v4l/by-id/usb-MACROSILICON_2130"},
]


@pytest.mark.parametrize(
    ("word", "node"),
    [("0", "/dev/video0"), ("4", "/dev/video4"), ("integrated", "/dev/video0"), ("2109", "/dev/video2"),
     ("usb-MACROSILICON_2130", "/dev/video4")],
)  # fmt: skip
def test_index_id_and_a_unique_part_of_a_name_mean_a_device(word: str, node: str) -> None:
    assert look_up(word, DEVICES).where == node


def test_a_part_that_means_two_is_refused_with_both() -> None:
    with pytest.raises(NotFound, match=r"means 2 capture devices: 2 .*2109.*4 .*2130"):
        look_up("macrosilicon", DEVICES)


def test_what_is_not_there_is_told_with_what_is() -> None:
    with pytest.raises(NotFound, match="there are Integrated Camera"):
        look_up("elgato", DEVICES)
    with pytest.raises(NotFound) as raised:
        look_up("Integrated Camara", DEVICES)
    assert raised.value.near == ["Integrated Camera"]
    with pytest.raises(NotFound, match="there is no /dev/video9"):
        look_up("/dev/video9", DEVICES)


def test_urls_files_and_boards(tmp_path: Path) -> None:
    film = tmp_path / "boot.mp4"
    film.touch()
    assert look_up("rtsp://cam/1", DEVICES).kind == "url"
    assert look_up(str(tmp_path / "a.PNG"), DEVICES).kind == "picture"
    assert look_up(str(film), DEVICES).kind == "film"
    assert look_up("qmp:/run/x/qmp-video", DEVICES).where == "/run/x/qmp-video"
