"""The capture process alone: what it says of itself, and that a camera which never comes back ends it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import pytest

from labd.video.wire import Unpacker, pack
from tests.video.camera import console

#: The process with a shorter patience.
IMPATIENT = "import labd.video.worker as w; w.WEDGED_S = 0.5; w.ALIVE_S = 0.1; w.main()"


class Process:
    """A capture process and what it says."""

    def __init__(self, code: str = "import labd.video.worker as w; w.main()") -> None:
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._unpacker = Unpacker()
        self._heard: list[tuple[dict[str, Any], bytes]] = []

    def say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(pack(message))
        self.process.stdin.flush()

    def hear(self, **wanted: Any) -> tuple[dict[str, Any], bytes]:
        """The next message with these fields."""
        assert self.process.stdout is not None
        while True:
            for n, (message, _) in enumerate(self._heard):
                if wanted.items() <= message.items():
                    found = self._heard[n]
                    self._heard = self._heard[n + 1 :]
                    return found
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, f"it ended without saying {wanted}"
            self._heard += self._unpacker.feed(data)


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    """Those that are ended with the test."""
    made: list[Process] = []
    yield made
    for each in made:
        each.process.kill()
        each.process.wait()


def test_it_answers_while_it_captures_and_ends_with_its_stdin(processes: list[Process], tmp_path: Path) -> None:
    path = tmp_path / "screen.png"
    cv2.imwrite(str(path), console("login: "))
    worker = Process()
    processes.append(worker)
    worker.hear(news="ready")
    worker.say({"do": "open", "device": str(path)})
    worker.hear(news="back")
    worker.say({"id": 2, "do": "dance"})
    assert worker.hear(id=2)[0]["error"]["kind"] == "usage"
    worker.hear(news="alive")
    worker.say({"id": 3, "do": "grab", "timeout_ms": 5000})
    answer, png = worker.hear(id=3)
    assert answer["ok"]["frame"]["width"] == 720 and png.startswith(b"\x89PNG")
    assert worker.process.stdin is not None
    worker.process.stdin.close()
    assert worker.process.wait(10) == 0


def test_a_camera_that_never_comes_back_ends_it_with_the_reason(processes: list[Process], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stuck.png")  # OpenCV waits for ever for somebody to write
    worker = Process(IMPATIENT)
    processes.append(worker)
    worker.hear(news="ready")
    worker.say({"do": "open", "device": str(tmp_path / "stuck.png")})
    told, _ = worker.hear(news="wedged")
    assert "has not answered" in told["why"]
    assert worker.process.wait(10) == 0


def test_a_broken_picture_is_a_loss_and_not_the_end(processes: list[Process], tmp_path: Path) -> None:
    path = tmp_path / "screen.png"
    path.write_bytes(b"no picture")
    worker = Process()
    processes.append(worker)
    worker.say({"do": "open", "device": str(path)})
    assert "is no picture" in worker.hear(news="lost")[0]["why"]
    cv2.imwrite(f"{path}.png", console("login: "))
    os.replace(f"{path}.png", path)
    worker.hear(news="back")


def test_a_film_is_played_and_begins_again(processes: list[Process], tmp_path: Path) -> None:
    path = tmp_path / "boot.avi"
    film = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 20, (720, 400))
    for n in range(30):
        film.write(console(f"line {n // 10}" * 3))
    film.release()
    worker = Process()
    processes.append(worker)
    worker.say({"do": "open", "device": str(path)})
    worker.hear(news="back")
    worker.hear(news="changed")
    assert "played to its end" in worker.hear(news="lost")[0]["why"]
    worker.hear(news="back")
