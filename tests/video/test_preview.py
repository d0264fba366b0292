"""The page that shows a screen live: to who has its address on this machine, and to nobody else."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import cv2
import numpy as np
import pytest

from tests.conftest import BenchInAFolder, a_bench, until
from tests.video.camera import Picture, console


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchInAFolder]:
    """A bench whose target's screen is a picture's file."""
    root = tmp_path_factory.mktemp("preview")
    cv2.imwrite(str(root / "screen.png"), console("debian login: "))
    with a_bench(root) as made:
        made.lab.write_text('[targets.pico.video]\ndevice = "./screen.png"\n')
        made("video", "watch", "pico")
        yield made


def get(url: str, path: str = "", **headers: str) -> tuple[int, http.client.HTTPResponse]:
    """The status and the answer, whose body is not read yet."""
    parts = urlsplit(url)
    line = http.client.HTTPConnection(parts.netloc, timeout=10)
    line.request("GET", parts.path + path, headers=headers)
    answer = line.getresponse()
    return answer.status, answer


def next_picture(live: http.client.HTTPResponse) -> Picture:
    """The next one of a stream."""
    while not (line := live.readline()).lower().startswith(b"content-length"):
        pass
    live.readline()
    data = live.read(int(line.split(b":")[1]))
    return np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), np.uint8)


def test_the_page_shows_live_pictures_of_the_screen(bench: BenchInAFolder) -> None:
    url = bench.out("video", "preview", "pico").strip()
    assert url.startswith("http://127.0.0.1:") and bench.out("video", "preview", "pico").strip() == url
    status, page = get(url)
    assert status == 200 and b'src="live.mjpg"' in page.read()
    status, live = get(url, "live.mjpg")
    assert status == 200 and live.headers["Content-Type"].startswith("multipart/x-mixed-replace")
    picture = next_picture(live)
    assert np.abs(picture.astype(int) - console("debian login: ")).mean() < 3
    status, one = get(url, "now.jpg")
    assert status == 200 and one.read().startswith(b"\xff\xd8")
    screen = bench.root / "screen.png"
    screen.rename(bench.root / "away.png")
    try:
        until("a card in place of a picture", lambda: next_picture(live).shape == (360, 640, 3))
        assert get(url, "now.jpg")[0] == 503
    finally:
        (bench.root / "away.png").rename(screen)
    until("the screen again", lambda: next_picture(live).shape == (400, 720, 3))


def test_nothing_is_shown_to_another_page_or_name_or_without_the_secret(bench: BenchInAFolder) -> None:
    url = bench.out("video", "preview", "pico").strip()
    port = urlsplit(url).port
    for headers in (
        {"Host": f"evil.example:{port}"},
        {"Host": "127.0.0.1"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        status, answer = get(url, "now.jpg", **headers)
        assert status == 403 and "image" not in answer.headers["Content-Type"], headers
    for path in ("/", "/wrong/", "/wrong/now.jpg", "//now.jpg"):
        assert get(f"http://127.0.0.1:{port}{path}")[0] == 403
    status, answer = get(url)
    assert status == 200 and "Access-Control-Allow-Origin" not in answer.headers
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert get(url, "../secret")[0] in (403, 404)


def test_a_screen_that_is_not_captured_has_no_page(bench: BenchInAFolder) -> None:
    url = bench.out("video", "preview", "pico").strip()
    bench("video", "stop", "pico")
    with pytest.raises(OSError):
        get(url)
    assert b"labd video watch pico" in bench("video", "preview", "pico", check=7).stderr
    bench("video", "watch", "pico")
