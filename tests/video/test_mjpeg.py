"""Frames cut out of multipart streams as servers send them, and how old they may be."""

from __future__ import annotations

import http.server
import threading
import time

import pytest

from labd.video.mjpeg import Mjpeg, NoMjpeg, Parts
from labd.video.sources import Lost
from tests.video.camera import Camera, console

FRAMES = [b"\xff\xd8 one \r\n\xff\xd9", b"\xff\xd8 two \xff\xd9", b"\xff\xd8 three \xff\xd9"]


def stream(*, length: bool, trailing: bool) -> bytes:
    """Three frames; with lengths or without, the boundary before or behind each."""
    kind = b"Content-Type: image/jpeg\r\n"
    lengths = [b"content-length: %d\r\n" % len(frame) if length else b"" for frame in FRAMES]
    parts = [kind + told + b"\r\n" + frame for told, frame in zip(lengths, FRAMES, strict=True)]
    whole = b"--x\r\n" + b"\r\n--x\r\n".join(parts)
    return whole + (b"\r\n--x\r\n" if trailing else b"\r\n")


@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("size", [1, 5, 4096])
def test_frames_come_out_whole_whatever_the_pieces(length: bool, size: int) -> None:
    data, parts, found = stream(length=length, trailing=True), Parts(b"x", b""), []
    for start in range(0, len(data), size):
        frame = parts.feed(data[start : start + size], start)
        found += [frame[0]] if frame else []
    assert found == (FRAMES if size < 10 else FRAMES[-1:]), "of several at once only the newest"


def test_a_frame_is_as_old_as_its_first_byte_may_be() -> None:
    data = stream(length=True, trailing=False)
    cut = data.index(b"two")
    parts = Parts(b"x", b"")
    assert parts.feed(data[:cut], 100) == (FRAMES[0], 100)
    assert parts.feed(data[cut:], 200) == (FRAMES[2], 200), "the third came after everything had been read at 200"
    parts = Parts(b"--x", data[:cut])
    assert parts.feed(data[cut : cut + 10], 300) == (FRAMES[1], 0), "its beginning was there before"


@pytest.mark.parametrize("data", [b"a" * 70000, b"--x\r\nContent-Length: 99999999999\r\n\r\n"])
def test_what_is_no_such_stream_is_a_loss(data: bytes) -> None:
    with pytest.raises(Lost, match="no MJPEG"):
        Parts(b"x", b"").feed(data, 0)


def test_a_reader_that_was_held_up_gets_the_newest_frame_and_knows_what_is_old() -> None:
    with Camera(fps=50) as camera:
        camera.show(console("before"))
        source = Mjpeg(camera.url)
        source.take()
        time.sleep(0.5)  # held up; some 25 frames wait in the socket
        asked_ns = time.monotonic_ns()
        source.take()
        assert source.floor_ns is not None and source.floor_ns < asked_ns, "it may be older than the request"
        source.take()
        assert source.floor_ns is not None and source.floor_ns > asked_ns
        source.close()


def test_a_sender_that_knows_no_pace_is_read_at_ours() -> None:
    with Camera(fps=1e6) as camera:
        camera.show(console(*["line after line"] * 20, size=(1280, 720)))
        source = Mjpeg(camera.url)
        asked_ns = time.monotonic_ns()
        until = time.monotonic() + 20
        while source.floor_ns is None or source.floor_ns < asked_ns:
            assert time.monotonic() < until, "it never knows of a frame that it is new"
            source.take()
            time.sleep(0.01)
        source.close()


def test_other_answers_are_left_to_ffmpeg_and_no_answer_is_a_loss() -> None:
    class Page(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/page" else 302)
            self.send_header("Content-Type", "text/html")
            self.end_headers()

    server = http.server.HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        for path in ("page", "moved"):
            with pytest.raises(NoMjpeg):
                Mjpeg(f"http://127.0.0.1:{server.server_port}/{path}")
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(Lost, match="can't be opened"):
        Mjpeg(f"http://127.0.0.1:{server.server_port}/page")
